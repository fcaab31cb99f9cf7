import { errorMessage } from "../platform/error.ts";
import type { JobReport } from "../plugins/api.ts";
import type { JobContext } from "./context.ts";
import { recover } from "./recover.ts";
import { beginRun, JobRun } from "./run.ts";
import { readTime } from "./schedule.ts";
import type { Job } from "./schema.ts";
import { isAhead, isDue, isRunnable, missingPlan } from "./transitions.ts";

/** What the scheduler did with a job, for those who watch. */
export type Step =
  & { job: string }
  & (
    | { step: "started"; attempt: number; session: string }
    | { step: "retry"; attempt: number; reason: string; next: number }
    | { step: "finished"; report: JobReport }
    | { step: "parked" }
  );

/**
 * Runs the jobs of one worktree as they come due (specification 4.5). It has no loop of its own: who owns
 * the time calls `tick`, or `sweep`, which does not wait for what it begins.
 */
export class Scheduler {
  readonly #context: JobContext;
  readonly #tell: (step: Step) => void;
  /** The runs whose next attempt waits for the end of its backoff. */
  readonly #waiting = new Map<string, JobRun>();
  /** The jobs that are due and have not had their turn, first come, first served. */
  readonly #queue = new Set<string>();
  readonly #busy = new Set<string>();
  readonly #workers = new Set<Promise<void>>();
  #concurrency = 1;

  constructor(context: JobContext, tell: (step: Step) => void = () => {}) {
    this.#context = context;
    this.#tell = tell;
  }

  /** The jobs of which an attempt is being made. */
  get busy(): string[] {
    return [...this.#busy].sort();
  }

  /** Resolves when no attempt is being made. */
  async idle(): Promise<void> {
    while (this.#workers.size > 0) await Promise.all(this.#workers);
  }

  /**
   * Makes one attempt of every job that is due, in the order of their names, one at a time or as many as
   * `concurrency` says. While a job waits out a backoff the others have their turn; its own comes with the
   * first tick after that. What goes wrong with one job is warned about and holds up no other.
   *
   * @returns the milliseconds at which something is due next; undefined when nothing is planned
   */
  async tick(signal: AbortSignal, concurrency = 1): Promise<number | undefined> {
    await this.sweep(signal, { concurrency });
    await this.idle();
    return this.next();
  }

  /**
   * Has everything that is due attempted as `tick` does, and returns once that is under way. What comes due
   * while others are at work has its turn after them.
   *
   * @param signal nothing more begins once it aborts
   * @param options.cancel cancels the attempts that are being made; default: `signal`
   */
  async sweep(
    signal: AbortSignal,
    { concurrency = 1, cancel = signal }: { concurrency?: number; cancel?: AbortSignal } = {},
  ): Promise<void> {
    await this.#safely("the register", () => recover(this.#context, signal));
    await this.#safely("the register", () => this.#plan());
    for (const name of this.#due(this.#context.clock.now())) {
      if (!this.#busy.has(name)) this.#queue.add(name);
    }
    this.#concurrency = Math.max(1, concurrency);
    const free = Math.min(this.#concurrency - this.#workers.size, this.#queue.size);
    for (let begun = 0; begun < free; begun++) {
      const worker = this.#work(signal, cancel).finally(() => this.#workers.delete(worker));
      this.#workers.add(worker);
    }
  }

  /** Leaves the runs that wait for their next attempt to the next start. */
  async close(): Promise<void> {
    await this.idle();
    for (const [name, run] of this.#waiting) await this.#safely(name, () => run.suspend());
    this.#waiting.clear();
  }

  /** When something is due next, in milliseconds; undefined when nothing is planned. */
  next(): number | undefined {
    const times = [
      ...[...this.#waiting.values()].map(({ next }) => next!),
      ...this.#context.register.list().filter(isRunnable)
        .flatMap(({ next_run_at }) => readTime(next_run_at) ?? []),
    ];
    return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other));
  }

  async #work(signal: AbortSignal, cancel: AbortSignal): Promise<void> {
    await Promise.resolve(); // whoever begins it knows of it first
    while (!signal.aborted && this.#workers.size <= this.#concurrency) {
      const [name] = this.#queue;
      if (name === undefined) return;
      this.#queue.delete(name);
      this.#busy.add(name);
      await this.#safely(name, () => this.#attempt(name, cancel));
      this.#busy.delete(name);
    }
  }

  async #attempt(name: string, cancel: AbortSignal): Promise<void> {
    const waiting = this.#waiting.get(name);
    this.#waiting.delete(name);
    const run = waiting ?? await beginRun(this.#context, name, "tick");
    if (!(run instanceof JobRun)) {
      if (run.parked) this.#tell({ job: name, step: "parked" });
      return;
    }
    await run.attempt(
      cancel,
      ({ attempt, session }) => this.#tell({ job: name, step: "started", attempt, session }),
    );
    if (run.next !== undefined) {
      this.#waiting.set(name, run);
      const { attempt, reason } = run.last!;
      this.#tell({ job: name, step: "retry", attempt, reason, next: run.next });
    } else if (run.report !== undefined) {
      this.#tell({ job: name, step: "finished", report: run.report });
    }
  }

  /** The names of what is due, in their order. */
  #due(now: number): string[] {
    const runs = [...this.#waiting.values()].filter(({ next, last }) =>
      next! <= now || isAhead(last?.finished_at ?? "", now)
    );
    const jobs = this.#context.register.list().filter((job) =>
      isRunnable(job) && isDue(job, now) && !this.#waiting.has(job.name)
    );
    const names = [...runs, ...jobs].map(({ name }) => name);
    return names.sort((one, other) => one < other ? -1 : 1);
  }

  /** Gives a next run to the jobs that lack one. */
  async #plan(): Promise<void> {
    const { register, clock } = this.#context;
    const missing = (job: Job) => missingPlan(job, clock.now());
    for (const { name } of register.list().filter((job) => missing(job) !== undefined)) {
      const change = (job: Job) => {
        const next_run_at = missing(job);
        return next_run_at === undefined ? undefined : { set: { next_run_at } };
      };
      await this.#safely(name, () => register.change(name, change));
    }
  }

