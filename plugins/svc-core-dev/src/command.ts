import type { ToolContext } from "../../../src/plugins/api.ts";
import { findProject } from "./projects.ts";
import { UsageError } from "./usage_error.ts";

export type Task = "test" | "lint" | "format";

/** What is run, and how a person would have typed it. */
export interface DevCommand {
  command: string[];
  shown: string;
}

/**
 * The command for a task in a folder: that of the configuration (`dev.test_cmd` and its like), else what
 * fits the project that is found there.
 *
 * @throws UsageError when there is neither, or the target is none.
 */
export async function devCommand(
  task: Task,
  target: string | undefined,
  folder: string,
  context: ToolContext,
): Promise<DevCommand> {
  if (target !== undefined) checkTarget(target, context);
  const configured = String(context.config.get(`dev.${task}_cmd`) ?? "").trim();
  if (configured !== "") return throughShell(configured, target);
  const project = await findProject(folder);
  const words = project?.commands[task]?.(target, folder);
  if (words === undefined) {
    const what = project === undefined
      ? "no project is recognised here"
      : `the ${project.kind} project here has no command for it`;
    throw new UsageError(`${what}; set dev.${task}_cmd in the configuration`);
  }
  return { command: words, shown: words.map(quoted).join(" ") };
}

/** The configured line is the operator's and may be any shell line; the target is one word of it. */
function throughShell(line: string, target: string | undefined): DevCommand {
  const script = target === undefined ? line : `${line} "$@"`;
  return {
    command: ["sh", "-c", script, "svc", ...target === undefined ? [] : [target]],
    shown: target === undefined ? line : `${line} ${quoted(target)}`,
  };
}

function checkTarget(target: string, context: ToolContext): void {
  // deno-lint-ignore no-control-regex
  if (target.trim() === "" || target.startsWith("-") || /[\x00-\x1f\x7f]/.test(target)) {
    throw new UsageError(`${JSON.stringify(target.slice(0, 80))} is no target`);
  }
  const path = target.split("::")[0]!;
  if (path.startsWith("/") || path.split("/").includes("..")) context.paths.resolve(path);
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word);
}
