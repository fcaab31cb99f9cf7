import { Workspace } from "../engine/workspace.ts";
import type { Io } from "./io.ts";

/** Opens the worktree of `--path`, or returns the open one; its warnings are printed as notes. */
export function openWorkspace(
  path: string,
  io: Io,
  overrides?: Record<string, unknown>,
): Workspace {
  if (io.live !== undefined && path === "" && overrides === undefined) return io.live;
  return Workspace.open({
    path: path || io.environment.cwd,
    environment: io.environment,
    warn: (message) => io.note(`warning: ${message}`),
    overrides,
  });
}
