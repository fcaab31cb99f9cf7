import type { Action, ConfigView } from "../plugins/api.ts";
import { commandPrefix } from "./bash_allow.ts";
import { actionOf, FOLLOWS } from "./policy.ts";
import { modeChanges, type PolicySettings, policySettings } from "./settings.ts";

/**
 * An action that a role sets for a category. `open` is an `allow` that also turns the `ask` of the
 * configuration into `allow`; {@linkcode openActions} decides where a role's `allow` does so.
 */
export type RoleAction = Action | "open";

/** Actions of some categories, as a role's `tool_permission` sets them (specification 2.12). */
export type CategoryActions = Record<string, RoleAction>;

/** The permissions that a role sets for itself and for the agents that it starts. */
export interface RolePermissions {
  tool_permission: CategoryActions;
  grant_permission?: CategoryActions;
  /** `false`: a model saved the role. It never has more than the configuration allows. Default: true. */
  accepted?: boolean;
}

/** The most that an agent may have, by what it is started under. */
export interface Ceiling {
  ceiling: PolicySettings;
  /** The ceiling without the categories that roles have opened. */
  unopened: PolicySettings;
  /** Categories that no role may open, because an ancestor or a mode sets them to `ask`. */
  closed: readonly string[];
}

/** An agent's permissions, the most it can be granted, and the ceiling of its sub-agents. */
export interface Authority extends Ceiling {
  own: PolicySettings;
  /** The ceiling that the agent was started under. A permission grant never exceeds it. */
  limit: PolicySettings;
}

const ORDER: Action[] = ["deny", "ask", "allow"];

/** A list of tools that allows none: no tool has this name. */
const NO_TOOL = [""];

/** In a list of closed categories: all of them. */
const EVERY = "*";

/** The ceiling of a root agent: the configuration in its mode. */
export function rootCeiling(config: ConfigView, mode: string): Ceiling {
  const settings = policySettings(config, mode);
  return {
    ceiling: settings,
    unopened: settings,
    closed: closedByMode(config, settings.mode),
  };
}

/**
 * The authority of an agent that is started under a ceiling (specification 5.3.6). Its own ceiling equals
 * its own permissions, except for the categories of its role's `grant_permission`, whose actions apply
 * under the same ceiling. So no agent exceeds the ceiling of any of its ancestors, except where its role
 * opens a category that the configuration leaves at `ask` and no ancestor sets to `ask`.
 */
export function authorityUnder(
  { ceiling, unopened, closed }: Ceiling,
  { tool_permission, grant_permission, accepted = true }: RolePermissions,
): Authority {
  const under = { ceiling: accepted ? ceiling : unopened, unopened, closed };
  return {
    own: applyRole(under, tool_permission).ceiling,
    limit: under.ceiling,
    ...applyRole(under, { ...tool_permission, ...grant_permission }),
  };
}

/**
 * The authority of a sub-agent, from that of its parent.
 *
 * @param mode of a stage of a team: it lowers the ceiling first. Empty: none.
 */
export function childAuthority(
  config: ConfigView,
  { ceiling, unopened, closed }: Ceiling,
  role: RolePermissions = { tool_permission: {} },
  mode = "",
): Authority {
  // Sub-agents run in build mode. The ceiling holds the denials of the root's mode (5.3.2).
  const lower = (settings: PolicySettings) =>
    narrowByMode({ ...settings, mode: "build" }, config, mode);
  const under = {
    ceiling: lower(ceiling),
    unopened: lower(unopened),
    closed: mode === "" ? closed : [...closed, ...closedByMode(config, mode)],
  };
  return authorityUnder(under, role);
}

/** Whether a role may open a category that the ceiling leaves at `ask`. */
export function isClosed({ ceiling, closed }: Ceiling, category: string): boolean {
  // The list says which commands run without an approval.
  if (category === "bash" && ceiling.bash_allow.length > 0) return true;
  const follows = Object.hasOwn(ceiling.actions, category) ? undefined : FOLLOWS.get(category);
  return [EVERY, category, follows].some((each) => each !== undefined && closed.includes(each));
}

function applyRole(under: Ceiling, role: CategoryActions): Ceiling {
  const ceiling = narrow(under.ceiling, role);
  for (const [category, action] of Object.entries(role)) {
    if (action !== "open" || actionOf(under.ceiling, category) !== "ask") continue;
    if (!isClosed(under, category)) ceiling.actions[category] = "allow";
  }
  return {
    ceiling,
    unopened: narrow(under.unopened, role),
    closed: [...under.closed, ...asked(role)],
  };
}

