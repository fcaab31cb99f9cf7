import type { ToolArguments } from "../plugins/api.ts";
import { type BashListObjection, bashListObjection } from "./shell.ts";
import type { WorktreeGuard } from "./worktree.ts";

/** What keeps a call off the list of commands that run unasked: its line, or the folder that it is to run in. */
export function callObjection(
  { command, cwd }: ToolArguments,
  allow: string[],
  guard: WorktreeGuard,
): BashListObjection | undefined {
  const line = typeof command === "string" ? command : "";
  return bashListObjection(line, allow, { moved: cwd !== undefined }) ??
    folderObjection(cwd, guard);
}

/** A repository that came with the worktree may name programs for a listed git command to run. */
function folderObjection(cwd: unknown, guard: WorktreeGuard): BashListObjection | undefined {
  if (typeof cwd !== "string") return undefined;
  try {
    if (guard.locate(`${cwd || "."}/config`).protected === false) return undefined;
  } catch {
    // the place itself is answered later
  }
  const shown = JSON.stringify(cwd.slice(0, 200));
  return { reason: `a command in ${shown} may run what is configured there`, final: false };
}
