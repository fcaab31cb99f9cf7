import { concat } from "../platform/files.ts";
import type { Turn, TurnStatus } from "./schema.ts";

/**
 * Where things lie in a session file that this service wrote. It is one JSON document:
 *
 *     {"session_name":"nightly","session_id":"",...,
 *     "sub_sessions":[
 *     "sub_20260101_000000_k3x9qa"          <- spaces, into which entries grow
 *     ],"errors":[
 *     ],"permissions":[
 *     ],"turns":[
 *     {"parts":[
 *     {"type":"user",...}
 *     ],"index":1,"status":"ok",...}
 *     ],"updated_at":"..."}
 *
 * Strings hold no raw line feed, so these lines are found without parsing. All offsets are in bytes.
 */
export interface LogState {
  regions: Record<RegionName, Region>;
  /** Turns so far, which is the index of the last. */
  turns: number;
  /** What lies before this offset never changes again; the file is rewritten from here on. */
  settled: number;
  /** The turn that is running; `settled` then lies inside it. */
  open?: OpenTurn;
  /** The finished turns behind the running one, as they stand in the file. */
  after: string;
  updated_at: string;
}

/** Reads `length` bytes of a session file, or fewer at its end. */
export type ReadAt = (offset: number, length: number) => Uint8Array;

/** One of the arrays before the turns, with room to grow in place. */
export interface Region {
  start: number;
  used: number;
  capacity: number;
}
export type RegionName = "sub_sessions" | "errors" | "permissions";
export const REGIONS: RegionName[] = ["sub_sessions", "errors", "permissions"];

export type TurnHead = Omit<Turn, "parts" | "status" | "ended_at">;
export interface OpenTurn extends TurnHead {
  /** Whether no part was written yet. */
  empty: boolean;
}

const MARKERS: Record<RegionName | "turns", string> = {
  sub_sessions: '\n"sub_sessions":[',
  errors: '\n],"errors":[',
  permissions: '\n],"permissions":[',
  turns: '\n],"turns":[',
};
const ROOM: Record<RegionName, number> = { sub_sessions: 256, errors: 512, permissions: 4096 };
export const SPACE = 0x20;

/** The offset behind `"turns":[`. */
export function turnsStart({ regions: { permissions } }: LogState): number {
  return permissions.start + permissions.capacity + MARKERS.turns.length;
}

/** Whether the file that `at` reads has this layout: its turns begin where `state` says. */
export function hasLayout(state: LogState, at: ReadAt): boolean {
  const { length } = MARKERS.turns;
  const found = at(turnsStart(state) - length, length);
  return encode(MARKERS.turns).every((byte, i) => found[i] === byte);
}

/** A whole file: its first line, each array's entries with room behind them, and the rest. */
export function layOut(
  first: Uint8Array,
  entries: Record<RegionName, Uint8Array>,
  room: (name: RegionName) => number,
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
    const capacity = Math.max(ROOM[name], room(name), used);
    regions[name] = { start: length, used, capacity };
    add(entries[name]);
    add(spaces(capacity - used));
  }
  add(encode(MARKERS.turns));
  for (const chunk of rest) add(chunk);
  return { bytes: concat(chunks), regions };
}

/** The first line of a file: every field of `head`. */
export function firstLine(head: Record<string, unknown>): Uint8Array {
  return encode(`${JSON.stringify(head).slice(0, -1)},`);
}

/** The fields of the first line, or undefined when it is not as `firstLine` writes it. */
export function readHead(
  { sub_sessions }: LogState["regions"],
  at: ReadAt,
): Record<string, unknown> | undefined {
  return parse(at(0, sub_sessions.start - MARKERS.sub_sessions.length - 1), "", "}");
}

/** A copy on which operations can be tried. */
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

/** How a turn begins; its parts follow. */
export const TURN_START = '{"parts":[';

/** How a turn goes on behind its parts. */
export function turnEnd(
  { index, started_at, model, provider, mode, reasoning }: TurnHead,
  status: TurnStatus,
  ended_at: string,
): string {
  const rest = { index, status, started_at, ended_at, model, provider, mode, reasoning };
  return `\n],${JSON.stringify(rest).slice(1)}`;
}

/** A whole turn, the first of the file or a later one. */
export function renderTurn(turn: Turn, first: boolean): string {
  const { parts, ...rest } = turn;
  const lines = parts.map((part) => `\n${JSON.stringify(part)}`).join(",");
  return `${first ? "" : ","}\n${TURN_START}${lines}\n],${JSON.stringify(rest).slice(1)}`;
}

/** What stands behind `settled`. */
export function renderTail({ open, after, updated_at }: LogState): string {
  const running = open === undefined ? "" : turnEnd(open, "running", "");
  return `${running}${after}\n],"updated_at":${JSON.stringify(updated_at)}}\n`;
}

/**
 * Finds the layout of a file at rest by looking at its arrays and its end only, so that the cost does
 * not grow with its turns.
 *
 * @returns the state, and where the text ends; undefined when the file was not written by this service
 * or its last turn still runs
 */
export function scan(
  size: number,
  at: ReadAt,
): { state: LogState; end: number } | undefined {
  const regions = {} as LogState["regions"];
  let known = at(0, 8192);
  const find = (marker: string, from: number): number => {
    const wanted = encode(marker);
    for (let scanned = from;;) {
      for (
        let line = known.indexOf(0x0a, scanned);
        line !== -1;
        line = known.indexOf(0x0a, line + 1)
      ) {
        scanned = line;
        if (line + wanted.length > known.length) break;
        if (wanted.every((byte, i) => known[line + i] === byte)) return line;
        scanned = line + 1;
      }
      if (known.length >= size) return -1;
      known = concat([known, at(known.length, known.length)]);
    }
  };
  let from = 0;
  const names = [...REGIONS, "turns" as const];
  for (const [i, name] of names.entries()) {
    const found = find(MARKERS[name], from);
    if (found === -1) return undefined;
    const before = names[i - 1] as RegionName | undefined;
    if (before !== undefined) {
      let end = found;
      while (end > from && known[end - 1] === SPACE) end--;
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

/** A small sum of the bytes just before `settled`: it tells whether a file is the one a journal is for. */
export function seam(
  { settled }: LogState,
  at: ReadAt,
): number {
  const start = Math.max(0, settled - 256);
  let sum = 0x811c9dc5;
  for (const byte of at(start, settled - start)) sum = Math.imul(sum ^ byte, 0x01000193);
  return sum >>> 0;
}

export function spaces(count: number): Uint8Array {
  return new Uint8Array(count).fill(SPACE);
}

export function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

export function decode(bytes: Uint8Array): string {
  return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
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
