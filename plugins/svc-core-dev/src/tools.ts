import type { ToolArguments, ToolContext, ToolDefinition } from "../../../src/plugins/api.ts";
import { devCommand } from "./command.ts";
import { goRanNothing, ranNothing } from "./empty_run.ts";
import type { Task } from "./kinds/kind.ts";
import { UsageError } from "./usage_error.ts";

/** Seconds. */
const TIMEOUT = 300;
const MAX_TIMEOUT = 3600;

export const codeTest = devTool({
  task: "test",
  description: "Run the project's tests, all of them or a target. The result gives the exit code " +
    "and the output, and says so when no test ran.",
  target: "Only this: a file, a folder or a test's name, as the project's test runner takes it.",
});

export const codeLint = devTool({
  task: "lint",
  description: "Run the project's linter, over all of it or a target.",
  target: "Only this file, folder or package.",
});

export const codeFormat = devTool({
  task: "format",
  description: "Run the project's formatter, which rewrites files: all of them or a target.",
  target: "Only this file, folder or package.",
});

function devTool(
  { task, description, target }: { task: Task; description: string; target: string },
): ToolDefinition {
  return {
    name: `code_${task}`,
    description,
    permission: "dev",
    path_arg: "cwd",
    key_arg: "target",
    parameters: {
      type: "object",
      properties: {
        target: { type: "string", description: target },
        cwd: { type: "string", description: "Folder of the project (default: the worktree)." },
        timeout: {
          type: "number",
          description: `Seconds, 1 to ${MAX_TIMEOUT} (default ${TIMEOUT}).`,
        },
      },
    },
    status: ({ target }) => [task, target].filter(Boolean).join(" "),
    confirm: async (args, context) => {
      const folder = context.paths.resolve(args.cwd ?? ".");
      return await answering(async () => {
        const { shown } = await devCommand(task, args.target, folder, context);
        return `in ${folder}\n$ ${shown}`;
      });
    },
    error: (result) => /^Error: /m.test(result.slice(result.lastIndexOf("\n") + 1)),
    handler: (args, context) => answering(() => run(task, args, context)),
  };
}

async function run(task: Task, args: ToolArguments, context: ToolContext): Promise<string> {
  const folder = context.paths.resolve(args.cwd ?? ".");
  const { command, shown } = await devCommand(task, args.target, folder, context);
  const timeout = Math.min(Math.max(1, args.timeout ?? TIMEOUT), MAX_TIMEOUT);
  // Runners that watch for changes, or colour what they print, do neither where CI is set.
  const env = { CI: "true", NO_COLOR: "1" };
  const result = await start(task, command, { cwd: folder, timeout, env }, context);
  const why = result.cancelled
    ? "Error: cancelled\n"
    : result.timed_out
    ? `Error: timed out after ${timeout} seconds and was ended\n`
    : "";
  const output = result.output.trimEnd();
  if (command.includes("pytest") && output.endsWith(": No module named pytest")) {
    throw new UsageError("code_test requires the package pytest; install it for this python3");
  }
  const empty = task === "test" && (ranNothing(output) || goRanNothing(output) || pytestEmpty())
    ? `\nError: no test ran${
      args.target === undefined ? "" : ` for ${JSON.stringify(args.target)}`
    }`
    : "";
  return `${why}$ ${shown}\nexit ${result.code}\n${output || "(no output)"}${empty}`;

  function pytestEmpty(): boolean {
    return result.code === 5 && command.includes("pytest");
  }
}

async function start(
  task: Task,
  command: string[],
  request: { cwd: string; timeout: number; env: Record<string, string> },
  context: ToolContext,
): ReturnType<ToolContext["run"]> {
  try {
    return await context.run({ command, ...request });
  } catch (error) {
    if ((error as { code?: unknown }).code !== "program_not_found") throw error;
    throw new UsageError(
      `code_${task} requires the program ${command[0]}, which is not installed; install it, ` +
        `or set dev.${task}_cmd in the configuration`,
    );
  }
}

/** Runs a call; a call that cannot be run is an `Error:` result. */
async function answering(call: () => Promise<string>): Promise<string> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof UsageError) return `Error: ${error.message}`;
    throw error;
  }
}
