import type { Paths } from "../platform/environment.ts";

/** The layers that can be written. */
export type Scope = "global" | "local";

/** A layer on disk: its folder, and the root that links may not lead out of. */
export interface Place {
  root: string;
  folder: string;
}

/** Where a layer lies. */
export function placeOf(scope: Scope, { worktree, state, user }: Paths): Place {
  return scope === "global" ? { root: user, folder: user } : { root: worktree, folder: state };
}
