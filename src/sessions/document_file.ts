import { concat, removeIfExists, writeAllSync } from "../platform/files.ts";
import { type ReadAt, spaces } from "./layout.ts";
import type { Edit } from "./operations.ts";
import { createOwn, type Held, look, openRegular, readAt } from "./regular_file.ts";

/** The document grows by this much at a time, as spaces behind its end; `trim` takes the rest away. */
const SLACK = 16 * 1024;

/**
 * The document of a session, open for writing in place, and its lock. Any JSON reader may look at the
 * file while it is written, without a lock: so it first grows by white space alone, and what changes its
 * meaning then is one write within its size.
 */
export class DocumentFile {
  /** Of the file, as of the last lock or write. */
  size = 0;
  /** Where its text ends and spaces begin. */
  end = 0;
  readonly at: ReadAt = (offset, length) => readAt(this.#file, offset, length);
  readonly #path: string;
  readonly #replacement: string;
  #held: Held | undefined;

  /** @param replacement the hidden file that is written to take the document's place */
  constructor(path: string, replacement: string) {
    this.#path = path;
    this.#replacement = replacement;
  }

  /**
   * Waits for the lock, which no other handle of any process then has, and updates `size`.
   *
   * @returns whether the file changed since the last lock, other than through this handle: `replaced`
   * by another file, or `resized`; undefined, and no lock, when the file is gone
   */
  lock(): "same" | "resized" | "replaced" | undefined {
    let replaced = this.#held === undefined;
    while (true) {
      this.#held ??= openRegular(this.#path, { read: true, write: true });
      if (this.#held === undefined) return undefined;
      this.#file.lockSync(true);
      const info = look(this.#held, this.#path);
      if (info !== undefined) {
        const resized = info.size !== this.size;
        this.size = info.size;
        return replaced ? "replaced" : resized ? "resized" : "same";
      }
      // Replaced or removed between opening and locking, or while this handle did not look.
      this.close();
      replaced = true;
    }
  }

  unlock(): void {
    this.#held?.file.unlockSync();
  }

  /** Sees to it that `edit` fits into the file: a full disk is to show before anything changes. */
  reserve({ at, bytes }: Edit): void {
    const size = at + bytes.length + SLACK;
    if (size - SLACK <= this.size) return;
    try {
      this.#write({ at: this.size, bytes: spaces(size - this.size) });
      this.size = size;
    } catch (error) {
      this.#file.truncateSync(this.size);
      throw error;
    }
  }

  /** Writes edits, the first of which ends the text. What lies behind, up to `blank`, becomes spaces. */
  put([tail, ...entries]: [Edit, ...Edit[]], blank: number): void {
    const end = tail.at + tail.bytes.length;
    const behind = spaces(Math.max(0, blank - end));
    this.#write(blank > end ? { at: tail.at, bytes: concat([tail.bytes, behind]) } : tail);
    for (const entry of entries) this.#write(entry);
    this.end = end;
  }

  /**
   * Puts a whole new file in the document's place and takes the lock along.
   *
   * @param around runs the renaming, between what has to happen before and after it
   */
  replace(bytes: Uint8Array, around: (rename: () => void) => void = (rename) => rename()): void {
    const old = this.#file;
    const held = createOwn(this.#replacement, { mode: (old.statSync().mode ?? 0o644) & 0o777 });
    try {
      held.file.lockSync(true);
      writeAllSync(held.file, bytes);
      held.file.syncDataSync();
      around(() => Deno.renameSync(this.#replacement, this.#path));
    } catch (error) {
      held.file.close();
      removeIfExists(this.#replacement);
      throw error;
    }
    this.#held = held;
    this.size = this.end = bytes.length;
    old.close();
  }

  /** Takes the spaces behind the text away. */
  trim(): void {
    this.#file.truncateSync(this.end);
    this.size = this.end;
  }

  /** Returns when the file would survive a power failure. */
  sync(): void {
    this.#file.syncDataSync();
  }

  close(): void {
    this.#held?.file.close();
    this.#held = undefined;
  }

  get #file(): Deno.FsFile {
    if (this.#held === undefined) throw new TypeError("The document is not open.");
    return this.#held.file;
  }

  #write({ at, bytes }: Edit): void {
    this.#file.seekSync(at, Deno.SeekMode.Start);
    writeAllSync(this.#file, bytes);
  }
}
