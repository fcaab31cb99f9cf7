import type { Workspace } from "../../engine/workspace.ts";
import { nearest } from "../../platform/nearest.ts";
import type { Io } from "../io.ts";

/** A stage's role may still be to come; that it is not there yet is better known before a run fails. */
export async function noteUnknownRoles(workspace: Workspace, team: string, io: Io): Promise<void> {
  await workspace.load({ roles: "all", teams: "all" });
  const catalog = await workspace.catalog();
  const roles = catalog.list("role").map(({ name }) => name);
  const stages = catalog.need("team", team).value.stages.map(({ role }) => role);
  for (const role of new Set(stages)) {
    if (roles.includes(role)) continue;
    const guess = nearest(role, roles);
    const hint = guess === undefined ? "" : ` Did you mean ${guess}?`;
    io.note(`warning: There is no role ${JSON.stringify(role)}, and no run without it.${hint}`);
  }
}
