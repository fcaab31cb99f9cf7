import { errorMessage } from "../platform/error.ts";
import type { JobReport } from "../plugins/api.ts";
import { isTrusted, type JobContext, UNTRUSTED_JOB } from "./context.ts";
import { isStuck } from "./health.ts";
import { recover } from "./recover.ts";
import { beginRun, JobRun } from "./run.ts";
import { readTime } from "./schedule.ts";
import type { Job } from "./schema.ts";
import { isAhead, isDue, isRunnable, missingPlan } from "./transitions.ts";

/** One step of the scheduler with a job. */
export type Step =
  & { job: string }
  & (
    | { step: "started"; attempt: number; session: string }
    | { step: "retry"; attempt: number; reason: string; next: number }
    | { step: "finished"; report: JobReport }
    | { step: "parked" }
  );

/**
 * Runs the due jobs of one worktree (specification 4.5). It has no loop: the caller calls `tick`, or `sweep`,
 * which does not wait for the attempts that it begins.
 */
export class Scheduler {
  readonly #context: JobContext;
  readonly #tell: (step: Step) => void;
  /** The runs that wait for the end of a backoff. */
  readonly #waiting = new Map<string, JobRun>();
  /** The due jobs that wait for a worker, in order. */
  readonly #queue = new Set<string>();
  /** The jobs with a running attempt, and when it began, in milliseconds. */
  readonly #busy = new Map<string, number>();
  /** Until when the attempt of a job waits for its backend, in milliseconds. */
  readonly #asleep = new Map<string, number>();
  readonly #workers = new Set<Promise<void>>();
  #concurrency = 1;
  #hold = 0;
  /** Whether nothing has failed since the last sweep, except attempts. */
  #healthy = true;

  constructor(context: JobContext, tell: (step: Step) => void = () => {}) {
    this.#context = {
      ...context,
      show: (event, job) => {
        const wait = event.type === "notice" && event.retry_in || 0;
        this.#asleep.set(job, context.clock.now() + wait * 1000);
        context.show?.(event, job);
      },
    };
    this.#tell = tell;
  }

  /** The jobs with a running attempt. */
  get busy(): string[] {
    return [...this.#busy.keys()].sort();
  }

  /** Resolves when no attempt runs. */
  async idle(): Promise<void> {
    while (this.#workers.size > 0) await Promise.all(this.#workers);
  }

  /**
   * Makes one attempt of every due job, in the order of their names, at most `concurrency` at a time. A job in
   * backoff does not block others; the first tick after the backoff makes its next attempt. An error of one job
   * is warned about and does not affect others.
   *
   * @returns when the next job is due, in milliseconds; undefined when none is planned
   */
  async tick(signal: AbortSignal, concurrency = 1): Promise<number | undefined> {
    await this.sweep(signal, { concurrency });
    await this.idle();
    return this.next();
  }

  /**
   * Begins the attempts of all due jobs as `tick` does, and does not wait for them. Jobs that become due
   * meanwhile follow after them.
   *
   * @param signal no attempt begins after it aborts
   * @param options.hold seconds after which an attempt no longer counts for `concurrency`, so that it holds up no
   *   other job. The same goes for one that runs for several intervals of its job, and while one waits for a quota.
   *   Default: 0, no limit
   * @param options.cancel cancels the running attempts; default: `signal`
   * @returns whether the scheduler could work: the register can be read and written
   */
  async sweep(
    signal: AbortSignal,
    { concurrency = 1, hold = 0, cancel = signal }: {
      concurrency?: number;
      hold?: number;
      cancel?: AbortSignal;
    } = {},
  ): Promise<boolean> {
    await this.#safely("the register", () => recover(this.#context, signal));
    await this.#safely("the register", () => this.#plan());
    for (const name of this.#due(this.#context.clock.now())) {
      if (!this.#busy.has(name)) this.#queue.add(name);
    }
    this.#concurrency = Math.max(1, concurrency);
    this.#hold = hold * 1000;
    const free = Math.min(this.#concurrency - this.#counted(), this.#queue.size);
    for (let begun = 0; begun < free; begun++) {
      const worker = this.#work(signal, cancel).finally(() => this.#workers.delete(worker));
      this.#workers.add(worker);
    }
    const healthy = this.#healthy && !this.#context.register.broken;
    this.#healthy = true;
    return healthy;
  }

  /** Waits for the running attempts, and leaves the runs in backoff to the next start. */
  async close(): Promise<void> {
    await this.idle();
    for (const [name, run] of this.#waiting) await this.#safely(name, () => run.suspend());
    this.#waiting.clear();
  }

  /** When the next job is due, in milliseconds; undefined when none is planned. */
  next(): number | undefined {
    const times = [
      ...[...this.#waiting.values()].map(({ next }) => next!),
      ...this.#context.register.list().filter(isRunnable)
        .flatMap(({ next_run_at }) => readTime(next_run_at) ?? []),
    ];
    return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other));
  }

  async #work(signal: AbortSignal, cancel: AbortSignal): Promise<void> {
    await Promise.resolve(); // the caller adds this worker to `#workers` first
    while (!signal.aborted && this.#counted() <= this.#concurrency) {
      const [name] = this.#queue;
      if (name === undefined) return;
      this.#queue.delete(name);
      this.#busy.set(name, this.#context.clock.now());
      await this.#safely(name, () => this.#attempt(name, cancel));
      this.#busy.delete(name);
      this.#asleep.delete(name);
    }
  }

  /** The workers that count for the concurrency: not those whose attempt is held up, or waits for a quota. */
  #counted(): number {
    const { register, clock } = this.#context;
    const now = clock.now();
    const held = [...this.#busy].filter(([name, began]) => {
      const job = register.get(name);
      const late = this.#hold > 0 && now - began > this.#hold || job && isStuck(job, began, now);
      return late || now < (this.#asleep.get(name) ?? 0);
    });
    return this.#workers.size - held.length;
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

  /** The sorted names of the due jobs. */
  #due(now: number): string[] {
    const runs = [...this.#waiting.values()].filter(({ next, last }) =>
      next! <= now || isAhead(last?.finished_at ?? "", now)
    );
    const jobs = this.#context.register.list().filter((job) =>
      isRunnable(job) && isDue(job, now) && !this.#waiting.has(job.name) && this.#trusts(job)
    );
    const names = [...runs, ...jobs].map(({ name }) => name);
    return names.sort((one, other) => one < other ? -1 : 1);
  }

  #trusts(job: Job): boolean {
    const trusted = isTrusted(this.#context, job);
    if (!trusted) this.#context.warn(`The job ${job.name} ${UNTRUSTED_JOB}.`);
    return trusted;
  }

  /** Sets `next_run_at` of the jobs that lack one. */
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
      this.#healthy = false;
      this.#context.warn(`${about}: ${errorMessage(error)}`);
    }
  }
}

