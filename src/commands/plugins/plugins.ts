import { join, resolve } from "node:path";
import type { PluginReview } from "../../engine/workspace.ts";
import { VERSION } from "../../platform/environment.ts";
import { SvcError } from "../../platform/error.ts";
import { stripControl } from "../../platform/terminal.ts";
import { readRequirement } from "../../plugins/dependencies.ts";
import type { PluginInfo } from "../../plugins/discovery.ts";
import { KINDS } from "../../plugins/hooks.ts";
import { runTests, scaffold, testFiles } from "../../plugins/scaffold.ts";
import { defineCommand, outputOption, pathOption, textOption } from "../command.ts";
import { listText, printLists } from "../format.ts";
import { toJson } from "../io.ts";
import { nameOf, pathOf } from "../names.ts";
import { openWorkspace } from "../workspace.ts";
import {
  addToLists,
  disable,
  enable,
  installOne,
  needPlugin,
  type PluginsContext,
  rootOf,
  trustLocal,
  uninstall,
  updateAll,
} from "./change.ts";
import { argument, command, multiple, option, optional, string } from "../options.ts";

const newName = argument(string("NAME"), "The plugin.");
const name = argument(nameOf("plugins"), "The plugin.");
const deps = option(
  "--deps",
  "Also install the npm packages that it requires, into its own folder.",
);
const global = option(
  "--global",
  "For all worktrees, in ~/.config/svc; default: for this one, in .svc.",
);
const local = option("--local", "In this worktree's settings.");

const list = command(
  "list",
  { action: "list", output: outputOption, path: pathOption },
  "List the plugins, where each comes from, and its status.",
);
const show = command(
  "show",
  { action: "show", name, output: outputOption, path: pathOption },
  "Show one plugin: its manifest, its status, and what it registers.",
);
const install = command("install", {
  action: "install",
  source: argument(
    pathOf("SOURCE"),
    "A Git URL, with a branch or tag behind #, or the path of a folder.",
  ),
  global,
  deps,
  path: pathOption,
}, "Install a plugin, and enable it.");
const update = command("update", {
  action: "update",
  names: multiple(
    argument(nameOf("plugins"), "The plugins; default: all that were installed with svc."),
  ),
  deps,
  path: pathOption,
}, "Fetch plugins again from where they were installed from.");
const remove = command(
  "uninstall",
  { action: "uninstall", name, global, path: pathOption },
  "Remove a plugin's files, and its name from the settings.",
);
const on = command(
  "enable",
  { action: "enable", name, global, local, path: pathOption },
  "Add a plugin to the list of those that load.",
);
const off = command(
  "disable",
  { action: "disable", name, global, local, path: pathOption },
  "Remove a plugin from the list of those that load.",
);
const create = command("new", {
  action: "new",
  name: newName,
  global,
  folder: textOption("--dir", pathOf("DIR"), "Write it into this folder, and do not enable it."),
  path: pathOption,
}, "Write a plugin to start from: a typed tool, a command and a test.");
const test = command("test", {
  action: "test",
  name: optional(argument(nameOf("plugins"), "The plugin; default: all that are not bundled.")),
  path: pathOption,
}, "Check that plugins load, and run their tests (*_test.ts).");

/** `svc plugins` (specification 2.9, 3.5, 4.4, 4.9): what is installed, and changes to it. */
export const plugins = defineCommand({
  parser: command(
    "plugins",
    [list, show, install, update, remove, on, off, create, test],
    "List, install, update and remove plugins, and write your own.",
  ),
  bare: "list",
  examples: [
    "svc plugins",
    "svc plugins new word-tools",
    "svc plugins test word-tools",
    "svc plugins install https://github.com/you/word-tools#v1.2 --deps",
    "svc plugins install ./word-tools --global",
    "svc plugins update",
    "svc plugins disable svc-core-exec",
  ],
  async run(values, io) {
    const workspace = openWorkspace(values.path, io);
    const context = { workspace, io };
    const print = ({ value, text }: { value: unknown; text: string }) => {
      const json = "output" in values && values.output === "json";
      if (json) io.out(toJson(value, 2) + "\n");
      else printLists(io, stripControl(text));
      return 0;
    };
    switch (values.action) {
      case "list":
        return print(await listPlugins(context));
      case "show":
        return print(await showPlugin(context, values.name));
      case "install":
        return await installOne(context, values);
      case "update":
        return await updateAll(context, values);
      case "uninstall":
        return await uninstall(context, values);
      case "enable":
        return await enable(context, values);
      case "disable":
        return await disable(context, values);
      case "new":
        return await newPlugin(context, values);
      case "test":
        return await testPlugins(context, values.name);
    }
  },
});

