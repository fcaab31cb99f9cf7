import type { Workspace } from "../engine/workspace.ts";
import type { JobContext } from "./attempt.ts";
import { JobRegister } from "./register.ts";

/** The jobs of an open worktree, by its clock. */
export function jobContext(
  { paths, environment, clock, warn }: Pick<Workspace, "paths" | "environment" | "clock" | "warn">,
): JobContext {
  const { worktree, state } = paths;
  const register = new JobRegister({ state, clock, warn });
  return { worktree, state, environment, register, clock, warn };
}
