import type { ConfigView } from "../plugins/api.ts";

/** Who answers an agent's questions (`ask_policy` of the configuration and of a role). */
export interface AskPolicy {
  /**
   * Leave for a category of calls. `auto`: given where the caller's ceiling allows the category, else the
   * human decides; `human`: the human decides; `deny`: nobody gives any.
   */
  permission: "auto" | "human" | "deny";
  /**
   * What to do. `human`, and `auto`: the agents above, the nearest first, then the human; `lead`: only the
   * agents above; `deny`: nobody.
   */
  direction: "auto" | "human" | "lead" | "deny";
}

/** What the configuration says, and over it what a role does. */
export function askPolicy(config: ConfigView, role: Partial<AskPolicy> = {}): AskPolicy {
  const set: Partial<AskPolicy> = config.get("ask_policy") ?? {};
  return {
    permission: role.permission ?? set.permission ?? "auto",
    direction: role.direction ?? set.direction ?? "human",
  };
}
