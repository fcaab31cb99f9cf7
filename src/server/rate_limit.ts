import type { Clock } from "../platform/clock.ts";

/** Callers that are remembered at most; the one that has been quiet longest is forgotten. */
const MOST = 10_000;

/** So many requests a minute of each caller, spread or in one burst. */
export class RateLimit {
  readonly #limit: number;
  readonly #clock: Clock;
  readonly #callers = new Map<string, { left: number; at: number }>();

  /** @param limit requests a minute; 0: no limit */
  constructor(limit: number, clock: Clock) {
    this.#limit = limit;
    this.#clock = clock;
  }

  /** Counts a request. Returns the seconds after which to come back, or 0 when it may pass. */
  take(caller: string): number {
    if (this.#limit === 0) return 0;
    const now = this.#clock.now();
    const known = this.#callers.get(caller) ?? { left: this.#limit, at: now };
    this.#callers.delete(caller);
    const gained = Math.max(0, now - known.at) / 60_000 * this.#limit;
    const left = Math.min(this.#limit, known.left + gained);
    const passes = left >= 1;
    this.#callers.set(caller, { left: passes ? left - 1 : left, at: now });
    if (this.#callers.size > MOST) this.#callers.delete(this.#callers.keys().next().value!);
    return passes ? 0 : Math.ceil((1 - left) / this.#limit * 60);
  }
}
