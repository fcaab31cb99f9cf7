import type { Clock } from "../../src/platform/clock.ts";

/** A clock that only moves when someone sleeps, or when the test sets it. */
export interface ManualClock extends Clock {
  /** Milliseconds of every sleep so far, in order. */
  slept: number[];
  set(milliseconds: number): void;
}

export function manualClock(start = Date.UTC(2026, 0, 2, 3, 4, 5)): ManualClock {
  let now = start;
  const slept: number[] = [];
  return {
    slept,
    now: () => now,
    set: (milliseconds) => void (now = milliseconds),
    sleep(ms, signal) {
      if (signal?.aborted) return Promise.reject(signal.reason);
      slept.push(ms);
      now += ms;
      return Promise.resolve();
    },
  };
}
