import { type Clock, timestamp } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import type { HeldLock } from "../platform/files.ts";
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
import { holdJob, type JobContext, record } from "./context.ts";
import { leaveForLater, recoverHeld, reportLeft } from "./recover.ts";
import { concludeRun, type Services, tellStep } from "./report.ts";
import type { HistoryEntry, Job } from "./schema.ts";
import { type RunTrigger, startOf } from "./transitions.ts";

/** Why a run did not begin, as the end of a sentence about the job. */
export interface NotBegun {
  refused: string;
  /** Whether that was the moment at which it began to wait for approval. */
  parked?: boolean;
}

/**
 * Begins a run, or goes on with one that a stop of the scheduler left: takes the job's lock and moves it
 * to `executing`; or parks it when it needs a grant.
 *
 * @param options.signal cuts the report of an earlier run short that is still to be made
 *
 * @throws SvcError `unknown_job`, `register_write`
 */
export async function beginRun(
  context: JobContext,
  name: string,
  trigger: RunTrigger,
  { retry = true, signal }: { retry?: boolean; signal?: AbortSignal } = {},
): Promise<JobRun | NotBegun> {
  const { register, clock } = context;
  register.need(name);
  const lock = holdJob(context, name);
  if (lock === undefined) return { refused: "is running in another process" };
  let run: JobRun | undefined;
  let services: Services | undefined;
  try {
    await recoverHeld(context, name, signal);
    const before = register.need(name);
    // A run by hand is a new one: the one that is left is over with that.
    if (trigger === "run" && before.running !== undefined) {
      await reportLeft(context, before, signal);
    }
    if (signal?.aborted) return { refused: "was not begun before the stop" };
    services = await openSafely(context, before);
    let start: ReturnType<typeof startOf> = { refused: "is gone" };
    let planned = "";
    const job = await register.change(name, (job) => {
      planned = job.next_run_at;
      const session = () => sessionFor(job, services);
      start = startOf(job, trigger, { now: clock.now(), session });
      return start.set && { set: start.set };
    });
    if (start.parked && services !== undefined) {
      await tellStep(services, { event: "job.waiting_approval", job: name }, clock);
    }
    if (start.refused !== undefined || job === undefined) {
      return { refused: start.refused ?? "is gone", parked: start.parked };
    }
    run = new JobRun(context, { lock, job, planned, trigger, retry, services });
    if (services !== undefined) {
      const { session, attempt } = job.running!;
      await tellStep(services, { event: "job.will_run", job: name, session, attempt }, clock);
    }
    return run;
  } finally {
    if (run === undefined) {
      lock.release();
      await services?.workspace.close();
    }
  }
}

/** What the beginning of a run hands to it. */
export interface BegunRun {
  lock: HeldLock;
  /** As it is once the run has begun. */
  job: Job;
  /** `next_run_at` when the run began. */
  planned: string;
  trigger: RunTrigger;
  retry: boolean;
  services: Services | undefined;
}

/**
 * One run of a job: its attempts share a session. All that a restart needs to go on is in the register
 * before an attempt begins, and after it has ended.
 */
export class JobRun {
  readonly name: string;
  /** When the next attempt is due, in milliseconds; undefined: the run is over. */
  next: number | undefined;
  /** What the run came to, once it is over. */
  report: JobReport | undefined;
  readonly #context: JobContext;
  readonly #trigger: RunTrigger;
  readonly #retry: boolean;
  readonly #lock: HeldLock;
  readonly #planned: string;
  readonly #asks: number[] = [];
  /** Index of the run's first turn. */
  #turn = 0;
  #job: Job;
  #services: Services | undefined;
  #last: { entry: HistoryEntry; content: string } | undefined;

  /** Only `beginRun` makes one. */
  constructor(
    context: JobContext,
    { lock, job, planned, trigger, retry, services }: BegunRun,
  ) {
    this.name = job.name;
    this.next = context.clock.now();
    this.#context = context;
    this.#trigger = trigger;
    this.#retry = retry;
    this.#lock = lock;
    this.#planned = planned;
    this.#job = structuredClone(job);
    this.#services = services;
  }

  /**
   * Makes the attempt that is due and saves it. Then the run is over, or `next` says when the next attempt
   * is due. Aborting the signal cancels the attempt: it has failed then, with the reason `interrupted`.
   *
   * @param began is told of the attempt once it has begun
   */
  async attempt(
    signal: AbortSignal,
    began: (attempt: Pick<HistoryEntry, "attempt" | "session">) => void = () => {},
  ): Promise<void> {
    try {
      if (this.#last !== undefined && !await this.#startNext()) {
        return await this.#conclude(true, signal);
      }
      const { clock, register } = this.#context;
      const started = clock.now();
      began(this.#running);
      const result = await this.#make(signal);
      await register.whenReadable(clock, signal);
      this.#asks.push(...result.asks);
      this.#turn ||= result.turn;
      this.#last = {
        entry: entryOf(result, { ...this.#running, started, finished: clock.now() }),
        content: result.content,
      };
      if (result.timed_out) await this.#tell("job.timeout", result.reason);
      const again = this.#again(result);
      if (again === undefined) return await this.#conclude(false, signal);
      await this.#saveFailed(again, signal);
      this.next = again;
    } catch (error) {
      this.#over();
      throw error;
    }
  }

  /** The attempt that was made last. */
  get last(): HistoryEntry | undefined {
    return this.#last?.entry;
  }

  /** Ends a run that waits for its next attempt: nobody waits with it any more. */
  async giveUp(): Promise<void> {
    await this.#conclude(true, AbortSignal.abort());
  }

  /** Leaves a run that waits for its next attempt to a later start of the scheduler. */
  async suspend(): Promise<void> {
    try {
      await leaveForLater(this.#context, this.name);
    } finally {
      this.#over();
    }
  }

  /** Notes that the next attempt begins; false when the job was withdrawn while it waited. */
  async #startNext(): Promise<boolean> {
    const { register, clock } = this.#context;
    let begins = false;
    const job = await register.change(this.name, ({ status, enabled, running }) => {
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
      const services = this.#services ??= await openForJob(this.#context, this.#job);
      const { attempt } = this.#running;
      this.#running.session ||= sessionFor(this.#job, services);
      await this.#tell("job.executing");
      const { session } = this.#running;
      return await runAttempt(services, this.#context, {
        job: this.#job,
        session,
        attempt,
        signal,
      });
    } catch (error) {
      return failedBefore(errorMessage(error));
    }
  }

  /** When to try again; undefined: not at all. */
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
      this.#over();
    }
  }

  #over(): void {
    if (this.next !== undefined) this.#lock.release();
    this.next = undefined;
  }

  get #running() {
    return this.#job.running!;
  }

  async #tell(event: JobEvent["event"], reason = ""): Promise<void> {
    if (this.#services === undefined) return;
    const { session, attempt } = this.#running;
    const step = { event, job: this.name, session, attempt, reason };
    await tellStep(this.#services, step, this.#context.clock);
  }
}

/**
 * Makes all attempts that a run needs, each when it is due. Aborting the signal cancels the one that is
 * being made, and ends the run.
 *
 * @param waits is told of each wait before the next attempt, in milliseconds
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
