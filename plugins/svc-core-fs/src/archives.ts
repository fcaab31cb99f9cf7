import type { ToolContext } from "../../../src/plugins/api.ts";
import { textWindow } from "./file_read.ts";
import { bytesOf, type FormatRequest } from "./formats.ts";
import { escaped } from "./paths.ts";

/** Entries, bytes of the list of a zip archive, and unpacked bytes of a tar.gz archive, that are read at most. */
const MAX_ENTRIES = 20_000;
const MAX_DIRECTORY = 16 * 1024 * 1024;
const MAX_UNPACKED = 512 * 1024 * 1024;
/** Milliseconds for unpacking. */
const MAX_MS = 10_000;

interface Entry {
  name: string;
  /** Bytes; -1 for a folder. */
  size: number;
}

interface Listing {
  entries: Entry[];
  /** Why there may be more; empty: there are none. */
  stopped: string;
}

/** The list of an archive (zip, tar, tar.gz), of which nothing is extracted; undefined for a file that is none. */
export async function readArchive(
  file: Deno.FsFile,
  request: FormatRequest,
  context: ToolContext,
): Promise<string | undefined> {
  const { path, start } = request;
  const [one, two] = start;
  let kind = "zip";
  let listing: Listing | undefined;
  try {
    if (one === 0x50 && two === 0x4b) listing = await zipEntries(file);
    else if (one === 0x1f && two === 0x8b) {
      kind = "tar.gz";
      listing = await tarEntries(unpacked(file, context.signal));
    } else if (isTar(start)) {
      kind = "tar";
      listing = await tarEntries(new FileSource(file));
    }
  } catch (error) {
    context.signal.throwIfAborted();
    if (!(error instanceof Damaged)) throw error;
    return `# ${path} - ${kind} archive\n(damaged: ${error.message})`;
  }
  if (listing === undefined) return undefined;
  const { entries, stopped } = listing;
  const total = entries.reduce((sum, { size }) => sum + Math.max(0, size), 0);
  const count = `${entries.length} entries, ${total} bytes unpacked`;
  const more = stopped === "" ? "" : `; ${stopped}`;
  const header = `# ${path} - ${kind} archive, ${count}${more}; sizes and names`;
  return textWindow(header, entries.map(line).join("\n"), request, context);
}

function line({ name, size }: Entry): string {
  const leaves = /^[/\\]|^[A-Za-z]:|(^|[/\\])\.\.([/\\]|$)/.test(name);
  const how = leaves ? " (leads out of the folder that it is unpacked in)" : "";
  return `${size < 0 ? "folder" : size} ${escaped(name)}${how}`;
}

class Damaged extends Error {}

const EOCD = 0x06054b50;
const LOCATOR64 = 0x07064b50;
const ENTRY = 0x02014b50;

/** The entries of the directory at the end of a zip archive; undefined where there is none. */
async function zipEntries(file: Deno.FsFile): Promise<Listing | undefined> {
  const { size } = file.statSync();
  const tail = await bytesOf(file, Math.max(0, size - 66_000), Math.min(size, 66_000));
  const view = viewOf(tail);
  let at = tail.length - 22;
  while (at >= 0 && view.getUint32(at, true) !== EOCD) at--;
  if (at < 0) throw new Damaged("the list at its end is missing");
  let count = view.getUint16(at + 10, true);
  let length = view.getUint32(at + 12, true);
  let from = view.getUint32(at + 16, true);
  if (at >= 20 && view.getUint32(at - 20, true) === LOCATOR64) {
    const end = viewOf(await bytesOf(file, Number(view.getBigUint64(at - 12, true)), 56));
    if (end.byteLength < 56) throw new Damaged("the list at its end is cut off");
    count = Number(end.getBigUint64(32, true));
    length = Number(end.getBigUint64(40, true));
    from = Number(end.getBigUint64(48, true));
  }
  const bytes = await bytesOf(file, Math.min(from, size), Math.min(length, MAX_DIRECTORY, size));
  return directoryEntries(bytes, count);
}

function directoryEntries(bytes: Uint8Array, count: number): Listing {
  const view = viewOf(bytes);
  const entries: Entry[] = [];
  for (let at = 0; entries.length < Math.min(count, MAX_ENTRIES);) {
    if (at + 46 > bytes.length || view.getUint32(at, true) !== ENTRY) {
      return { entries, stopped: `the list is cut off after them` };
    }
    const name = at + 46;
    const extra = name + view.getUint16(at + 28, true);
    const next = extra + view.getUint16(at + 30, true) + view.getUint16(at + 32, true);
    let size = view.getUint32(at + 24, true);
    const large = extra + 12 <= bytes.length && view.getUint16(extra, true) === 1;
    if (size === 0xffffffff && large) size = Number(view.getBigUint64(extra + 4, true));
    const text = new TextDecoder().decode(bytes.subarray(name, extra));
    entries.push({ name: text, size: text.endsWith("/") ? -1 : size });
    at = next;
  }
  return { entries, stopped: count > entries.length ? `of ${count}` : "" };
}

