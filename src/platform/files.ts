import { basename, dirname, join } from "node:path";
import { mintId } from "./ids.ts";

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

/** What lies at a path itself, a link for instance; undefined when nothing does. */
export function lstatIfExists(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return undefined;
    throw error;
  }
}

/** Whether something lies at a path, as far as it can be seen. */
export function exists(path: string): boolean {
  try {
    Deno.lstatSync(path);
    return true;
  } catch {
    return false;
  }
}

/** What a file holds that a person wrote as JSON; some editors put a byte order mark in front of it. */
export function readJson(path: string): unknown {
  return JSON.parse(new TextDecoder().decode(Deno.readFileSync(path)));
}

/**
 * Writes a file so that a reader, or a crash at any instant, sees the old text or the new one: a
 * temporary file beside it with `mode` from its first byte, fsync, rename. Makes missing folders. Parts
 * are written one after the other.
 *
 * @returns what the new file looks like, whatever may stand in its place by now
 */
export function writeFileAtomic(
  path: string,
  content: string | readonly Uint8Array[],
  mode = 0o644,
): Deno.FileInfo {
  const directory = dirname(path);
  Deno.mkdirSync(directory, { recursive: true });
  const temporary = join(directory, `.${basename(path)}.${mintId()}.tmp`);
  const file = Deno.openSync(temporary, { write: true, createNew: true, mode });
  let info: Deno.FileInfo;
  try {
    try {
      const parts = typeof content === "string" ? [new TextEncoder().encode(content)] : content;
      for (const part of parts) writeAllSync(file, part);
      file.syncSync();
      info = file.statSync();
    } finally {
      file.close();
    }
    Deno.renameSync(temporary, path);
    return info;
  } catch (error) {
    removeIfExists(temporary);
    throw error;
  }
}

/** Writes all bytes at the file's position; a single `write` may take fewer. */
export function writeAllSync(
  file: { writeSync(bytes: Uint8Array): number },
  bytes: Uint8Array,
): void {
  for (let written = 0; written < bytes.length;) written += file.writeSync(bytes.subarray(written));
}

/** Removes a file that may not be there. */
export function removeIfExists(path: string): void {
  try {
    Deno.removeSync(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/** Removes a file that does no harm if it stays, as it does on a read-only disk. Whether it is gone. */
export function tryRemove(path: string): boolean {
  try {
    removeIfExists(path);
    return true;
  } catch {
    return false;
  }
}

/** Removes a file, a link or a folder with all that it holds, if it is there. */
export function removeTree(path: string): void {
  try {
    Deno.removeSync(path, { recursive: true });
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
