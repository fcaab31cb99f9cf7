import { Workspace } from "../engine/workspace.ts";
import type { Io } from "./io.ts";

/** The worktree that `--path` names, or the one that is open; its warnings are noted. */
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
