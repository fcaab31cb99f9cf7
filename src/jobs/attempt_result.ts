import { MAX_WAIT } from "./schedule.ts";
import type { HistoryEntry, Job } from "./schema.ts";
import type { RunTrigger } from "./start.ts";

/** Characters of a reason, and of an answer, that the history keeps. */
export const MAX_REASON = 300;
const MAX_CONTENT = 1000;

/** How an attempt ended. */
export interface AttemptResult {
  status: "verified" | "failed";
  /** Why it failed, at most 300 characters. */
  reason: string;
  content: string;
  timed_out: boolean;
  interrupted: boolean;
  /** Whether trying again may help: not when the job itself is at fault. */
  final: boolean;
  /** Ids of the questions that it parked. */
  asks: number[];
  /** Index of its turn in the session's log; 0: there was none. */
  turn: number;
}

/** What the history keeps of an attempt. */
export function entryOf(
  { status, reason, content }: AttemptResult,
  { started, finished, session, attempt }: {
    /** Milliseconds, as `finished`. */
    started: number;
    finished: number;
    session: string;
    attempt: number;
  },
): HistoryEntry {
  return {
    started_at: new Date(started).toISOString(),
    finished_at: new Date(finished).toISOString(),
    status,
    reason,
    duration: Math.max(0, Math.round((finished - started) / 100)) / 10,
    session,
    attempt,
    content: content.slice(0, MAX_CONTENT).toWellFormed(),
  };
}

/**
 * When the next attempt is due after one that ended so, in milliseconds; undefined when there is none. What
 * was interrupted is the scheduler's to go on with.
 */
export function retryAt(
  { status, enabled, retries, backoff }: Job,
  { status: ended, final, interrupted }: AttemptResult,
  { attempt, now, trigger }: { attempt: number; now: number; trigger: RunTrigger },
): number | undefined {
  if (ended === "verified" || final) return undefined;
  if (status !== "executing" || !enabled || attempt > retries) return undefined;
  if (interrupted) return trigger === "tick" ? now : undefined;
  return now + Math.min(backoff * 2 ** Math.min(attempt - 1, 40), MAX_WAIT) * 1000;
}

/** An attempt for which the worktree did not even open. */
export function failedBefore(reason: string): AttemptResult {
  return {
    status: "failed",
    reason: reason.slice(0, MAX_REASON),
    content: "",
    timed_out: false,
    interrupted: false,
    final: true,
    asks: [],
    turn: 0,
  };
}
