import type { ProjectKind } from "./kind.ts";
import type { Target } from "../target.ts";

/** The project's own `test` task comes first: it knows the permissions that its tests need. */
export async function deno(text: string): Promise<ProjectKind> {
  const test = await hasTestTask(text) ? ["deno", "task", "test"] : ["deno", "test"];
  return {
    kind: "Deno",
    commands: {
      // A target that is no file is the name of tests.
      test: (target) => [
        ...test,
        ...target?.kind === "name" ? [`--filter=${target.text}`] : given(target),
      ],
      lint: (target) => ["deno", "lint", ...given(target)],
      format: (target) => ["deno", "fmt", ...given(target)],
    },
  };
}

async function hasTestTask(text: string): Promise<boolean> {
  const { parse } = await import("jsonc-parser");
  const tasks = parse(text)?.tasks;
  return typeof tasks === "object" && tasks !== null && Object.hasOwn(tasks, "test");
}

function given(target: Target | undefined): string[] {
  return target === undefined ? [] : [target.text];
}
