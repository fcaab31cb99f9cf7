import {
  jsonPieces,
  lstatIfExists,
  mintId,
  readAt,
  removeIfExists,
  writeAllSync,
} from "../platform/files.ts";
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
} from "./document.ts";
import {
  createTemporary,
  type HeldFile,
  infoIfSame,
  lengthOf,
  openRegular,
  writeChunks,
} from "./files.ts";
import type { Part, PermissionEntry, SessionError, Turn, TurnStatus } from "./schema.ts";

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
    usage?: Turn["usage"];
    cost?: number;
    error?: SessionError;
  }
  /** A finished turn of one part; allowed while another turn is open. */
  | { op: "user"; turn: TurnHead; part: Part }
  | { op: "entry"; region: RegionName; entry: string | SessionError | PermissionEntry }
  /** The document was replaced by one with larger arrays, which holds everything up to here. */
  | { op: "replaced"; base: Base };

/** The first line of a journal: the state of the document before its operations. */
export interface Base {
  format: 1;
  seam: number;
  state: LogState;
}

/** Bytes to write into the document, one chunk after the other. */
export interface Edit {
  at: number;
  chunks: Uint8Array[];
}

/** The changes of several operations to the document, collected to be written together. */
export class Edits {
  readonly #from: number;
  #turns: Uint8Array[] = [];
  #entries: Edit[] = [];
  readonly #parts = new Map<Operation, Uint8Array[]>();

  constructor(state: LogState) {
    this.#from = state.settled;
  }

  /** Adds text after the turns so far. */
  settle(state: LogState, text: string, ...more: Uint8Array[]): void {
    const chunks = [encode(text), ...more];
    this.#turns.push(...chunks);
    state.settled += lengthOf(chunks);
  }

  /** Adds a part to the running turn. Its JSON, which can be large, is encoded once for both files. */
  addPart(state: LogState, operation: Extract<Operation, { op: "part" }>): void {
    const json = Array.from(jsonPieces(operation.part), encode);
    this.#parts.set(operation, json);
    this.settle(state, state.open!.empty ? "\n" : ",\n", ...json);
  }

  /** The line of the journal for one of the operations. */
  line(operation: Operation): Uint8Array[] {
    const json = this.#parts.get(operation);
    if (json === undefined) return [encode(line(operation))];
    const { op, index } = operation as Extract<Operation, { op: "part" }>;
    return [encode(`{"op":"${op}","index":${index},"part":`), ...json, encode("}\n")];
  }

  /** Adds an entry to one of the arrays before the turns. */
  insert(state: LogState, name: RegionName, entry: unknown): void {
    const region = state.regions[name];
    const bytes = encode(`${region.used === 0 ? "" : ","}\n${JSON.stringify(entry)}`);
    this.#entries.push({ at: region.start + region.used, chunks: [bytes] });
    region.used += bytes.length;
  }

  /** Overwrites the remains of rolled back entries with spaces. */
  clear({ regions }: LogState, at: ReadAt): void {
    for (const { start, used, capacity } of Object.values(regions)) {
      const [next] = at(start + used, Math.min(1, capacity - used));
      if (next === undefined || next === SPACE) continue;
      this.#entries.push({ at: start + used, chunks: [spaces(capacity - used)] });
    }
  }

