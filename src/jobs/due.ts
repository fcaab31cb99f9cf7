import type { Job } from "./schema.ts";
import { nextRun, readTime } from "./schedule.ts";

/** Whether the scheduler may run a job by itself (specification 3.1). */
export function isRunnable({ enabled, status }: Job): boolean {
  return enabled && (status === "approved" || status === "verified" || status === "failed");
}

/** Whether a job's time has come; one whose time is past is due at once (specification 4.5). */
export function isDue({ next_run_at }: Job, now: number): boolean {
  const next = readTime(next_run_at);
  return next !== undefined && next <= now;
}

/** Milliseconds by which two looks at an honest clock may be at odds. */
const ODDS = 3600_000;

/**
 * Whether something that has happened lies in the future: then the clock was wrong at that time, and has been
 * set back since.
 */
export function isAhead(happened: string, now: number): boolean {
  return (readTime(happened) ?? 0) > now + ODDS;
}

/**
 * The next run that a job lacks: it was written by hand, or planned by a clock that ran ahead, which would
 * keep it waiting for as long. Undefined when its plan is good.
 */
export function missingPlan(job: Job, now: number): string | undefined {
  const { next_run_at, last_run_at, running } = job;
  if (!isRunnable(job)) return undefined;
  const astray = next_run_at !== "" &&
    (isAhead(last_run_at, now) || isAhead(running?.started_at ?? "", now));
  if (next_run_at !== "" && !astray) return undefined;
  const planned = running === undefined ? plannedRun(job, now) : dated(now);
  const sooner = next_run_at === "" || readTime(planned)! < readTime(next_run_at)!;
  return planned !== "" && sooner ? planned : undefined;
}

/** When a job runs next by its schedule, as the register has it; empty: never. */
export function plannedRun(
  { schedule, last_run_at }: Pick<Job, "schedule" | "last_run_at">,
  now: number,
): string {
  return dated(nextRun(schedule, { now, ran: last_run_at !== "" }));
}

/**
 * What the end of a run changes: when it ran, when the next is due, and a one-shot job's gate.
 *
 * @param planned `next_run_at` as it was when the run began: a later one that was set since then stays
 */
export function afterRun(
  job: Job,
  { now, planned, started_at }: { now: number; planned: string; started_at: string },
): Partial<Job> {
  const set = job.next_run_at !== planned && !isDue(job, now) ? job.next_run_at : "";
  return {
    last_run_at: started_at,
    next_run_at: set || dated(nextRun(job.schedule, { now, ran: true })),
    enabled: job.enabled && job.schedule.at === undefined,
  };
}

function dated(time: number | undefined): string {
  return time === undefined ? "" : new Date(time).toISOString();
}