function viewOf({ buffer, byteOffset, byteLength }: Uint8Array): DataView {
  return new DataView(buffer, byteOffset, byteLength);
}

/** Bytes that come one after the other. */
interface Source {
  /** The next bytes; fewer at the end. */
  take(length: number): Promise<Uint8Array>;
  skip(length: number): Promise<void>;
  close(): void;
  /** Why no more bytes come; empty at the end. */
  readonly stopped: string;
}

class FileSource implements Source {
  readonly stopped = "";
  readonly #file: Deno.FsFile;
  #at = 0;

  constructor(file: Deno.FsFile) {
    this.#file = file;
  }

  async take(length: number): Promise<Uint8Array> {
    const bytes = await bytesOf(this.#file, this.#at, length);
    this.#at += length;
    return bytes;
  }

  skip(length: number): Promise<void> {
    this.#at += length;
    return Promise.resolve();
  }

  close(): void {}
}

/** The unpacked bytes of a gzip file, which are bounded: a small file may unpack to any number. */
function unpacked(file: Deno.FsFile, signal: AbortSignal): Source {
  file.seekSync(0, Deno.SeekMode.Start);
  const packed = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const piece = new Uint8Array(64 * 1024);
      const length = await file.read(piece);
      if (length === null) controller.close();
      else controller.enqueue(piece.subarray(0, length));
    },
  });
  const reader = packed.pipeThrough(new DecompressionStream("gzip")).getReader();
  const started = performance.now();
  let rest: Uint8Array = new Uint8Array();
  let all = 0;
  let stopped = "";
  const next = async (): Promise<boolean> => {
    signal.throwIfAborted();
    if (all > MAX_UNPACKED) stopped = "more of it was not unpacked, as it is too large";
    else if (performance.now() - started > MAX_MS) stopped = "more of it was not unpacked in time";
    if (stopped !== "") return false;
    try {
      const { value, done } = await reader.read();
      if (done) return false;
      all += value.length;
      rest = value;
      return true;
    } catch {
      stopped = "it is damaged after them";
      return false;
    }
  };
  const use = async (length: number, keep?: Uint8Array): Promise<number> => {
    let used = 0;
    while (used < length && (rest.length > 0 || await next())) {
      const piece = rest.subarray(0, length - used);
      keep?.set(piece, used);
      used += piece.length;
      rest = rest.subarray(piece.length);
    }
    return used;
  };
  return {
    async take(length) {
      const bytes = new Uint8Array(length);
      return bytes.subarray(0, await use(length, bytes));
    },
    skip: async (length) => void await use(length),
    close: () => void reader.cancel().catch(() => {}),
    get stopped() {
      return stopped;
    },
  };
}

const BLOCK = 512;
/** Bytes of a name that has a block of its own. */
const MAX_NAME = 64 * 1024;

function isTar(block: Uint8Array): boolean {
  return new TextDecoder().decode(block.subarray(257, 262)) === "ustar";
}

/** The entries of a tar archive; undefined for what is none. */
async function tarEntries(source: Source): Promise<Listing | undefined> {
  const entries: Entry[] = [];
  let long = "";
  try {
    for (let left = 2 * MAX_ENTRIES; entries.length < MAX_ENTRIES && left > 0; left--) {
      const block = await source.take(BLOCK);
      if (entries.length === 0 && long === "" && !isTar(block)) return undefined;
      if (block.length < BLOCK || block.every((byte) => byte === 0)) {
        return { entries, stopped: source.stopped };
      }
      const size = sizeIn(block.subarray(124, 136));
      if (!isTar(block) || !Number.isSafeInteger(size) || size < 0) {
        return { entries, stopped: "it is damaged after them" };
      }
      const padded = Math.ceil(size / BLOCK) * BLOCK;
      const type = String.fromCharCode(block[156]!);
      if ("xL".includes(type) && size <= MAX_NAME) {
        const text = new TextDecoder().decode((await source.take(padded)).subarray(0, size));
        long = type === "L" ? text.replace(/\0.*$/s, "") : /^\d+ path=(.*)$/m.exec(text)?.[1] ?? "";
        continue;
      }
      await source.skip(padded);
      if (type === "g") continue;
      const prefix = textIn(block.subarray(345, 500));
      const short = textIn(block.subarray(0, 100));
      const name = long || (prefix === "" ? short : `${prefix}/${short}`);
      entries.push({ name, size: type === "5" ? -1 : size });
      long = "";
    }
    return { entries, stopped: `only the first ${entries.length}` };
  } finally {
    source.close();
  }
}

function textIn(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end < 0 ? bytes : bytes.subarray(0, end));
}

/** A number in octal digits, or in binary where its first bit is set. */
function sizeIn(bytes: Uint8Array): number {
  if ((bytes[0]! & 0x80) === 0) return parseInt(textIn(bytes).trim() || "0", 8);
  return bytes.subarray(1).reduce((sum, byte) => sum * 256 + byte, 0);
}
