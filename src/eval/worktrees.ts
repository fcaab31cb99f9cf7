import { dirname, join } from "node:path";
import { exists, type HeldLock, removeTree, tryHold } from "../platform/files.ts";

const PREFIX = "svc-eval-";

/**
 * The temporary worktrees of one `svc eval`, in a folder of the system's temporary folder. A lock file in it is
 * held by this process. Folders of killed processes, whose lock is free, are removed by the next one.
 */
export class TemporaryWorktrees {
  readonly #home: string;
  readonly #lock: HeldLock;
  #made = 0;

  constructor() {
    ({ home: this.#home, lock: this.#lock } = claimed());
    removeLeftovers(this.#home);
  }

  /** Creates a worktree with files: relative path to content. */
  make(files: Record<string, string>): string {
    const path = join(this.#home, String(++this.#made));
    Deno.mkdirSync(path);
    for (const [name, content] of Object.entries(files)) {
      Deno.mkdirSync(dirname(join(path, name)), { recursive: true });
      Deno.writeTextFileSync(join(path, name), content, { createNew: true });
    }
    return path;
  }

  /** Removes all worktrees. */
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

/** Creates a folder and its lock. Tries again when another process has just removed the folder as a leftover. */
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

/** Removes leftovers of this user only: the temporary folder is shared, and any user may create such names. */
function removeLeftovers(home: string): void {
  const parent = dirname(home);
  const { uid } = Deno.lstatSync(home);
  for (const { name, isDirectory } of Deno.readDirSync(parent)) {
    const path = join(parent, name);
    if (!isDirectory || !name.startsWith(PREFIX) || path === home) continue;
    try {
      if (Deno.lstatSync(path).uid !== uid || !exists(join(path, "lock"))) continue;
      const lock = tryHold(join(path, "lock"));
      if (lock === undefined) continue; // a live process uses it
      removeTree(path);
      lock.release();
    } catch {
      // it was removed by another process, or cannot be removed
    }
  }
}
