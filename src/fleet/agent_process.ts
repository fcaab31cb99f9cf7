import {
  identifyProcesses,
  launchDetached,
  type ProcessIdentity,
  readRecord,
  signalProcesses,
} from "../platform/detached.ts";
import { usageError, writeFailure } from "../platform/error.ts";
import { removeIfExists, tryRemove } from "../platform/files.ts";
import { splitShellLine } from "../policy/shell.ts";
import { lastLine } from "./logs.ts";
import type { FleetPaths } from "./snapshot.ts";
import type { ReservedPort } from "./ports.ts";
import type { Definition } from "./roster.ts";

/** The parameters of an agent's start. */
export interface Launch {
  definition: Definition;
  /** Absolute. */
  dir: string;
  port: ReservedPort;
  /** The command line of svc itself. */
  svc: readonly string[];
  /** More arguments of `svc serve`. */
  serve?: readonly string[];
  paths: FleetPaths;
}

/** The process of an agent, which this supervisor or an earlier one started. */
export class AgentProcess {
  readonly pid: number;
  readonly port: number;
  /** How the process ended; undefined while it runs. */
  exit: string | undefined;
  /** Whether an earlier supervisor started the process. */
  readonly adopted: boolean;
  readonly #record: string;
  #started: string;
  #reserved: ReservedPort | undefined;

  private constructor(
    record: string,
    process: { pid: number; port: number; started: string; adopted: boolean },
  ) {
    this.#record = record;
    this.pid = process.pid;
    this.port = process.port;
    this.adopted = process.adopted;
    this.#started = process.started;
  }

  /**
   * Starts an agent in its own process group, which outlives the supervisor.
   *
   * @throws SvcError `agent_command` (exit 2), and what {@linkcode launchDetached} throws
   */
  static launch({ definition, dir, port: reserved, svc, serve, paths }: Launch): AgentProcess {
    const { name } = definition;
    const { port } = reserved;
    const log = paths.logOf(name);
    const record = paths.recordOf(name);
    try {
      removeIfExists(record);
    } catch (cause) {
      throw writeFailure("detached_record", record, cause);
    }
    const { pid, ended } = launchDetached({
      command: agentCommand(definition, { svc, port, dir, serve }),
      cwd: dir,
      env: {
        SVC_FLEET_PORT: String(port),
        SVC_HOST: "127.0.0.1",
        SVC_PORT: String(port),
        SVC_PATH: dir,
      },
      log,
      record,
      note: String(port),
    });
    const process = new AgentProcess(record, { pid, port, started: "", adopted: false });
    process.#reserved = reserved;
    ended.then((code) => {
      const said = code === 0 ? "" : lastLine(log);
      process.exit = `${exitText(code)}${said === "" ? "" : `: ${said}`}`;
    });
    return process;
  }

  /** The process that an agent's record names, if it still runs. */
  static async adopt(name: string, paths: FleetPaths): Promise<AgentProcess | undefined> {
    const record = paths.recordOf(name);
    const found = readRecord(record);
    if (found === undefined) return undefined;
    const { pid, started, note } = found;
    const now = await identifyProcesses([pid]);
    if (now.get(pid) !== started) return undefined;
    return new AgentProcess(record, { pid, port: Number(note), started, adopted: true });
  }

  /** Finds out which of the adopted processes have ended: they are no children of this process. */
  static async checkAdopted(processes: AgentProcess[]): Promise<void> {
    const adopted = processes.filter(({ adopted, exit }) => adopted && exit === undefined);
    const now = await identifyProcesses(adopted.map(({ pid }) => pid));
    for (const process of adopted) {
      if (now.get(process.pid) !== process.#started) process.exit = "ended";
    }
  }

  /** Sends SIGINT to the process. */
  async interrupt(): Promise<void> {
    await signalProcesses(await this.#identity(), "INT");
  }

  /** Sends SIGKILL to the process group. */
  async kill(): Promise<void> {
    await signalProcesses(await this.#identity(), "KILL", { group: true });
  }

  /** Removes the record and releases the port; to be called after the process has ended. */
  forget(): void {
    tryRemove(this.#record); // a record that stays names no running process
    this.#reserved?.release();
  }

  async #identity(): Promise<ProcessIdentity[]> {
    if (this.exit !== undefined) return [];
    // The kernel does not reuse the number of a child before its exit status was read.
    this.#started ||= readRecord(this.#record)?.started ??
      (await identifyProcesses([this.pid])).get(this.pid) ?? "";
    return this.exit === undefined ? [{ pid: this.pid, started: this.#started }] : [];
  }
}

function exitText(code: number): string {
  if (code > 128 && code < 160) return `was ended by signal ${code - 128}`;
  return `exited with code ${code}`;
}

/**
 * The command line of an agent: `svc serve` with its port and folder, or the `command` of its definition with
 * `{port}` and `{dir}` replaced. It is started without a shell.
 *
 * @throws SvcError `agent_command` (exit 2) for a `command` that needs a shell
 */
export function agentCommand(
  { name, command }: Pick<Definition, "name" | "command">,
  { svc, port, dir, serve = [] }:
    & Pick<Launch, "svc" | "serve">
    & { port: number; dir: string },
): string[] {
  if (command === undefined) {
    return [...svc, "serve", "--host", "127.0.0.1", "--port", `${port}`, "--path", dir, ...serve];
  }
  const words = typeof command === "string" ? wordsOf(name, command) : command;
  return words.map((word) => word.replaceAll("{port}", String(port)).replaceAll("{dir}", dir));
}

function wordsOf(name: string, command: string): string[] {
  const line = splitShellLine(command.replaceAll(/\{(port|dir)\}/g, "@$1@"));
  const parts = "parts" in line ? line.parts : [];
  if (parts.length === 1 && parts[0]!.every(({ literal }) => literal)) {
    return parts[0]!.map(({ value }) => value.replaceAll(/@(port|dir)@/g, "{$1}"));
  }
  throw usageError(
    "agent_command",
    `The command of ${name} is more than a program and its arguments.`,
    'Write it as a list, such as ["sh", "-c", "..."].',
  );
}
