import { concat } from "../platform/files.ts";
import type { Pace } from "../platform/clock.ts";
import { isTurn } from "./check.ts";
import { decode, readHead, scan, turnsStart } from "./layout.ts";
import type { LogPaths } from "./log_paths.ts";
import { recover } from "./operations.ts";
import { openLocked } from "./read.ts";
import { openRegular, readAt } from "./regular_file.ts";
import type { Turn } from "./schema.ts";

/** Bytes that are read, and parsed, at a time. */
const SLICE = 128 * 1024;

const FIELDS = ["session_name", "session_id", "created_at", "parent_id", "role", "version"];

/**
 * A long log as it was at one moment, without having been read or parsed: what has settled in the file
 * never changes, so that it can be read bit by bit while others append.
 */
export class Snapshot implements Disposable {
  readonly #file: Deno.FsFile;
  /** Up to the turns. */
  readonly #head: Uint8Array;
  /** What has settled goes from the end of `#head` to here. */
  readonly #settled: number;
  readonly #tail: Uint8Array;

  /** See `SessionStore.origin`. */
  readonly origin: { role: string; parent_id: string };

  private constructor(
    file: Deno.FsFile,
    head: Uint8Array,
    settled: number,
    tail: Uint8Array,
    origin: Snapshot["origin"],
  ) {
    this.#file = file;
    this.#head = head;
    this.#settled = settled;
    this.#tail = tail;
    this.origin = origin;
  }

  /** @returns undefined for a log that is short, or is not laid out as this service does */
  static open(paths: LogPaths): Snapshot | undefined {
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
      [{ at: state.settled, bytes: at(state.settled, size - state.settled) }];
    for (const { at, bytes } of entries) head.set(bytes, at);
    const fields = readHead(
      state.regions,
      (offset, length) => head.subarray(offset, offset + length),
    );
    if (FIELDS.some((name) => typeof fields?.[name] !== "string")) return undefined;
    const { role, parent_id } = fields as Snapshot["origin"];
    return new Snapshot(file, head, turns.at, turns.bytes, { role, parent_id });
  }

  /** The document, whole, in pieces. */
  async *bytes(): AsyncGenerator<Uint8Array<ArrayBuffer>> {
    yield this.#head as Uint8Array<ArrayBuffer>;
    yield* this.#turns();
  }

  /**
   * The turns, parsed a slice at a time.
   *
   * @throws Error for a log that does not load
   */
  async turns(pace: Pace): Promise<Turn[]> {
    const turns: Turn[] = [];
    let lines: string[] = [];
    let rest: Uint8Array[] = [];
    for await (const piece of this.#turns()) {
      await pace.turn();
      const feed = piece.lastIndexOf(0x0a);
      rest.push(feed < 0 ? piece : piece.subarray(0, feed));
      if (feed < 0) continue;
      const text = decode(concat(rest));
      rest = [piece.subarray(feed + 1)];
      for (const line of text.split("\n")) {
        if (line === "") continue;
        lines.push(line);
        if (!line.startsWith("],")) continue;
        if (lines.length === 1) return turns; // the array of turns ends
        const turn: unknown = JSON.parse(lines.join("").replace(/,$/, ""));
        if (!isTurn(turn)) throw new Error(`turn ${turns.length + 1} is broken`);
        turns.push(turn);
        lines = [];
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

function recoveredFrom(path: string, at: Parameters<typeof recover>[1]) {
  const journal = openRegular(path, { read: true });
  if (journal === undefined) return undefined;
  try {
    return recover(readAt(journal.file, 0, journal.file.statSync().size), at);
  } finally {
    journal.file.close();
  }
}
