import type { Action } from "../plugins/api.ts";
import { actionOf } from "./policy.ts";
import type { PolicySettings } from "./settings.ts";

/** A role's `tool_permission`: what it says about some categories (specification 2.12). */
export type Carve = Record<string, Action>;

/** What a role says of itself and of those that it starts. */
export interface RoleCarve {
  tool_permission: Carve;
  grant_permission?: Carve;
}

/** What an agent may do, what it can be granted beyond that, and what those it starts may do at most. */
export interface Authority {
  own: PolicySettings;
  /** The ceiling that the agent was started under: nothing above it can be granted. */
  limit: PolicySettings;
  ceiling: PolicySettings;
}

const ORDER: Action[] = ["deny", "ask", "allow"];

/**
 * The settings under a role's carve: each category's action is the stricter of the two, so that a role
 * can close what the settings open, and never the reverse (specification 5.3.6).
 */
export function narrow(settings: PolicySettings, carve: Carve): PolicySettings {
  const actions = { ...settings.actions };
  for (const [category, action] of Object.entries(carve)) {
    const set = actionOf(settings, category);
    // Of an allowed bash, the list denies what it does not name; of one that asks, somebody might approve it.
    const listed = category === "bash" && set === "allow" && settings.bash_allow.length > 0;
    if (listed && action === "ask") continue;
    actions[category] = stricter(set, action);
  }
  return { ...settings, actions };
}

/**
 * The authority of an agent that is started under a ceiling (specification 5.3.6). What it may hand down
 * is what it may do itself, save for the categories of its role's `grant_permission`: those reach as far as
 * that says, under the same ceiling. So no agent is ever above any ceiling on the way up to the root.
 */
export function authorityUnder(
  ceiling: PolicySettings,
  { tool_permission, grant_permission }: RoleCarve,
): Authority {
  return {
    own: narrow(ceiling, tool_permission),
    limit: ceiling,
    ceiling: narrow(ceiling, { ...tool_permission, ...grant_permission }),
  };
}

/** The categories of which a role wants more than it gets, one phrase each. */
export function clamped(own: PolicySettings, { tool_permission }: RoleCarve): string[] {
  return Object.entries(tool_permission).flatMap(([category, wanted]) => {
    const got = actionOf(own, category);
    return got !== wanted && stricter(got, wanted) === got ? [`${category} (${got})`] : [];
  });
}

/** The categories in which some settings allow more than others. */
export function exceeding(settings: PolicySettings, others: PolicySettings): string[] {
  const categories = [settings, others].flatMap(({ actions }) => Object.keys(actions));
  return [...new Set(categories)].filter((category) =>
    ORDER.indexOf(actionOf(settings, category)) > ORDER.indexOf(actionOf(others, category))
  );
}

/** The lists by which some settings let calls through that others do not. */
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
