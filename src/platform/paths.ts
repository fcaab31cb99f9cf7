import { join, resolve } from "node:path";
import { usageError } from "./error.ts";

/** Where one worktree's state and the user's state lie. All paths are absolute. */
export interface Paths {
  /** The worktree with every symbolic link resolved. */
  readonly worktree: string;
  /** `<worktree>/.svc` */
  readonly state: string;
  /** `<worktree>/.svc/sessions` */
  readonly sessions: string;
  /** `~/.config/svc` */
  readonly user: string;
}

/**
 * The paths of the worktree at `path`.
 *
 * @throws SvcError `no_worktree` (exit 2) when `path` is no directory, or its `.svc` is a file.
 */
export function openPaths(path: string, user: string): Paths {
  let worktree: string;
  try {
    worktree = Deno.realPathSync(path);
    if (!Deno.statSync(worktree).isDirectory) throw new Error("not a directory");
  } catch {
    throw usageError(
      "no_worktree",
      `The worktree ${resolve(path)} is not a directory that can be opened.`,
      "Name an existing directory; --path says which worktree is meant.",
    );
  }
  const state = join(worktree, ".svc");
  if (isFile(state)) {
    throw usageError(
      "no_worktree",
      `${state} is a file, and svc keeps its state in a directory of that name.`,
      "Move the file away, or work in another directory with --path.",
    );
  }
  return { worktree, state, sessions: join(state, "sessions"), user };
}

function isFile(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