function asked(given: CategoryActions): string[] {
  const actions = withTeam(given);
  return Object.keys(actions).filter((category) => actions[category] === "ask");
}

/** The actions of a role or mode, where `delegate` counts for `team` too unless that is named. */
function withTeam(actions: CategoryActions): CategoryActions {
  const { delegate } = actions;
  return { ...delegate && { team: delegate }, ...actions };
}

/** In plan mode, roles open nothing. */
function closedByMode(config: ConfigView, mode: string): string[] {
  if (mode === "plan") return [EVERY];
  const { bash_allow: _, ...actions } = modeChanges(config, mode).tool_permission;
  return asked(actions as CategoryActions);
}

/**
 * The settings under a role's `tool_permission`: the stricter action of each category, so that a role can
 * deny what the settings allow, and never the reverse (specification 5.3.6).
 */
export function narrow(settings: PolicySettings, role: CategoryActions): PolicySettings {
  const actions = { ...settings.actions };
  for (const [category, action] of Object.entries(withTeam(role))) {
    const set = actionOf(settings, category);
    // An allowed bash with a list denies unlisted commands. With `ask`, they could be approved.
    const listed = category === "bash" && set === "allow" && settings.bash_allow.length > 0;
    if (listed && action === "ask") continue;
    actions[category] = stricter(set, action === "open" ? "allow" : action);
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
export function clamped(
  own: PolicySettings,
  { tool_permission }: RolePermissions,
): [category: string, got: Action][] {
  return Object.entries(tool_permission).flatMap(([category, action]) => {
    const requested = action === "open" ? "allow" : action;
    const got = actionOf(own, category);
    return got !== requested && stricter(got, requested) === got ? [[category, got]] : [];
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

/** The author of a part of a role: a layer of the catalog, or a model whose entry no person has accepted. */
export type RoleOrigin = "bundled" | "plugin" | "global" | "local" | "saved";

/** Categories of tools whose programs the sandbox confines, or that start only Git, without its programs. */
export const CONFINED = ["bash", "dev", "vcs"];

/**
 * Why the `allow` of a role does not open a category that is set to `ask`; empty when it does. Persons open
 * any category. What comes with the program or a plugin opens only what the sandbox confines.
 *
 * @param sandboxed whether a full operating-system sandbox is in force for commands
 */
export function openingObjection(
  category: string,
  origin: RoleOrigin,
  sandboxed: boolean,
): string {
  if (origin === "global" || origin === "local") return "";
  if (origin === "saved") return "a model saved this role, and no person has accepted it";
  if (!CONFINED.includes(category)) return `a ${origin} role opens only ${CONFINED.join(", ")}`;
  return sandboxed
    ? ""
    : `a ${origin} role opens it only while a full sandbox is in force for commands`;
}

/** Who wrote the action of each category. */
export type RoleOrigins = Record<string, RoleOrigin>;

/** Whether {@linkcode openingObjections} depends on the sandbox. */
export function dependsOnSandbox(actions: CategoryActions, origins: RoleOrigins): boolean {
  const [without, sandboxed] = [false, true].map((each) =>
    Object.keys(openingObjections(actions, origins, each)).length
  );
  return without !== sandboxed;
}

/** The categories that a role allows and does not open, each with its {@linkcode openingObjection}. */
export function openingObjections(
  actions: CategoryActions,
  origins: RoleOrigins,
  sandboxed: boolean,
): Record<string, string> {
  const allowed = Object.keys(actions).filter((category) => actions[category] === "allow");
  const objections = allowed.map((category) =>
    [category, openingObjection(category, origins[category]!, sandboxed)] as const
  );
  return Object.fromEntries(objections.filter(([, objection]) => objection !== ""));
}

/** The actions of a role, with `open` for each `allow` that opens its category. */
export function openActions(
  actions: CategoryActions,
  origins: RoleOrigins,
  sandboxed: boolean,
): CategoryActions {
  const objections = openingObjections(actions, origins, sandboxed);
  const open = ([category, action]: [string, RoleAction]): [string, RoleAction] =>
    action === "allow" && !Object.hasOwn(objections, category)
      ? [category, "open"]
      : [category, action];
  return Object.fromEntries(Object.entries(actions).map(open));
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
