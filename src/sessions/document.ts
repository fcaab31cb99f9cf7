import { concat } from "../platform/files.ts";
import type { SessionDocument, SessionError, Turn, TurnStatus } from "./schema.ts";

/**
 * The layout of a session file that svc wrote. It is one JSON document:
 *
 *     {"session_name":"nightly","session_id":"",...,
 *     "sub_sessions":[
 *     "sub_20260101_000000_k3x9qa"          <- spaces, replaced by further entries
 *     ],"errors":[
 *     ],"permissions":[
 *     ],"turns":[
 *     {"parts":[
 *     {"type":"user",...}
 *     ],"index":1,"status":"ok",...}
 *     ],"updated_at":"..."}
 *
 * JSON strings contain no raw line feed, so these lines are found without parsing. Offsets are in bytes.
 */
export interface LogState {
  regions: Record<RegionName, Region>;
  /** Number of turns, and so the index of the last one. */
  turns: number;
  /** The bytes before this offset do not change any more. An append rewrites the file from here on. */
  settled: number;
  /** The running turn; `settled` is then inside it. */
  open?: OpenTurn;
  /** The text of the finished turns after the running one. */
  after: string;
  updated_at: string;
}

/** Reads `length` bytes of a session file; fewer at its end. */
export type ReadAt = (offset: number, length: number) => Uint8Array;

/** One of the arrays before the turns, with space to grow in place. */
export interface Region {
  start: number;
  used: number;
  capacity: number;
}
export type RegionName = "sub_sessions" | "errors" | "permissions";
export const REGIONS: RegionName[] = ["sub_sessions", "errors", "permissions"];

export type TurnHead = Omit<Turn, "parts" | "status" | "ended_at">;
export interface OpenTurn extends TurnHead {
  /** Whether it has no parts yet. */
  empty: boolean;
}

const MARKERS: Record<RegionName | "turns", string> = {
  sub_sessions: '\n"sub_sessions":[',
  errors: '\n],"errors":[',
  permissions: '\n],"permissions":[',
  turns: '\n],"turns":[',
};
const MIN_CAPACITY: Record<RegionName, number> = {
  sub_sessions: 256,
  errors: 512,
  permissions: 4096,
};
export const SPACE = 0x20;

/** The offset after `"turns":[`. */
export function turnsStart({ regions: { permissions } }: LogState): number {
  return permissions.start + permissions.capacity + MARKERS.turns.length;
}

/** Whether the turns in the file that `at` reads start at the offset of `state`. */
export function hasLayout(state: LogState, at: ReadAt): boolean {
  return startsAt(turnsStart(state), at);
}

/** Whether the turns in the file that `at` reads start at an offset. */
export function startsAt(offset: number, at: ReadAt): boolean {
  const { length } = MARKERS.turns;
  const found = at(Math.max(0, offset - length), length);
  return encode(MARKERS.turns).every((byte, i) => found[i] === byte);
}

/** The offset at which the turns in the file that `at` reads start; undefined for a file that svc did not write. */
export function findTurns(size: number, at: ReadAt): number | undefined {
  const found = new Beginning(size, at).find(MARKERS.turns, 0);
  return found === -1 ? undefined : found + MARKERS.turns.length;
}

/** The beginning of a file, which is read as far as it is searched. */
class Beginning {
  bytes: Uint8Array;
  readonly #size: number;
  readonly #at: ReadAt;

  constructor(size: number, at: ReadAt) {
    this.#size = size;
    this.#at = at;
    this.bytes = at(0, 8192);
  }

