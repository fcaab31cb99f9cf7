import { errorMessage } from "../platform/error.ts";
import type { JobReport } from "../plugins/api.ts";
import type { QueueItem, QueueWorker, RunQueue } from "../store/port.ts";
import { type JobContext, UNTRUSTED_JOB } from "./context.ts";
import { isStuck } from "./health.ts";
import { beginRun, JobRun, LOCKED } from "./run.ts";

/** One step with a job. */
export type Step =
  & { job: string }
  & (
    | { step: "started"; attempt: number; session: string }
    | { step: "retry"; attempt: number; reason: string; next: number }
    | { step: "finished"; report: JobReport }
    | { step: "parked" }
  );

/** Another process has the job: the queue offers it again. */
class Held extends Error {}

/** The key of a job in the queue: it is put once for each time at which it is due. */
export function jobKey(name: string, due: string): string {
  return `job/${name}/${due}`;
}

/** How a {@linkcode JobWorker} works from now on. */
export interface Working {
  /** No attempt begins after it aborts. */
  signal: AbortSignal;
  /** Cancels the running attempts. */
  cancel: AbortSignal;
  concurrency: number;
  /** Milliseconds after which an attempt no longer counts for `concurrency`; 0: no limit. */
  hold: number;
}

/** Makes the attempts of the jobs that it takes from a queue. */
export class JobWorker {
  /** Whether nothing has failed since it was set, except attempts. */
  healthy = true;
  /** The runs that wait for the end of a backoff. With a shared queue there are none: any worker continues them. */
  readonly waiting = new Map<string, JobRun>();
  readonly #context: JobContext;
  readonly #tell: (step: Step) => void;
  readonly #worker: QueueWorker;
  /** The jobs with a running attempt, and when it began, in milliseconds. */
  readonly #busy = new Map<string, number>();
  /** Until when the attempt of a job waits for its backend, in milliseconds. */
  readonly #asleep = new Map<string, number>();
  #working: Working = {
    signal: AbortSignal.abort(),
    cancel: new AbortController().signal,
    concurrency: 0,
    hold: 0,
  };

  /**
   * @param options.labels takes the jobs with these labels, too. Default: none
   * @param options.others runs accepted runs by their ids. Default: it takes none
   */
  constructor(context: JobContext, queue: RunQueue, { tell = () => {}, labels = [], others }: {
    tell?: (step: Step) => void;
    labels?: readonly string[];
    others?: (id: string) => Promise<void>;
  } = {}) {
    this.#context = {
      ...context,
      show: (event, job) => {
        const wait = event.type === "notice" && event.retry_in || 0;
        this.#asleep.set(job, context.clock.now() + wait * 1000);
        context.show?.(event, job);
      },
    };
    this.#tell = tell;
    const kinds = others === undefined ? ["job" as const] : undefined;
    const concurrency = () => this.#room();
    this.#worker = queue.work({ kinds, labels, concurrency }, async (item) => {
      if (item.kind === "job") await this.#take(item);
      else await others?.(item.name);
    });
  }

  /** The jobs with a running attempt. */
  get busy(): string[] {
    return [...this.#busy.keys()].sort();
  }

  isBusy(name: string): boolean {
    return this.#busy.has(name);
  }

  /** Begins attempts while there is room for them. Jobs that are put meanwhile follow after them. */
  work(working: Working): void {
    this.#working = working;
    this.#worker.look();
  }

  /** Resolves when no attempt runs. */
  async idle(): Promise<void> {
    await this.#worker.idle();
  }

  /** Waits for the running attempts, and leaves the runs in backoff to the next start. */
  async close(): Promise<void> {
    await this.#worker.close();
    for (const [name, run] of this.waiting) await this.#safely(name, () => run.suspend());
    this.waiting.clear();
  }

  /** How many may run at once: one more for each whose attempt is held up, or waits for a quota. */
  #room(): number {
    const { signal, concurrency, hold } = this.#working;
    if (signal.aborted) return 0;
    const { register, clock } = this.#context;
    const now = clock.now();
    const held = [...this.#busy].filter(([name, began]) => {
      const job = register.get(name);
      const late = hold > 0 && now - began > hold || job && isStuck(job, began, now);
      return late || now < (this.#asleep.get(name) ?? 0);
    });
    return concurrency + held.length;
  }

  async #take({ name, key }: QueueItem): Promise<void> {
    this.#busy.set(name, this.#context.clock.now());
    try {
      await this.#safely(name, () => this.#attempt(name, key.slice(jobKey(name, "").length)));
    } finally {
      this.#busy.delete(name);
      this.#asleep.delete(name);
    }
  }

  async #attempt(name: string, due: string): Promise<void> {
    const waiting = this.waiting.get(name);
    this.waiting.delete(name);
    const run = waiting ?? await beginRun(this.#context, name, "tick", { due });
    if (!(run instanceof JobRun)) {
      if (run.parked) this.#tell({ job: name, step: "parked" });
      if (run.refused === UNTRUSTED_JOB) this.#context.warn(`The job ${name} ${UNTRUSTED_JOB}.`);
      // The lease of a worker that died expires soon.
      if (run.refused === LOCKED && this.#context.store !== undefined) throw new Held();
      return;
    }
    await run.attempt(
      this.#working.cancel,
      ({ attempt, session }) => this.#tell({ job: name, step: "started", attempt, session }),
    );
    if (run.next !== undefined) {
      const { next } = run;
      const { attempt, reason } = run.last!;
      if (this.#context.store === undefined) this.waiting.set(name, run);
      else await run.suspend();
      this.#tell({ job: name, step: "retry", attempt, reason, next });
    } else if (run.report !== undefined) {
      this.#tell({ job: name, step: "finished", report: run.report });
    }
  }

  async #safely(about: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (error instanceof Held) throw error;
      this.healthy = false;
      this.#context.warn(`${about}: ${errorMessage(error)}`);
    }
  }
}
