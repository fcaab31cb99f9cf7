import { resolve } from "node:path";
import type { ToolContext } from "../../../src/plugins/api.ts";
import { findProject, type Target, type Task, UsageError } from "./projects.ts";

/** The command of a task. */
export interface DevCommand {
  command: string[];
  /** The command as a person would type it. */
  shown: string;
}

/**
 * The command for a task in a folder: the one of the configuration (`dev.test_cmd`, `dev.lint_cmd`,
 * `dev.format_cmd`), or else the one of the project that is found there.
 *
 * @throws UsageError when there is neither, or the target is invalid.
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
  return { command: words, shown: commandLine(words) };
}

/** A command as a person would type it. */
export function commandLine(words: string[]): string {
  return words.map(quoted).join(" ");
}

/** The configured line is any shell command line of the operator. The target is added to it as one word. */
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

/**
 * Checks the target of a call. A path has to be in the worktree, links resolved. A name must not be an option or a
 * URL.
 *
 * @throws UsageError for an invalid target; the error of `paths.resolve` for a path outside the worktree.
 */
export function targetOf(text: string, folder: string, { paths }: ToolContext): Target {
  const path = text.split("::")[0]!;
  // deno-lint-ignore no-control-regex
  const odd = text.trim() === "" || text.startsWith("-") || /[\x00-\x1f\x7f]/.test(text);
  const hidden = /[{}]/.test(path) && path.includes(".."); // a runner may expand the braces
  if (odd || hidden || /^[a-z][\w+.-]*:\//i.test(text)) {
    throw new UsageError(`${JSON.stringify(text.slice(0, 80))} is no target`);
  }
  const real = paths.resolve(resolve(folder, path));
  try {
    return { text, kind: Deno.statSync(real).isDirectory ? "folder" : "file" };
  } catch {
    return { text, kind: "name" };
  }
}
