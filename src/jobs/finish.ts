import type { Clock } from "../platform/clock.ts";
import type { JobRun } from "./run.ts";

/**
 * Makes all attempts that a run needs, each when it is due. Aborting the signal cancels the one that is
 * being made, and ends the run.
 *
 * @param waits is told of each wait before the next attempt, in milliseconds
 */
export async function finishRun(
  run: JobRun,
  { clock, signal, waits = () => {} }: {
    clock: Clock;
    signal: AbortSignal;
    waits?: (ms: number) => void;
  },
): Promise<void> {
  while (run.next !== undefined) {
    const wait = Math.max(0, run.next - clock.now());
    if (wait > 0) waits(wait);
    const waited = await clock.sleep(wait, signal).then(() => true, () => false);
    if (waited) await run.attempt(signal);
    else await run.giveUp();
  }
}
