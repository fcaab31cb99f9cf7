import { concat, statIfExists } from "../platform/files.ts";
import type { Clock } from "../platform/clock.ts";
import { stripControl } from "../platform/terminal.ts";

/** Bytes at the end of a log that are read for its last lines. */
const TAIL = 1024 * 1024;

/** The last lines of a log and of the rotated log before it; empty when there is none. */
export function tailLog(path: string, count: number): string[] {
  const lines = linesOf(path);
  if (lines.length < count) lines.unshift(...linesOf(`${path}.1`));
  return count === 0 ? [] : lines.slice(-count);
}

/** The last line of a log that is not blank, without control characters, at most 200 characters. */
export function lastLine(path: string): string {
  const line = linesOf(path).findLast((line) => line.trim() !== "") ?? "";
  return stripControl(line).trim().slice(0, 200);
}

/** A reader's position in a log that it follows. */
interface Position {
  offset: number;
  /** Inode of the rotated log at that time. */
  rotated: number | null;
}

/**
 * Follows a log from its end (or from its start, should it not be there yet), across rotations, until the
 * signal aborts.
 *
 * @param show receives the appended text in pieces
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
  let position: Position = {
    offset: statIfExists(path)?.size ?? 0,
    rotated: statIfExists(`${path}.1`)?.ino ?? null,
  };
  while (!signal.aborted) {
    position = catchUp(path, position, add);
    await clock.sleep(250, signal).catch(() => {});
  }
}

/** Reads the appended bytes. After a rotation, the rest of the rotated log comes first. */
function catchUp(path: string, position: Position, add: (bytes: Uint8Array) => void): Position {
  const rotated = statIfExists(`${path}.1`)?.ino ?? null;
  let { offset } = position;
  if (rotated !== position.rotated) {
    readFrom(`${path}.1`, offset, add);
    offset = 0;
  } else if ((statIfExists(path)?.size ?? 0) < offset) {
    offset = 0; // another program truncated it
  }
  return { offset: offset + readFrom(path, offset, add), rotated };
}

/** @returns the number of bytes that were read */
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
  const size = statIfExists(path)?.size ?? 0;
  const pieces: Uint8Array[] = [];
  const from = Math.max(0, size - TAIL);
  readFrom(path, from, (bytes) => void pieces.push(bytes));
  const text = new TextDecoder().decode(concat(pieces));
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return from > 0 ? lines.slice(1) : lines;
}
