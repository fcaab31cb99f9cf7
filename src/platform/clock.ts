/** Time as a dependency, so that schedules, timeouts and backoff are tested without waiting. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest that a timer can be set, in milliseconds: 24 days. One that is set longer ends at once. */
const LONGEST = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: () => Date.now(),
  sleep(ms, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const wake = () => {
        if (left > LONGEST) {
          left -= LONGEST;
          timer = setTimeout(wake, Math.min(left, LONGEST));
          return;
        }
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      let left = ms;
      let timer = setTimeout(wake, Math.min(left, LONGEST));
      const abort = () => {
        clearTimeout(timer);
        reject(signal?.reason);
      };
      signal?.addEventListener("abort", abort, { once: true });
    });
  },
};

/** The clock's time as ISO 8601 in UTC, the form of every timestamp on disk. */
export function timestamp(clock: Clock): string {
  return new Date(clock.now()).toISOString();
}
