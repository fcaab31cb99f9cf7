import { HttpError } from "./http_error.ts";

/** Seconds after which to try again when the queue is full. */
const RETRY_AFTER = 5;

interface Waiting {
  session: string;
  start(): void;
}

/**
 * Gives turns their place: those of one session one after another, in the order in which they came, and
 * others side by side up to a limit. So many may wait.
 */
export class TurnQueue {
  readonly #concurrent: number;
  readonly #most: number;
  readonly #busy = new Set<string>();
  readonly #waiting: Waiting[] = [];
  #idle: (() => void)[] = [];

  constructor({ concurrent, queue }: { concurrent: number; queue: number }) {
    this.#concurrent = concurrent;
    this.#most = queue;
  }

  get running(): number {
    return this.#busy.size;
  }

  get queued(): number {
    return this.#waiting.length;
  }

  /**
   * Waits for the place of a session's next turn.
   *
   * @returns what gives the place back
   * @throws HttpError 429 when too many wait, before anything is awaited; the signal's reason when it aborts
   * first
   */
  enter(session: string, signal: AbortSignal): Promise<() => void> {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (this.#fits(session)) return Promise.resolve(this.#take(session));
    if (this.#waiting.length >= this.#most) {
      const headers = { "retry-after": String(RETRY_AFTER) };
      throw new HttpError(429, "too many turns are waiting", headers);
    }
    return new Promise((resolve, reject) => {
      const leave = () => {
        this.#waiting.splice(this.#waiting.indexOf(entry), 1);
        reject(signal.reason);
        this.#tellIdle();
      };
      const entry: Waiting = {
        session,
        start: () => {
          signal.removeEventListener("abort", leave);
          resolve(this.#take(session));
        },
      };
      signal.addEventListener("abort", leave, { once: true });
      this.#waiting.push(entry);
    });
  }

  /** Resolves when no turn runs or waits. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#tellIdle();
    });
  }

  #fits(session: string): boolean {
    return this.#busy.size < this.#concurrent && !this.#busy.has(session);
  }

  #take(session: string): () => void {
    this.#busy.add(session);
    return () => {
      this.#busy.delete(session);
      const next = this.#waiting.findIndex((entry) => this.#fits(entry.session));
      if (next >= 0) this.#waiting.splice(next, 1)[0]!.start();
      this.#tellIdle();
    };
  }

  #tellIdle(): void {
    if (this.#busy.size > 0 || this.#waiting.length > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
