import { basename, dirname, join } from "node:path";
import type { Clock } from "../platform/clock.ts";
import { errorMessage, SvcError, writeFailure } from "../platform/error.ts";
import { removeIfExists, withFileLock, writeFileAtomic } from "../platform/files.ts";
import { setAside } from "../platform/registry_file.ts";
import type { HistoryEntry } from "./schema.ts";

/** What the file of a register holds. */
export interface RegisterContent {
  bytes: Uint8Array;
  layout: Layout;
  /** What the file looked like when it was read. */
  signature: string;
}

const CORRUPT = "is corrupt; it is read as empty, and kept under another name once a job is added";

/** The file of a register as bytes, of which a change replaces only those that it is about. */
export class RegisterText {
  readonly path: string;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();
  /** What the file looked like when it was found to be corrupt: it is not read again for that. */
  #corrupt = "";

  constructor(path: string, clock: Clock, warn: (message: string) => void) {
    this.path = path;
    this.#clock = clock;
    this.#warn = warn;
  }

  /** What the file looks like; undefined when there is none. A change of the file changes this. */
  signature(): string | undefined {
    try {
      return signatureOf(Deno.statSync(this.path));
    } catch {
      return undefined;
    }
  }

  /**
   * The content; undefined when there is none, or it is corrupt, which is warned about.
   *
   * @param known what is known of a file that looks the same
   */
  read(known?: { signature: string; layout: Layout }): RegisterContent | undefined {
    let file: Deno.FsFile | undefined;
    let signature = "";
    try {
      file = Deno.openSync(this.path);
      signature = signatureOf(file.statSync()); // first: a change while it is read shows next time
      if (signature === this.#corrupt) return undefined;
      const bytes = readAll(file);
      if (known?.signature === signature) return { bytes, layout: known.layout, signature };
      const layout = readLayout(bytes);
      const { start, end } = layout.list;
      const rest = [{ start: 0, end: start }, { start: end, end: bytes.length }];
      JSON.parse(rest.map((span) => decode(bytes, span)).join("[]"));
      this.#warned.delete(CORRUPT); // when it breaks again, that is news
      return { bytes, layout, signature };
    } catch (error) {
      if (error instanceof SyntaxError) {
        this.#corrupt = signature;
        this.warnOnce(CORRUPT);
      } else if (!(error instanceof Deno.errors.NotFound)) {
        this.warnOnce(`cannot be read: ${errorMessage(error)}`);
      }
      return undefined;
    } finally {
      file?.close();
    }
  }

  /**
   * Runs a change while no other process makes one.
   *
   * @throws SvcError `register_write`; what `change` throws as SvcError passes
   */
  async locked(change: () => void): Promise<void> {
    try {
      await withFileLock(this.path, change);
    } catch (error) {
      if (error instanceof SvcError) throw error;
      throw writeFailure("register_write", this.path, error);
    }
  }

  /** Removes the copies that processes left half-written when they died; `locked` holds off the living. */
  removeRemains(): void {
    const folder = dirname(this.path);
    const start = `.${basename(this.path)}.`;
    for (const { name } of [...Deno.readDirSync(folder)]) {
      if (name.startsWith(start) && name.endsWith(".tmp")) removeIfExists(join(folder, name));
    }
  }

  /** Replaces a span; returns the bytes that stand there now, and what the file looks like. */
  replace(
    bytes: Uint8Array,
    { start, end }: Span,
    text: string,
  ): { inserted: Uint8Array; signature: string } {
    const inserted = new TextEncoder().encode(text);
    const parts = [bytes.subarray(0, start), inserted, bytes.subarray(end)];
    return { inserted, signature: signatureOf(writeFileAtomic(this.path, parts, 0o600)) };
  }

  /** A register without jobs, in the place of one that is corrupt, which is kept under another name. */
  fresh(): Pick<RegisterContent, "bytes" | "layout"> {
    if (this.signature() !== undefined) setAside(this.path, this.#clock, this.#warn);
    const bytes = new TextEncoder().encode('{\n  "jobs": []\n}\n');
    return { bytes, layout: readLayout(bytes) };
  }

  /** Keeps a text beside the file that a change would lose. */
  keep(text: string, what: string): void {
    const kept = `${this.path}.broken-${what}-${this.#clock.now()}`;
    writeFileAtomic(kept, text, 0o600);
    this.#warn(`${this.path} has a broken part (${what}); it is kept as ${kept}.`);
  }

  /** Warns, unless the same was warned of before. */
  warnOnce(what: string): void {
    if (!this.#warned.has(what)) this.#warn(`${this.path} ${what}.`);
    this.#warned.add(what);
  }
}

function signatureOf({ ino, size, mtime }: Deno.FileInfo): string {
  return [ino, size, mtime?.getTime()].join(":");
}

function readAll(file: Deno.FsFile): Uint8Array {
  const bytes = new Uint8Array(file.statSync().size);
  let length = 0;
  while (length < bytes.length) {
    const count = file.readSync(bytes.subarray(length));
    if (count === null) break;
    length += count;
  }
  return bytes.subarray(0, length);
}

/** How many attempts a history keeps (specification 8). */
const MAX_HISTORY = 100;

/** An entry of the register: its fields as they are in the file, and its history, which is not parsed. */
export interface Entry {
  fields: Record<string, unknown>;
  history: string;
}

/** @throws SyntaxError when the entry is no JSON object */
export function parseEntry(bytes: Uint8Array, { start, end, history }: EntrySpan): Entry {
  const text = history === undefined
    ? decode(bytes, { start, end })
    : `${decode(bytes, { start, end: history.start })}[]${
      decode(bytes, { start: history.end, end })
    }`;
  const value = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new SyntaxError("It is no object.");
  const { history: unseen, ...fields } = value;
  if (history !== undefined) return { fields, history: decode(bytes, history) };
  return { fields, history: JSON.stringify(unseen ?? []) };
}

/** The name of an entry; empty when it has none that can be read. */
export function entryName(bytes: Uint8Array, span: EntrySpan): string {
  try {
    return String(parseEntry(bytes, span).fields.name ?? "");
  } catch {
    return "";
  }
}

/** An entry as text. */
export function renderEntry({ fields, history }: Entry): string {
  const body = JSON.stringify(fields, null, 2).slice(0, -"\n}".length);
  return `${body.replaceAll("\n", "\n    ")},\n      "history": ${history}\n    }`;
}

/**
 * The text of a history with one more attempt, without the oldest ones that are too many.
 *
 * @throws SyntaxError when the history is no JSON array
 */
export function withAttempt(history: string, attempt: HistoryEntry): string {
  const before = JSON.parse(history);
  if (!Array.isArray(before)) throw new SyntaxError("It is no array.");
  const attempts = [...before, attempt].slice(-MAX_HISTORY);
  const lines = attempts.map((each) => JSON.stringify(each));
  return `[\n        ${lines.join(",\n        ")}\n      ]`;
}

/** Bytes from `start` up to, and without, `end`. */
export interface Span {
  start: number;
  end: number;
}

/** Where an entry of the register lies, and its history inside it. */
export interface EntrySpan extends Span {
  history?: Span;
}

/** Where the entries of a register lie in its text. */
export interface Layout {
  /** The array, brackets included. */
  list: Span;
  entries: EntrySpan[];
}

const QUOTE = 0x22, COMMA = 0x2c, COLON = 0x3a, BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b, CLOSE_LIST = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;

/**
 * Finds the entries of a register, and their histories, without parsing what they hold: these are nearly all
 * of its bytes, and who wants to know what is due needs none of them. What lies between the spans is not
 * checked here.
 *
 * @throws SyntaxError when this is no object with an array `jobs`
 */
export function readLayout(bytes: Uint8Array): Layout {
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  let list: Span | undefined;
  const end = eachField(bytes, blanks(bytes, start), (key, value) => {
    if (key === "jobs" && bytes[value.start] === OPEN_LIST) list = value;
  });
  if (blanks(bytes, end) !== bytes.length || list === undefined) throw fault(end);
  return { list, entries: entriesOf(bytes, list.start) };
}

/** Where the history of an entry lies that begins at `start`. */
function readEntry(bytes: Uint8Array, start = 0): EntrySpan {
  if (bytes[start] !== OPEN_OBJECT) return { start, end: valueEnd(bytes, start) };
  let history: Span | undefined;
  const end = eachField(bytes, start, (key, value) => {
    if (key === "history") history = bytes[value.start] === OPEN_LIST ? value : undefined;
  });
  return { start, end, history };
}

/** Where everything lies once an entry is other bytes. */
export function withReplaced(
  { list, entries }: Layout,
  place: number,
  inserted: Uint8Array,
): Layout {
  const { start, end } = entries[place]!;
  const moved = inserted.length - (end - start);
  return {
    list: { start: list.start, end: list.end + moved },
    entries: entries.map((entry, other) => {
      if (other === place) return shifted(readEntry(inserted), start);
      return other < place ? entry : shifted(entry, moved);
    }),
  };
}

function shifted({ start, end, history }: EntrySpan, by: number): EntrySpan {
  return {
    start: start + by,
    end: end + by,
    history: history && { start: history.start + by, end: history.end + by },
  };
}

function entriesOf(bytes: Uint8Array, start: number): EntrySpan[] {
  const entries: EntrySpan[] = [];
  let at = blanks(bytes, start + 1);
  if (bytes[at] === CLOSE_LIST) return entries;
  while (true) {
    const entry = readEntry(bytes, at);
    entries.push(entry);
    at = blanks(bytes, entry.end);
    if (bytes[at] === CLOSE_LIST) return entries;
    if (bytes[at] !== COMMA) throw fault(at);
    at = blanks(bytes, at + 1);
  }
}

/** Tells of each field of the object at `start`; returns where the object ends. */
function eachField(
  bytes: Uint8Array,
  start: number,
  tell: (key: string, value: Span) => void,
): number {
  if (bytes[start] !== OPEN_OBJECT) throw fault(start);
  let at = blanks(bytes, start + 1);
  if (bytes[at] === CLOSE_OBJECT) return at + 1;
  while (true) {
    const key: Span = { start: at, end: stringEnd(bytes, at) };
    at = blanks(bytes, key.end);
    if (bytes[at] !== COLON) throw fault(at);
    at = blanks(bytes, at + 1);
    const value: Span = { start: at, end: valueEnd(bytes, at) };
    tell(JSON.parse(decode(bytes, key)), value);
    at = blanks(bytes, value.end);
    if (bytes[at] === CLOSE_OBJECT) return at + 1;
    if (bytes[at] !== COMMA) throw fault(at);
    at = blanks(bytes, at + 1);
  }
}

function valueEnd(bytes: Uint8Array, start: number): number {
  const first = bytes[start];
  if (first === QUOTE) return stringEnd(bytes, start);
  let at = start;
  if (first !== OPEN_OBJECT && first !== OPEN_LIST) {
    while (at < bytes.length && !isEnd(bytes[at]!)) at++;
    if (at === start) throw fault(at);
    return at;
  }
  for (let depth = 0; at < bytes.length;) {
    const byte = bytes[at]!;
    if (byte === QUOTE) {
      at = stringEnd(bytes, at);
      continue;
    }
    at++;
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) depth++;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) depth--;
    if (depth === 0) return at;
  }
  throw fault(at);
}

function stringEnd(bytes: Uint8Array, start: number): number {
  if (bytes[start] !== QUOTE) throw fault(start);
  for (let at = bytes.indexOf(QUOTE, start + 1); at >= 0; at = bytes.indexOf(QUOTE, at + 1)) {
    let slash = at - 1;
    while (bytes[slash] === BACKSLASH) slash--;
    if ((at - slash) % 2 === 1) return at + 1; // an even number of backslashes before it
  }
  throw fault(bytes.length);
}

function isEnd(byte: number): boolean {
  return byte === COMMA || byte === CLOSE_LIST || byte === CLOSE_OBJECT || isBlank(byte);
}

function isBlank(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

function blanks(bytes: Uint8Array, at: number): number {
  while (isBlank(bytes[at])) at++;
  return at;
}

/** The text of a span. */
export function decode(bytes: Uint8Array, { start, end }: Span): string {
  return new TextDecoder().decode(bytes.subarray(start, end));
}

function fault(at: number): SyntaxError {
  return new SyntaxError(`Unexpected text at byte ${at}.`);
}
