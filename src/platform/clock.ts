/** Time as a dependency, so that schedules, timeouts and backoff are tested without waiting. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after `ms` milliseconds; rejects with the signal's reason when it aborts first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** The longest time a timer takes, in milliseconds: 24 days. A longer one would fire at once. */
const LONGEST = 2 ** 31 - 1;

/** Milliseconds for which a sleep uses no `setTimeout`. */
const SOON = 100;

/** Whether Deno's Node layer is loaded, as it is in a server. */
let loaded = false;

/**
 * The first `setTimeout` of a process loads Deno's Node layer, which takes 5 ms. Most sleeps are limits that the work
 * ends long before, so a sleep begins with a timer of the web platform. That one cannot be cleared and takes five times
 * as long, so it is used until the layer is loaded.
 */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep(ms, signal) {
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      let left = ms;
      let timer: ReturnType<typeof setTimeout> | undefined;
      let soon: AbortSignal | undefined;
      const wait = () => {
        loaded = true;
        timer = setTimeout(wake, Math.min(left, LONGEST));
        left -= LONGEST;
      };
      const wake = () => {
        if (left > 0) return wait();
        signal?.removeEventListener("abort", abort);
        resolve();
      };
      const abort = () => {
        soon?.removeEventListener("abort", wake);
        if (timer !== undefined) clearTimeout(timer);
        reject(signal?.reason);
      };
      if (loaded) wait();
      else {
        soon = AbortSignal.timeout(Math.max(0, Math.min(ms, SOON)));
        soon.addEventListener("abort", wake, { once: true });
        left -= SOON;
      }
      signal?.addEventListener("abort", abort, { once: true });
    });
  },
};

/** The clock's time as ISO 8601 in UTC, the form of every timestamp on disk. */
export function timestamp(clock: Clock): string {
  return new Date(clock.now()).toISOString();
}

/** The reason of a signal that only ends a wait. The default one is an error with a stack, which takes 20 µs. */
export const NO_REASON = "";

/** A signal that follows others until it is disposed of. */
export interface JoinedSignal extends Disposable {
  readonly signal: AbortSignal;
}

/**
 * Like `AbortSignal.any`, for signals that outlive the work by months: `any` keeps 50 bytes in each of its signals
 * for as long as that signal lives, this keeps nothing once it is disposed of.
 */
export function joinSignals(...signals: AbortSignal[]): JoinedSignal {
  const joined = new AbortController();
  const done = new AbortController();
  for (const signal of signals) {
    const follow = () => joined.abort(signal.reason);
    if (signal.aborted) follow();
    else signal.addEventListener("abort", follow, { once: true, signal: done.signal });
  }
  return { signal: joined.signal, [Symbol.dispose]: () => done.abort(NO_REASON) };
}

/** Characters of a text that get a turn of the event loop for themselves, or several: other work should not wait. */
export const LARGE = 1_000_000;

/**
 * Admits one piece of work in each turn of the event loop, so that many pieces requested at the same time do not
 * block other work for longer than one piece takes.
 */
export class Pace {
  readonly #waiting: (() => void)[] = [];
  #taken = false;

  /** Resolves when the caller may do its piece: at once for the first caller in a turn of the loop. */
  turn(): Promise<void> {
    if (this.#taken) return new Promise((resume) => this.#waiting.push(resume));
    this.#take();
    return Promise.resolve();
  }

  /** Does a work in its pieces, each in a turn of its own. */
  async run<T>(pieces: Generator<void, T>): Promise<T> {
    while (true) {
      await this.turn();
      const { done, value } = pieces.next();
      if (done) return value;
    }
  }

  #take(): void {
    this.#taken = loaded = true;
    setImmediate(() => {
      this.#taken = false;
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#take();
      next();
    });
  }
}

/** Does all pieces of a work at once. */
export function atOnce<T>(pieces: Generator<void, T>): T {
  while (true) {
    const { done, value } = pieces.next();
    if (done) return value;
  }
}
