import type {
  EnvironmentService,
  ProcessRequest,
  ResultDetails,
  ServiceRegistrar,
  ToolArguments,
  ToolContext,
  ToolDefinition,
  ToolRegistrar,
} from "../../../src/plugins/api.ts";
import { commandLine, devCommand } from "./command.ts";
import { findProject, type Task, UsageError } from "./projects.ts";

export function register_tools(registry: ToolRegistrar): void {
  for (const tool of [codeTest, codeLint, codeFormat]) registry.register(tool);
}

export function register_services(services: ServiceRegistrar): void {
  services.register("environment", { ...project });
}

/** The kind of project in the worktree, and the commands that test and check it. */
const project: EnvironmentService = {
  async describe({ config, paths }) {
    // One look instead of one for each file that a project may have.
    const names = new Set(Array.from(Deno.readDirSync(paths.worktree), ({ name }) => name));
    const found = await findProject("test", paths.worktree, paths, names);
    const command = (task: Task) => {
      const own = String(config.get(`dev.${task}_cmd`) ?? "").trim();
      const words = found?.commands[task]?.(undefined, paths.worktree);
      const line = own || (words === undefined ? "" : commandLine(words));
      return line === "" ? [] : [`${task}: ${line}`];
    };
    const facts = [
      ...found === undefined ? [] : [found.kind],
      ...command("test"),
      ...command("lint"),
    ];
    return facts.length === 0 ? "" : `Project: ${facts.join(", ")}`;
  },
};

/** Seconds that a run may take by default, and at most. */
const TIMEOUT = 300;
const MAX_TIMEOUT = 3600;

const codeTest = devTool(
  "test",
  "Run the project's tests: all, or a target (file, folder or test name). Says when no test ran.",
);

const codeLint = devTool(
  "lint",
  "Run the project's linter: over all, or a target (file, folder or package).",
);

const codeFormat = devTool(
  "format",
  "Run the project's formatter, which rewrites files: all, or a target (file, folder or package).",
);

function devTool(task: Task, description: string): ToolDefinition {
  return {
    name: `code_${task}`,
    description,
    permission: "dev",
    path_arg: "cwd",
    key_arg: "target",
    parameters: {
      type: "object",
      properties: {
        target: { type: "string" },
        cwd: { type: "string" },
        timeout: {
          type: "number",
          description: `Default ${TIMEOUT}.`,
        },
      },
    },
    status: ({ target }) => [task, target].filter(Boolean).join(" "),
    confirm: async (args, context) => {
      const folder = context.paths.resolve(args.cwd ?? ".");
      return await withErrorResult(async () => {
        const { shown } = await devCommand(task, args.target, folder, context);
        return `in ${folder}\n$ ${shown}`;
      });
    },
    error: (result) => /^Error: /m.test(result.slice(result.lastIndexOf("\n") + 1)),
    details,
    handler: (args, context) => withErrorResult(() => run(task, args, context)),
  };
}

async function run(task: Task, args: ToolArguments, context: ToolContext): Promise<string> {
  const folder = context.paths.resolve(args.cwd ?? ".");
  const { command, shown } = await devCommand(task, args.target, folder, context);
  const timeout = Math.min(Math.max(1, args.timeout ?? TIMEOUT), MAX_TIMEOUT);
  // These variables keep runners from watching for changes and from colouring their output.
  const env = { CI: "true", NO_COLOR: "1" };
  const request = { cwd: folder, timeout, env, on_output: context.progress };
  const result = await runProgram(task, command, request, context);
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

function details(result: string): ResultDetails {
  const head = /^(?:Error: .*\n)?\$ .*\nexit (\d+)\n/.exec(result);
  return head === null ? {} : { exit_code: Number(head[1]), output_at: head[0].length };
}

async function runProgram(
  task: Task,
  command: string[],
  request: Omit<ProcessRequest, "command">,
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

/** Turns a {@linkcode UsageError} into an `Error:` result. */
async function withErrorResult(call: () => Promise<string>): Promise<string> {
  try {
    return await call();
  } catch (error) {
    if (error instanceof UsageError) return `Error: ${error.message}`;
    throw error;
  }
}

/** Whether the output of a test run reports that no test ran, for the common test runners. */
export function ranNothing(output: string): boolean {
  // deno-lint-ignore no-control-regex
  const text = output.replaceAll(/\x1b\[[\d;]*m/g, "");
  if (RAN.test(text)) return false;
  if (NOTHING_RAN.some((phrase) => phrase.test(text))) return true;
  // Runners that print a summary: all its counts have to be 0.
  return SUMMARIES.some((summary) => {
    const counts = [...text.matchAll(summary)].map(([, ...groups]) => groups.map(Number));
    return counts.length > 0 && counts.flat().every((count) => count === 0);
  });
}

/** Reports a test that ran, possibly in another package. It outweighs every report of an empty one. */
const RAN = new RegExp(
  "\\b[1-9]\\d* (?:passed|passing|failed|failing)\\b" +
    "|^(?:# |ℹ )tests [1-9]" +
    "|^(?:ok|FAIL)[ \\t]+\\S+[ \\t]+(?:\\(cached\\)|[\\d.]+s)(?:[ \\t]+coverage:.*)?$",
  "m",
);

const NOTHING_RAN = [
  /^error: No test modules found/m,
  /^no tests ran\b|^=+ no tests ran|\bcollected 0 items\b/m,
  /^No tests found/m,
  /^No test files found/m,
  /^Could not find '/m, // node --test
  /^no packages to test$|^stat .*: directory not found$|^package \S+ is not in std\b/m, // go
  /^make: \*\*\* No rule to make target/m,
];

const SUMMARIES = [
  /^(?:ok|FAILED) \| (\d+) passed.*?\| (\d+) failed/gm, // deno
  /^test result: \w+\. (\d+) passed; (\d+) failed/gm, // cargo
  /^(?:# |ℹ )tests (\d+)$/gm, // node --test
  /^ +(\d+) passing\b/gm, // mocha
];

/** Whether Go reports, for each package, that no test ran. */
export function goRanNothing(output: string): boolean {
  const lines = output.split("\n").filter((line) => /^(ok|FAIL|---|\?)\s/.test(line));
  return lines.length > 0 &&
    lines.every((line) => /\[no test files\]|\[no tests to run\]/.test(line));
}
