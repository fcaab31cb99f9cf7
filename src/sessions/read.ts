import { jsonFault } from "../config/file.ts";
import type { Pace } from "../platform/clock.ts";
import { concat, lstatIfExists, readAt } from "../platform/files.ts";
import { checkDocument, isTurn } from "./check.ts";
import {
  decode,
  findHead,
  type ReadAt,
  readHead,
  scan,
  spaces,
  strictDecoder,
  turnsStart,
} from "./document.ts";
import { lengthOf, type LogPaths, openRegular } from "./files.ts";
import { recover } from "./journal.ts";
import type { SessionDocument, Turn } from "./schema.ts";

/**
 * Reads a session with the operations of its journal, so that a damaged document is read correctly. Writes
 * nothing.
 *
 * @returns undefined when the session does not exist, or with a warning when it is unreadable
 */
export function readLog(
  name: string,
  paths: LogPaths,
  warn: (message: string) => void,
): SessionDocument | undefined {
  const bytes = readFiles(paths);
  if (bytes === undefined || bytes.length === 0) return undefined; // an empty one is being created
  const unreadable = (what: string) => {
    warn(`Session ${name} does not load: ${paths.document} ${what}. The file stays as it is.`);
    return undefined;
  };
  let value: unknown;
  try {
    // The strict decoder takes four times as long for a long log.
    value = JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return unreadable(`is not valid JSON${positionOf(bytes)}`);
  }
  const checked = checkDocument(value);
  if (checked.kind === "old") return unreadable("is in an old format");
  if (checked.kind === "broken") return unreadable(`is broken at ${checked.where}`);
  return checked.document;
}

/** Where a damaged log is no JSON, as ` (line 3, column 14)`. */
export function positionOf(bytes: Uint8Array): string {
  return ` (${jsonFault(new TextDecoder().decode(bytes))})`;
}

/** The bytes of the document with the operations of its journal. */
export function readFiles(paths: LogPaths): Uint8Array | undefined {
  const file = openLocked(paths.document);
  if (file === undefined) return undefined;
  try {
    return repaired(readAt(file, 0, file.statSync().size), paths.journal);
  } finally {
    file.close();
  }
}

/** Whether a file has a text of ASCII characters; false for a file that is missing. */
export function fileHas(path: string, text: string): boolean {
  using file = openRegular(path, { read: true })?.file;
  const buffer = new Uint8Array(SLICE);
  let piece = "";
  while (true) {
    const count = file?.readSync(buffer) ?? 0;
    if (count === 0) return false;
    piece = piece.slice(-text.length) + new TextDecoder().decode(buffer.subarray(0, count));
    if (piece.includes(text)) return true;
  }
}

/** Opens a document with the shared lock, so that no process writes it; undefined when it does not exist. */
export function openLocked(path: string): Deno.FsFile | undefined {
  while (true) {
    let file: Deno.FsFile | undefined;
    let current = false;
    try {
      file = Deno.openSync(path);
      lockShared(file);
      current = inodeOf(path) === file.statSync().ino; // otherwise it was replaced before the lock
      if (current) return file;
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) return undefined;
      throw error;
    } finally {
      if (!current) file?.close();
    }
  }
}

function repaired(document: Uint8Array, journal: string): Uint8Array {
  const at = (offset: number, length: number) => document.subarray(offset, offset + length);
  const recovered = recoveredFrom(journal, at);
  if (recovered === undefined) return document;
  const [turns, ...entries] = recovered.edits.render(recovered.state);
  const end = turns.at + lengthOf(turns.chunks);
  const bytes = spaces(end);
  bytes.set(document.subarray(0, Math.min(turns.at, end)));
  for (const edit of [turns, ...entries]) bytes.set(concat(edit.chunks), edit.at);
  return bytes;
}

/** On a file system without locks, the document is read without one. */
function lockShared(file: Deno.FsFile): void {
  try {
    file.lockSync(false);
  } catch {
    // not supported
  }
}

