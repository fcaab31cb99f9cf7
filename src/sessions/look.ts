import { lstatIfExists, readAt } from "../platform/files.ts";
import type { SessionSummary } from "../store/port.ts";
import { isPart } from "./check.ts";
import { findTurns, type ReadAt, startsAt, TURN_START } from "./document.ts";
import type { LogPaths } from "./files.ts";
import { openLocked, readLog, Snapshot } from "./read.ts";
import type { Part, TurnStatus } from "./schema.ts";
import { tryTurnLock } from "./session.ts";

export type { SessionSummary };

/** Characters of a prompt in a summary, and bytes in which it is looked for. */
const LONGEST_PROMPT = 200;
const FIRST_BYTES = 8192;

/** The summary of a session; undefined when it is missing or unreadable. */
export function summaryOf(name: string, paths: LogPaths): SessionSummary | undefined {
  const files = [paths.document, paths.journal].flatMap((path) => lstatIfExists(path) ?? []);
  const common = {
    name,
    running: isRunning(paths),
    bytes: files.reduce((sum, { size }) => sum + size, 0),
  };
  /** The log's own time: copying or restoring the files does not change it. */
  const written = (updated_at: string) => {
    const times = files.map(({ mtime }) => mtime?.getTime() ?? 0);
    const time = Date.parse(updated_at);
    return new Date(Number.isNaN(time) ? Math.max(0, ...times) : time).toISOString();
  };
  using snapshot = Snapshot.open(paths);
  if (snapshot !== undefined) {
    const { created_at, role, parent_id, job } = snapshot.fields;
    return {
      ...common,
      first_prompt: promptIn(snapshot.firstBytes(FIRST_BYTES)),
      turns: snapshot.count,
      updated_at: written(snapshot.updated_at),
      ...{ created_at, role, parent_id, job: typeof job === "string" ? job : "" },
    };
  }
  const document = readLog(name, paths, () => {});
  if (document === undefined) return undefined;
  const { turns, created_at, role = "", parent_id = "", job = "" } = document;
  return {
    ...common,
    first_prompt: firstPrompt(turns.flatMap(({ parts }) => parts)) ?? "",
    turns: turns.length,
    updated_at: written(document.updated_at),
    ...{ created_at, role, parent_id, job },
  };
}

/** The summary of a session that cannot be read. */
export function unreadable(name: string, updated: number): SessionSummary {
  const none = { first_prompt: "", created_at: "", role: "", job: "", parent_id: "" };
  const updated_at = new Date(updated).toISOString();
  return { name, ...none, updated_at, turns: 0, running: false, bytes: 0 };
}

/** Whether a process holds the lock of the session's turn. */
export function isRunning({ turn }: LogPaths): boolean {
  if (lstatIfExists(turn) === undefined) return false;
  const lock = tryTurnLock(turn);
  lock?.release();
  return lock === undefined;
}

/** The beginning of the first prompt among parts; undefined for none. */
export function firstPrompt(parts: Part[]): string | undefined {
  const said = parts.find(({ type }) => type === "user");
  return said?.type === "user" ? beginning(said.text) : undefined;
}

/** The first prompt in the beginning of a log's turns. It may be cut off. */
function promptIn(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes);
  const found = /^\{"type":"user","text":"((?:[^"\\\n]|\\.)*)/m.exec(text)?.[1] ?? "";
  for (const cut of [0, 1, 2, 3, 4, 5]) { // the last escape may be incomplete
    try {
      return beginning(JSON.parse(`"${found.slice(0, found.length - cut)}"`));
    } catch {
      // Cut more.
    }
  }
  return "";
}

function beginning(text: string): string {
  return text.trim().replace(/\s+/g, " ").slice(0, LONGEST_PROMPT).toWellFormed();
}

/** What was appended to a log: a part, or the end of a turn. */
export type Appended = { part: Part } | { turn: number; status: TurnStatus };

/** Reads what any process appends to a session. Each call reads the new bytes only. */
export class LogFollower {
  readonly #paths: LogPaths;
  /** Offset of the first turn. */
  #start = 0;
  /** End of the last entry that was returned. */
  #offset = 0;
  /** Number of entries that were returned. */
  #seen = 0;

  constructor(paths: LogPaths) {
    this.#paths = paths;
  }

  /** What was appended since the last call; undefined when the session does not exist. */
  read(): Appended[] | undefined {
    const file = openLocked(this.#paths.document);
    if (file === undefined) return undefined;
    try {
      const { size } = file.statSync();
      const at: ReadAt = (offset, length) => readAt(file, offset, length);
      let skipped = 0;
      if (!startsAt(this.#start, at)) {
        // The entries are the same ones, at other offsets.
        this.#offset = this.#start = findTurns(size, at) ?? size;
        skipped = this.#seen;
        this.#seen = 0;
      }
      const bytes = readAt(file, this.#offset, Math.max(0, size - this.#offset));
      return this.#entries(bytes).slice(skipped);
    } finally {
      file.close();
    }
  }

  #entries(bytes: Uint8Array): Appended[] {
    const found: Appended[] = [];
    let end = 0;
    for (let start = 0; start < bytes.length;) {
      const feed = bytes.indexOf(0x0a, start);
      const line = bytes.subarray(start, feed < 0 ? bytes.length : feed);
      const entry = entryOf(new TextDecoder().decode(line).replace(/,$/, ""));
      if (entry === "later") break;
      if (entry !== undefined) {
        found.push(entry);
        end = start + line.length - (line.at(-1) === 0x2c ? 1 : 0);
      }
      start += line.length + 1;
    }
    this.#offset += end;
    this.#seen += found.length;
    return found;
  }
}

/** The entry of a line; undefined for one between entries, `later` where the rest may still change. */
function entryOf(line: string): Appended | "later" | undefined {
  if (line === "" || line === TURN_START) return undefined;
  try {
    if (line.startsWith('{"type":')) {
      const part: unknown = JSON.parse(line);
      return isPart(part) ? { part } : "later";
    }
    if (!line.startsWith('],"index":')) return "later";
    const { index, status } = JSON.parse(`{${line.slice(2)}`);
    return status === "running" ? "later" : { turn: index, status };
  } catch {
    return "later"; // a writer died in the middle of it; the next one repairs the file
  }
}
