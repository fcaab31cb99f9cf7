import type { ProjectKind } from "./kind.ts";
import type { Target } from "../target.ts";
import { UsageError } from "../usage_error.ts";

export const PYTHON: ProjectKind = {
  kind: "Python",
  commands: {
    // A word that is no file is the name of tests.
    test: (target) => [
      "python3",
      "-m",
      "pytest",
      ...target?.kind === "name" && /^\w+$/.test(target.text) ? ["-k", target.text] : given(target),
    ],
    lint: (target) => ["ruff", "check", ...given(target)],
    format: (target) => ["ruff", "format", ...given(target)],
  },
};

function given(target: Target | undefined): string[] {
  // pytest would read options from such a file.
  if (target?.text.startsWith("@")) {
    throw new UsageError(`${JSON.stringify(target.text.slice(0, 80))} is no target`);
  }
  return target === undefined ? [] : [target.text];
}
