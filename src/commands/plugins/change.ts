import { basename, join } from "node:path";
import { configFile, type ConfigScope } from "../../config/config.ts";
import { BUNDLED_PLUGINS, OPTIONAL_PLUGINS } from "../../config/keys.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { VERSION } from "../../platform/environment.ts";
import { nearest, SvcError, usageError } from "../../platform/error.ts";
import { statIfExists } from "../../platform/files.ts";
import { discoverPlugins, type PluginInfo, UNTRUSTED } from "../../plugins/discovery.ts";
import {
  addPackages,
  installPlugin,
  type InstallRoot,
  removePlugin,
} from "../../plugins/install.ts";
import { pluginOpening } from "../../policy/openings.ts";
import { readSource } from "../../plugins/source.ts";
import type { Io } from "../io.ts";

/** `svc plugins install` (specification 4.4, 4.9) */
export async function installOne(
  context: PluginsContext,
  { source: given, global, deps }: { source: string; global: boolean; deps: boolean },
): Promise<number> {
  const { workspace, io } = context;
  const { cwd, home } = io.environment;
  const source = readSource(given, cwd, home);
  const origin = global ? "global" : "local";
  const root = rootOf(origin, workspace);
  if (source.kind === "git") noteFetching(source.text, io);
  const plugin = await cancellable(
    context,
    (signal) => installPlugin({ source, root, version: VERSION, deps, signal }),
  );
  const { name, version, manifest: { requires } } = plugin;
  await trustLocal(workspace, plugin);
  await addToLists(workspace, name, origin);
  io.note(`Installed ${name} ${version} (${origin}) from ${source.text}.`);
  if ([...BUNDLED_PLUGINS, ...OPTIONAL_PLUGINS].some((bundled) => bundled === name)) {
    io.note(`warning: It takes the place of the bundled plugin ${name}.`);
  }
  if (requires.length > 0 && !deps) {
    io.note(`It requires ${requires.join(", ")}; install with: svc plugins update ${name} --deps`);
  }
  return await settle(context, [name]);
}

/** `svc plugins update`: fetch plugins again from their recorded sources. */
export async function updateAll(
  context: PluginsContext,
  { names, deps }: { names: readonly string[]; deps: boolean },
): Promise<number> {
  const { workspace, io } = context;
  const plugins = await found(workspace);
  // A global plugin behind a local one of its name is updated too.
  const installed = [await foundIn("global", workspace), await foundIn("local", workspace)].flat()
    .filter(({ manifest, reason }) => manifest.source !== "" && reason !== UNTRUSTED);
  const chosen = names.length > 0
    ? names.map((name) => needExternal(plugins, name, "updated"))
    : installed;
  if (chosen.length === 0) io.note("No plugin was installed with svc; there is nothing to update.");
  let failed = 0;
  for (const plugin of chosen) {
    try {
      await updateOne(context, plugin, deps);
    } catch (error) {
      if (chosen.length === 1 || !(error instanceof SvcError) || error.exit === 130) throw error;
      io.note(`error: ${plugin.name}: ${error.message}`);
      failed++;
    }
  }
  return Math.max(await settle(context, chosen.map(({ name }) => name)), Math.min(failed, 1));
}

async function updateOne(
  context: PluginsContext,
  { name, version, origin, path, manifest }: PluginInfo,
  deps: boolean,
): Promise<void> {
  const { workspace, io } = context;
  const root = rootOf(origin as "global" | "local", workspace);
  if (manifest.source === "") {
    if (!deps) {
      throw usageError(
        "plugin_source",
        `The plugin ${name} was not installed with svc, so where it comes from is not known.`,
        "Install it from its source, or change its files where they are.",
      );
    }
    await cancellable(context, (signal) => addPackages(path, manifest.requires, root, signal));
    await trustLocal(workspace, { name, path, origin });
    io.note(`Installed the packages of ${name}.`);
    return;
  }
  const source = readSource(manifest.source, "/", io.environment.home);
  if (source.kind === "git") noteFetching(source.text, io);
  const updated = await cancellable(context, (signal) =>
    installPlugin({
      source,
      root,
      version: VERSION,
      deps: deps || statIfExists(`${path}/node_modules`)?.isDirectory === true, // installed packages are kept
      signal,
      replaces: name,
    }));
  await trustLocal(workspace, updated);
  const change = updated.version === version ? version : `${version} -> ${updated.version}`;
  io.note(`Updated ${name} (${change}) from ${source.text}.`);
}

/** `svc plugins uninstall` */
export async function uninstall(
  context: PluginsContext,
  { name: given, global }: { name: string; global: boolean },
): Promise<number> {
  const { workspace, io } = context;
  const plugin = global
    ? needPlugin(await foundIn("global", workspace), given)
    : needExternal(await found(workspace), given, "uninstalled");
  const { name, path } = plugin;
  await removePlugin(path, rootOf(plugin.origin as "global" | "local", workspace));
  const left = (await found(workspace)).find((other) => other.name === name);
  if (left === undefined) await takeOffLists(workspace, name);
  io.note(`Uninstalled ${name} (${path}).`);
  if (left !== undefined) io.note(`The ${left.origin} plugin of that name counts again.`);
  return await settle(context, []);
}

