import { tryRemove } from "../platform/files.ts";
import { hold, look, openRegular } from "./regular_file.ts";
import type { Held } from "./regular_file.ts";

/** The kernel's lock that shows that a turn's owner is alive; it ends with the process. */
export interface TurnLock {
  /** Never throws. */
  release(): void;
}

/**
 * Takes the lock of a session's running turn, or returns undefined while another handle, of this
 * process or any other, holds it.
 */
export function tryTurnLock(path: string): TurnLock | undefined {
  while (true) {
    const held = openOrCreate(path);
    if (held === undefined) continue;
    const { file } = held;
    if (!file.tryLockSync(true)) {
      file.close();
      return undefined;
    }
    if (look(held, path) !== undefined) {
      return {
        release() {
          // Before it is unlocked: whoever has opened it sees that it is gone. One that stays is free.
          tryRemove(path);
          file.close();
        },
      };
    }
    file.close();
  }
}

function openOrCreate(path: string): Held | undefined {
  try {
    return hold(Deno.openSync(path, { write: true, createNew: true }));
  } catch (error) {
    if (!(error instanceof Deno.errors.AlreadyExists)) throw error;
  }
  return openRegular(path, { write: true });
}