  /** The offset of the first line at or after `from` that begins with a marker; -1 for none. */
  find(marker: string, from: number): number {
    const wanted = encode(marker);
    for (let scanned = from;;) {
      const { bytes } = this;
      for (
        let line = bytes.indexOf(0x0a, scanned);
        line !== -1;
        line = bytes.indexOf(0x0a, line + 1)
      ) {
        scanned = line;
        if (line + wanted.length > bytes.length) break;
        if (wanted.every((byte, i) => bytes[line + i] === byte)) return line;
        scanned = line + 1;
      }
      if (bytes.length >= this.#size) return -1;
      this.bytes = concat([bytes, this.#at(bytes.length, bytes.length)]);
    }
  }
}

/** A whole file: the first line, the entries of each array with spaces after them, and the rest. */
function layOut(
  first: Uint8Array,
  entries: Record<RegionName, Uint8Array>,
  capacityOf: (name: RegionName) => number,
  rest: Uint8Array[],
): { bytes: Uint8Array; regions: LogState["regions"] } {
  const chunks = [first];
  const regions = {} as LogState["regions"];
  let length = first.length;
  const add = (chunk: Uint8Array) => {
    chunks.push(chunk);
    length += chunk.length;
  };
  for (const name of REGIONS) {
    add(encode(MARKERS[name]));
    const used = entries[name].length;
    const capacity = Math.max(MIN_CAPACITY[name], capacityOf(name), used);
    regions[name] = { start: length, used, capacity };
    add(entries[name]);
    add(spaces(capacity - used));
  }
  add(encode(MARKERS.turns));
  for (const chunk of rest) add(chunk);
  return { bytes: concat(chunks), regions };
}

/** The first line of a file, with the fields of `head`. */
function firstLine(head: Record<string, unknown>): Uint8Array {
  return encode(`${JSON.stringify(head).slice(0, -1)},`);
}

/** The fields of the first line; undefined when `firstLine` did not write it. */
export function readHead(
  { sub_sessions }: LogState["regions"],
  at: ReadAt,
): Record<string, unknown> | undefined {
  return parse(at(0, sub_sessions.start - MARKERS.sub_sessions.length - 1), "", "}");
}

/** The fields of the first line, in a file that is not read beyond it; undefined as for `readHead`. */
export function findHead(size: number, at: ReadAt): Record<string, unknown> | undefined {
  const end = new Beginning(size, at).find(MARKERS.sub_sessions, 0);
  return end === -1 ? undefined : parse(at(0, end - 1), "", "}");
}

/** A copy that operations can be applied to. */
export function copyState(state: LogState): LogState {
  const { sub_sessions, errors, permissions } = state.regions;
  return {
    ...state,
    regions: {
      sub_sessions: { ...sub_sessions },
      errors: { ...errors },
      permissions: { ...permissions },
    },
    ...(state.open && { open: { ...state.open } }),
  };
}

/** The start of a turn; its parts follow. */
export const TURN_START = '{"parts":[';

/** The text of a turn after its parts. */
export function turnEnd(
  { index, started_at, model, provider, mode, reasoning, usage, cost, environment }: TurnHead,
  status: TurnStatus,
  ended_at: string,
): string {
  const head = { index, status, started_at, ended_at, model, provider, mode, reasoning };
  const rest = { ...head, usage, cost, environment };
  return `\n],${JSON.stringify(rest).slice(1)}`;
}

/** The text of a whole turn. */
function renderTurn(turn: Turn, first: boolean): string {
  const { parts, ...rest } = turn;
  const lines = parts.map((part) => `\n${JSON.stringify(part)}`).join(",");
  return `${first ? "" : ","}\n${TURN_START}${lines}\n],${JSON.stringify(rest).slice(1)}`;
}

/** The text after `settled`. */
export function renderTail({ open, after, updated_at }: LogState): string {
  const running = open === undefined ? "" : turnEnd(open, "running", "");
  return `${running}${after}\n],"updated_at":${JSON.stringify(updated_at)}}\n`;
}

/**
 * Finds the layout of a file without a journal. It reads only the arrays and the end of the file, so the
 * cost does not grow with the number of turns.
 *
 * @returns the state and the end of the text; undefined when svc did not write the file or the last turn is
 * still running
 */
export function scan(
  size: number,
  at: ReadAt,
): { state: LogState; end: number } | undefined {
  const regions = {} as LogState["regions"];
  const beginning = new Beginning(size, at);
  let from = 0;
  const names = [...REGIONS, "turns" as const];
  for (const [i, name] of names.entries()) {
    const found = beginning.find(MARKERS[name], from);
    if (found === -1) return undefined;
    const before = names[i - 1] as RegionName | undefined;
    if (before !== undefined) {
      let end = found;
      while (end > from && beginning.bytes[end - 1] === SPACE) end--;
      regions[before] = { start: from, used: end - from, capacity: found - from };
    }
    from = found + MARKERS[name].length;
  }
  const head = readHead(regions, at);
  if (typeof head?.session_name !== "string" || typeof head.session_id !== "string") {
    return undefined;
  }

  const tailStart = Math.max(from, size - 65536);
  const tail = at(tailStart, size - tailStart);
  let end = tail.length;
  while (end > 0 && (tail[end - 1] === SPACE || tail[end - 1] === 0x0a)) end--;
  const lastLine = tail.lastIndexOf(0x0a, end - 1);
  if (lastLine === -1) return undefined;
  const last = parse(tail.subarray(lastLine, end), '{"turns":[');
  if (typeof last?.updated_at !== "string") return undefined;
  const state: LogState = {
    regions,
    turns: 0,
    settled: tailStart + lastLine,
    after: "",
    updated_at: last.updated_at,
  };
  if (state.settled === from) return { state, end: tailStart + end };
  const turnLine = tail.subarray(0, lastLine).lastIndexOf(0x0a);
  const turn = parse(tail.subarray(Math.max(0, turnLine), lastLine), TURN_START);
  if (typeof turn?.index !== "number" || turn.status === "running") return undefined;
  state.turns = turn.index;
  return { state, end: tailStart + end };
}

/** A checksum of the bytes before `settled`. It shows whether a journal belongs to a file. */
export function seam(
  { settled }: LogState,
  at: ReadAt,
): number {
  const start = Math.max(0, settled - 256);
  return checksum(at(start, settled - start));
}

/**
 * Identifies the content of a log: the same for all copies with the same operations, since their arrays grow at the same
 * ones. It covers the sizes, and the last bytes, of all that appends change: each of them has a time, so that copies of
 * different operations differ there. The cost does not grow with the log.
 */
export function copyPosition(state: LogState, at: ReadAt): string {
  const { turns, settled, regions, open, after, updated_at } = state;
  const from = turnsStart(state);
  const ends = REGIONS.map((name) => {
    const { start, used } = regions[name];
    return at(start + Math.max(0, used - END), Math.min(used, END));
  });
  const sum = checksum(concat([
    at(0, regions.sub_sessions.start),
    ...ends,
    at(Math.max(from, settled - END), Math.min(settled - from, END)),
    encode(JSON.stringify([open, after, updated_at])),
  ]));
  const sizes = REGIONS.flatMap((name) => [regions[name].used, regions[name].capacity]);
  return [turns, settled, ...sizes, sum.toString(36)].join(".");
}

/** Bytes at the end of an array, or of the turns, that a position covers. */
const END = 256;

function checksum(bytes: Uint8Array): number {
  let sum = 0x811c9dc5;
  for (const byte of bytes) sum = Math.imul(sum ^ byte, 0x01000193);
  return sum >>> 0;
}

export function spaces(count: number): Uint8Array {
  return new Uint8Array(count).fill(SPACE);
}

export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function decode(bytes: Uint8Array): string {
  return strictDecoder().decode(bytes);
}

/** For a text that arrives in pieces. It throws TypeError for bytes that are no UTF-8. */
export function strictDecoder(): TextDecoder {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
}

function parse(
  bytes: Uint8Array,
  before: string,
  behind = "",
): Record<string, unknown> | undefined {
  try {
    const value = JSON.parse(before + decode(bytes) + behind);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The bytes of a new session file and its state. */
export interface Rewritten {
  bytes: Uint8Array;
  state: LogState;
}

/** The error entry of a turn whose process ended during the turn (specification 2.3). */
export function ownerGone(index: number, timestamp: string): SessionError {
  return { code: 0, message: `The process ended before turn ${index} did.`, timestamp };
}

/** A file without turns. `head` has the fields of the first line. */
export function freshFile(head: Record<string, unknown>, updated_at: string): Rewritten {
  const nothing = new Uint8Array();
  const entries = { sub_sessions: nothing, errors: nothing, permissions: nothing };
  return render(firstLine(head), entries, () => 0, "", { turns: 0, after: "", updated_at });
}

/** The same file with more space in the arrays that `next` overfills. Nothing is parsed. */
export function grownFile(state: LogState, next: LogState, at: ReadAt): Rewritten {
  const { sub_sessions, errors, permissions } = state.regions;
  const used = ({ start, used }: { start: number; used: number }) => at(start, used);
  const from = turnsStart(state);
  const tail = encode(renderTail(state));
  const size = state.settled + tail.length; // the same in all copies of a shared session
  const first = at(0, at(0, sub_sessions.start).lastIndexOf(0x0a));
  const { bytes, regions } = layOut(
    first,
    { sub_sessions: used(sub_sessions), errors: used(errors), permissions: used(permissions) },
    (name) => {
      const wanted = next.regions[name].used;
      const { capacity } = state.regions[name];
      // Proportional to the file, so that a long log is rewritten rarely.
      return wanted > capacity ? Math.max(4 * wanted, wanted + (size >> 5)) : capacity;
    },
    [at(from, state.settled - from), tail],
  );
  const grown = { ...state, regions };
  grown.settled += turnsStart(grown) - from;
  return { bytes, state: grown };
}

/**
 * Converts a document that svc did not write into its layout; unknown fields stay. A running turn in it has
 * no journal and so no owner: it is closed at `now`, or as a message that was added between turns.
 */
export function convertedFile(document: SessionDocument, now: string): Rewritten {
  const { sub_sessions = [], permissions = [], updated_at, ...rest } = document;
  const { errors: known = [], turns: found, ...head } = rest;
  const served = ({ model, provider }: Turn) => model !== "" || provider !== "";
  const lost = found.filter((turn) => turn.status === "running" && served(turn));
  const errors = [...known, ...lost.map(({ index }) => ownerGone(index, now))];
  const turns = found.map((turn) => {
    if (turn.status !== "running") return turn;
    // The answer to a parked ask, which the earlier implementation leaves open.
    if (!served(turn)) return { ...turn, status: "ok" as const, ended_at: turn.started_at };
    return { ...turn, status: "error" as const, ended_at: now };
  });
  const entries = (list: unknown[]) =>
    encode(list.map((entry) => `\n${JSON.stringify(entry)}`).join(","));
  return render(
    firstLine(head),
    {
      sub_sessions: entries(sub_sessions),
      errors: entries(errors),
      permissions: entries(permissions),
    },
    () => 0,
    turns.map((turn, i) => renderTurn(turn, i === 0)).join(""),
    { turns: turns.at(-1)?.index ?? 0, after: "", updated_at },
  );
}

function render(
  first: Uint8Array,
  entries: Record<RegionName, Uint8Array>,
  capacityOf: (name: RegionName) => number,
  turns: string,
  rest: Pick<LogState, "turns" | "after" | "updated_at">,
): Rewritten {
  const state: LogState = { ...rest, regions: {} as LogState["regions"], settled: 0 };
  const text = encode(turns);
  const { bytes, regions } = layOut(first, entries, capacityOf, [text, encode(renderTail(state))]);
  state.regions = regions;
  state.settled = turnsStart(state) + text.length;
  return { bytes, state };
}