/** Reloads roles, teams and skills, and prints the status of the changed plugins. */
async function settle({ workspace, io }: PluginsContext, names: string[]): Promise<number> {
  const { contributions: { plugins } } = await workspace.reviewPlugins();
  let code = 0;
  for (const { name, status, reason } of plugins) {
    if (!names.includes(name) || status === "loaded") continue;
    io.note(`warning: The plugin ${name} is there, but its status is ${status}: ${reason}`);
    if (status === "error") code = 1;
  }
  if (io.live !== undefined) io.note("Tools, providers and commands change with the next start.");
  return code;
}

/** Prints what is fetched on a terminal, since it can take long. */
function noteFetching(source: string, io: Io): void {
  if (io.isTerminal("error")) io.note(`Fetching ${source} ...`);
}

async function cancellable<T>(
  { io }: PluginsContext,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const interrupt = io.onInterrupt();
  try {
    return await work(interrupt.signal);
  } finally {
    interrupt.release();
  }
}

interface Where {
  name: string;
  global: boolean;
  local: boolean;
}

/** `svc plugins enable`: the setting `plugins` is the list of those that load (specification 3.5). */
export async function enable(context: PluginsContext, where: Where): Promise<number> {
  const { workspace, io } = context;
  const plugin = needPlugin(await found(workspace), where.name);
  const changed = await addToLists(workspace, plugin.name, scopeFor(plugin, where, workspace));
  if (changed.length === 0) io.note(`The plugin ${plugin.name} is enabled already.`);
  else tell(context, `Enabled ${plugin.name}`, changed);
  return 0;
}

/** `svc plugins disable` */
export async function disable(context: PluginsContext, where: Where): Promise<number> {
  const { workspace, io } = context;
  const plugins = await found(workspace);
  const plugin = needPlugin(plugins, where.name);
  const { name } = plugin;
  const scope = scopeFor(plugin, where, workspace);
  const list = listIn(scope, workspace);
  const named = list.length > 0 ? list : [...new Set(plugins.map((each) => each.name))];
  if (!named.includes(name)) {
    io.note(`The plugin ${name} is disabled already.`);
    return 0;
  }
  const rest = named.filter((each) => each !== name);
  if (rest.length === 0) {
    throw usageError(
      "plugins_none",
      `${name} is the last plugin on the list, and an empty list loads all that are found.`,
      "Enable another one first.",
    );
  }
  await workspace.set(scope, { plugins: rest });
  tell(context, `Disabled ${name}`, [scope]);
  if (workspace.config.get("plugins").includes(name)) {
    io.note(
      `This worktree's own list still has it; take it off with: svc plugins disable ${name} --local`,
    );
  }
  return 0;
}

/**
 * Adds a name to the list of a scope, and to that of the worktree where it has its own.
 *
 * @returns the scopes whose files were changed.
 */
export async function addToLists(
  workspace: Workspace,
  name: string,
  scope: ConfigScope,
): Promise<ConfigScope[]> {
  const changed: ConfigScope[] = [];
  for (const each of new Set<ConfigScope>([scope, "local"])) {
    const counts = workspace.config.get("plugins");
    if (each !== scope && (counts.length === 0 || counts.includes(name))) continue;
    const list = listIn(each, workspace);
    if (list.length === 0 || list.includes(name)) continue;
    await workspace.set(each, { plugins: [...list, name] });
    changed.push(each);
  }
  return changed;
}

/** Removes a name from the lists; a list that would be empty keeps it, since an empty list loads all. */
export async function takeOffLists(workspace: Workspace, name: string): Promise<void> {
  for (const scope of ["global", "local"] as const) {
    const list = workspace.config.getFrom(scope, "plugins") as string[] | undefined;
    const rest = list?.filter((each) => each !== name) ?? [];
    if (list?.includes(name) && rest.length > 0) await workspace.set(scope, { plugins: rest });
  }
}

/** The effective list of a scope: its own, or the one that it overrides. */
function listIn(scope: ConfigScope, { config }: Workspace): string[] {
  const own = config.getFrom(scope, "plugins");
  const global = scope === "local" ? config.getFrom("global", "plugins") : undefined;
  return (own ?? global ?? [...BUNDLED_PLUGINS]) as string[];
}

function scopeFor(
  { origin }: PluginInfo,
  { global, local }: Where,
  { config }: Workspace,
): ConfigScope {
  if (global && local) throw usageError("usage", "--global and --local exclude each other.");
  if (global || local) return global ? "global" : "local";
  return origin === "global" && config.getFrom("local", "plugins") === undefined
    ? "global"
    : "local";
}

function tell({ workspace, io }: PluginsContext, what: string, scopes: ConfigScope[]): void {
  const files = scopes.map((scope) => configFile(workspace.paths, scope)).join(" and ");
  io.note(`${what} in ${files}; it counts from the next start.`);
}

/** Trusts a plugin of the worktree as it is now: the user has put it there through svc. */
export async function trustLocal(
  { trust }: Workspace,
  plugin: Pick<PluginInfo, "name" | "path" | "origin">,
): Promise<void> {
  if (plugin.origin === "local") await trust.accept([pluginOpening(plugin)]);
}

/** The worktree and streams of the subcommands of `plugins`. */
export interface PluginsContext {
  workspace: Workspace;
  io: Io;
}

/** The plugins that exist; no code of them runs. */
export function found({ discovery }: Workspace): Promise<PluginInfo[]> {
  return discoverPlugins(discovery);
}

/** The plugin of a name, or of its folder's name; of several, the one that takes precedence. */
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

/** The plugins of one root, including those that another root overrides. */
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
