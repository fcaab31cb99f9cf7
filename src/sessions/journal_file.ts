import { lstatIfExists, mintId, removeIfExists, writeAllSync } from "../platform/files.ts";
import { createOwn, type Held, look, openRegular, readAt } from "./regular_file.ts";

/** A journal this long is begun anew, after the document it repairs has reached the disk. */
const LIMIT = 256 * 1024;

/**
 * The journal beside a session's document, open for appending. Bytes count once they are taken in: what
 * this handle appended, and what it was told of others' by {@linkcode JournalFile.settle}.
 */
export class JournalFile {
  readonly #path: string;
  #held: Held | undefined;
  /** How many bytes have been taken in. */
  #known = 0;
  #renewAt = 0;

  constructor(path: string) {
    this.#path = path;
  }

  /** Whether there is one on the disk. */
  get exists(): boolean {
    return lstatIfExists(this.#path) !== undefined;
  }

  /** Whether this handle has it open. */
  get held(): boolean {
    return this.#held !== undefined;
  }

  /** Whether it is so long that it should be begun anew. */
  get long(): boolean {
    return this.#known > this.#renewAt;
  }

  /** Opens the one on the disk with nothing taken in; false when there is none. */
  open(): boolean {
    this.close();
    this.#held = openRegular(this.#path, { read: true, append: true });
    this.#known = 0;
    this.#renewAt = LIMIT;
    return this.held;
  }

  /** What follows the bytes taken in; undefined when this is no longer the file that was opened. */
  news(): Uint8Array | undefined {
    const size = this.#held && look(this.#held, this.#path)?.size;
    if (size === undefined || size < this.#known) return undefined;
    return size === this.#known ? NOTHING : readAt(this.#file, this.#known, size - this.#known);
  }

  /** Takes so many more bytes in, and cuts off what follows: a line that is not there whole. */
  settle(length: number): void {
    this.#file.truncateSync(this.#known + length);
    this.#known += length;
  }

  /** Appends bytes, then does what they announce. After a failure {@linkcode takeBack} is due. */
  append(bytes: Uint8Array, act: () => void): void {
    writeAllSync(this.#file, bytes);
    act();
    this.#known += bytes.length;
  }

  /** Cuts off what has not been taken in. */
  takeBack(): void {
    this.settle(0);
  }

  /** Begins it anew with these bytes; with `durable` they survive a power failure before they count. */
  begin(bytes: Uint8Array, durable: boolean): void {
    const held = createOwn(this.#temporary, { append: true });
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
    this.#known = bytes.length;
    this.#renewAt = bytes.length + LIMIT;
  }

  /** Puts off that it is {@linkcode long}. */
  postpone(): void {
    this.#renewAt += LIMIT;
  }

  /** Gives it another name, which is returned, and lets go of it. */
  setAside(): string {
    const aside = `${this.#path}.${mintId()}`;
    Deno.renameSync(this.#path, aside);
    this.close();
    return aside;
  }

  /** Returns when it would survive a power failure. */
  sync(): void {
    this.#held?.file.syncDataSync();
  }

  remove(): void {
    removeIfExists(this.#path);
  }

  /** Removes what a crash can have left of one that was being begun. */
  removeHalf(): void {
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

  /** Where it is written before it takes the old one's place. */
  get #temporary(): string {
    return `${this.#path}.tmp`;
  }
}

const NOTHING = new Uint8Array();
