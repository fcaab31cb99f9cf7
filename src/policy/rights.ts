import type { Config } from "../config/config.ts";
import type { Action } from "../plugins/api.ts";
import { actionOf } from "./policy.ts";
import {
  authorityUnder,
  isClosed,
  openActions,
  openingObjections,
  type RoleOrigins,
  type RolePermissions,
  rootCeiling,
} from "./roles.ts";
import { modeChanges } from "./settings.ts";

/** What an agent of a role may do in one category, and why. */
export interface Right {
  category: string;
  action: Action;
  reason: string;
}

/**
 * The permissions that a root agent of a role would have in the configured mode, with the reason of each.
 *
 * @param origins who wrote the action of each category of the role
 * @param categories those of the tools; those of the configuration and of the role are added
 */
export function roleRights(
  role: RolePermissions,
  { config, origins, sandboxed, categories }: {
    config: Config;
    origins: RoleOrigins;
    sandboxed: boolean;
    categories: string[];
  },
): Right[] {
  const mode = config.get("mode");
  const root = rootCeiling(config, mode);
  const { tool_permission } = role;
  const { own } = authorityUnder(root, {
    tool_permission: openActions(tool_permission, origins, sandboxed),
  });
  const objections = openingObjections(tool_permission, origins, sandboxed);
  const all = [
    ...Object.keys(root.ceiling.actions),
    ...categories,
    ...Object.keys(tool_permission),
  ];
  return [...new Set(all)].map((category) => {
    const action = actionOf(own, category);
    return { category, action, reason: reasonOf(category, action) };
  });

  function reasonOf(category: string, action: Action): string {
    const set = actionOf(root.ceiling, category);
    const asked = tool_permission[category];
    const author = `the role (${origins[category]})`;
    if (asked === undefined) return inherited(category);
    if (action !== set) {
      if (action !== "allow") return author;
      const person = origins[category] === "global" || origins[category] === "local";
      return `${author} opens it` +
        (person ? "" : ", while a full sandbox is in force for commands");
    }
    if (asked !== "allow" || set === "allow") return inherited(category);
    const why = set === "deny"
      ? "a denial stays"
      : objections[category] ?? (isClosed(root, category) ? closing(category) : "");
    return `${inherited(category)}; the role asks for allow, but ${why}`;
  }

  /** Where an action comes from that the role does not change. */
  function inherited(category: string): string {
    if (Object.hasOwn(modeChanges(config, mode).tool_permission, category)) return `mode ${mode}`;
    if (Object.hasOwn(root.ceiling.actions, category)) {
      const origin = config.origin(`tool_permission.${category}`);
      return origin === "default" ? "the default" : `the configuration (${origin})`;
    }
    return category === "dev" ? "as bash" : "the default of other categories";
  }

  function closing(category: string): string {
    return category === "bash" && root.ceiling.bash_allow.length > 0
      ? "bash_allow lists the commands that need no approval"
      : `mode ${mode} asks`;
  }
}
