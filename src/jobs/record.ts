import { SvcError } from "../platform/error.ts";
import type { JobContext } from "./attempt.ts";
import type { Change } from "./register.ts";
import type { Job } from "./schema.ts";

/** Milliseconds between two attempts to write what cannot be written. */
const PAUSE = 5000;

/**
 * Changes a job by what has happened to it. While the register cannot be written, as on a full disk, this
 * waits: an attempt that has ended is neither lost nor made again for that. Aborting the signal ends the wait;
 * without one there is none.
 *
 * @throws SvcError `register_write` when nobody waits (any more)
 */
export async function record(
  { register, clock, warn }: JobContext,
  name: string,
  decide: (job: Job) => Change | undefined,
  signal?: AbortSignal,
): Promise<Job | undefined> {
  for (let tries = 0;; tries++) {
    try {
      return await register.change(name, decide);
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "register_write") throw error;
      if (signal === undefined || signal.aborted) throw error;
      if (tries === 0) warn(`${name}: ${error.message} Its end is written down once it can be.`);
      if (!await clock.sleep(PAUSE, signal).then(() => true, () => false)) throw error;
    }
  }
}