function inodeOf(path: string): number | null | undefined {
  try {
    return Deno.statSync(path).ino;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** Bytes that are read and parsed at a time. */
const SLICE = 128 * 1024;

const FIELDS = [
  "session_name",
  "session_id",
  "created_at",
  "parent_id",
  "role",
  "version",
] as const;
type SnapshotFields = Record<typeof FIELDS[number], string> & { job?: unknown };

/** Whether the first line of a document has the fields that svc writes. */
function isHead(fields: Record<string, unknown> | undefined): fields is SnapshotFields {
  return FIELDS.every((name) => typeof fields?.[name] === "string");
}

/** The first line of a document, which never changes; undefined for a missing file, and one that svc did not write. */
export function readFirstLine(path: string): SnapshotFields | undefined {
  const held = openRegular(path, { read: true });
  if (held === undefined) return undefined;
  using file = held.file;
  const at = (offset: number, length: number) => readAt(file, offset, length);
  const fields = findHead(file.statSync().size, at);
  return isHead(fields) ? fields : undefined;
}

/**
 * A long log at one moment, not read or parsed yet. The settled bytes of the document do not change, so they
 * can be read in slices while other handles append.
 */
export class Snapshot implements Disposable {
  readonly #file: Deno.FsFile;
  /** The bytes before the turns. */
  readonly #head: Uint8Array;
  /** End of the settled bytes, which start after `#head`. */
  readonly #settled: number;
  readonly #tail: Uint8Array;

  /** The fields before the arrays. */
  readonly fields: SnapshotFields;
  /** Number of turns. */
  readonly count: number;
  readonly updated_at: string;

  private constructor(
    file: Deno.FsFile,
    head: Uint8Array,
    { settled, tail, fields, count, updated_at }: {
      settled: number;
      tail: Uint8Array;
      fields: SnapshotFields;
      count: number;
      updated_at: string;
    },
  ) {
    this.#file = file;
    this.#head = head;
    this.#settled = settled;
    this.#tail = tail;
    this.fields = fields;
    this.count = count;
    this.updated_at = updated_at;
  }

  /** @returns undefined for a short log, or one that svc did not write */
  static open(paths: LogPaths): Snapshot | undefined {
    if ((lstatIfExists(paths.document)?.size ?? 0) <= SLICE) return undefined;
    const file = openLocked(paths.document);
    if (file === undefined) return undefined;
    let snapshot: Snapshot | undefined;
    try {
      snapshot = Snapshot.#of(file, paths.journal);
      file.unlockSync();
    } finally {
      if (snapshot === undefined) file.close();
    }
    return snapshot;
  }

  static #of(file: Deno.FsFile, journal: string): Snapshot | undefined {
    const { size } = file.statSync();
    if (size <= SLICE) return undefined;
    const at = (offset: number, length: number) => readAt(file, offset, length);
    const recovered = recoveredFrom(journal, at);
    const scanned = recovered === undefined ? scan(size, at) : undefined;
    const state = recovered?.state ?? scanned?.state;
    if (state === undefined) return undefined;
    const head = at(0, turnsStart(state));
    const [turns, ...entries] = recovered?.edits.render(state) ??
      [{ at: state.settled, chunks: [at(state.settled, size - state.settled)] }];
    for (const { at, chunks } of entries) head.set(concat(chunks), at);
    const fields = readHead(
      state.regions,
      (offset, length) => head.subarray(offset, offset + length),
    );
    if (!isHead(fields)) return undefined;
    return new Snapshot(file, head, {
      settled: turns.at,
      tail: concat(turns.chunks),
      fields,
      count: state.turns,
      updated_at: state.updated_at,
    });
  }

  /** The beginning of the first turn's text, at most `bytes` long. */
  firstBytes(bytes: number): Uint8Array {
    const settled = readAt(this.#file, this.#head.length, bytes);
    return settled.subarray(0, this.#settled - this.#head.length);
  }

  /** The whole document in slices. */
  async *bytes(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    yield this.#head as Uint8Array<ArrayBuffer>;
    yield* this.#turns();
  }

  /** The document without its turns. */
  head(): Omit<SessionDocument, "turns"> {
    const { turns: _, ...head } = JSON.parse(`${decode(this.#head)}]}`);
    return { ...head, updated_at: this.updated_at };
  }

  /**
   * Turns, parsed in slices. The lines of others are counted, and not decoded.
   *
   * @param from index of the first one
   * @param to index of the last one. Default: that of the log
   * @throws Error for an unreadable log
   */
  async turns(pace: Pace, from = 1, to = this.count): Promise<Turn[]> {
    const turns: Turn[] = [];
    if (from > to) return turns;
    let index = 1;
    let lines: string[] = [];
    let line: Uint8Array[] = [];
    let text = "";
    const decoder = strictDecoder();
    for await (const piece of this.#turns()) {
      await pace.turn();
      for (let start = 0; start < piece.length;) {
        const feed = piece.indexOf(0x0a, start);
        const part = piece.subarray(start, feed < 0 ? undefined : feed);
        line.push(part);
        if (index >= from) text += decoder.decode(part, { stream: feed < 0 });
        if (feed < 0) break;
        start = feed + 1;
        const ends = startsWith(line, TURN_END);
        if (index >= from) {
          lines.push(ends && text.endsWith(",") ? text.slice(0, -1) : text);
          if (text.length > SLICE) await pace.turn();
        }
        line = [];
        text = "";
        if (!ends) continue;
        if (index >= from) {
          const turn: unknown = JSON.parse(lines.join(""));
          if (!isTurn(turn)) throw new Error(`turn ${index} is broken`);
          turns.push(turn);
          lines = [];
        }
        if (++index > to) return turns;
      }
    }
    throw new Error("it ends in the middle");
  }

  [Symbol.dispose](): void {
    this.#file.close();
  }

  async *#turns(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    let left = this.#settled - this.#head.length;
    this.#file.seekSync(this.#head.length, Deno.SeekMode.Start);
    while (left > 0) {
      const buffer = new Uint8Array(Math.min(SLICE, left));
      const count = await this.#file.read(buffer); // off the event loop
      if (count === null) throw new Error("the file is shorter than it was");
      left -= count;
      yield buffer.subarray(0, count);
    }
    yield this.#tail as Uint8Array<ArrayBuffer>;
  }
}

/** The beginning of the line that ends a turn. */
const TURN_END = new TextEncoder().encode("],");

function startsWith(pieces: Uint8Array[], wanted: Uint8Array): boolean {
  let found = 0;
  for (const piece of pieces) {
    for (let i = 0; i < piece.length; i++) {
      if (piece[i] !== wanted[found]) return false;
      if (++found === wanted.length) return true;
    }
  }
  return false;
}

/** See {@linkcode recover}; undefined without a journal too. */
function recoveredFrom(path: string, at: ReadAt): ReturnType<typeof recover> {
  const journal = openRegular(path, { read: true });
  if (journal === undefined) return undefined;
  try {
    return recover(readAt(journal.file, 0, journal.file.statSync().size), at);
  } finally {
    journal.file.close();
  }
}
