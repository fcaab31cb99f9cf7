import { basename, join } from "node:path";
import type { Workspace } from "../../engine/workspace.ts";
import { usageError } from "../../platform/error.ts";
import { nearest } from "../../platform/nearest.ts";
import { discoverPlugins, type PluginInfo } from "../../plugins/discovery.ts";
import type { InstallRoot } from "../../plugins/install.ts";
import type { Io } from "../io.ts";

/** What the subcommands of `plugins` work with. */
export interface PluginsContext {
  workspace: Workspace;
  io: Io;
}

/** The plugins that are there; nothing of them is run. */
export function found({ discovery }: Workspace): Promise<PluginInfo[]> {
  return discoverPlugins(discovery);
}

/** The plugin of a name, or of its folder's name: of several the one that counts, or that does not load. */
export function needPlugin(plugins: PluginInfo[], name: string): PluginInfo {
  const ranked = plugins.filter((plugin) => plugin.name === name || stem(plugin.path) === name)
    .sort((a, b) => rank(b) - rank(a));
  if (ranked[0] !== undefined) return ranked[0];
  const guess = nearest(name, plugins.map((plugin) => plugin.name));
  throw usageError(
    "plugin_unknown",
    `There is no plugin ${JSON.stringify(name.slice(0, 80))}.`,
    guess === undefined ? "See them with: svc plugins list" : `Did you mean "${guess}"?`,
  );
}

/**
 * A plugin that can be changed on disk.
 *
 * @throws SvcError `plugin_bundled` (exit 2) for one of the program itself (specification 4.9, 7.6).
 */
export function needExternal(plugins: PluginInfo[], name: string, verb: string): PluginInfo {
  const plugin = needPlugin(plugins, name);
  if (plugin.origin !== "bundled") return plugin;
  throw usageError(
    "plugin_bundled",
    `The plugin ${plugin.name} is bundled: it comes with svc and cannot be ${verb}, only disabled.`,
    `Disable it with: svc plugins disable ${plugin.name}`,
  );
}

/** The root that a scope's plugins are installed into. */
export function rootOf(origin: "global" | "local", { discovery, paths }: Workspace): InstallRoot {
  return origin === "global"
    ? { origin, path: discovery.roots.global }
    : { origin, path: discovery.roots.local, within: paths.worktree };
}

/** The plugins of one root alone, with those that another root's take the place of. */
export function foundIn(
  origin: "global" | "local",
  { discovery }: Workspace,
): Promise<PluginInfo[]> {
  const none = join(discovery.roots.local, ".none");
  const roots = { global: none, local: none, [origin]: discovery.roots[origin] };
  return discoverPlugins({ ...discovery, roots, bundled: [] });
}

function stem(path: string): string {
  return basename(path).replace(/\.(ts|js|mjs|py)$/, "");
}

function rank({ origin }: PluginInfo): number {
  return { bundled: 0, global: 1, local: 2 }[origin];
}
