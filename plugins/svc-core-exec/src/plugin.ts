import { join } from "node:path";
import type {
  BackgroundCommand,
  CommandOutput,
  CommandWait,
  ProcessResult,
  ResultDetails,
  ToolArguments,
  ToolContext,
  ToolDefinition,
  ToolRegistrar,
} from "../../../src/plugins/api.ts";

export function register_tools(registry: ToolRegistrar): void {
  for (const tool of [runCommand, commandOutput, commandStop]) registry.register(tool);
}

const DEFAULT_TIMEOUT = 30;
const MAX_TIMEOUT = 600;

const runCommand: ToolDefinition = {
  name: "run_command",
  description:
    "Run a shell command (bash) without a terminal: exit code and output. What it leaves running " +
    "is ended: start servers with background.",
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
      background: {
        type: "boolean",
        description: "Do not wait; command_stop ends it.",
      },
    },
    required: ["command"],
  },
  status: (args) => `$ ${args.command}${args.background ? " &" : ""}`,
  confirm: (args, context) =>
    `in ${folder(args, context)}${args.background ? ", in the background" : ""}\n$ ${args.command}`,
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
  if (args.background) return await start(args, context);
  const timeout = Math.min(Math.max(1, args.timeout ?? DEFAULT_TIMEOUT), MAX_TIMEOUT);
  const request = {
    cwd: folder(args, context),
    timeout,
    on_output: context.progress,
  };
  const result = await shell(command, (command) => context.run({ ...request, command }));
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
async function shell<T>(line: string, run: (command: string[]) => Promise<T>): Promise<T> {
  try {
    return await run(["bash", "-c", line]);
  } catch (error) {
    if ((error as { code?: unknown }).code !== "program_not_found") throw error;
    return await run(["sh", "-c", line]);
  }
}

async function start(args: ToolArguments, context: ToolContext): Promise<string> {
  const { commands } = context;
  if (commands === undefined) {
    return "Error: without a session, no command can run in the background";
  }
  const request = { cwd: folder(args, context), line: args.command };
  const { id } = await shell(
    args.command,
    (command) => commands.start({ ...request, command }),
  );
  return `$ ${args.command} &\ncommand ${id} runs in the background`;
}

const commandOutput: ToolDefinition = {
  name: "command_output",
  description:
    "New output of a background command, after waiting for a text in it, an open port or, with " +
    "timeout alone, its end.",
  permission: "bash",
  read_only: true,
  confirm: false,
  parallel: false,
  parameters: {
    type: "object",
    properties: {
      id: { type: "integer" },
      wait_for: { type: "string" },
      port: { type: "integer" },
      timeout: { type: "number" },
    },
    required: ["id"],
  },
  status: ({ id, wait_for, port }) =>
    `output of command ${id}` + until({ wait_for, port }, ", until "),
  details: stateDetails,
  async handler(args, context) {
    const command = context.commands?.find(args.id);
    if (command === undefined) return unknown(args.id);
    const { wait_for, port } = args;
    const waits = wait_for !== undefined || port !== undefined;
    if (port !== undefined && !(port > 0 && port < 65536)) return "Error: the port is 1 to 65535";
    const given = args.timeout ?? (waits ? DEFAULT_TIMEOUT : 0);
    const until = { wait_for, port, timeout: Math.min(Math.max(0, given), MAX_TIMEOUT) };
    const found = await command.output(until, context.signal);
    return shown(command, found, until);
  },
};

const commandStop: ToolDefinition = {
  name: "command_stop",
  description: "End a background command.",
  permission: "bash",
  confirm: false,
  parameters: { type: "object", properties: { id: { type: "integer" } }, required: ["id"] },
  status: ({ id }) => `stop command ${id}`,
  async handler({ id }, context) {
    const command = context.commands?.find(id);
    if (command === undefined) return unknown(id);
    await command.stop();
    return shown(command, await command.output({}, context.signal), {});
  },
};

function unknown(id: number): string {
  return `Error: no command ${id} runs in the background of this session`;
}

/** The state of a background command, and its new output. */
function shown(
  { id, line, code }: BackgroundCommand,
  { output, skipped, reached }: CommandOutput,
  { wait_for, port, timeout }: CommandWait,
): string {
  const state = code === undefined ? "runs" : `ended with exit code ${code}`;
  const late = code === undefined ? `not there after ${timeout} seconds` : "not there";
  const waited = until({ wait_for, port }, "waited for ", `: ${reached ? "there" : late}\n`);
  const note = skipped === 0 ? "" : `... (${skipped} lines dropped) ...\n`;
  const text = output.trimEnd() || NOTHING_NEW;
  return `command ${id} ${state}: ${line}\n${waited}${note}${text}`;
}

/** The text and the port that are waited for; empty when there are none. */
function until({ wait_for, port }: CommandWait, before: string, after = ""): string {
  const awaited = [wait_for && JSON.stringify(wait_for), port && `port ${port}`].filter(Boolean);
  return awaited.length === 0 ? "" : before + awaited.join(" and ") + after;
}

const NOTHING_NEW = "(no new output)";

function stateDetails(result: string): ResultDetails {
  const head = /^command \d+ (?:runs|ended with exit code (\d+)): .*\n(?:waited for .*: there\n)?/
    .exec(
      result,
    );
  if (head === null) return {};
  const silent = result.slice(head[0].length) === NOTHING_NEW;
  return {
    output_at: silent ? result.length : head[0].length,
    ...head[1] !== undefined && { exit_code: Number(head[1]) },
  };
}

function folder(args: ToolArguments, context: ToolContext): string {
  return context.paths.resolve(args.cwd ?? ".");
}

function interruption(result: ProcessResult, timeout: number): string {
  if (result.cancelled) return "Error: cancelled\n";
  return result.timed_out ? `Error: timed out after ${timeout} seconds and was ended\n` : "";
}
