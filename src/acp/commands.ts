import type { AvailableCommand } from "@agentclientprotocol/sdk";
import { parseCommand } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { argumentsOf, isLogged, readLine } from "../commands/slash_line.ts";
import { SHARED } from "../commands/table.ts";
import { SESSION_NEEDS, type Workspace } from "../engine/workspace.ts";
import { errorMessage, nearest, SvcError, usageError, writeHint } from "../platform/error.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import type { SharedCommand } from "../plugins/command_names.ts";
import type { EditorOperator } from "./operator.ts";

/** Those that read keys or begin a worktree at a terminal, and one that follows files until it is interrupted. */
const LEFT_OUT: readonly SharedCommand[] = ["connect", "disconnect", "init", "logs"];

const OFFERED = Object.entries(SHARED).filter(([name]) =>
  !LEFT_OUT.includes(name as SharedCommand)
);

/** The slash commands of a session: the shared ones, and those of plugins. */
export async function availableCommands(workspace: Workspace): Promise<AvailableCommand[]> {
  const { commands } = await workspace.load(SESSION_NEEDS);
  return [
    ...OFFERED.map(([name, { summary }]) => ({
      name,
      description: summary,
      input: { hint: "--help shows its subcommands and options" },
    })),
    ...commands.map(({ definition: { name, description, usage = "" } }) => ({
      name,
      description: oneLine(description),
      ...usage !== "" && { input: { hint: oneLine(usage) } },
    })),
  ];
}

/** What a slash command works with. */
export interface CommandScope {
  workspace: Workspace;
  /** Input and output of the process. */
  io: Io;
  operator: EditorOperator;
  /** The name of the session; undefined before its first turn. */
  session: string | undefined;
  /** What the operator allowed until the session ends, in words. */
  approvals: string[];
  signal: AbortSignal;
  /** Shows a piece of its output, as it is. */
  print(text: string): void;
}

/**
 * Runs a message that is a slash command: its first word is a slash and a name, which a path such as /etc/hosts is not.
 * Its errors are printed, also that there is no such command.
 *
 * @returns what the log says of it with the next turn, empty for nothing; undefined when the message is no command
 */
export async function runCommand(
  message: string,
  scope: CommandScope,
): Promise<string | undefined> {
  const [, name = "", rest = ""] = /^\/([a-z][\w-]*)(?:\s+([^]*))?$/i.exec(message.trim()) ?? [];
  if (name === "") return undefined;
  const { workspace } = scope;
  const { commands } = await workspace.load(SESSION_NEEDS);
  const added = commands.find(({ definition }) =>
    definition.name === name || definition.aliases?.includes(name)
  );
  const shared = OFFERED.find(([each]) => each === name)?.[1];
  const io = commandIo(scope);
  try {
    if (shared === undefined && added === undefined) throw unknown(name, commands);
    if (shared === undefined) {
      const { config, paths: { worktree } } = workspace;
      const context = { config, worktree, session: scope.session ?? "", signal: scope.signal };
      const answer = await added!.definition.run(rest, context);
      if (typeof answer === "string" && answer !== "") io.out(answer + "\n");
      return workspace.mask(`/${name} ${rest}`.trim());
    }
    const command = await shared.load();
    const parsed = await parseCommand(command, argumentsOf(command, name, readLine(rest)), io);
    if (parsed === undefined) return "";
    if (command.lends?.(parsed.values)) {
      throw usageError(
        "no_terminal",
        `/${name} needs a terminal here.`,
        `Run it there: svc ${name} ${rest}`,
      );
    }
    await command.run(parsed.values, io);
    return isLogged(name, parsed.values) ? "" : workspace.mask(`/${name} ${rest}`.trim());
  } catch (error) {
    scope.print(`Error: ${asSlash(errorMessage(error))}\n`);
    const hint = error instanceof SvcError ? error.hint : writeHint(error);
    if (hint !== "") io.note(`hint: ${hint}`);
    const known = shared !== undefined || added !== undefined;
    return known ? `/${name}` : ""; // what failed may have a secret in a wrong place
  }
}

function unknown(name: string, added: readonly { definition: { name: string } }[]): SvcError {
  const terminal = LEFT_OUT.find((each) => each === name);
  const names = [
    ...OFFERED.map(([each]) => each),
    ...added.map(({ definition }) => definition.name),
  ];
  const guess = nearest(name.toLowerCase(), names);
  const hint = terminal !== undefined
    ? `Run it in a terminal: svc ${terminal}`
    : guess !== undefined
    ? `Did you mean /${guess}?`
    : `There are: ${names.map((each) => `/${each}`).join(" ")}`;
  return usageError("unknown_command", `There is no command /${name} here.`, hint);
}

function commandIo(
  { workspace, io, operator, session, approvals, signal, print }: CommandScope,
): Io {
  return {
    environment: io.environment,
    program: "/",
    live: workspace,
    operator,
    session: () => session,
    inUse: () => session === undefined ? [] : [session],
    approvals: () => approvals,
    out: (text) => print(stripControl(text)),
    note: (line) => print(`${asSlash(oneLine(line))}\n`),
    columns: () => 100,
    isTerminal: (stream) => stream === "in", // a person is there, whom `confirm` asks
    readInput: () => Promise.resolve(""),
    readLine: () => Promise.resolve(undefined),
    readHidden: () => Promise.resolve(undefined),
    confirm: async (question) => await operator.choose(question, ["Yes"], { signal }) === 0,
    onInterrupt: () => ({ signal, release() {} }),
  };
}

/** Replaces `svc asks` by `/asks` where the session has the command. */
function asSlash(text: string): string {
  const isOffered = (name: string) => OFFERED.some(([each]) => each === name);
  return text.replace(/\bsvc ([a-z]+)\b/g, (all, name) => isOffered(name) ? `/${name}` : all);
}
