import { concat } from "../platform/files.ts";
import {
  copyState,
  decode,
  encode,
  hasLayout,
  type LogState,
  type ReadAt,
  type RegionName,
  renderTail,
  seam,
  SPACE,
  spaces,
  TURN_START,
  turnEnd,
  type TurnHead,
} from "./layout.ts";
import type { Part, PermissionEntry, SessionError, TurnStatus } from "./schema.ts";

/** One change of a session: a line of its journal. */
export type Operation =
  | { op: "begin"; turn: TurnHead }
  | { op: "part"; index: number; part: Part }
  | {
    op: "end";
    index: number;
    status: Exclude<TurnStatus, "running">;
    ended_at: string;
    model?: string;
    provider?: string;
    error?: SessionError;
  }
  /** A finished turn of one part, also while another turn is open. */
  | { op: "user"; turn: TurnHead; part: Part }
  | { op: "entry"; region: RegionName; entry: string | SessionError | PermissionEntry }
  /** The file was replaced by one with more room; it holds everything up to here. */
  | { op: "replaced"; base: Base };

/** The first line of a journal: the state of the file that its operations start from. */
export interface Base {
  format: 1;
  seam: number;
  state: LogState;
}

/** Bytes to write into a session file. */
export interface Edit {
  at: number;
  bytes: Uint8Array;
}

/** The changes that operations make to a file, gathered so that they are written together. */
export class Edits {
  readonly #from: number;
  #turns: Uint8Array[] = [];
  #entries: Edit[] = [];

  constructor(state: LogState) {
    this.#from = state.settled;
  }

  /** Adds text that settles behind the turns written so far. */
  settle(state: LogState, text: string): void {
    const bytes = encode(text);
    this.#turns.push(bytes);
    state.settled += bytes.length;
  }

  /** Adds an entry to one of the arrays before the turns. */
  insert(state: LogState, name: RegionName, entry: unknown): void {
    const region = state.regions[name];
    const bytes = encode(`${region.used === 0 ? "" : ","}\n${JSON.stringify(entry)}`);
    this.#entries.push({ at: region.start + region.used, bytes });
    region.used += bytes.length;
  }

  /** Blanks what an entry that was taken back left in the room behind the others. */
  clear({ regions }: LogState, at: ReadAt): void {
    for (const { start, used, capacity } of Object.values(regions)) {
      const [next] = at(start + used, Math.min(1, capacity - used));
      if (next === undefined || next === SPACE) continue;
      this.#entries.push({ at: start + used, bytes: spaces(capacity - used) });
    }
  }

  /** The turns first, so that an entry never speaks of a turn that the file does not have. */
  render(state: LogState): [Edit, ...Edit[]] {
    const bytes = concat([...this.#turns, encode(renderTail(state))]);
    return [{ at: this.#from, bytes }, ...this.#entries];
  }
}

/** Applies one operation to `state` and adds what it changes in the file to `edits`. */
function apply(state: LogState, operation: Operation, edits: Edits): void {
  switch (operation.op) {
    case "begin":
      edits.settle(state, `${state.turns === 0 ? "" : ","}\n${TURN_START}`);
      state.turns = operation.turn.index;
      state.open = { ...operation.turn, empty: true };
      break;
    case "part": {
      const open = state.open!;
      edits.settle(state, `${open.empty ? "" : ","}\n${JSON.stringify(operation.part)}`);
      open.empty = false;
      state.updated_at = operation.part.timestamp;
      break;
    }
    case "end": {
      const { model, provider } = operation;
      const head = {
        ...state.open!,
        ...(model === undefined ? {} : { model }),
        ...(provider === undefined ? {} : { provider }),
      };
      edits.settle(state, turnEnd(head, operation.status, operation.ended_at) + state.after);
      state.after = "";
      delete state.open;
      if (operation.error !== undefined) edits.insert(state, "errors", operation.error);
      break;
    }
    case "user": {
      const { turn, part } = operation;
      const text = `${state.turns === 0 ? "" : ","}\n${TURN_START}\n${JSON.stringify(part)}` +
        turnEnd(turn, "ok", turn.started_at);
      if (state.open === undefined) edits.settle(state, text);
      else state.after += text;
      state.turns = turn.index;
      state.updated_at = part.timestamp;
      break;
    }
    case "entry":
      edits.insert(state, operation.region, operation.entry);
      break;
    case "replaced":
      throw new TypeError("A replaced file is a new start, not a change.");
  }
}

/** Applies operations to a copy of `state`. */
export function applied(
  state: LogState,
  operations: Operation[],
): { next: LogState; edits: Edits } {
  const next = copyState(state);
  const edits = new Edits(next);
  for (const operation of operations) apply(next, operation, edits);
  return { next, edits };
}

/** The start of a journal for a file in this state. */
export function baseOf(state: LogState, at: ReadAt): Base {
  return { format: 1, seam: seam(state, at), state };
}

/** A line of a journal. */
export function line(content: Base | Operation): string {
  return `${JSON.stringify(content)}\n`;
}

/**
 * What a journal makes of the session file beside it, whatever a crash left behind `settled` there.
 *
 * @returns the state after the last whole operation, the edits that bring the file to it, and the length
 * of the journal up to there; undefined when the journal is not about this file
 */
export function recover(
  journal: Uint8Array,
  at: ReadAt,
): { state: LogState; edits: Edits; length: number } | undefined {
  const [first] = lines(journal);
  const base = first?.value as Partial<Base> | undefined;
  if (base?.format !== 1 || first === undefined) return undefined;
  const replayed = replay(journal.subarray(first.end), copyState(base.state!), at);
  if (!fits(replayed.base ?? base as Base, at)) return undefined;
  return { ...replayed, length: first.end + replayed.length };
}

/** Applies the whole lines of `journal` to `state`, or to the base of the last replacement among them. */
export function replay(
  journal: Uint8Array,
  state: LogState,
  at: ReadAt,
): { state: LogState; edits: Edits; length: number; base?: Base } {
  let edits = new Edits(state);
  let length = 0;
  let base: Base | undefined;
  const found = [...lines(journal)];
  for (const [i, { value, end }] of found.entries()) {
    const operation = value as Operation;
    if (operation.op === "replaced") {
      // It is announced before it happens; a last line that announces what did not happen is void.
      if (i === found.length - 1 && !fits(operation.base, at)) break;
      base = { ...operation.base, state: copyState(operation.base.state) };
      state = operation.base.state;
      edits = new Edits(state);
    } else {
      apply(state, operation, edits);
    }
    length = end;
  }
  edits.clear(state, at);
  return { state, edits, length, base };
}

function fits({ state, seam: sum }: Base, at: ReadAt): boolean {
  return hasLayout(state, at) && seam(state, at) === sum;
}

/** The lines that were written whole; a crash can tear the last. */
function* lines(bytes: Uint8Array): Generator<{ value: unknown; end: number }> {
  let start = 0;
  while (true) {
    const feed = bytes.indexOf(0x0a, start);
    if (feed === -1) return;
    let value: unknown;
    try {
      value = JSON.parse(decode(bytes.subarray(start, feed)));
    } catch {
      return;
    }
    start = feed + 1;
    yield { value, end: start };
  }
}
