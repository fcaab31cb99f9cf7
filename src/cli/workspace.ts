import { Workspace } from "../engine/workspace.ts";
import type { Io } from "./io.ts";

/** Opens the worktree that `--path` names; its warnings go to standard error. */
export function openWorkspace(
  path: string,
  io: Io,
  overrides?: Record<string, unknown>,
): Workspace {
  return Workspace.open({
    path: path || io.environment.cwd,
    environment: io.environment,
    warn: (message) => io.note(`warning: ${message}`),
    overrides,
  });
}
