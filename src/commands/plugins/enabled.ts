import { configFile, type ConfigScope } from "../../config/config.ts";
import { BUNDLED_PLUGINS } from "../../config/keys.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { usageError } from "../../platform/error.ts";
import type { PluginInfo } from "../../plugins/discovery.ts";
import { found, needPlugin, type PluginsContext } from "./find.ts";

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
  await workspace.config.set(scope, "plugins", rest);
  tell(context, `Disabled ${name}`, [scope]);
  if (workspace.config.get("plugins").includes(name)) {
    io.note(
      `This worktree's own list still has it; take it off with: svc plugins disable ${name} --local`,
    );
  }
  return 0;
}

/**
 * Puts a name on the list of a scope, and on that of the worktree where that has one of its own.
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
    await workspace.config.set(each, "plugins", [...list, name]);
    changed.push(each);
  }
  return changed;
}

/** Takes a name off the lists that have it; one that would be empty keeps it, since that loads everything. */
export async function takeOffLists(workspace: Workspace, name: string): Promise<void> {
  for (const scope of ["global", "local"] as const) {
    const list = workspace.config.getFrom(scope, "plugins") as string[] | undefined;
    const rest = list?.filter((each) => each !== name) ?? [];
    if (list?.includes(name) && rest.length > 0) await workspace.config.set(scope, "plugins", rest);
  }
}

/** The list that counts in a scope: its own, or the one that it would take the place of. */
function listIn(scope: ConfigScope, { config }: Workspace): string[] {
  const own = config.getFrom(scope, "plugins");
  const below = scope === "local" ? config.getFrom("global", "plugins") : undefined;
  return (own ?? below ?? [...BUNDLED_PLUGINS]) as string[];
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
