import { period, readTime } from "./schedule.ts";
import { isRunnable } from "./transitions.ts";
import type { HistoryEntry, Job } from "./schema.ts";

/** One row of `svc jobs status` (specification 4.5). */
export interface JobHealth {
  name: string;
  status: Job["status"];
  enabled: boolean;
  /** Runs whose attempts the history has; it keeps the newest 100 attempts. */
  fired: number;
  /** Of these, those that ended well, and those whose last attempt failed. */
  ok: number;
  failed: number;
  /** Attempts in the history, retries among them. */
  attempts: number;
  /** The reason of the newest failed attempt; empty when none failed. */
  last_error: string;
  last_error_at: string;
  next_run_at: string;
  created_at: string;
  last_run: HistoryEntry | null;
  /** Approval of the next run; empty when it needs none, or there is no next run. */
  approval: "" | "approved" | "waiting";
  /** Whether the job, or its next run, waits for the operator's approval. */
  waiting: boolean;
  /** Whether the last run failed, and the job is not disabled by the operator. */
  failing: boolean;
  /** Why the job cannot work, and since when; null for a job that can. */
  blocked: { since: string; reason: string } | null;
  /** Whether its attempt runs for longer than several of its intervals. */
  stuck: boolean;
  /** The session of a run that has begun and not ended; empty: none. */
  running_session: string;
}

export function healthOf(job: Job, history: HistoryEntry[], now: number): JobHealth {
  const { running } = job;
  const failures = history.filter(({ status }) => status === "failed");
  const error = failures.at(-1);
  const last_run = history.at(-1) ?? null;
  // The last attempt of each run; that of a run which waits for a retry is no end.
  const ends = history.filter((_, at) => (history[at + 1]?.attempt ?? 1) === 1);
  const open = running?.phase === "backoff" || running?.phase === "attempt" && running.attempt > 1;
  const ok = ends.filter(({ status }) => status === "verified").length;
  return {
    name: job.name,
    status: job.status,
    enabled: job.enabled,
    fired: ends.length,
    ok,
    failed: ends.length - ok - (open ? 1 : 0),
    attempts: history.length,
    last_error: error?.reason ?? "",
    last_error_at: error?.finished_at ?? "",
    next_run_at: isRunnable(job) || job.status === "executing" ? job.next_run_at : "",
    created_at: job.created_at,
    last_run,
    approval: approvalOf(job),
    waiting: job.enabled && job.status === "proposed" || approvalOf(job) === "waiting",
    failing: last_run?.status === "failed" && (job.enabled || isOver(job)),
    blocked: job.blocked ?? null,
    stuck: job.status === "executing" && running?.phase === "attempt" &&
      isStuck(job, readTime(running.attempt_at) ?? now, now),
    running_session: running?.session ?? "",
  };
}

/** The intervals of a job for which its attempt may run; after that it counts as stuck. */
export const MAX_INTERVALS = 3;

/** Whether an attempt that began at `began` (milliseconds) runs for longer than several intervals of its job. */
export function isStuck({ schedule }: Job, began: number, now: number): boolean {
  return now - began > MAX_INTERVALS * period(schedule, began);
}

/** The approval of a job's next run; empty when it needs none, or there is no next run. */
export function approvalOf(job: Job): JobHealth["approval"] {
  if (!job.require_approval || !job.enabled || isOver(job)) return "";
  if (job.approval_pending) return "approved";
  return isRunnable(job) || job.status === "waiting_approval" ? "waiting" : "";
}

/** Whether a one-shot job has run, so that it never runs again by itself. */
export function isOver({ schedule, last_run_at, next_run_at }: Job): boolean {
  return schedule.at !== undefined && last_run_at !== "" && next_run_at === "";
}
