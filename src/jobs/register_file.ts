import { basename, dirname, join } from "node:path";
import { atOnce, type Clock } from "../platform/clock.ts";
import { errorMessage, SvcError, writeFailure } from "../platform/error.ts";
import {
  readAt,
  removeIfExists,
  replaceFile,
  withFileLock,
  writeAll,
  writeFileAtomic,
} from "../platform/files.ts";
import { CHANGED, setAside } from "../platform/registry_file.ts";

/** The bytes of the file and the positions of its entries. */
export interface RegisterContent {
  bytes: Uint8Array<ArrayBuffer>;
  layout: Layout;
  /** Inode, size and modification time of the file when it was read. */
  signature: string;
}

/** The file, open to read parts of it. */
export interface OpenRegister extends Disposable {
  read(span: Span): string;
  /** Replaces spans, given in their order. Call it in `locked`. Returns the signature of the new file. */
  replace(...edits: (readonly [span: Span, text: string])[]): Promise<string>;
}

const CORRUPT = "is corrupt; it is read as empty, and kept under another name once a job is added";

/** Bytes that are read, scanned or copied before other work gets its turn. */
const PIECE = 1024 * 1024;

/**
 * The file `.svc/jobs.json` as bytes. A change replaces only the bytes of one entry; docs/architecture.md (Jobs)
 * has the figures that this is for.
 */
export class RegisterFile {
  readonly path: string;
  readonly #clock: Clock;
  readonly #warn: (message: string) => void;
  readonly #warned = new Set<string>();
  /** The signature of a corrupt file, which is not read again. */
  #corrupt = "";
  readonly #sync: boolean;

  /** @param sync whether a change is on the disk before it counts; not needed for a copy */
  constructor(path: string, clock: Clock, warn: (message: string) => void, sync = true) {
    this.path = path;
    this.#sync = sync;
    this.#clock = clock;
    this.#warn = warn;
  }

  /** Inode, size and modification time of the file; undefined when there is none. */
  signature(): string | undefined {
    try {
      return signatureOf(Deno.statSync(this.path));
    } catch {
      return undefined;
    }
  }

