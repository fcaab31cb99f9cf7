import type { Clock } from "../platform/clock.ts";

/**
 * A clock that goes on only while it is looked at: what its source jumps, forwards or back, is left out. So
 * neither a machine that slept, nor a supervisor that was stopped, nor a corrected clock uses up an
 * agent's time to start, or makes it wait for hours.
 */
export class SteadyClock implements Clock {
  readonly #source: Clock;
  readonly #longest: number;
  #seen: number;
  #jumped = 0;

  /** @param longest milliseconds between two looks beyond which it was a jump */
  constructor(source: Clock, longest: number) {
    this.#source = source;
    this.#longest = longest;
    this.#seen = source.now();
  }

  now(): number {
    const now = this.#source.now();
    const passed = now - this.#seen;
    this.#seen = now;
    if (passed < 0 || passed > this.#longest) this.#jumped += passed;
    return now - this.#jumped;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#source.sleep(ms, signal);
  }

  /** What the source would call this clock's time. */
  shown(time: number): number {
    return time + this.#jumped;
  }
}
