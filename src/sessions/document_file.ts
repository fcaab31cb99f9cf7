import { readAt, removeIfExists, unlock, writeAllSync } from "../platform/files.ts";
import { type ReadAt, spaces } from "./document.ts";
import {
  createTemporary,
  type HeldFile,
  infoIfSame,
  lengthOf,
  openRegular,
  PRIVATE,
  writeChunks,
} from "./files.ts";
import type { Edit } from "./journal.ts";

/** Bytes that the document grows by at a time, as spaces after its text; `trim` removes unused ones. */
const SLACK = 16 * 1024;

/**
 * The document of a session, open for writing in place, and its lock. Other programs may read the JSON
 * without a lock at any time. So the file first grows by white space only, and a change of its content is
 * then a single write within its size.
 */
export class DocumentFile {
  /** Bytes of the file at the last lock or write. */
  size = 0;
  /** The permissions of the file at the last lock, which its journal and a replacement have, too. */
  mode = PRIVATE;
  /** Differs when others may have changed the file since an earlier lock. */
  stamp = "";
  /** Offset of the end of the text; only spaces follow. */
  end = 0;
  readonly at: ReadAt = (offset, length) => readAt(this.#file, offset, length);
  readonly #path: string;
  readonly #replacement: string;
  #held: HeldFile | undefined;

  /**
   * @param replacement path of the temporary file that replaces the document
   * @param held the file at `path`, where the caller has created it
   */
  constructor(path: string, replacement: string, held?: HeldFile) {
    this.#path = path;
    this.#replacement = replacement;
    this.#held = held;
  }

  /**
   * Waits for the exclusive lock and updates `size`.
   *
   * @returns how others changed the file since the last lock: `replaced` by another file, or `resized`;
   * undefined, without a lock, when the file is gone
   */
  lock(): "same" | "resized" | "replaced" | undefined {
    let replaced = this.#held === undefined;
    while (true) {
      this.#held ??= openRegular(this.#path, { read: true, write: true });
      if (this.#held === undefined) return undefined;
      this.#file.lockSync(true);
      const info = infoIfSame(this.#held, this.#path);
      if (info !== undefined) {
        const resized = info.size !== this.size;
        this.size = info.size;
        this.stamp = stampOf(info);
        this.mode = (info.mode ?? PRIVATE) & 0o777;
        return replaced ? "replaced" : resized ? "resized" : "same";
      }
      // Replaced or removed before the lock was taken. A sync that is not over would keep the lock of a closed file.
      this.unlock();
      this.close();
      replaced = true;
    }
  }

  /** Identifies the file and its content at this moment; empty when it is no longer the one at its path. */
  look(): string {
    const info = this.#held && infoIfSame(this.#held, this.#path);
    return info === undefined ? "" : stampOf(info);
  }

  unlock(): void {
    this.#held?.file.unlockSync();
  }

  /** Makes the file large enough for `edit`, so that a full disk is noticed before anything changes. */
  reserve({ at, chunks }: Edit): void {
    const size = at + lengthOf(chunks) + SLACK;
    if (size - SLACK <= this.size) return;
    try {
      this.#write({ at: this.size, chunks: blanks(size - this.size) });
      this.size = size;
    } catch (error) {
      this.#file.truncateSync(this.size);
      throw error;
    }
  }

  /** Writes edits. The first one ends the text; the bytes after it, up to `blank`, become spaces. */
  put([tail, ...entries]: [Edit, ...Edit[]], blank: number): void {
    const end = tail.at + lengthOf(tail.chunks);
    this.#write({ at: tail.at, chunks: [...tail.chunks, ...blanks(blank - end)] });
    for (const entry of entries) this.#write(entry);
    this.end = end;
  }

  /**
   * Replaces the document by a new file, which is locked as well.
   *
   * @param around calls the renaming, and may act before and after it
   */
  replace(bytes: Uint8Array, around: (rename: () => void) => void = (rename) => rename()): void {
    const old = this.#file;
    const held = createTemporary(this.#replacement, { mode: this.mode });
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
    unlock(old);
  }

  /** Removes the spaces after the text. */
  trim(): void {
    if (this.end === this.size) return;
    this.#file.truncateSync(this.end);
    this.size = this.end;
  }

  /** Returns when the file survives a power failure. */
  sync(): void {
    this.#file.syncDataSync();
  }

  /** Resolves when the file survives a power failure. It stays usable meanwhile. */
  async flush(): Promise<void> {
    await this.#held?.file.syncData();
  }

  close(): void {
    this.#held?.file.close();
    this.#held = undefined;
  }

  get #file(): Deno.FsFile {
    if (this.#held === undefined) throw new TypeError("The document is not open.");
    return this.#held.file;
  }

  #write({ at, chunks }: Edit): void {
    this.#file.seekSync(at, Deno.SeekMode.Start);
    writeChunks(this.#file, chunks);
  }
}

function stampOf({ ino, size, mtime }: Deno.FileInfo): string {
  return `${ino} ${size} ${mtime?.getTime()}`;
}

/** So many spaces; none for a negative number. */
function blanks(count: number): Uint8Array[] {
  if (count <= 0) return [];
  const block = spaces(Math.min(count, BLOCK));
  const whole = Math.floor(count / block.length);
  return [...Array(whole).fill(block), block.subarray(0, count - whole * block.length)];
}

const BLOCK = 64 * 1024;
