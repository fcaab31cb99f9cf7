import { type Clock, joinSignals, timestamp } from "../platform/clock.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import type { JobEvent, JobReport } from "../plugins/api.ts";
import {
  type AttemptResult,
  entryOf,
  failedBefore,
  openForJob,
  openSafely,
  retryAt,
  runAttempt,
  sessionFor,
} from "./attempt.ts";
import {
  type HeldJob,
  holdJob,
  isTrusted,
  type JobContext,
  record,
  UNTRUSTED_JOB,
} from "./context.ts";
import type { JobRepository } from "./clones.ts";
import { leaveForLater, recoverHeld, reportLeft } from "./recover.ts";
import { concludeRun, type EndedRun, reportParked, sendJobEvent, type Services } from "./report.ts";
import type { HistoryEntry, Job } from "./schema.ts";
import { type RunTrigger, startOf } from "./transitions.ts";

/** Why a run does not begin now: another process has the job. */
export const LOCKED = "is running in another process";

/** Why a run did not begin, as the end of a sentence that starts with the job. */
export interface NotBegun {
  refused: string;
  /** Whether the job was parked by this call, to wait for approval. */
  parked?: boolean;
}

/**
 * Begins a run, or continues one that the scheduler left when it stopped: takes the job's lock and moves the job
 * to `executing`; or parks it when it needs a grant.
 *
 * @param options.labels those of this machine, for a run by hand; the queue sees to them for others
 * @param options.signal ends the pending report of an earlier run
 * @param options.due `next_run_at` when the scheduler put the job into the queue
 * @param options.run the accepted run of a hook; `resumed`: whether it has begun before
 *
 * @throws SvcError `unknown_job`, `register_write`
 */
export async function beginRun(
  context: JobContext,
  name: string,
  trigger: RunTrigger,
  { retry = true, labels = [], signal, run: accepted, resumed = false, due }: {
    retry?: boolean;
    labels?: readonly string[];
    signal?: AbortSignal;
    run?: string;
    resumed?: boolean;
    due?: string;
  } = {},
): Promise<JobRun | NotBegun> {
  const { register, clock } = context;
  await register.refresh();
  if (register.get(name) === undefined) await context.store?.refresh(); // another machine has added it
  register.need(name);
  const lock = await holdJob(context, name);
  if (lock === undefined) return { refused: LOCKED };
  let run: JobRun | undefined;
  let services: Services | undefined;
  try {
    await context.store?.refresh(); // the worker that had the lease before may have changed it
    if (!isTrusted(context, register.need(name))) return { refused: UNTRUSTED_JOB };
    const { label } = register.need(name);
    const suits = label === undefined || labels.includes(label);
    if (trigger === "run" && context.store !== undefined && !suits) {
      return { refused: `is for workers with the label ${label}` };
    }
    await recoverHeld(context, name, lock, signal);
    const before = register.need(name);
    const continues = before.running !== undefined && before.running.run === accepted;
    if (resumed && !continues) return { refused: "has ended that run" };
    // A run by hand, and that of a hook, is a new run, which ends the one that was left.
    if (trigger !== "tick" && !(trigger === "hook" && continues) && before.running !== undefined) {
      await reportLeft(context, before, signal);
    }
    if (signal?.aborted) return { refused: "was not begun before the stop" };
    services = await openSafely(context, before);
    let start: ReturnType<typeof startOf> = { refused: "is gone" };
    let planned = "";
    const job = await register.change(name, (job) => {
      planned = job.next_run_at;
      const session = () => sessionFor(job, services);
      start = startOf(job, trigger, { now: clock.now(), session, run: accepted, due });
      if (start.set?.running !== undefined && start.refused === undefined) {
        const { worker, token } = lock;
        Object.assign(start.set.running, { worker, token });
      }
      return start.set && { set: start.set };
    });
    if (start.parked && job !== undefined) await reportParked(context, job, services);
    if (start.refused !== undefined || job === undefined) {
      return { refused: start.refused ?? "is gone", parked: start.parked };
    }
    run = new JobRun(context, { lock, job, planned, trigger, retry, services });
    if (services !== undefined) {
      const { session, attempt } = job.running!;
      await sendJobEvent(services, { event: "job.will_run", job: name, session, attempt }, clock);
    }
    return run;
  } finally {
    if (run === undefined) {
      await lock.release();
      await services?.workspace.close();
    }
  }
}

