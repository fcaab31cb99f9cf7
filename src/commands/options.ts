import { withDefault } from "@optique/core/modifiers";
import { option } from "@optique/core/primitives";
import { string } from "@optique/core/valueparser";
import { says } from "./command.ts";

/** The `--path` option of every command that works in a worktree; empty: the current directory. */
export const pathOption = withDefault(
  option("--path", string({ metavar: "DIR" }), {
    description: says("The worktree; default: the current directory."),
  }),
  "",
);
