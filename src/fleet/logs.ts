import { concat } from "../platform/files.ts";
import type { Clock } from "../platform/clock.ts";
import { stripControl } from "../platform/terminal.ts";

/** Bytes of a log that are looked at for its last lines. */
const TAIL = 1024 * 1024;

/** The last lines of a log, the rotated one before it included; empty when there is none. */
export function tailLog(path: string, count: number): string[] {
  const lines = linesOf(path);
  if (lines.length < count) lines.unshift(...linesOf(`${path}.1`));
  return count === 0 ? [] : lines.slice(-count);
}

/** What a log says last, on one harmless line. */
export function lastLine(path: string): string {
  const line = linesOf(path).findLast((line) => line.trim() !== "") ?? "";
  return stripControl(line).trim().slice(0, 200);
}

/** Where somebody who follows a log is. */
interface Place {
  offset: number;
  /** The rotated log as it was then. */
  rotated: number | null;
}

/**
 * Follows a log from its end (or from its start, should it not be there yet), across rotations, until the
 * signal aborts.
 *
 * @param show is given what was appended, in pieces
 */
export async function followLog(
  path: string,
  show: (text: string) => void,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  const decoder = new TextDecoder();
  const add = (bytes: Uint8Array) => {
    if (bytes.length > 0) show(decoder.decode(bytes, { stream: true }));
  };
  let place: Place = { offset: statOf(path)?.size ?? 0, rotated: inodeOf(`${path}.1`) };
  while (!signal.aborted) {
    place = catchUp(path, place, add);
    await clock.sleep(250, signal).catch(() => {});
  }
}

/** Hands over what has been appended since, of a log that was rotated meanwhile its rest first. */
function catchUp(path: string, place: Place, add: (bytes: Uint8Array) => void): Place {
  const rotated = inodeOf(`${path}.1`);
  let { offset } = place;
  if (rotated !== place.rotated) {
    readFrom(`${path}.1`, offset, add);
    offset = 0;
  } else if ((statOf(path)?.size ?? 0) < offset) {
    offset = 0; // emptied by somebody else
  }
  return { offset: offset + readFrom(path, offset, add), rotated };
}

/** @returns how many bytes there were */
function readFrom(path: string, offset: number, add: (bytes: Uint8Array) => void): number {
  let file: Deno.FsFile;
  try {
    file = Deno.openSync(path);
  } catch {
    return 0;
  }
  try {
    file.seekSync(offset, Deno.SeekMode.Start);
    const buffer = new Uint8Array(65536);
    let count = 0;
    for (;;) {
      const read = file.readSync(buffer);
      if (read === null) return count;
      add(buffer.slice(0, read));
      count += read;
    }
  } finally {
    file.close();
  }
}

function linesOf(path: string): string[] {
  const size = statOf(path)?.size ?? 0;
  const pieces: Uint8Array[] = [];
  const from = Math.max(0, size - TAIL);
  readFrom(path, from, (bytes) => void pieces.push(bytes));
  const text = new TextDecoder().decode(concat(pieces));
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return from > 0 ? lines.slice(1) : lines;
}

function statOf(path: string): Deno.FileInfo | undefined {
  try {
    return Deno.statSync(path);
  } catch {
    return undefined;
  }
}

function inodeOf(path: string): number | null {
  return statOf(path)?.ino ?? null;
}
