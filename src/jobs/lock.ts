import { join } from "node:path";
import { type HeldLock, tryHold } from "../platform/lock.ts";

/**
 * The lock that whoever runs a job holds; undefined while somebody does. The kernel releases it with the
 * process, so that a run without its lock is one that was cut.
 */
export function holdJob({ state }: { state: string }, name: string): HeldLock | undefined {
  return tryHold(join(state, "jobs", `.${name}.lock`));
}
