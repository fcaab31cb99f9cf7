import { basename, dirname, join } from "node:path";
import type { Clock } from "../platform/clock.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { removeIfExists, writeFileAtomic } from "../platform/files.ts";
import { withFileLock } from "../platform/lock.ts";
import { setAside } from "../platform/registry_file.ts";
import { writeFailure } from "../platform/write_failure.ts";
import { decode, type Layout, readLayout, type Span } from "./layout.ts";

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