/** The state of a run that has begun. */
export interface BegunRun {
  lock: HeldJob;
  /** The job after the begin of the run. */
  job: Job;
  /** `next_run_at` when the run began. */
  planned: string;
  trigger: RunTrigger;
  retry: boolean;
  services: Services | undefined;
}

/**
 * One run of a job: its attempts, which share a session. Before each attempt and after it, the register has
 * everything that a restart needs to continue the run.
 */
export class JobRun {
  readonly name: string;
  /** When the next attempt is due, in milliseconds; undefined: the run has ended. */
  next: number | undefined;
  /** The report of the run, once it has ended. */
  report: JobReport | undefined;
  readonly #context: JobContext;
  readonly #trigger: RunTrigger;
  readonly #retry: boolean;
  readonly #lock: HeldJob;
  readonly #planned: string;
  readonly #asks: number[] = [];
  /** Whether the last attempt did not reach the backend. */
  #unreachable = false;
  /** Index of the run's first turn. */
  #turn = 0;
  #job: Job;
  #services: Services | undefined;
  #last: Pick<EndedRun, "entry" | "content" | "data" | "blocked" | "retry_at"> | undefined;

  /** Use {@linkcode beginRun}. */
  constructor(
    context: JobContext,
    { lock, job, planned, trigger, retry, services }: BegunRun,
  ) {
    this.name = job.name;
    this.next = context.clock.now();
    this.#context = { ...context, token: lock.token };
    this.#trigger = trigger;
    this.#retry = retry;
    this.#lock = lock;
    this.#planned = planned;
    this.#job = structuredClone(job);
    this.#services = services;
  }

