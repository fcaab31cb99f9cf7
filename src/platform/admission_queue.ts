interface Waiting {
  key: unknown;
  start(): void;
}

/**
 * Limits how many tasks run at once and how many more wait. Tasks with the same key run one after another,
 * in the order in which they came.
 */
export class AdmissionQueue {
  readonly #max_running: number;
  readonly #max_waiting: number;
  readonly #running = new Set<unknown>();
  readonly #waiting: Waiting[] = [];
  #idle: (() => void)[] = [];

  constructor({ running, waiting }: { running: number; waiting: number }) {
    this.#max_running = running;
    this.#max_waiting = waiting;
  }

  get running(): number {
    return this.#running.size;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether no further task is to be accepted, since too many wait. */
  get full(): boolean {
    const free = this.#max_waiting === 0 && this.#running.size < this.#max_running;
    return this.#waiting.length >= this.#max_waiting && !free;
  }

  /**
   * Waits until a task may run.
   *
   * @param accepted whether it may wait however many do. Default: no
   * @returns a promise of the function that ends the task; undefined when too many tasks wait already. The
   * promise rejects with the signal's reason when that aborts first
   */
  enter(
    key: unknown,
    signal: AbortSignal,
    accepted = false,
  ): Promise<() => void> | undefined {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#fits(key)) return Promise.resolve(this.#start(key));
    if (!accepted && this.#waiting.length >= this.#max_waiting) return undefined;
    return new Promise((resolve, reject) => {
      const cancel = () => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        reject(signal.reason);
        this.#resolveIdle();
      };
      const entry: Waiting = {
        key,
        start: () => {
          signal.removeEventListener("abort", cancel);
          resolve(this.#start(key));
        },
      };
      signal.addEventListener("abort", cancel, { once: true });
      this.#waiting.push(entry);
    });
  }

  /** Resolves when no task runs or waits. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#resolveIdle();
    });
  }

  #fits(key: unknown): boolean {
    return this.#running.size < this.#max_running && !this.#running.has(key);
  }

  #start(key: unknown): () => void {
    this.#running.add(key);
    return () => {
      this.#running.delete(key);
      const next = this.#waiting.findIndex((entry) => this.#fits(entry.key));
      if (next >= 0) this.#waiting.splice(next, 1)[0]!.start();
      this.#resolveIdle();
    };
  }

  #resolveIdle(): void {
    if (this.#running.size > 0 || this.#waiting.length > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