/** The parameters of {@linkcode runDaemon}. */
export interface DaemonRequest {
  context: JobContext;
  /** Seconds between two ticks. */
  tick: number;
  /** Reads the current settings. */
  settings: () => { concurrency: number; hold: number; grace: number };
  /** Stops the scheduler: no attempt begins, and running ones have the grace period to finish. */
  signal: AbortSignal;
  /** Receives the steps with jobs, and the running jobs when the scheduler stops. */
  tell: (step: Step | Stopping) => void;
  /** Called after each tick, and once more at the end. */
  beat: (pulse: Pulse) => void;
}

/** The running jobs at a stop; `grace` is in seconds. */
export interface Stopping {
  step: "stopping";
  jobs: string[];
  grace: number;
}

/** The status of a scheduler after a tick. */
export interface Pulse {
  /** Whether the tick found nothing that keeps the scheduler from its work. */
  healthy: boolean;
  /** Names of the jobs with a running attempt. */
  busy: string[];
  /** When the next job is due, ISO 8601; empty: none is planned. */
  next: string;
}

/**
 * Runs due jobs until it is stopped (specification 4.5, 8). Each tick reads the current register and settings.
 * Attempts that do not end within the grace period are cancelled and recorded as interrupted; the next start
 * continues their runs.
 */
export async function runDaemon(request: DaemonRequest): Promise<void> {
  const { context: { clock }, context, tick, settings, signal, tell, beat } = request;
  const scheduler = new Scheduler(context, tell);
  const cancel = new AbortController();
  const pulse = (healthy: boolean) =>
    beat({ healthy, busy: scheduler.busy, next: dated(scheduler.next()) });
  while (!signal.aborted) {
    pulse(await scheduler.sweep(signal, { ...settings(), cancel: cancel.signal }));
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
  pulse(false);
}

function dated(time: number | undefined): string {
  return time === undefined ? "" : new Date(time).toISOString();
}
