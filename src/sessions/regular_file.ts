import { lstatIfExists, removeIfExists } from "../platform/files.ts";

/** An open file, and what tells whether a path still names it. */
export interface Held {
  file: Deno.FsFile;
  ino: number | null;
  dev: number;
}

/**
 * Opens the regular file that `path` itself names, never what a symbolic link there leads to.
 *
 * @returns undefined when there is no such file
 * @throws Error when it is something else than a regular file
 */
export function openRegular(path: string, options: Deno.OpenOptions): Held | undefined {
  while (true) {
    const info = lstatIfExists(path);
    if (info === undefined) return undefined;
    if (!info.isFile) throw new Error(`${path} is not a regular file`);
    let held: Held;
    try {
      held = hold(Deno.openSync(path, options));
    } catch (error) {
      if (error instanceof Deno.errors.NotFound) continue;
      throw error;
    }
    // A link put there in between leads to another file than the one looked at.
    if (look(held, path) !== undefined) return held;
    held.file.close();
  }
}

export function hold(file: Deno.FsFile): Held {
  const { ino, dev } = file.statSync();
  return { file, ino, dev };
}

/** What `path` is now, or undefined when it no longer names the file that is held. */
export function look(held: Held, path: string): Deno.FileInfo | undefined {
  const info = lstatIfExists(path);
  return info?.ino === held.ino && info.dev === held.dev ? info : undefined;
}

/** Up to `length` bytes from `offset` on; fewer at the end of the file. */
export function readAt(file: Deno.FsFile, offset: number, length: number): Uint8Array {
  const bytes = new Uint8Array(length);
  file.seekSync(offset, Deno.SeekMode.Start);
  let filled = 0;
  while (filled < length) {
    const count = file.readSync(bytes.subarray(filled));
    if (count === null) break;
    filled += count;
  }
  return bytes.subarray(0, filled);
}

/** Creates a hidden file of our own, in place of one that a crash left. */
export function createOwn(path: string, options: Deno.OpenOptions = {}): Held {
  removeIfExists(path);
  return hold(Deno.openSync(path, { read: true, write: true, createNew: true, ...options }));
}
