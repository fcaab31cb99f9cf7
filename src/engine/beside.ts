import type { Clock } from "../platform/clock.ts";

/** Milliseconds that the end of a program waits at most for what is still being done beside. */
const PATIENCE = 30_000;

/** Work that no turn waits for. Whoever ends the program has it come to its end first. */
export class Beside {
  readonly #clock: Clock;
  readonly #work = new Set<Promise<void>>();
  #stop = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts work that never throws, and that is soon done once its signal aborts. */
  start(work: (signal: AbortSignal) => Promise<void>): void {
    const running = work(this.#stop.signal).finally(() => this.#work.delete(running));
    this.#work.add(running);
  }

  /** Whether something is still being done. */
  get busy(): boolean {
    return this.#work.size > 0;
  }

  /** Resolves when all is done. What takes too long, or an abort of the signal, cuts it short. */
  async settle(signal?: AbortSignal): Promise<void> {
    if (this.#work.size === 0) return;
    const stop = this.#stop;
    const over = new AbortController();
    const cutShort = (reason: string) => stop.abort(new DOMException(reason, "AbortError"));
    const interrupted = () => cutShort("it was interrupted");
    if (signal?.aborted) interrupted();
    signal?.addEventListener("abort", interrupted, { signal: over.signal });
    this.#clock.sleep(PATIENCE, over.signal).then(() => cutShort("it took too long"), () => {});
    while (this.#work.size > 0) await Promise.all(this.#work);
    over.abort();
    this.#stop = new AbortController();
  }
}