  /** The turns come first, so that an entry never refers to a turn that is not in the file yet. */
  render(state: LogState): [Edit, ...Edit[]] {
    const chunks = [...this.#turns, encode(renderTail(state))];
    return [{ at: this.#from, chunks }, ...this.#entries];
  }
}

/** Applies one operation to `state` and adds its changes to `edits`. */
function apply(state: LogState, operation: Operation, edits: Edits): void {
  switch (operation.op) {
    case "begin":
      edits.settle(state, `${state.turns === 0 ? "" : ","}\n${TURN_START}`);
      state.turns = operation.turn.index;
      state.open = { ...operation.turn, empty: true };
      break;
    case "part": {
      const open = state.open!;
      edits.addPart(state, operation);
      open.empty = false;
      state.updated_at = operation.part.timestamp;
      break;
    }
    case "end": {
      const { model, provider, usage, cost } = operation;
      const head = {
        ...state.open!,
        ...(model === undefined ? {} : { model }),
        ...(provider === undefined ? {} : { provider }),
        ...(usage === undefined ? {} : { usage }),
        ...(cost === undefined ? {} : { cost }),
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
      throw new TypeError("A replaced document is a new base, not a change.");
  }
}

/** Applies operations to a copy of `state`. */
export function applyAll(
  state: LogState,
  operations: Operation[],
): { next: LogState; edits: Edits } {
  const next = copyState(state);
  const edits = new Edits(next);
  for (const operation of operations) apply(next, operation, edits);
  return { next, edits };
}

/** The base of a journal for a document in this state. */
export function baseOf(state: LogState, at: ReadAt): Base {
  return { format: 1, seam: seam(state, at), state };
}

/** A line of a journal. */
export function line(content: Base | Operation): string {
  return `${JSON.stringify(content)}\n`;
}

/**
 * Replays a journal on its document. The bytes after `settled`, which a crash may have damaged, are not used.
 *
 * @returns the state after the last complete operation, the edits that bring the document to it, and the
 * length of the journal up to there; undefined when the journal does not belong to this document
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

/** Applies the complete lines of `journal` to `state`, or to the base of the last replacement in them. */
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
      // Logged before the replacement. A last line without its replacement does not count.
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

/** The complete lines; a crash may cut the last one. */
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

/** Bytes after which a journal is started again, once the document is safe on the disk. */
const LIMIT = 256 * 1024;

/**
 * The journal of a session, open for appending. The accepted bytes are those that this handle appended, and
 * those of other handles that {@linkcode JournalFile.accept} added.
 */
export class JournalFile {
  readonly #path: string;
  #held: HeldFile | undefined;
  /** Number of accepted bytes. */
  #accepted = 0;
  #renewAt = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Whether the file exists. */
  get exists(): boolean {
    return lstatIfExists(this.#path) !== undefined;
  }

  /** Whether this handle has the file open. */
  get held(): boolean {
    return this.#held !== undefined;
  }

  /** Whether the journal should be started again. */
  get long(): boolean {
    return this.#accepted > this.#renewAt;
  }

  /** Opens the file with no bytes accepted; false when it does not exist. */
  open(): boolean {
    this.close();
    this.#held = openRegular(this.#path, { read: true, append: true });
    this.#accepted = 0;
    this.#renewAt = LIMIT;
    return this.held;
  }

  /** The bytes after the accepted ones; undefined when the opened file was replaced or removed. */
  unread(): Uint8Array | undefined {
    const size = this.#held && infoIfSame(this.#held, this.#path)?.size;
    if (size === undefined || size < this.#accepted) return undefined;
    return size === this.#accepted
      ? NOTHING
      : readAt(this.#file, this.#accepted, size - this.#accepted);
  }

  /** Accepts `length` more bytes and truncates the rest, which is an incomplete line. */
  accept(length: number): void {
    this.#file.truncateSync(this.#accepted + length);
    this.#accepted += length;
  }

  /** Appends bytes, then calls `act`. After a failure, call {@linkcode rollBack}. */
  append(chunks: Uint8Array[], act: () => void): void {
    writeChunks(this.#file, chunks);
    act();
    this.#accepted += lengthOf(chunks);
  }

  /** Truncates the bytes that were not accepted. */
  rollBack(): void {
    this.accept(0);
  }

  /**
   * Starts a new journal with these bytes.
   *
   * @param options.mode of the file
   * @param options.durable whether the bytes are synced before it replaces the old one
   */
  start(bytes: Uint8Array, { mode, durable }: { mode: number; durable: boolean }): void {
    const held = createTemporary(this.#temporary, { append: true, mode });
    try {
      writeAllSync(held.file, bytes);
      if (durable) held.file.syncDataSync();
      Deno.renameSync(this.#temporary, this.#path);
    } catch (error) {
      held.file.close();
      removeIfExists(this.#temporary);
      throw error;
    }
    this.close();
    this.#held = held;
    this.#accepted = bytes.length;
    this.#renewAt = bytes.length + LIMIT;
  }

  /** Postpones {@linkcode JournalFile.long}. */
  postpone(): void {
    this.#renewAt += LIMIT;
  }

  /** Renames and closes the file; returns the new path. */
  setAside(): string {
    const aside = `${this.#path}.${mintId()}`;
    Deno.renameSync(this.#path, aside);
    this.close();
    return aside;
  }

  /** Returns when the file survives a power failure. */
  sync(): void {
    this.#held?.file.syncDataSync();
  }

  /** Resolves when the file survives a power failure. It stays usable meanwhile. */
  async flush(): Promise<void> {
    await this.#held?.file.syncData();
  }

  remove(): void {
    removeIfExists(this.#path);
  }

  /** Removes the temporary file that a crash may have left. */
  removeTemporary(): void {
    removeIfExists(this.#temporary);
  }

  close(): void {
    this.#held?.file.close();
    this.#held = undefined;
  }

  get #file(): Deno.FsFile {
    if (this.#held === undefined) throw new TypeError("The journal is not open.");
    return this.#held.file;
  }

  get #temporary(): string {
    return `${this.#path}.tmp`;
  }
}

const NOTHING = new Uint8Array();
