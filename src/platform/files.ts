import { basename, dirname, join } from "node:path";
import { SvcError } from "./error.ts";

/** The text of a file, or undefined when there is no such file. */
export function readTextIfExists(path: string): string | undefined {
  try {
    return Deno.readTextFileSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound || error instanceof Deno.errors.NotADirectory) {
      return undefined;
    }
    throw error;
  }
}

/** Metadata of a path without following a link; undefined when nothing is there. */
export function lstatIfExists(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** Metadata of what a path leads to; undefined also for a broken link and a path that may not be looked up. */
export function statIfExists(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch {
    return undefined;
  }
}

/** The entries of a folder; none when it cannot be read. */
export function entriesOf(folder: string): Deno.DirEntry[] {
  try {
    return [...Deno.readDirSync(folder)];
  } catch {
    return [];
  }
}

/** Whether a path is a symbolic link; false also for a path that may not be looked up. */
export function isLink(path: string): boolean {
  try {
    return Deno.lstatSync(path).isSymlink;
  } catch {
    return false;
  }
}

/** Whether a path exists; false also for a path that may not be looked up. */
export function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Differs when the file at `path` may have changed; empty when there is none. */
export function fileStamp(path: string): string {
  try {
    const { ino, size, mtime, ctime } = Deno.statSync(path);
    return [ino, size, mtime?.getTime(), ctime?.getTime()].join(" ");
  } catch {
    return "";
  }
}

/** The value of a JSON text, or `otherwise` when it is not JSON. */
// deno-lint-ignore no-explicit-any
export function jsonOr(text: string, otherwise: unknown): any {
  try {
    return JSON.parse(text);
  } catch {
    return otherwise;
  }
}

/** Whether a JSON value is an object: no list, not null. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Characters of a piece of JSON: few, so that its memory is soon free. */
const PIECE = 32 * 1024;

/** The JSON of an object in pieces: as a whole, a text of many megabytes in it would take that memory once more. */
export function* jsonPieces(value: object, indent?: number): Generator<string> {
  const long = Object.entries(value).filter(([, text]) =>
    typeof text === "string" && text.length > PIECE
  ) as [string, string][];
  const mark = long.length > 0 ? crypto.randomUUID() : "";
  const marked = Object.fromEntries(long.map(([name]) => [name, mark]));
  const outline = JSON.stringify({ ...value, ...marked }, null, indent);
  const [first, ...others] = mark === "" ? [outline] : outline.split(mark);
  yield first!;
  for (const [i, rest] of others.entries()) {
    const text = long[i]![1];
    for (let at = 0; at < text.length;) {
      let end = at + PIECE;
      if (/^[\ud800-\udbff]$/.test(text.charAt(end - 1))) end--; // keeps a pair together
      yield JSON.stringify(text.slice(at, end)).slice(1, -1);
      at = end;
    }
    yield rest;
  }
}

/** The value of a JSON file. A byte order mark, which some editors write, is skipped. */
export function readJson(path: string): unknown {
  return JSON.parse(new TextDecoder().decode(Deno.readFileSync(path)));
}

/**
 * Makes a folder and its parents. A `.svc` is made only where its worktree is: one that was removed or renamed while
 * svc runs is not made again.
 *
 * @throws SvcError `no_worktree`
 */
export function makeFolder(path: string, mode?: number): void {
  const [worktree = "", ...inside] = `${path}/`.split("/.svc/");
  if (inside.length > 0 && !exists(worktree || "/")) {
    throw new SvcError("no_worktree", `The worktree ${worktree} is not there any more.`);
  }
  Deno.mkdirSync(path, { recursive: true, mode });
}

/**
 * Writes a file so that a reader, or a crash at any instant, sees the old text or the new one: a
 * temporary file in the same folder with `mode` from its first byte, fsync, rename. Makes missing folders.
 *
 * @param sync false: a crash of the machine may leave an empty file
 */
export function writeFileAtomic(path: string, content: string, mode = 0o644, sync = true): void {
  const temporary = temporaryOf(path);
  const file = Deno.openSync(temporary, { write: true, createNew: true, mode });
  try {
    try {
      writeAllSync(file, new TextEncoder().encode(content));
      if (sync) file.syncSync();
    } finally {
      file.close();
    }
    Deno.renameSync(temporary, path);
  } catch (error) {
    removeIfExists(temporary);
    throw error;
  }
}

/**
 * Like `writeFileAtomic`, and does not hold the event loop while the disk works. `write` writes the content.
 *
 * @returns the new file's metadata, read before the rename
 */
export async function replaceFile(
  path: string,
  write: (file: Deno.FsFile) => Promise<void>,
  { mode = 0o644, sync = true }: { mode?: number; sync?: boolean } = {},
): Promise<Deno.FileInfo> {
  const temporary = temporaryOf(path);
  const file = await Deno.open(temporary, { write: true, createNew: true, mode });
  try {
    let info: Deno.FileInfo;
    try {
      await write(file);
      if (sync) await file.sync();
      info = await file.stat();
    } finally {
      file.close();
    }
    await Deno.rename(temporary, path);
    return info;
  } catch (error) {
    removeIfExists(temporary);
    throw error;
  }
}

/** The path of a new temporary file in the folder of a file. Makes missing folders. */
function temporaryOf(path: string): string {
  const directory = dirname(path);
  makeFolder(directory);
  return join(directory, `.${basename(path)}.${mintId()}.tmp`);
}

/** Reads `length` bytes at `offset`; fewer at the end of the file. */
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

/** Writes all bytes at the file's position; a single `write` may take fewer. */
export function writeAllSync(
  file: { writeSync(bytes: Uint8Array): number },
  bytes: Uint8Array,
): void {
  for (let written = 0; written < bytes.length;) written += file.writeSync(bytes.subarray(written));
}

/** Like `writeAllSync`, without holding the event loop. */
export async function writeAll(file: Deno.FsFile, bytes: Uint8Array): Promise<void> {
  for (let written = 0; written < bytes.length;) {
    written += await file.write(bytes.subarray(written));
  }
}

/** Removes a file that may not be there. */
export function removeIfExists(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Removes a file that may stay if it cannot be removed, as on a read-only disk. Returns whether it is gone. */
export function tryRemove(path: string): boolean {
  try {
    removeIfExists(path);
    return true;
  } catch {
    return false;
  }
}

/** Removes a file, a link or a folder with its contents, if it exists. */
export function removeTree(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/**
 * Runs `change` while this process holds the exclusive lock of the file at `path`. The lock is a hidden file in
 * the same folder, because the file itself is replaced by rename. The kernel releases it when the holder dies.
 */
export async function withFileLock<T>(path: string, change: () => T | Promise<T>): Promise<T> {
  makeFolder(dirname(path));
  const lock = await Deno.open(join(dirname(path), `.${basename(path)}.lock`), {
    write: true,
    create: true,
  });
  try {
    await lock.lock(true);
    return await change();
  } finally {
    lock.close();
  }
}

/**
 * Reads, changes and atomically replaces a file under its lock. `change` gets the current text
 * (undefined when there is none) and returns the new one, or undefined to leave the file alone.
 */
export async function updateFile(
  path: string,
  change: (text: string | undefined) => string | undefined,
  mode?: number,
): Promise<void> {
  await withFileLock(path, async () => {
    const text = change(readTextIfExists(path));
    if (text === undefined) return;
    await replaceFile(path, (file) => writeAll(file, new TextEncoder().encode(text)), { mode });
  });
}

/** A lock that is held until `release` is called or the process ends. */
export interface HeldLock {
  release(): void;
}

/** Takes the lock of the file at `path`; undefined while it is held, by this process or another. */
export function tryHold(path: string): HeldLock | undefined {
  makeFolder(dirname(path));
  const file = Deno.openSync(path, { write: true, create: true });
  if (file.tryLockSync(true)) return { release: () => unlock(file) };
  file.close();
  return undefined;
}

/**
 * Releases the lock of a file and closes it. Closing alone would leave the lock to a program that another
 * thread starts at this instant: it has the file until it is executed.
 */
export function unlock(file: Deno.FsFile): void {
  file.unlockSync();
  file.close();
}

/** Concatenates byte arrays. */
export function concat(chunks: Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(chunks.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

const ALPHABET = "0123456789abcdefghijklmnopqrstuvwxyz";

/** Six random characters of base 36: the id of a session (specification 2.1). */
export function mintId(): string {
  let id = "";
  while (id.length < 6) {
    for (const byte of crypto.getRandomValues(new Uint8Array(8))) {
      // 252 is the largest multiple of 36 in a byte; the rest would favour the first letters.
      if (byte < 252 && id.length < 6) id += ALPHABET[byte % 36];
    }
  }
  return id;
}
