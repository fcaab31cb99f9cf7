import type { ToolContext } from "../../../src/plugins/api.ts";
import type { Task } from "./kinds/kind.ts";
import { findProject } from "./projects.ts";
import { type Target, targetOf } from "./target.ts";
import { UsageError } from "./usage_error.ts";

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
  given: string | undefined,
  folder: string,
  context: ToolContext,
): Promise<DevCommand> {
  const target = given === undefined ? undefined : targetOf(given, folder, context);
  const configured = String(context.config.get(`dev.${task}_cmd`) ?? "").trim();
  if (configured !== "") return throughShell(configured, target);
  const project = await findProject(task, folder, context.paths);
  const words = project?.commands[task]?.(target, folder);
  if (words === undefined) {
    const what = project === undefined
      ? 'no project is recognised here; pass its folder as "cwd"'
      : `the ${project.kind} project here has no command for it; give it one`;
    throw new UsageError(`${what}, or set dev.${task}_cmd in the configuration`);
  }
  return { command: words, shown: words.map(quoted).join(" ") };
}

/** The configured line is the operator's and may be any shell line; the target is one word of it. */
function throughShell(line: string, target: Target | undefined): DevCommand {
  if (target === undefined) return { command: ["sh", "-c", line, "svc"], shown: line };
  return {
    command: ["sh", "-c", `${line} "$@"`, "svc", target.text],
    shown: `${line} ${quoted(target.text)}`,
  };
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : JSON.stringify(word);
}
