import type { Action, ConfigView } from "../plugins/api.ts";
import { commandPrefix } from "./bash_allow.ts";
import { actionOf } from "./policy.ts";
import { modeChanges, type PolicySettings } from "./settings.ts";

/** Actions of some categories, as a role's `tool_permission` sets them (specification 2.12). */
export type CategoryActions = Record<string, Action>;

/** The permissions that a role sets for itself and for the agents that it starts. */
export interface RolePermissions {
  tool_permission: CategoryActions;
  grant_permission?: CategoryActions;
}

/** An agent's permissions, the most it can be granted, and the most its sub-agents may have. */
export interface Authority {
  own: PolicySettings;
  /** The ceiling that the agent was started under. A permission grant never exceeds it. */
  limit: PolicySettings;
  /** The limit of the agents that this one starts. */
  ceiling: PolicySettings;
}

const ORDER: Action[] = ["deny", "ask", "allow"];

/** A list of tools that allows none: no tool has this name. */
const NO_TOOL = [""];

/**
 * The authority of an agent that is started under a ceiling (specification 5.3.6). Its own ceiling equals
 * its own permissions, except for the categories of its role's `grant_permission`, whose actions apply
 * under the same ceiling. So no agent exceeds the ceiling of any of its ancestors.
 */
export function authorityUnder(
  ceiling: PolicySettings,
  { tool_permission, grant_permission }: RolePermissions,
): Authority {
  return {
    own: narrow(ceiling, tool_permission),
    limit: ceiling,
    ceiling: narrow(ceiling, { ...tool_permission, ...grant_permission }),
  };
}

/**
 * The authority of a sub-agent, from that of its parent.
 *
 * @param mode of a stage of a team: it lowers the ceiling first. Empty: none.
 */
export function childAuthority(
  config: ConfigView,
  { ceiling }: Authority,
  role: RolePermissions = { tool_permission: {} },
  mode = "",
): Authority {
  // Sub-agents run in build mode. The ceiling holds the denials of the root's mode (5.3.2).
  return authorityUnder(narrowByMode({ ...ceiling, mode: "build" }, config, mode), role);
}

/**
 * The settings under a role's `tool_permission`: the stricter action of each category, so that a role can
 * deny what the settings allow, and never the reverse (specification 5.3.6).
 */
export function narrow(settings: PolicySettings, role: CategoryActions): PolicySettings {
  const actions = { ...settings.actions };
  for (const [category, action] of Object.entries(role)) {
    const set = actionOf(settings, category);
    // An allowed bash with a list denies unlisted commands. With `ask`, they could be approved.
    const listed = category === "bash" && set === "allow" && settings.bash_allow.length > 0;
    if (listed && action === "ask") continue;
    actions[category] = stricter(set, action);
  }
  return { ...settings, actions };
}

/**
 * The settings with a mode added: a stage's `mode` can deny what the settings allow, and never the reverse.
 * Where one list cannot express the commands that both allow, the result allows fewer.
 *
 * @param mode an existing mode; empty: none, and the settings stay as they are
 */
export function narrowByMode(
  settings: PolicySettings,
  config: ConfigView,
  mode: string,
): PolicySettings {
  if (mode === "") return settings;
  const { tool_permission: { bash_allow = [], ...set }, allow, deny, read_only } = modeChanges(
    config,
    mode,
  );
  const narrowed = narrow(settings, set as CategoryActions);
  return {
    ...narrowed,
    ...bash_allow.length > 0 ? commandsOfBoth(settings, set.bash as Action, bash_allow) : {},
    mode,
    allow: toolsOfBoth(settings.allow, allow),
    deny: [...settings.deny, ...deny],
    read_only: settings.read_only || read_only,
  };

  /** `bash` of the settings and of a mode that has a list of its own. */
  function commandsOfBoth(
    under: PolicySettings,
    action: Action = actionOf(under, "bash"),
    list: string[],
  ): Pick<PolicySettings, "actions" | "bash_allow"> {
    const set = actionOf(under, "bash");
    const result = (bash: Action, bash_allow: string[]) => ({
      actions: { ...narrowed.actions, bash },
      bash_allow,
    });
    if (set === "deny" || action === "deny") return result("deny", []);
    if (set === "allow" && under.bash_allow.length === 0) return result(action, list);
    const both = prefixesOfBoth(under.bash_allow, list);
    // Unlisted commands are asked for only when both sides ask for them. Otherwise they are denied.
    if (set === "ask" && action === "ask") return result("ask", both);
    return both.length === 0 ? result("deny", []) : result("allow", both);
  }
}

/** The prefixes of commands that both lists allow: of two where one begins with the other, the longer. */
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

/** The names in both lists; an empty list stands for all tools. */
function toolsOfBoth(one: string[], other: string[]): string[] {
  if (one.length === 0 || other.length === 0) return [...one, ...other];
  const both = one.filter((name) => other.includes(name));
  return both.length > 0 ? both : NO_TOOL;
}

/** The categories in which a role requests more than it gets, with the action it gets. */
export function clamped(own: PolicySettings, { tool_permission }: RolePermissions): string[] {
  return Object.entries(tool_permission).flatMap(([category, requested]) => {
    const got = actionOf(own, category);
    return got !== requested && stricter(got, requested) === got ? [`${category} (${got})`] : [];
  });
}

/** The categories in which some settings allow more than others. */
export function exceeding(settings: PolicySettings, others: PolicySettings): string[] {
  const categories = [settings, others].flatMap(({ actions }) => Object.keys(actions));
  return [...new Set(categories)].filter((category) =>
    ORDER.indexOf(actionOf(settings, category)) > ORDER.indexOf(actionOf(others, category))
  );
}

/** The lists by which some settings allow calls that others do not. */
export function listsExceeding(settings: PolicySettings, others: PolicySettings): string[] {
  const beyond = (list: string[], limit: string[]) => list.some((each) => !limit.includes(each));
  const wider = (list: string[], limit: string[]) =>
    limit.length > 0 && (list.length === 0 || beyond(list, limit));
  const allows = ({ actions, bash_allow }: PolicySettings) =>
    actions.bash === "allow" && bash_allow.length === 0;
  const commands = actionOf(settings, "bash") !== "deny" && !allows(others) &&
    (allows(settings) || beyond(settings.bash_allow, others.bash_allow));
  return [
    ...beyond(others.deny, settings.deny) ? ["tools.deny"] : [],
    ...wider(settings.allow, others.allow) ? ["tools.allow"] : [],
    ...commands ? ["bash_allow"] : [],
  ];
}

function stricter(one: Action, other: Action): Action {
  return ORDER.indexOf(one) < ORDER.indexOf(other) ? one : other;
}

/** Who answers an agent's questions (`ask_policy` of the configuration and of a role). */
export interface AskPolicy {
  /**
   * Requests for permission. `auto`: granted where the caller's ceiling allows the category, otherwise the
   * operator decides; `human`: the operator decides; `deny`: always refused.
   */
  permission: "auto" | "human" | "deny";
  /**
   * Questions of direction. `human` and `auto`: the parent agents, the nearest first, then the operator;
   * `lead`: only the parent agents; `deny`: always refused.
   */
  direction: "auto" | "human" | "lead" | "deny";
}

/** The configured ask policy, overridden by that of a role. */
export function askPolicy(config: ConfigView, role: Partial<AskPolicy> = {}): AskPolicy {
  const set: Partial<AskPolicy> = config.get("ask_policy") ?? {};
  return {
    permission: role.permission ?? set.permission ?? "auto",
    direction: role.direction ?? set.direction ?? "human",
  };
}