  async #safely(about: string, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#context.warn(`${about}: ${errorMessage(error)}`);
    }
  }
}

/** A scheduler that runs until it is stopped. */
export interface DaemonRequest {
  context: JobContext;
  /** Seconds between two looks at what is due. */
  tick: number;
  /** What the configuration says at this moment. */
  settings: () => { concurrency: number; grace: number };
  /** Stops it: nothing begins any more, and what is at work has its grace. */
  signal: AbortSignal;
  /** Told of what is done with the jobs, and of what is at work when it is stopped. */
  tell: (step: Step | Stopping) => void;
  /** Called with each tick, and once more when everything has ended. */
  beat: (pulse: Pulse) => void;
}

/** The jobs that have their grace to finish, in seconds. */
export interface Stopping {
  step: "stopping";
  jobs: string[];
  grace: number;
}

/** What a scheduler is doing. */
export interface Pulse {
  /** Names of the jobs of which an attempt is being made. */
  busy: string[];
  /** When something is due next, ISO 8601; empty: nothing is planned. */
  next: string;
}

/**
 * Runs jobs as they come due (specification 4.5, 8): wakes every tick, and looks at the register and the
 * settings as they are then. Attempts that do not end within the grace are cancelled and recorded as
 * interrupted; the next start goes on with their runs.
 */
export async function runDaemon(request: DaemonRequest): Promise<void> {
  const { context: { clock }, context, tick, settings, signal, tell, beat } = request;
  const scheduler = new Scheduler(context, tell);
  const cancel = new AbortController();
  const pulse = () => beat({ busy: scheduler.busy, next: dated(scheduler.next()) });
  while (!signal.aborted) {
    await scheduler.sweep(signal, { ...settings(), cancel: cancel.signal });
    pulse();
    await clock.sleep(tick * 1000, signal).catch(() => {}); // stopped
  }
  const ended = new AbortController();
  if (scheduler.busy.length > 0) {
    const { grace } = settings();
    tell({ step: "stopping", jobs: scheduler.busy, grace });
    clock.sleep(grace * 1000, ended.signal).then(
      () => cancel.abort(new DOMException("The scheduler is stopping.", "AbortError")),
      () => {}, // everything ended in time
    );
  }
  await scheduler.close();
  ended.abort();
  pulse();
}

function dated(time: number | undefined): string {
  return time === undefined ? "" : new Date(time).toISOString();
}
