import type { SessionStore } from "../../sessions/store.ts";
import type { Workspace } from "../workspace.ts";
import type { AgentRole } from "./agent.ts";

/**
 * The names of the roles that a session's agent worked under, its own last; empty for one without a role. Whoever
 * goes on in a session without naming a role goes on as these: what they were denied stays denied.
 */
export function ownersOf(sessions: SessionStore, name: string): string[] {
  const roles: string[] = [];
  const seen = new Set<string>();
  for (let at = name; at !== "" && !seen.has(at);) {
    seen.add(at);
    const origin = sessions.origin(at);
    if (origin === undefined) break;
    if (origin.role !== "") roles.unshift(origin.role);
    at = origin.parent_id;
  }
  return roles;
}

/**
 * The role that {@linkcode ownersOf} ends with, under the others.
 *
 * @throws SvcError (exit 2) when one of them is no longer there
 */
export async function ownerRole(
  workspace: Workspace,
  owners: string[],
): Promise<AgentRole | undefined> {
  const roles = await Promise.all(owners.map((name) => workspace.role(name)));
  const own = roles.pop();
  return own && { ...own, above: roles };
}