  /**
   * Makes the attempt that is due and saves its result. Then either the run has ended, or `next` is the time of
   * the next attempt. Aborting the signal cancels the attempt, which fails with the reason `interrupted`.
   *
   * @param began called when the attempt has begun
   */
  async attempt(
    signal: AbortSignal,
    began: (attempt: Pick<HistoryEntry, "attempt" | "session">) => void = () => {},
  ): Promise<void> {
    using either = joinSignals(signal, ...[this.#lock.lost].filter((lost) => lost !== undefined));
    try {
      if (this.#last !== undefined && !await this.#startNext()) {
        return await this.#conclude(true, signal);
      }
      const { clock, register } = this.#context;
      const started = clock.now();
      began(this.#running);
      const result = await this.#make(either.signal);
      this.#lock.lost?.throwIfAborted(); // the worker that took it over records it
      await register.whenReadable(clock, signal);
      this.#unreachable = result.unreachable === true;
      this.#asks.push(...result.asks);
      this.#turn ||= result.turn;
      this.#last = {
        entry: entryOf(result, { ...this.#running, started, finished: clock.now() }),
        content: result.content,
        data: result.data,
        blocked: result.blocked,
        retry_at: result.retry_at,
      };
      if (result.timed_out) await this.#sendEvent("job.timeout", result.reason);
      const again = this.#again(result);
      if (again === undefined) return await this.#conclude(false, signal);
      await this.#saveFailed(again, signal);
      this.next = again;
    } catch (error) {
      await this.#over();
      throw error;
    }
  }

  /** The last attempt. */
  get last(): HistoryEntry | undefined {
    return this.#last?.entry;
  }

  /** Ends a run that waits for its next attempt. */
  async giveUp(): Promise<void> {
    await this.#conclude(true, AbortSignal.abort());
  }

  /** Leaves a run that waits for its next attempt to the next start of the scheduler. */
  async suspend(): Promise<void> {
    try {
      await leaveForLater(this.#context, this.name);
    } finally {
      await this.#over();
    }
  }

  /** Records the begin of the next attempt. False when the job was rejected, disabled or removed meanwhile. */
  async #startNext(): Promise<boolean> {
    const { clock } = this.#context;
    let begins = false;
    const job = await record(this.#context, this.name, ({ status, enabled, running }) => {
      begins = status === "executing" && enabled && running !== undefined;
      if (!begins) return;
      const { attempt, session } = this.#running;
      const next = { attempt: attempt + 1, session, phase: "attempt" as const, next_at: "" };
      return { set: { running: { ...running!, ...next, attempt_at: timestamp(clock) } } };
    });
    if (!begins || job === undefined) return false;
    this.#job = structuredClone(job);
    this.#services = undefined; // the configuration may have changed
    return true;
  }

  async #make(signal: AbortSignal): Promise<AttemptResult> {
    try {
      if (this.#job.git !== undefined) return await this.#makeInClone(this.#job.git, signal);
      return await this.#makeIn(undefined, signal);
    } catch (error) {
      const failed = failedBefore(errorMessage(error));
      // The repository may be there later.
      const later = error instanceof SvcError && error.code === "job_git";
      return later ? { ...failed, blocked: false, final: false } : failed;
    }
  }

  /** Makes an attempt in a clone of a repository, whose changes are pushed even when it failed. */
  async #makeInClone(git: JobRepository, signal: AbortSignal): Promise<AttemptResult> {
    const { openClone } = await import("./clones.ts");
    const opened = this.#services?.workspace ??
      (await openForJob(this.#context, this.#job)).workspace;
    const size: number = opened.config.get("jobs.clones_size");
    await opened.close();
    const { started_at, attempt } = this.#running;
    const branch = `svc/${this.name}/${started_at.replace(/\D/g, "")}`;
    const { environment } = this.#context;
    const clone = await openClone(git, { branch, environment, size, signal });
    try {
      this.#services = undefined;
      const result = await this.#makeIn(clone.path, signal);
      if (!git.push || this.#lock.lost?.aborted) return result;
      const message = `${this.name}: ${result.status} attempt ${attempt} of the run ${started_at}`;
      try {
        const pushed = await clone.publish(message);
        return { ...result, ...pushed !== "" && { branch: pushed } };
      } catch (error) {
        const reason = `the work is not pushed: ${errorMessage(error)}`.slice(0, 300);
        return { ...result, status: "failed", reason };
      }
    } finally {
      await clone.close();
    }
  }

  async #makeIn(folder: string | undefined, signal: AbortSignal): Promise<AttemptResult> {
    const services = this.#services ??= await openForJob(
      this.#context,
      this.#job,
      undefined,
      folder,
    );
    if (this.#unreachable) services.workspace.config.override("retry_budget", 0);
    const { attempt } = this.#running;
    this.#running.session ||= sessionFor(this.#job, services);
    await this.#sendEvent("job.executing");
    const { session } = this.#running;
    return await runAttempt(services, this.#context, {
      job: this.#job,
      session,
      attempt,
      signal,
    });
  }

  /** When the next attempt is due; undefined: never. */
  #again(result: AttemptResult): number | undefined {
    const job = this.#context.register.get(this.name);
    if (!this.#retry || job === undefined) return undefined;
    const { attempt } = this.#running;
    return retryAt(job, result, {
      attempt,
      now: this.#context.clock.now(),
      trigger: this.#trigger,
    });
  }

  async #saveFailed(again: number, signal: AbortSignal): Promise<void> {
    const next_at = new Date(again).toISOString();
    const failed = () => ({
      append: this.#last!.entry,
      set: { running: { ...this.#running, phase: "backoff" as const, next_at } },
    });
    await record(this.#context, this.name, failed, signal);
  }

  async #conclude(saved: boolean, signal: AbortSignal): Promise<void> {
    try {
      this.report = await concludeRun(this.#context, this.name, {
        ...this.#last!,
        saved,
        started_at: this.#running.started_at,
        planned: this.#planned,
        asks: this.#asks,
        turn: this.#turn,
        services: this.#services,
        signal,
      });
    } finally {
      await this.#over();
    }
  }

  async #over(): Promise<void> {
    const held = this.next !== undefined;
    this.next = undefined;
    if (held) await this.#lock.release();
  }

  get #running() {
    return this.#job.running!;
  }

  async #sendEvent(event: JobEvent["event"], reason = ""): Promise<void> {
    if (this.#services === undefined) return;
    const { session, attempt } = this.#running;
    const step = { event, job: this.name, session, attempt, reason };
    await sendJobEvent(this.#services, step, this.#context.clock);
  }
}

/**
 * Makes all attempts of a run, each when it is due. Aborting the signal cancels the running attempt and ends the
 * run.
 *
 * @param waits called with the milliseconds of each wait before the next attempt
 */
export async function finishRun(
  run: JobRun,
  { clock, signal, waits = () => {} }: {
    clock: Clock;
    signal: AbortSignal;
    waits?: (ms: number) => void;
  },
): Promise<void> {
  while (run.next !== undefined) {
    const wait = Math.max(0, run.next - clock.now());
    if (wait > 0) waits(wait);
    const waited = await clock.sleep(wait, signal).then(() => true, () => false);
    if (waited) await run.attempt(signal);
    else await run.giveUp();
  }
}
