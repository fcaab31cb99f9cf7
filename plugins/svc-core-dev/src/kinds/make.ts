import type { ProjectKind } from "./kind.ts";
import type { Target } from "../target.ts";
import { UsageError } from "../usage_error.ts";

/** Of a makefile the rules of these names. A target takes the place of the rule where its name fits. */
export function make(text: string): ProjectKind {
  const rule = (fits: RegExp, ...names: string[]) => {
    const name = names.find((name) => new RegExp(`^${name}\\s*:(?!=)`, "m").test(text));
    if (name === undefined) return undefined;
    return (
      target: Target | undefined,
    ) => ["make", target === undefined ? name : goal(target, fits)];
  };
  return {
    kind: "make",
    commands: {
      test: rule(/test|check|spec/i, "test", "check"),
      lint: rule(/lint/i, "lint"),
      format: rule(/format|fmt/i, "format", "fmt"),
    },
  };
}

/** Other rules install and deploy; and `X:=$(shell ...)` is no rule at all. */
function goal({ text }: Target, fits: RegExp): string {
  if (fits.test(text) && /^[\w./%+-]+$/.test(text)) return text;
  throw new UsageError(
    `${
      JSON.stringify(text.slice(0, 80))
    } is no rule for this by its name; leave it out, or run make`,
  );
}
