import { join } from "node:path";
import type {
  ProcessRequest,
  ProcessResult,
  ResultDetails,
  ToolArguments,
  ToolContext,
  ToolDefinition,
  ToolRegistrar,
} from "../../../src/plugins/api.ts";

export function register_tools(registry: ToolRegistrar): void {
  registry.register(runCommand);
}

const DEFAULT_TIMEOUT = 30;
const MAX_TIMEOUT = 600;

const runCommand: ToolDefinition = {
  name: "run_command",
  description:
    "Run a shell command (bash) without a terminal and wait for it: exit code and output. What " +
    "it leaves in the background is ended.",
  short: "Run a shell command.",
  permission: "bash",
  aliases: ["bash", "exec"],
  param_aliases: { cmd: "command" },
  path_arg: "cwd",
  key_arg: "command",
  parameters: {
    type: "object",
    properties: {
      command: { type: "string" },
      cwd: { type: "string", description: "Default: the worktree." },
      timeout: {
        type: "number",
        description: `Seconds, at most ${MAX_TIMEOUT} (default ${DEFAULT_TIMEOUT}).`,
      },
    },
    required: ["command"],
  },
  status: (args) => `$ ${args.command}`,
  confirm: (args, context) => `in ${folder(args, context)}\n$ ${args.command}`,
  details,
  redirect: patchCall,
  handler: run,
};

/** The patch of a command that is `apply_patch` with a here-document alone, as some models are trained to write it. */
function patchCall({ command, cwd }: ToolArguments) {
  const [, folder, quote, , patch = ""] = APPLY_PATCH.exec(command) ?? [];
  if (patch === "" || (quote === "" && /[$`\\]/.test(patch))) return undefined;
  const input = patch.replace(
    PATCHED,
    (_, head, path) => head + join(cwd ?? "", folder ?? "", path),
  );
  return { name: "apply_patch", arguments: { input } };
}

const APPLY_PATCH =
  /^\s*(?:cd\s+([\w./-]+)\s*&&\s*)?apply_?patch\s+<<\s*(['"]?)(\w+)\2[ \t]*\n([\s\S]*)\n\3\s*$/;
const PATCHED = /^(\*\*\* (?:Add File|Update File|Delete File|Move to): )([^/].*)$/gm;

async function run(args: ToolArguments, context: ToolContext): Promise<string> {
  const { command } = args;
  if (command.trim() === "") return "Error: the command is empty";
  const timeout = Math.min(Math.max(1, args.timeout ?? DEFAULT_TIMEOUT), MAX_TIMEOUT);
  const request = {
    cwd: folder(args, context),
    timeout,
    on_output: context.progress,
  };
  const result = await shell(command, request, context);
  const output = result.output.trimEnd();
  const body = `$ ${command}\nexit ${result.code}\n${output || NO_OUTPUT}`;
  return `${interruption(result, timeout)}${body}`;
}

const NO_OUTPUT = "(no output)";

function details(result: string, { command }: ToolArguments): ResultDetails {
  const head = `$ ${command}\n`;
  const at = result.indexOf(head);
  // A secret in the command is masked in the result.
  const exit = /(?<=^|\n)exit (\d+)\n/.exec(result.slice(at < 0 ? 0 : at + head.length));
  if (exit === null) return {};
  const start = (at < 0 ? 0 : at + head.length) + exit.index + exit[0].length;
  const silent = result.slice(start) === NO_OUTPUT;
  return { exit_code: Number(exit[1]), output_at: silent ? result.length : start };
}

/** Runs the command line with bash, which models write for, or with sh where there is no bash. */
async function shell(
  command: string,
  request: Omit<ProcessRequest, "command">,
  context: ToolContext,
): Promise<ProcessResult> {
  try {
    return await context.run({ ...request, command: ["bash", "-c", command] });
  } catch (error) {
    if ((error as { code?: unknown }).code !== "program_not_found") throw error;
    return await context.run({ ...request, command: ["sh", "-c", command] });
  }
}

function folder(args: ToolArguments, context: ToolContext): string {
  return context.paths.resolve(args.cwd ?? ".");
}

function interruption(result: ProcessResult, timeout: number): string {
  if (result.cancelled) return "Error: cancelled\n";
  return result.timed_out ? `Error: timed out after ${timeout} seconds and was ended\n` : "";
}
