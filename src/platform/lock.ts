import { basename, dirname, join } from "node:path";
import { readTextIfExists, writeFileAtomic } from "./files.ts";

/**
 * Runs `change` while this process, alone of all, holds the lock of the file at `path`. The lock is a
 * hidden file beside it, because the file itself is replaced by rename. The kernel releases it when
 * the holder dies.
 */
export async function withFileLock<T>(path: string, change: () => T | Promise<T>): Promise<T> {
  Deno.mkdirSync(dirname(path), { recursive: true });
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
  await withFileLock(path, () => {
    const text = change(readTextIfExists(path));
    if (text !== undefined) writeFileAtomic(path, text, mode);
  });
}

/** A lock that is held until it is released, or its process dies. */
export interface HeldLock {
  release(): void;
}

/** Takes the lock that a file stands for; undefined while anybody, in this process too, holds it. */
export function tryHold(path: string): HeldLock | undefined {
  Deno.mkdirSync(dirname(path), { recursive: true });
  const file = Deno.openSync(path, { write: true, create: true });
  if (file.tryLockSync(true)) return { release: () => file.close() };
  file.close();
  return undefined;
}
