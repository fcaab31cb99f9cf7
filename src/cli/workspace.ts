import { withDefault } from "@optique/core/modifiers";
import { option } from "@optique/core/primitives";
import { string } from "@optique/core/valueparser";
import { Workspace } from "../engine/workspace.ts";
import { says } from "./command.ts";
import type { Io } from "./io.ts";

/** The `--path` option of every command that works in a worktree; empty: the current directory. */
export const pathOption = withDefault(
  option("--path", string({ metavar: "DIR" }), {
    description: says("The worktree; default: the current directory."),
  }),
  "",
);

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
