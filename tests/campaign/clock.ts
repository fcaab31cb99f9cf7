import { type Clock, systemClock } from "../../src/platform/clock.ts";

/** Turns of the event loop without a sign of work after which everything is taken to wait for the clock. */
const CALM = 6;
/** The same, when nothing waits for the clock: then something hangs. */
const HUNG = 3000;

/** Work that other threads do. */
const FILE_OPERATIONS = [
  "copyFile",
  "lstat",
  "makeTempDir",
  "mkdir",
  "open",
  "readFile",
  "readTextFile",
  "realPath",
  "remove",
  "rename",
  "stat",
  "writeFile",
  "writeTextFile",
] as const;

interface Sleeper {
  at: number;
  wake(): void;
}

/**
 * A clock whose time moves only when everything in this process waits for it: then it jumps to the first time that
 * something waits for. Work that the process itself cannot see (children, requests on their way) is announced with
 * `during`.
 */
export class FastClock implements Clock {
  #now: number;
  #busy = 0;
  #signs = 0;
  readonly #sleepers = new Set<Sleeper>();

  constructor(start: number) {
    this.#now = start;
  }

  now = (): number => this.#now;

  sleep = (ms: number, signal?: AbortSignal): Promise<void> => {
    this.#signs++;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      const abort = () => {
        this.#sleepers.delete(sleeper);
        this.#signs++;
        reject(signal?.reason);
      };
      const sleeper = {
        at: this.#now + ms,
        wake() {
          signal?.removeEventListener("abort", abort);
          resolve();
        },
      };
      this.#sleepers.add(sleeper);
      signal?.addEventListener("abort", abort, { once: true });
    });
  };

  /** Time stands still until the work is done. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.#busy++;
    try {
      return await work;
    } finally {
      this.#busy--;
      this.#signs++;
    }
  }

  /** Moves the clock on by the time that a process with a clock of its own has taken. */
  skip(ms: number): void {
    this.#now += Math.max(0, Math.round(ms));
  }

  /**
   * Lets time pass until the work is done.
   *
   * @throws Error when nothing waits for the clock, and nothing happens either
   */
  async run<T>(work: Promise<T>): Promise<T> {
    let done = false;
    const settle = () => void (done = true);
    work.then(settle, settle);
    while (!done) {
      await this.#calm(CALM, () => done);
      if (this.#sleepers.size === 0) {
        await this.#calm(HUNG, () => done || this.#sleepers.size > 0);
        if (!done && this.#sleepers.size === 0) throw new Error("Everything waits, for nothing.");
        continue;
      }
      const next = Math.min(...[...this.#sleepers].map(({ at }) => at));
      this.#now = Math.max(this.#now, next);
      for (const sleeper of this.#sleepers) {
        if (sleeper.at > this.#now) continue;
        this.#sleepers.delete(sleeper);
        sleeper.wake();
      }
    }
    return await work;
  }

  /** Makes this the clock of the modules that take the system's, in this process (or test file) alone. */
  install(): Disposable {
    const { Command } = Deno;
    const { now, sleep } = systemClock;
    const { spawn, output } = Command.prototype;
    const files = Object.fromEntries(FILE_OPERATIONS.map((name) => [name, Deno[name]]));
    // deno-lint-ignore no-this-alias
    const clock = this;
    Object.assign(systemClock, { now: this.now, sleep: this.sleep });
    Command.prototype.spawn = function () {
      const child = spawn.call(this);
      const { ref, unref } = child;
      // A child that this process does not wait for, such as a watchdog, is no work.
      const { promise: idle, resolve } = Promise.withResolvers<void>();
      clock.during(Promise.race([child.status, idle]));
      child.unref = () => {
        resolve();
        unref.call(child);
      };
      child.ref = () => {
        clock.during(child.status);
        ref.call(child);
      };
      return child;
    };
    for (const [name, operation] of Object.entries(files)) {
      // deno-lint-ignore no-explicit-any
      const during = (...args: any[]) => clock.during((operation as any)(...args));
      Object.assign(Deno, { [name]: during });
    }
    Command.prototype.output = function () {
      return clock.during(output.call(this));
    };
    return {
      [Symbol.dispose]() {
        Object.assign(systemClock, { now, sleep });
        Object.assign(Command.prototype, { spawn, output });
        Object.assign(Deno, files);
      },
    };
  }

  async #calm(turns: number, enough: () => boolean): Promise<void> {
    for (let calm = 0; calm < turns && !enough();) {
      const signs = this.#signs;
      await new Promise((resolve) => setTimeout(resolve, 1));
      calm = this.#busy === 0 && signs === this.#signs ? calm + 1 : 0;
    }
  }
}
