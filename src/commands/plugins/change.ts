import { BUNDLED_PLUGINS } from "../../config/keys.ts";
import { SvcError, usageError } from "../../platform/error.ts";
import { VERSION } from "../../platform/version.ts";
import type { PluginInfo } from "../../plugins/discovery.ts";
import { addPackages, installPlugin, removePlugin } from "../../plugins/install.ts";
import { readSource } from "../../plugins/source.ts";
import type { Io } from "../io.ts";
import { addToLists, takeOffLists } from "./enabled.ts";
import { found, foundIn, needExternal, needPlugin, type PluginsContext, rootOf } from "./find.ts";

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
  await addToLists(workspace, name, origin);
  io.note(`Installed ${name} ${version} (${origin}) from ${source.text}.`);
  if (BUNDLED_PLUGINS.some((bundled) => bundled === name)) {
    io.note(`warning: It takes the place of the bundled plugin ${name}.`);
  }
  if (requires.length > 0 && !deps) {
    io.note(`It requires ${requires.join(", ")}; install with: svc plugins update ${name} --deps`);
  }
  return await settle(context, [name]);
}

/** `svc plugins update`: every plugin is fetched anew from its recorded source. */
export async function updateAll(
  context: PluginsContext,
  { names, deps }: { names: readonly string[]; deps: boolean },
): Promise<number> {
  const { workspace, io } = context;
  const plugins = await found(workspace);
  const chosen = names.length > 0
    ? names.map((name) => needExternal(plugins, name, "updated"))
    : plugins.filter(({ origin, manifest }) => origin !== "bundled" && manifest.source !== "");
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
      deps: deps || hasPackages(path), // what it had it keeps
      signal,
      replaces: name,
    }));
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

/** Takes up roles, teams and skills at once, and says how the changed plugins fare. */
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

/** It can take a while, during which somebody is looking on. */
function noteFetching(source: string, io: Io): void {
  if (io.isTerminal("error")) io.note(`Fetching ${source} ...`);
}

function hasPackages(path: string): boolean {
  try {
    return Deno.statSync(`${path}/node_modules`).isDirectory;
  } catch {
    return false;
  }
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