  /** Reads the file in pieces. Undefined when there is none or it is corrupt, which is warned about. */
  *content(): Generator<void, RegisterContent | undefined> {
    let file: Deno.FsFile | undefined;
    let signature = "";
    try {
      file = Deno.openSync(this.path);
      const info = file.statSync(); // before reading, so that a later change is noticed
      signature = signatureOf(info);
      if (signature === this.#corrupt) return undefined;
      const bytes = new Uint8Array(info.size);
      for (let at = 0; at < bytes.length;) {
        if (at > 0) yield;
        const count = file.readSync(bytes.subarray(at, at + PIECE));
        if (count === null) break; // it was cut off meanwhile, and is no JSON
        at += count;
      }
      const layout = yield* readLayout(bytes);
      const { start, end } = layout.list;
      const rest = [{ start: 0, end: start }, { start: end, end: bytes.length }];
      JSON.parse(rest.map((span) => decode(bytes, span)).join("[]"));
      this.#warned.delete(CORRUPT); // a file that breaks again is warned about again
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

  /** Opens the file; undefined when it is not the one with that signature any more. */
  open(signature: string): OpenRegister | undefined {
    let file: Deno.FsFile;
    try {
      file = Deno.openSync(this.path);
    } catch {
      return undefined;
    }
    const info = file.statSync();
    if (signatureOf(info) !== signature) return void file.close();
    let isOpen = true;
    const close = () => {
      if (isOpen) file.close();
      isOpen = false;
    };
    const read = ({ start, end }: Span) => {
      const bytes = readAt(file, start, end - start);
      return decode(bytes, { start: 0, end: bytes.length });
    };
    const replace = async (...edits: (readonly [Span, string])[]) => {
      const replaced = await replaceFile(this.path, async (target) => {
        let from = 0;
        for (const [{ start, end }, text] of edits) {
          await copy(file, { start: from, end: start }, target);
          await writeAll(target, new TextEncoder().encode(text));
          from = end;
        }
        await copy(file, { start: from, end: info.size }, target);
        close(); // so that the rename frees the old file, not this thread
      }, { mode: 0o600, sync: this.#sync });
      return signatureOf(replaced);
    };
    return { read, replace, [Symbol.dispose]: close };
  }

  /**
   * Runs a change under the lock of the file.
   *
   * @throws SvcError `register_write`; an SvcError of `change`
   */
  async locked(change: () => void | Promise<void>): Promise<void> {
    try {
      await withFileLock(this.path, change);
    } catch (error) {
      if (error instanceof SvcError) throw error;
      throw writeFailure("register_write", this.path, error);
    }
  }

  /** Removes temporary files of processes that died. Call it in `locked`: live processes have none then. */
  removeTemporaryFiles(): void {
    const folder = dirname(this.path);
    const start = `.${basename(this.path)}.`;
    for (const { name } of [...Deno.readDirSync(folder)]) {
      if (name.startsWith(start) && name.endsWith(".tmp")) removeIfExists(join(folder, name));
    }
  }

  /** Makes a register with a list of entries. A corrupt file is renamed. */
  create(list: string): void {
    if (this.signature() !== undefined) setAside(this.path, this.#clock, this.#warn);
    writeFileAtomic(this.path, `{\n  "jobs": ${list}\n}\n`, 0o600);
  }

  /** Keeps a file that something else changed under another name, if there is one. */
  setAside(): void {
    if (this.signature() !== undefined) setAside(this.path, this.#clock, this.#warn, CHANGED);
  }

  /** Saves a text that a change would overwrite in a file next to the register. */
  keep(text: string, what: string): void {
    const kept = `${this.path}.broken-${what}-${this.#clock.now()}`;
    writeFileAtomic(kept, text, 0o600);
    this.#warn(`${this.path} has a broken part (${what}); it is kept as ${kept}.`);
  }

  /** Warns, unless the same warning was given before. */
  warnOnce(what: string): void {
    if (!this.#warned.has(what)) this.#warn(`${this.path} ${what}.`);
    this.#warned.add(what);
  }
}

async function copy(source: Deno.FsFile, { start, end }: Span, target: Deno.FsFile): Promise<void> {
  const buffer = new Uint8Array(Math.min(PIECE, end - start));
  await source.seek(start, Deno.SeekMode.Start);
  for (let at = start; at < end;) {
    const count = await source.read(buffer.subarray(0, Math.min(PIECE, end - at)));
    if (count === null) throw new Error("the file is shorter than it was");
    await writeAll(target, buffer.subarray(0, count));
    at += count;
  }
}

function signatureOf({ ino, size, mtime }: Deno.FileInfo): string {
  return [ino, size, mtime?.getTime()].join(":");
}

/** Attempts that a history keeps (specification 8). */
export const MAX_HISTORY = 100;

/** Reads a span of the register. */
type Read = (span: Span) => string;

/**
 * The fields of an entry as written in the file, without its history.
 *
 * @throws SyntaxError when the entry is no JSON object
 */
export function readFields(
  { start, end, history }: EntrySpan,
  read: Read,
): Record<string, unknown> {
  const text = history === undefined
    ? read({ start, end })
    : `${read({ start, end: history.start })}[]${read({ start: history.end, end })}`;
  const value = JSON.parse(text);
  if (typeof value !== "object" || value === null) throw new SyntaxError("It is no object.");
  const { history: _, ...fields } = value;
  return fields;
}

/** The unparsed text of an entry's history. */
export function readHistory(entry: EntrySpan, read: Read): string {
  if (entry.history !== undefined) return read(entry.history);
  return JSON.stringify(JSON.parse(read(entry)).history ?? []);
}

/** The text of an entry. */
export function renderEntry(fields: object, history: string): string {
  const body = JSON.stringify(fields, null, 2).slice(0, -"\n}".length);
  return `${body.replaceAll("\n", "\n    ")},\n      "history": ${history}\n    }`;
}

/**
 * The attempts of a history's text.
 *
 * @throws SyntaxError when it is no JSON array
 */
export function parseHistory(text: string): unknown[] {
  const attempts = JSON.parse(text);
  if (!Array.isArray(attempts)) throw new SyntaxError("It is no array.");
  return attempts;
}

/** The text of a history: an attempt a line. */
export function renderHistory(attempts: unknown[]): string {
  if (attempts.length === 0) return "[]";
  const lines = attempts.map((each) => JSON.stringify(each));
  return `[\n        ${lines.join(",\n        ")}\n      ]`;
}

/** Bytes from `start` (inclusive) to `end` (exclusive). */
export interface Span {
  start: number;
  end: number;
}

/** The span of an entry, and of the history in it. */
export interface EntrySpan extends Span {
  history?: Span;
}

/** The spans of a register's entries. */
export interface Layout {
  /** The array `jobs`, brackets included. */
  list: Span;
  entries: EntrySpan[];
}

const QUOTE = 0x22, COMMA = 0x2c, COLON = 0x3a, BACKSLASH = 0x5c;
const OPEN_LIST = 0x5b, CLOSE_LIST = 0x5d, OPEN_OBJECT = 0x7b, CLOSE_OBJECT = 0x7d;

/**
 * Finds the entries of a register and their histories without parsing the histories, which are nearly all of
 * its bytes and are not needed to find due jobs. The content of the spans is not validated here.
 *
 * @throws SyntaxError when the text is no object with an array `jobs`
 */
function* readLayout(bytes: Uint8Array): Generator<void, Layout> {
  const start = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? 3 : 0;
  let layout: Layout | undefined;
  const end = yield* eachField(bytes, blanks(bytes, start), function* (key, at) {
    if (key !== "jobs" || bytes[at] !== OPEN_LIST) return valueEnd(bytes, at);
    layout = yield* readList(bytes, at);
    return layout.list.end;
  });
  if (blanks(bytes, end) !== bytes.length || layout === undefined) throw fault(end);
  return layout;
}

/** The spans of the entry that begins at `start`. */
function* readEntry(bytes: Uint8Array, start = 0): Generator<void, EntrySpan> {
  if (bytes[start] !== OPEN_OBJECT) return { start, end: valueEnd(bytes, start) };
  let history: Span | undefined;
  const end = yield* eachField(bytes, start, function* (key, at) {
    const value = { start: at, end: valueEnd(bytes, at) };
    if (key === "history") history = bytes[at] === OPEN_LIST ? value : undefined;
    return value.end;
  });
  return { start, end, history };
}

/** The layout after an entry was replaced by a text. */
export function withReplaced(
  { list, entries }: Layout,
  index: number,
  text: string,
): Layout {
  const { start, end } = entries[index]!;
  const inserted = new TextEncoder().encode(text);
  const moved = inserted.length - (end - start);
  return {
    list: { start: list.start, end: list.end + moved },
    entries: entries.map((entry, other) => {
      if (other === index) return shifted(atOnce(readEntry(inserted)), start);
      return other < index ? entry : shifted(entry, moved);
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

/** The layout of the array that begins at `start`. */
function* readList(bytes: Uint8Array, start: number): Generator<void, Layout> {
  const entries: EntrySpan[] = [];
  let yielded = start;
  let at = blanks(bytes, start + 1);
  const layout = () => ({ list: { start, end: at + 1 }, entries });
  if (bytes[at] === CLOSE_LIST) return layout();
  while (true) {
    const entry = yield* readEntry(bytes, at);
    entries.push(entry);
    if (entry.end - yielded > PIECE) {
      yield;
      yielded = entry.end;
    }
    at = blanks(bytes, entry.end);
    if (bytes[at] === CLOSE_LIST) return layout();
    if (bytes[at] !== COMMA) throw fault(at);
    at = blanks(bytes, at + 1);
  }
}

/**
 * Calls `visit` with the key of each field of the object at `start`, and the position of its value, of which it returns
 * the end. Returns the end of the object.
 */
function* eachField(
  bytes: Uint8Array,
  start: number,
  visit: (key: string, at: number) => Generator<void, number>,
): Generator<void, number> {
  if (bytes[start] !== OPEN_OBJECT) throw fault(start);
  let at = blanks(bytes, start + 1);
  if (bytes[at] === CLOSE_OBJECT) return at + 1;
  while (true) {
    const key: Span = { start: at, end: stringEnd(bytes, at) };
    at = blanks(bytes, key.end);
    if (bytes[at] !== COLON) throw fault(at);
    at = blanks(bytes, at + 1);
    at = blanks(bytes, yield* visit(JSON.parse(decode(bytes, key)), at));
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
