import type { Action, ConfigView } from "../plugins/api.ts";
import { settingOf, type ToolPermission } from "../config/keys.ts";
import { nearest, usageError } from "../platform/error.ts";
import { commandPrefix } from "./bash_allow.ts";

/** The configuration of tools, with the mode applied (specification 2.13, 5.3). */
export interface PolicySettings {
  /** The mode in effect: `build` when the requested one does not exist. */
  mode: string;
  /** Category to action; `actionOf` in policy.ts gives that of a missing category. */
  actions: Record<string, Action>;
  /** Beginnings of commands that need no approval. Empty: the list is not active. */
  bash_allow: string[];
  /** Names or aliases of the tools that may be used. Empty: all of them. */
  allow: string[];
  /** Names or aliases of tools that are always denied. */
  deny: string[];
  /** Whether every call that changes something is denied, whatever else is set: the mode is `plan`. */
  read_only: boolean;
  /** Mistakes in the configuration, one sentence each. */
  warnings: string[];
}

/** What `plan` denies by the specification (5.3.2), and `dev`, which runs commands too. */
const PLAN: Record<string, Action> = { edit: "deny", bash: "deny", dev: "deny" };

/**
 * Rejects an unknown mode that was requested for one run: `build` in its place might allow more than the
 * intended mode.
 *
 * @throws SvcError `unknown_mode` (exit 2)
 */
export function checkMode(config: ConfigView, mode: string): void {
  if (isMode(config, mode)) return;
  const guess = nearest(mode, ["build", "plan", ...Object.keys(config.get("modes") ?? {})]);
  throw usageError(
    "unknown_mode",
    `There is no mode ${JSON.stringify(mode)}.`,
    guess === undefined
      ? "Modes are build, plan and those under modes in your configuration."
      : `Did you mean "${guess}"?`,
  );
}

function isMode(config: ConfigView, mode: string): boolean {
  return mode === "build" || mode === "plan" || Object.hasOwn(config.get("modes") ?? {}, mode);
}

/** A mode's changes to the configuration of tools. */
export interface ModeChanges {
  tool_permission: ToolPermission;
  /** Empty: the mode does not limit the tools. */
  allow: string[];
  deny: string[];
  read_only: boolean;
}

/** The changes of a mode. `modes.plan` cannot open what `plan` denies. */
export function modeChanges(config: ConfigView, mode: string): ModeChanges {
  const modes = config.get("modes") ?? {};
  const custom = Object.hasOwn(modes, mode) ? modes[mode] : {};
  return {
    tool_permission: { ...custom.tool_permission, ...mode === "plan" && PLAN },
    allow: custom.tools?.allow ?? [],
    deny: custom.tools?.deny ?? [],
    read_only: mode === "plan",
  };
}

/**
 * The settings of one run: `tool_permission` and `tools` of the configuration, then the changes of the
 * mode. A mode's `tool_permission` wins per key, its `tools.deny` is added, and its `tools.allow`
 * replaces the configured one when it is not empty. An unknown mode counts as `build`, with a warning.
 * The configuration must be valid; `src/config/keys.ts` checks it.
 */
export function policySettings(config: ConfigView, mode: string): PolicySettings {
  const warnings: string[] = [];
  if (!isMode(config, mode)) {
    warnings.push(`There is no mode ${JSON.stringify(mode)}; build is used in its place.`);
    mode = "build";
  }
  const changes = modeChanges(config, mode);
  const { bash_allow = [], ...actions } = {
    ...config.get("tool_permission"),
    ...changes.tool_permission,
  };
  for (const entry of bash_allow) {
    if (commandPrefix(entry) !== undefined) continue;
    warnings.push(
      `The entry ${JSON.stringify(entry)} of tool_permission.bash_allow allows nothing: ` +
        'an entry is the plain beginning of one command, such as "git status".',
    );
  }
  const known = Object.keys(settingOf("tool_permission").default as Record<string, unknown>);
  for (const category of Object.keys(actions)) {
    // Plugins may add categories, but a misspelt known category would have no effect.
    const meant = known.includes(category) ? undefined : nearMiss(category.toLowerCase(), known);
    if (meant === undefined) continue;
    warnings.push(
      `tool_permission.${category} governs no tool of svc; did you mean ` +
        `tool_permission.${meant}?`,
    );
  }
  return {
    mode,
    actions,
    bash_allow,
    allow: changes.allow.length > 0 ? changes.allow : config.get("tools.allow") ?? [],
    deny: [...config.get("tools.deny") ?? [], ...changes.deny],
    read_only: changes.read_only,
    warnings,
  };
}

/** The word of `known` that `word` is a variant of, such as its plural. */
function nearMiss(word: string, known: string[]): string | undefined {
  return known.find((each) =>
    (each.startsWith(word) || word.startsWith(each)) && Math.abs(each.length - word.length) <= 2
  );
}