interface Shown {
  value: unknown;
  text: string;
}

/** All plugins with the status of a load now. */
export async function listPlugins({ workspace, io }: PluginsContext): Promise<Shown> {
  const { plugins } = (await workspace.reviewPlugins()).contributions;
  const rows = plugins.map(({ name, version, origin, status, reason, description }) => [
    name,
    version,
    origin,
    status,
    reason === "" || description === "" ? reason || description : `${description} (${reason})`,
  ]);
  return {
    value: plugins.map(brief),
    text: listText(
      io,
      ["PLUGIN", "VERSION", "ORIGIN", "STATUS", "DESCRIPTION"],
      rows.map((row) => row.map((cell) => cell.replace(/\s+/g, " "))),
    ),
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
      facts.filter(([, value]) => value !== "").map(([key, value]) => `${key}: ${value}\n`).join(
        "",
      ),
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
  const { source, requires, provides } = manifest;
  return { name, version, description, origin, path, status, reason, source, requires, provides };
}

/** The registered names; those that are only declared are marked. */
function listing(names: string[] = [], declared: string[] = []): string {
  const missing = declared.filter((name) => !names.includes(name));
  return [...names, ...missing.map((name) => `${name} (declared)`)].join(", ");
}

/** `svc plugins new` */
export async function newPlugin(
  { workspace, io }: PluginsContext,
  { name, global, folder: given }: { name: string; global: boolean; folder?: string },
): Promise<number> {
  const origin = global ? "global" : "local";
  const folder = given === undefined
    ? join(rootOf(origin, workspace).path, name)
    : resolve(io.environment.cwd, given);
  scaffold(folder, name, VERSION);
  if (given === undefined) await trustLocal(workspace, { name, path: folder, origin });
  io.note(`Wrote the plugin ${name} into ${folder}; begin with src/plugin.ts.`);
  if (given === undefined) {
    await addToLists(workspace, name, origin);
    io.note(`It is enabled. Try it with: svc plugins test ${name}`);
  } else io.note(`Install it with: svc plugins install ${given}`);
  return 0;
}

/** `svc plugins test`: load plugins and run their own tests. */
export async function testPlugins(
  { workspace, io }: PluginsContext,
  name: string | undefined,
): Promise<number> {
  const review = await workspace.reviewPlugins();
  const { plugins } = review.contributions;
  const chosen = name === undefined
    ? plugins.filter(({ origin, status }) => origin !== "bundled" && status !== "disabled")
    : [needPlugin(plugins, name)];
  if (chosen.length === 0) {
    io.note("There is no plugin to test; begin one with: svc plugins new <name>");
  }
  let code = 0;
  for (const plugin of chosen) {
    const { name, status, reason, path, origin, manifest } = plugin;
    const brings = Object.entries(registered(review, name))
      .map(([kind, names]) => `${kind} ${names.join(", ")}`).join("; ");
    const shown = reason || brings || "registers nothing";
    io.out(stripControl(`${name}: ${status}: ${shown}`).replace(/\s+/g, " ") + "\n");
    if (status !== "loaded") code = 1;
    const trusted = origin !== "local" || workspace.discovery.trusts(plugin);
    const files = origin === "bundled" || !trusted || !Deno.statSync(path).isDirectory
      ? []
      : testFiles(path);
    if (files.length === 0 || status === "incompatible") continue;
    const packages = manifest.requires.map((each) => readRequirement(each).name);
    const interrupt = io.onInterrupt();
    try {
      const ended = await runTests(path, files, packages, interrupt.signal);
      io.out(stripControl(ended.output));
      if (ended.cancelled) throw new SvcError("cancelled", "Cancelled.", { exit: 130 });
      if (ended.code !== 0) code = 1;
    } finally {
      interrupt.release();
    }
  }
  return code;
}
