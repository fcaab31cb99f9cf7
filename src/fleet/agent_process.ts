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
import type { FleetPlaces } from "./snapshot.ts";
import type { ReservedPort } from "./ports.ts";
import type { Definition } from "./roster.ts";

/** How an agent is started. */
export interface Launch {
  definition: Definition;
  /** Absolute. */
  dir: string;
  port: ReservedPort;
  /** The command line of svc itself. */
  svc: readonly string[];
  places: FleetPlaces;
}

/** The process of an agent: one that this supervisor started, or found. */
export class AgentProcess {
  readonly pid: number;
  readonly port: number;
  /** Why it is no more; undefined while it is there. */
  exit: string | undefined;
  /** Whether an earlier supervisor started it. */
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
   * Starts an agent in a process group of its own, which stays when the supervisor goes.
   *
   * @throws SvcError `agent_command` (exit 2), and what {@linkcode launchDetached} throws
   */
  static launch({ definition, dir, port: reserved, svc, places }: Launch): AgentProcess {
    const { name } = definition;
    const { port } = reserved;
    const log = places.logOf(name);
    const record = places.recordOf(name);
    try {
      removeIfExists(record);
    } catch (cause) {
      throw writeFailure("detached_record", record, cause);
    }
    const { pid, ended } = launchDetached({
      command: agentCommand(definition, { svc, port, dir }),
      cwd: dir,
      env: { SVC_FLEET_PORT: String(port), SVC_PORT: String(port), SVC_PATH: dir },
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

  /** The process that an agent's record names, if it is still there. */
  static async adopt(name: string, places: FleetPlaces): Promise<AgentProcess | undefined> {
    const record = places.recordOf(name);
    const found = readRecord(record);
    if (found === undefined) return undefined;
    const { pid, started, note } = found;
    const now = await identifyProcesses([pid]);
    if (now.get(pid) !== started) return undefined;
    return new AgentProcess(record, { pid, port: Number(note), started, adopted: true });
  }

  /** Looks which of the processes that are nobody's children are no more. */
  static async look(processes: AgentProcess[]): Promise<void> {
    const adopted = processes.filter(({ adopted, exit }) => adopted && exit === undefined);
    const now = await identifyProcesses(adopted.map(({ pid }) => pid));
    for (const process of adopted) {
      if (now.get(process.pid) !== process.#started) process.exit = "ended";
    }
  }

  /** SIGINT for the process itself. */
  async interrupt(): Promise<void> {
    await signalProcesses(await this.#identity(), "INT");
  }

  /** SIGKILL for its group. */
  async kill(): Promise<void> {
    await signalProcesses(await this.#identity(), "KILL", { group: true });
  }

  /** To be called when it is no more. */
  forget(): void {
    tryRemove(this.#record); // one that stays names nobody any more
    this.#reserved?.release();
  }

  async #identity(): Promise<ProcessIdentity[]> {
    if (this.exit !== undefined) return [];
    // While nobody has been told how a child ended, its number is not given to another process.
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
 * The command line of an agent: `svc serve` on its port and folder, or its own with `{port}` and `{dir}`
 * filled in. No shell sees it.
 *
 * @throws SvcError `agent_command` (exit 2) for an own one that only a shell could run
 */
export function agentCommand(
  { name, command }: Pick<Definition, "name" | "command">,
  { svc, port, dir }: { svc: readonly string[]; port: number; dir: string },
): string[] {
  if (command === undefined) {
    return [...svc, "serve", "--host", "127.0.0.1", "--port", String(port), "--path", dir];
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
