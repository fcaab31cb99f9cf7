import { dirname, join } from "node:path";
import { type HeldLock, removeTree, tryHold } from "../platform/files.ts";

const PREFIX = "svc-eval-";

/**
 * Temporary worktrees of one measurement, in a folder of the system's temporary one. A lock beside them
 * goes with this process: what was left when one was killed is removed by the next.
 */
export class TemporaryWorktrees {
  readonly #home: string;
  readonly #lock: HeldLock;
  #made = 0;

  constructor() {
    ({ home: this.#home, lock: this.#lock } = claimed());
    removeLeftovers(this.#home);
  }

  /** Makes a worktree of these files: relative path to content. */
  make(files: Record<string, string>): string {
    const path = join(this.#home, String(++this.#made));
    Deno.mkdirSync(path);
    for (const [name, content] of Object.entries(files)) {
      Deno.mkdirSync(dirname(join(path, name)), { recursive: true });
      Deno.writeTextFileSync(join(path, name), content, { createNew: true });
    }
    return path;
  }

  /** Removes all that were made. */
  clear(): void {
    for (const { name, isDirectory } of Deno.readDirSync(this.#home)) {
      if (isDirectory) removeTree(join(this.#home, name));
    }
  }

  close(): void {
    try {
      removeTree(this.#home);
    } finally {
      this.#lock.release();
    }
  }
}

/** A new folder and its lock; another that starts at this instant may have taken it for a leftover. */
function claimed(): { home: string; lock: HeldLock } {
  while (true) {
    const home = Deno.makeTempDirSync({ prefix: PREFIX });
    const path = join(home, "lock");
    const lock = tryHold(path);
    if (lock === undefined) continue;
    if (exists(path)) return { home, lock };
    lock.release();
  }
}

function exists(path: string): boolean {
  try {
    return Deno.lstatSync(path).isFile;
  } catch {
    return false;
  }
}

/** Only this user's own: anybody may put folders with such names into a shared temporary folder. */
function removeLeftovers(home: string): void {
  const parent = dirname(home);
  const { uid } = Deno.lstatSync(home);
  for (const { name, isDirectory } of Deno.readDirSync(parent)) {
    const path = join(parent, name);
    if (!isDirectory || !name.startsWith(PREFIX) || path === home) continue;
    try {
      if (Deno.lstatSync(path).uid !== uid || !exists(join(path, "lock"))) continue;
      const lock = tryHold(join(path, "lock"));
      if (lock === undefined) continue; // it is being worked in
      removeTree(path);
      lock.release();
    } catch {
      // it went meanwhile, or cannot be removed: no reason not to measure
    }
  }
}
