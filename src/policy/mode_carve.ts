import type { Action, ConfigView } from "../plugins/api.ts";
import { type Authority, authorityUnder, narrow, type RoleCarve } from "./carve.ts";
import { actionOf } from "./policy.ts";
import { modeChanges, type PolicySettings } from "./settings.ts";
import { commandPrefix } from "./shell.ts";

/** A list of tools that lets none through: no tool has this name. */
const NO_TOOL = [""];

/**
 * The authority of an agent that one of this authority starts; as a stage of a team, its mode lowers the
 * ceiling first.
 */
export function authorityBelow(
  config: ConfigView,
  { ceiling }: Authority,
  role: RoleCarve = { tool_permission: {} },
  mode = "",
): Authority {
  // Sub-agents run in build mode, whatever the root's: what that denies is in the ceiling (5.3.2).
  return authorityUnder(narrowByMode({ ...ceiling, mode: "build" }, config, mode), role);
}

/**
 * The settings under a mode as well: a stage's `mode` closes what the settings open, and never the
 * reverse. Where the two say something of commands that cannot be said in one list, less is let through
 * than both would.
 *
 * @param mode one that exists; empty: none, and nothing changes.
 */
export function narrowByMode(
  settings: PolicySettings,
  config: ConfigView,
  mode: string,
): PolicySettings {
  if (mode === "") return settings;
  const { tool_permission: { bash_allow = [], ...carve }, allow, deny } = modeChanges(config, mode);
  const narrowed = narrow(settings, carve as Record<string, Action>);
  return {
    ...narrowed,
    ...bash_allow.length > 0 ? commandsOfBoth(settings, carve.bash as Action, bash_allow) : {},
    mode,
    allow: toolsOfBoth(settings.allow, allow),
    deny: [...settings.deny, ...deny],
  };

  /** The bash of settings and of a mode that has a list of its own. */
  function commandsOfBoth(
    under: PolicySettings,
    wanted: Action = actionOf(under, "bash"),
    list: string[],
  ): Pick<PolicySettings, "actions" | "bash_allow"> {
    const set = actionOf(under, "bash");
    const result = (bash: Action, bash_allow: string[]) => ({
      actions: { ...narrowed.actions, bash },
      bash_allow,
    });
    if (set === "deny" || wanted === "deny") return result("deny", []);
    if (set === "allow" && under.bash_allow.length === 0) return result(wanted, list);
    const both = prefixesOfBoth(under.bash_allow, list);
    // Where both ask about what they do not list, so may the agent; else what is not listed is denied.
    if (set === "ask" && wanted === "ask") return result("ask", both);
    return both.length === 0 ? result("deny", []) : result("allow", both);
  }
}

/** What begins with a prefix of each list, as one list: of two that fit into each other, the longer. */
function prefixesOfBoth(one: string[], other: string[]): string[] {
  const longer = (a: string, b: string) => {
    const [words, others] = [commandPrefix(a), commandPrefix(b)];
    if (words === undefined || others === undefined) return [];
    const [short, long, entry] = words.length < others.length
      ? [words, others, b]
      : [others, words, a];
    return short.every((word, at) => word === long[at]) ? [entry] : [];
  };
  return one.flatMap((a) => other.flatMap((b) => longer(a, b)));
}

/** Names that both lists have; an empty list has all. */
function toolsOfBoth(one: string[], other: string[]): string[] {
  if (one.length === 0 || other.length === 0) return [...one, ...other];
  const both = one.filter((name) => other.includes(name));
  return both.length > 0 ? both : NO_TOOL;
}
