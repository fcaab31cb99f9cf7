import type { Clock } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import type { QueueItem, RunQueue } from "../store/port.ts";
import { LocalQueue, rankOf } from "../store/queue.ts";
import { isTrusted, type JobContext, UNTRUSTED_JOB } from "./context.ts";
import { recover } from "./recover.ts";
import { readTime } from "./schedule.ts";
import type { Job } from "./schema.ts";
import { isAhead, isDue, isRunnable, missingPlan } from "./transitions.ts";
import { jobKey, JobWorker, type Step } from "./worker.ts";

/** Milliseconds before a job that is still due is put into a shared queue again. */
const AGAIN = 60_000;

/**
 * Runs the due jobs of one worktree (specification 4.5). It has no loop: the caller calls `tick`, or `sweep`,
 * which does not wait for the attempts that it begins.
 */
export class Scheduler {
  readonly #context: JobContext;
  readonly #queue: RunQueue;
  /** Undefined: other processes take the jobs from the queue. */
  readonly #worker: JobWorker | undefined;
  /** When the jobs that are due were put into a shared queue, by key. */
  #sent = new Map<string, number>();
  /** Whether nothing has failed since the last sweep. */
  #healthy = true;

  /**
   * @param options.queue where due jobs are put. Default: one of this process
   * @param options.work whether this process runs them. Default: yes
   */
  constructor(context: JobContext, tell: (step: Step) => void = () => {}, {
    queue = new LocalQueue(context.clock),
    work = true,
  }: { queue?: RunQueue; work?: boolean } = {}) {
    this.#context = context;
    this.#queue = queue;
    this.#worker = work ? new JobWorker(context, queue, { tell }) : undefined;
  }

  /** The jobs with a running attempt. */
  get busy(): string[] {
    return this.#worker?.busy ?? [];
  }

  /** Resolves when no attempt runs. */
  async idle(): Promise<void> {
    await this.#worker?.idle();
  }

  /**
   * Makes one attempt of every due job, at most `concurrency` at a time: in the order of their priorities, runs that
   * have begun before others, then by name.
   * A job in backoff does not block others; the first tick after the backoff makes its next attempt. An error of one
   * job is warned about and does not affect others.
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
    const { store } = this.#context;
    if (store !== undefined) {
      await this.#safely("the store", () => store.refresh());
      if (!this.#healthy) {
        this.#healthy = true;
        return false;
      }
    }
    await this.#safely("the register", () => recover(this.#context, signal));
    await this.#safely("the register", () => this.#plan());
    this.#worker?.work({
      signal,
      cancel,
      concurrency: Math.max(1, concurrency),
      hold: hold * 1000,
    });
    await this.#safely("the queue", () => this.#put());
    const healthy = this.#healthy && this.#worker?.healthy !== false &&
      !this.#context.register.broken;
    this.#healthy = true;
    if (this.#worker !== undefined) this.#worker.healthy = true;
    return healthy;
  }

  /** Waits for the running attempts, and leaves the runs in backoff to the next start. */
  async close(): Promise<void> {
    await this.#worker?.close();
  }

  /** When the next job is due, in milliseconds; undefined when none is planned. */
  next(): number | undefined {
    const times = [
      ...this.#waiting().map(({ next }) => next!),
      ...this.#context.register.list().filter(isRunnable)
        .flatMap(({ next_run_at }) => readTime(next_run_at) ?? []),
    ];
    return times.length === 0 ? undefined : times.reduce((one, other) => Math.min(one, other));
  }

  /** Puts the due jobs, in the order of their priorities and names. */
  async #put(): Promise<void> {
    const { clock, register, store } = this.#context;
    const now = clock.now();
    const jobs = new Map(register.list().map((job) => [job.name, job]));
    const due = new Map<string, string>();
    for (const job of jobs.values()) {
      // Whether a job may run is decided where it runs.
      if (isRunnable(job) && isDue(job, now) && (this.#worker === undefined || this.#trusts(job))) {
        due.set(job.name, job.next_run_at);
      }
    }
    for (const { name, next, last } of this.#waiting()) {
      due.delete(name);
      if (next! <= now || isAhead(last?.finished_at ?? "", now)) {
        due.set(name, new Date(next!).toISOString());
      }
    }
    const place = (name: string): Pick<QueueItem, "priority" | "begun"> => {
      const { priority, running } = jobs.get(name) ?? {};
      return { ...priority !== undefined && { priority }, ...running && { begun: true } };
    };
    const names = [...due.keys()].filter((name) => this.#worker?.isBusy(name) !== true)
      .sort((one, other) => rankOf(place(other)) - rankOf(place(one)) || (one < other ? -1 : 1));
    const sent = new Map<string, number>();
    for (const name of names) {
      const { label } = jobs.get(name) ?? {};
      const key = jobKey(name, due.get(name)!);
      const before = this.#sent.get(key);
      if (before !== undefined && Math.abs(now - before) < AGAIN) {
        sent.set(key, before);
        continue;
      }
      if (store !== undefined) sent.set(key, now);
      await this.#queue.put({
        kind: "job",
        name,
        key,
        // Without a store there is one worker, which runs everything.
        ...label !== undefined && store !== undefined && { label },
        ...place(name),
      });
    }
    this.#sent = sent;
  }

  #waiting() {
    return [...this.#worker?.waiting.values() ?? []];
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
  /** Where due jobs are put. Default: a queue of this process */
  queue?: RunQueue;
  /** Whether this process runs them. Default: yes */
  work?: boolean;
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
  const scheduler = new Scheduler(context, tell, request);
  const cancel = new AbortController();
  const pulse = (healthy: boolean) =>
    beat({ healthy, busy: scheduler.busy, next: dated(scheduler.next()) });
  while (!signal.aborted) {
    pulse(await scheduler.sweep(signal, { ...settings(), cancel: cancel.signal }));
    await clock.sleep(tick * 1000, signal).catch(() => {}); // stopped
  }
  await drain(scheduler, { clock, tell, grace: settings().grace, cancel });
  pulse(false);
}

/** Lets running attempts finish for `grace` seconds, then cancels them. */
export async function drain(
  running: { readonly busy: string[]; close(): Promise<void> },
  { clock, tell, grace, cancel }: {
    clock: Clock;
    tell: (step: Stopping) => void;
    grace: number;
    cancel: AbortController;
  },
): Promise<void> {
  const ended = new AbortController();
  if (running.busy.length > 0) {
    tell({ step: "stopping", jobs: running.busy, grace });
    clock.sleep(grace * 1000, ended.signal).then(
      () => cancel.abort(new DOMException("The scheduler is stopping.", "AbortError")),
      () => {}, // everything ended in time
    );
  }
  await running.close();
  ended.abort();
}

function dated(time: number | undefined): string {
  return time === undefined ? "" : new Date(time).toISOString();
}
