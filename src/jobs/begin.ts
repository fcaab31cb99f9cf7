import { type JobContext, openSafely, sessionFor } from "./attempt.ts";
import { holdJob } from "./lock.ts";
import { recoverHeld, reportLeft } from "./recover.ts";
import { type Services, tellStep } from "./report.ts";
import { JobRun } from "./run.ts";
import { type RunTrigger, startOf } from "./start.ts";

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
