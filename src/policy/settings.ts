import type { Action, ConfigView } from "../plugins/api.ts";
import { commandPrefix } from "./shell.ts";

/** What the configuration and the mode say about tools (specification 2.13, 5.3). */
export interface PolicySettings {
  /** The mode in effect: `build` where the wanted one does not exist. */
  mode: string;
  /** Category to action. A category that is missing here is `ask`. */
  actions: Record<string, Action>;
  /** Beginnings of commands that need no approval. Empty: the list is not active. */
  bash_allow: string[];
  /** Names or aliases of the only tools there are. Empty: all of them. */
  allow: string[];
  /** Names or aliases of tools that are refused whatever else is set. */
  deny: string[];
  /** One sentence each, for whoever wrote the configuration. */
  warnings: string[];
}

const PLAN: Record<string, Action> = { edit: "deny", bash: "deny" };

/**
 * The settings of one run: `tool_permission` and `tools` of the configuration, then what the mode
 * changes. A mode's `tool_permission` wins per key, its `tools.deny` is added, its `tools.allow`
 * replaces when it is not empty. `plan` denies `edit` and `bash` unless `modes.plan` says otherwise.
 * The configuration has been checked before; see `src/config/keys.ts`.
 */
export function policySettings(config: ConfigView, mode: string): PolicySettings {
  const warnings: string[] = [];
  const modes = config.get("modes") ?? {};
  if (mode !== "build" && mode !== "plan" && !Object.hasOwn(modes, mode)) {
    warnings.push(`There is no mode ${JSON.stringify(mode)}; build is used.`);
    mode = "build";
  }
  const custom = Object.hasOwn(modes, mode) ? modes[mode] : {};
  const { bash_allow = [], ...actions } = {
    ...config.get("tool_permission"),
    ...(mode === "plan" ? PLAN : {}),
    ...custom.tool_permission,
  };
  for (const entry of bash_allow) {
    if (commandPrefix(entry) !== undefined) continue;
    warnings.push(
      `The entry ${JSON.stringify(entry)} of tool_permission.bash_allow allows nothing: ` +
        'an entry is the plain beginning of one command, such as "git status".',
    );
  }
  const allow = custom.tools?.allow ?? [];
  return {
    mode,
    actions,
    bash_allow,
    allow: allow.length > 0 ? allow : config.get("tools.allow") ?? [],
    deny: [...config.get("tools.deny") ?? [], ...custom.tools?.deny ?? []],
    warnings,
  };
}
