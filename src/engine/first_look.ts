import { join } from "node:path";
import type { Clock } from "../platform/clock.ts";
import { RegistryFile } from "../platform/registry_file.ts";

/** Worktrees that are remembered; the ones seen longest ago make room. */
const MAX_WORKTREES = 500;

/**
 * Warns of what a worktree's own files open, when that is not what it was at the last look. What was
 * seen is kept in `worktrees.json` of the user's directory; where that cannot be written, as in a
 * container, the warning comes every time.
 */
export async function firstLook(request: {
  worktree: string;
  exposures: string[];
  /** `~/.config/svc` */
  user: string;
  clock: Clock;
  warn: (message: string) => void;
}): Promise<void> {
  const { worktree, exposures, user, clock, warn } = request;
  const file = new RegistryFile(join(user, "worktrees.json"), clock, warn);
  const seen = entries(file.read()).find(([path]) => path === worktree)?.[1];
  if (JSON.stringify(seen) === JSON.stringify(exposures)) return;
  warn(
    `${join(worktree, ".svc")} ${exposures.join("; ")}. This is said once. If it is none of your ` +
      "doing, look at that folder before you let an agent work here.",
  );
  try {
    await file.update((value) => {
      const others = entries(value).filter(([path]) => path !== worktree);
      return Object.fromEntries([...others.slice(1 - MAX_WORKTREES), [worktree, exposures]]);
    });
  } catch {
    // said again next time
  }
}

function entries(value: unknown): [string, unknown][] {
  return Array.isArray(value) ? [] : Object.entries(value ?? {});
}
