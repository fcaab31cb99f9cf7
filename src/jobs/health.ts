import { isRunnable } from "./transitions.ts";
import type { HistoryEntry, Job } from "./schema.ts";

/** One row of `svc jobs status` (specification 4.5). */
export interface JobHealth {
  name: string;
  status: Job["status"];
  enabled: boolean;
  /** Attempts in the history. */
  fired: number;
  ok: number;
  failed: number;
  /** The reason of the newest failed attempt; empty when none failed. */
  last_error: string;
  last_error_at: string;
  next_run_at: string;
  created_at: string;
  last_run: HistoryEntry | null;
  /** Approval of the next run; empty for a job that requires none. */
  approval: "" | "approved" | "waiting";
}

export function healthOf(job: Job, history: HistoryEntry[]): JobHealth {
  const failures = history.filter(({ status }) => status === "failed");
  const error = failures.at(-1);
  return {
    name: job.name,
    status: job.status,
    enabled: job.enabled,
    fired: history.length,
    ok: history.length - failures.length,
    failed: failures.length,
    last_error: error?.reason ?? "",
    last_error_at: error?.finished_at ?? "",
    next_run_at: isRunnable(job) || job.status === "executing" ? job.next_run_at : "",
    created_at: job.created_at,
    last_run: history.at(-1) ?? null,
    approval: !job.require_approval ? "" : job.approval_pending ? "approved" : "waiting",
  };
}
