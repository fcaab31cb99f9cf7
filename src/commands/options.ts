import { withDefault } from "@optique/core/modifiers";
import type { Parser } from "@optique/core/parser";
import { option } from "@optique/core/primitives";
import { choice, string } from "@optique/core/valueparser";
import { says } from "./command.ts";

/** An argument that takes a negative number for what it is, and not for an option. */
export function takingNegative<T, S>(argument: Parser<"sync", T, S>): Parser<"sync", T, S> {
  return {
    ...argument,
    parse(context) {
      if (!/^-\d/.test(context.buffer[0] ?? "")) return argument.parse(context);
      const parsed = argument.parse({ ...context, optionsTerminated: true });
      const { optionsTerminated } = context;
      return parsed.success ? { ...parsed, next: { ...parsed.next, optionsTerminated } } : parsed;
    },
  };
}

/** The `--path` option of every command that works in a worktree; empty: the current directory. */
export const pathOption = withDefault(
  option("--path", string({ metavar: "DIR" }), {
    description: says("The worktree; default: the current directory."),
  }),
  "",
);

/** The `--output` option of every command that prints text for people or JSON for programs. */
export const outputOption = withDefault(
  option("--output", choice(["text", "json"]), { description: says("text (default) or json.") }),
  "text",
);
