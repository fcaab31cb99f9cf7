import type { PluginReview } from "../../engine/workspace_plugins.ts";
import { KINDS } from "../../plugins/hooks.ts";
import type { PluginInfo } from "../../plugins/discovery.ts";
import { needPlugin, type PluginsContext } from "./find.ts";
import { table } from "../table.ts";

interface Shown {
  value: unknown;
  text: string;
}

/** All plugins with their status as a load now finds it. */
export async function listPlugins({ workspace }: PluginsContext): Promise<Shown> {
  const { plugins } = (await workspace.reviewPlugins()).contributions;
  const rows = plugins.map(({ name, version, origin, status, reason, description }) => [
    name,
    version,
    origin,
    status,
    reason || description,
  ]);
  return {
    value: plugins.map(brief),
    text: table(rows.map((row) => row.map((cell) => cell.replace(/\s+/g, " ")))),
  };
}

/** One plugin: its manifest, its status, and what it registers. */
export async function showPlugin({ workspace }: PluginsContext, name: string): Promise<Shown> {
  const review = await workspace.reviewPlugins();
  const plugin = needPlugin(review.contributions.plugins, name);
  const registers = registered(review, plugin.name);
  const { version, origin, path, status, reason, description, manifest } = plugin;
  const { entry, requires, source, provides, ...rest } = manifest;
  const ranges = ["polyglav_version", "deno", "python"] as const;
  const facts: [string, string][] = [
    ["status", reason === "" ? status : `${status}: ${reason}`],
    ["description", description],
    ["folder", path],
    ["entry", origin === "bundled" ? "" : entry],
    ["source", source],
    ["requires", requires.join(", ")],
    ...ranges.map((key): [string, string] => [key, rest[key]]),
    ...KINDS.map((kind): [string, string] => [kind, listing(registers[kind], provides[kind])]),
  ];
  return {
    value: { ...brief(plugin), manifest, registers },
    text: `${plugin.name} ${version} (${origin})\n` +
      facts.filter(([, said]) => said !== "").map(([key, said]) => `${key}: ${said}\n`).join(""),
  };
}

/** The names that a plugin has registered, by kind. */
export function registered(
  { contributions, tools }: PluginReview,
  owner: string,
): Record<string, string[]> {
  const { providers, commands, served, roles, teams, skills, fixtures } = contributions;
  const own = <T extends { owner: string }>(list: T[]) =>
    list.filter((each) => each.owner === owner);
  const found: Record<string, string[]> = {
    tools: tools.list().map(({ name }) => name).filter((name) => tools.owner(name) === owner),
    providers: own(providers).map(({ name }) => name),
    commands: own(commands).map(({ definition }) => definition.name),
    services: [...new Set(own(served).map(({ name }) => name))],
    roles: own(roles).map(({ entry }) => entry.name),
    teams: own(teams).map(({ entry }) => entry.name),
    skills: own(skills).map(({ entry }) => entry.name),
    fixtures: own(fixtures).map(({ fixture }) => fixture.id),
  };
  return Object.fromEntries(Object.entries(found).filter(([, names]) => names.length > 0));
}

function brief({ name, version, description, origin, path, status, reason, manifest }: PluginInfo) {
  return { name, version, description, origin, path, status, reason, source: manifest.source };
}

/** What is registered; what is only declared is marked. */
function listing(names: string[] = [], declared: string[] = []): string {
  const missing = declared.filter((name) => !names.includes(name));
  return [...names, ...missing.map((name) => `${name} (declared)`)].join(", ");
}
