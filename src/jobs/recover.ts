import { timestamp } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import { concludeRun, reportEnd, reportParked } from "./report.ts";
import { type HeldJob, holdJob, isTrusted, type JobContext, record } from "./context.ts";
import { readTime } from "./schedule.ts";
import type { HistoryEntry, Job } from "./schema.ts";
import { transition } from "./transitions.ts";

/**
 * Recovers runs whose process died. An interrupted attempt is recorded as failed with the reason `interrupted`
 * and counts as an attempt; the run is due again for its next attempt. A run that had ended is reported. Runs of
 * live processes are not touched. Aborting the signal ends the recovery after the current job.
 */
export async function recover(context: JobContext, signal?: AbortSignal): Promise<void> {
  await context.register.refresh();
  const left = context.register.list().filter((job) =>
    (job.status === "executing" || job.running) && isTrusted(context, job)
  );
  if (left.length === 0) return;
  const store = await context.store?.open();
  const held = new Set((await store?.leases.held("job/"))?.map(({ name }) => name));
  for (const { name, status, running } of left) {
    if (signal?.aborted) return;
    if (status !== "executing" && running?.phase === "backoff") continue; // due at `next_at`
    if (held.has(`job/${name}`)) continue;
    const lock = await holdJob(context, name);
    if (lock === undefined) continue;
    try {
      await context.store?.refresh(); // the worker that had the lease may have ended the run
      await recoverHeld(context, name, lock, signal);
    } catch (error) {
      context.warn(`${name}: what an earlier process left is not taken up: ${errorMessage(error)}`);
    } finally {
      await lock.release();
    }
  }
}

/** Recovers one job, whose lock the caller holds. */
export async function recoverHeld(
  context: JobContext,
  name: string,
  { token }: Pick<HeldJob, "token">,
  signal?: AbortSignal,
): Promise<void> {
  const { register } = context;
  const isLeft = (job: Job | undefined) =>
    job !== undefined && (job.status === "executing" || job.running !== undefined);
  let job = register.get(name);
  if (isLeft(job) && job?.running?.phase !== "backoff" && token !== undefined) {
    // The worker whose lease has expired may live, and have ended the run just now. From here on it records nothing.
    job = await register.change(
      name,
      ({ running }) => running && { set: { running: { ...running, token } } },
    );
  }
  if (job === undefined || !isLeft(job)) return;
  switch (job.running?.phase) {
    case "report":
      return await reportLeft(context, job, signal);
    case "parked":
      return await reportParked(context, job);
    case "backoff":
      if (job.status === "executing") await leaveForLater(context, name);
      return;
    default:
      return await recordInterrupted(context, job, signal);
  }
}

/** Leaves a run to a later tick, which continues it when its next attempt is due. */
export async function leaveForLater(context: JobContext, name: string): Promise<void> {
  await record(context, name, (job) => {
    const outcome = transition(job, "interrupted");
    if ("refused" in outcome || job.running === undefined) return { set: { running: undefined } };
    return { set: { ...outcome.set, next_run_at: job.running.next_at || job.next_run_at } };
  });
}

async function recordInterrupted(
  context: JobContext,
  job: Job,
  signal: AbortSignal | undefined,
): Promise<void> {
  const { register, clock } = context;
  const { running, name } = job;
  await register.removeTemporaryFiles();
  const entry = interrupted(job, timestamp(clock));
  // The next attempt is due at once for all machines, though the clock of this one may be ahead. It has a time of its
  // own, since the queue may still have the item of the attempt that was interrupted.
  const due = readTime(running?.due ?? "");
  if (job.status === "executing" && job.enabled && entry.attempt <= job.retries) {
    await register.change(name, (job) => ({
      append: entry,
      set: {
        running: {
          started_at: entry.started_at,
          session: "",
          ...job.running,
          attempt: entry.attempt,
          phase: "backoff",
          attempt_at: "",
          next_at: due === undefined
            ? entry.finished_at
            : new Date(due + entry.attempt).toISOString(),
          token: undefined,
          worker: undefined,
        },
      },
    }));
    return await leaveForLater(context, name);
  }
  await concludeRun(context, name, {
    entry,
    saved: false,
    content: "",
    started_at: running?.started_at || entry.started_at,
    planned: job.next_run_at,
    asks: [],
    signal,
  });
}

function interrupted({ running, session, last_run_at }: Job, now: string): HistoryEntry {
  const started_at = running?.attempt_at || running?.started_at || last_run_at || now;
  const milliseconds = readTime(now)! - (readTime(started_at) ?? 0);
  return {
    started_at,
    finished_at: now,
    status: "failed",
    reason: "interrupted",
    duration: Math.max(0, Math.round(milliseconds / 100)) / 10,
    session: running?.session || session,
    attempt: running?.attempt ?? 1,
    ...running?.worker !== undefined && { worker: running.worker },
    content: "",
  };
}

/** Reports a run that is not continued, with its last attempt as the result. */
export async function reportLeft(
  context: JobContext,
  job: Job,
  signal?: AbortSignal,
): Promise<void> {
  const entry = context.register.history(job.name).at(-1);
  if (entry === undefined) {
    await context.register.change(job.name, () => ({ set: { running: undefined } }));
    return;
  }
  await reportEnd(context, job.name, {
    entry,
    saved: true,
    content: entry.content,
    data: entry.data,
    started_at: job.running!.started_at || entry.started_at,
    planned: job.next_run_at,
    asks: [],
    signal,
  }, job);
}
