import type { Clock } from "../platform/clock.ts";

/** Milliseconds that the end of a program waits for its background tasks. */
const PATIENCE = 30_000;

/** Work that no turn waits for: memories, `last_used` stamps. `Workspace.close` awaits it. */
export class BackgroundTasks {
  readonly #clock: Clock;
  readonly #tasks = new Set<Promise<void>>();
  #stop = new AbortController();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Starts a task that never throws, and that ends soon after its signal aborts. */
  start(task: (signal: AbortSignal) => Promise<void>): void {
    const running = task(this.#stop.signal).finally(() => this.#tasks.delete(running));
    this.#tasks.add(running);
  }

  /** Whether a task is running. */
  get busy(): boolean {
    return this.#tasks.size > 0;
  }

  /** Resolves when all tasks have ended. They are aborted after half a minute, or when the signal aborts. */
  async settle(signal?: AbortSignal): Promise<void> {
    if (this.#tasks.size === 0) return;
    const stop = this.#stop;
    const over = new AbortController();
    const abort = (reason: string) => stop.abort(new DOMException(reason, "AbortError"));
    const interrupted = () => abort("it was interrupted");
    if (signal?.aborted) interrupted();
    signal?.addEventListener("abort", interrupted, { signal: over.signal });
    this.#clock.sleep(PATIENCE, over.signal).then(() => abort("it took too long"), () => {});
    while (this.#tasks.size > 0) await Promise.all(this.#tasks);
    over.abort();
    this.#stop = new AbortController();
  }
}
