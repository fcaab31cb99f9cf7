import type { Action } from "../plugins/api.ts";
import { actionOf } from "./policy.ts";
import type { PolicySettings } from "./settings.ts";

/** A role's `tool_permission`: what it says about some categories (specification 2.12). */
export type Carve = Record<string, Action>;

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

function stricter(one: Action, other: Action): Action {
  return ORDER.indexOf(one) < ORDER.indexOf(other) ? one : other;
}
