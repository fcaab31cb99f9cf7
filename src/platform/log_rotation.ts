import { removeIfExists } from "./files.ts";

/** Bytes of a log beyond which it is rotated. */
export const MAX_LOG = 5 * 1024 * 1024;
/** Older logs that are kept: `<log>.1` is the newest of them. */
const KEPT = 3;

/**
 * Rotates a log that its writer keeps open for appending, once it is larger than `max` bytes: what it holds
 * moves to `<log>.1`, and the file itself is emptied. A line written in the instant between the two is lost.
 *
 * @returns whether it was rotated
 */
export function rotateLog(path: string, max = MAX_LOG): boolean {
  const info = statIfExists(path);
  if (info === undefined || !info.isFile || info.size <= max) return false;
  const copy = `${path}.new`;
  removeIfExists(copy);
  try {
    Deno.copyFileSync(path, copy); // before anything is given up: the disk may be full
  } catch (error) {
    removeIfExists(copy);
    throw error;
  }
  for (let number = KEPT; number > 1; number--) {
    renameIfExists(`${path}.${number - 1}`, `${path}.${number}`);
  }
  Deno.renameSync(copy, `${path}.1`); // a new file: who follows the log sees that it is another
  Deno.truncateSync(path);
  return true;
}

function statIfExists(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.lstatSync(path);
  } catch {
    return undefined;
  }
}

function renameIfExists(from: string, to: string): void {
  try {
    Deno.renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
