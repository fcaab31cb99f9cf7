import type { Clock } from "../platform/clock.ts";
import type { QueueItem, QueueWorker, RunQueue, WorkOptions } from "./port.ts";

/** Milliseconds before an item whose handler has failed is run again. */
export const RETRY = 1000;

interface Worker extends WorkOptions {
  handler: (item: QueueItem) => Promise<void>;
  running: Set<Promise<void>>;
}

/** The queue of one process. Its items end with it. */
export class LocalQueue implements RunQueue {
  readonly #clock: Clock;
  readonly #most: () => number;
  readonly #workers = new Set<Worker>();
  /** In the order in which they are taken. */
  readonly #waiting: QueueItem[] = [];
  readonly #running = new Set<QueueItem>();
  /** Those of all items that wait or run. */
  readonly #keys = new Set<string>();
  readonly #closed = new AbortController();

  /** @param most items that run at once, of all workers; 0: no limit */
  constructor(clock: Clock, most: () => number = () => 0) {
    this.#clock = clock;
    this.#most = most;
  }

  put(item: QueueItem): Promise<boolean> {
    if (this.#keys.has(item.key) || this.#closed.signal.aborted) return Promise.resolve(false);
    this.#keys.add(item.key);
    const place = this.#waiting.findIndex((other) => rankOf(other) < rankOf(item));
    this.#waiting.splice(place < 0 ? this.#waiting.length : place, 0, item);
    const wait = this.#early(item);
    if (wait > 0) {
      this.#clock.sleep(wait, this.#closed.signal).then(() => this.#fill(), () => {});
    }
    this.#fill();
    return Promise.resolve(true);
  }

  work(options: WorkOptions, handler: Worker["handler"]): QueueWorker {
    const worker = { ...options, handler, running: new Set<Promise<void>>() };
    this.#workers.add(worker);
    const idle = async () => {
      while (worker.running.size > 0) await Promise.all(worker.running);
    };
    this.#fill();
    return {
      look: () => this.#fill(),
      idle,
      close: () => {
        this.#workers.delete(worker);
        return idle();
      },
    };
  }

  depth(): Promise<Map<string, number>> {
    const found = new Map<string, number>();
    for (const item of this.#waiting) {
      const { label = "" } = item;
      if (this.#early(item) <= 0) found.set(label, (found.get(label) ?? 0) + 1);
    }
    return Promise.resolve(found);
  }

  close(): Promise<void> {
    this.#closed.abort();
    this.#workers.clear();
    return Promise.resolve();
  }

  /** Gives each worker the items that it has room for. */
  #fill(): void {
    for (const worker of this.#workers) {
      while (worker.running.size < worker.concurrency() && this.#hasRoom()) {
        const place = this.#waiting.findIndex((item) => this.#suits(item, worker));
        if (place < 0) break;
        this.#run(this.#waiting.splice(place, 1)[0]!, worker);
      }
    }
  }

  #hasRoom(): boolean {
    const most = this.#most();
    return most === 0 || this.#running.size < most;
  }

  #suits(item: QueueItem, { kinds, labels }: Worker): boolean {
    if (kinds?.includes(item.kind) === false) return false;
    if (item.label !== undefined && !labels.includes(item.label)) return false;
    const { group } = item;
    const taken = group !== undefined && [...this.#running].some((other) => other.group === group);
    return !taken && this.#early(item) <= 0;
  }

  #run(item: QueueItem, { handler, running }: Worker): void {
    this.#running.add(item);
    const work = handler(item).then(() => undefined, () => this.#clock.now() + RETRY).then(
      (again) => {
        running.delete(work);
        this.#running.delete(item);
        this.#keys.delete(item.key);
        if (again !== undefined) void this.put({ ...item, after: new Date(again).toISOString() });
        this.#fill();
      },
    );
    running.add(work);
  }

  /** Milliseconds until an item may be taken. */
  #early({ after }: QueueItem): number {
    return after === undefined ? 0 : Date.parse(after) - this.#clock.now();
  }
}

/** The rank of an item: the larger the earlier. */
export function rankOf({ priority = 0, begun }: Pick<QueueItem, "priority" | "begun">): number {
  return 2 * priority + (begun ? 1 : 0);
}
