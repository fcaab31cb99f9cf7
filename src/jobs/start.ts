import { isDue } from "./due.ts";
import type { Job } from "./schema.ts";
import { transition } from "./transitions.ts";

/** What begins a run: the scheduler, when the job is due, or a human. */
export type RunTrigger = "tick" | "run";

/**
 * What the beginning of a run changes in a job; or why it does not begin, as the end of a sentence about the
 * job, which may be parked by that. A run that was left goes on with its next attempt, under the approval
 * that it was begun with.
 *
 * @param session gives the run its session, once it is sure to begin
 */
export function startOf(
  job: Job,
  trigger: RunTrigger,
  { now, session }: { now: number; session: () => string },
): { set?: Partial<Job>; refused?: string; parked?: true } {
  const left = job.running;
  const gates = left === undefined ? job : { ...job, require_approval: false };
  const outcome = transition(gates, trigger);
  if ("refused" in outcome) return outcome;
  if (trigger === "tick" && !isDue(job, now)) return { refused: "is not due any more" };
  if (outcome.set.status === "waiting_approval") {
    return { set: outcome.set, refused: "waits for approval", parked: true };
  }
  const stamp = new Date(now).toISOString();
  return {
    set: {
      ...outcome.set,
      ...(left && { approval_pending: job.approval_pending }),
      running: {
        attempt: (left?.attempt ?? 0) + 1,
        session: left?.session || session(),
        started_at: left?.started_at || stamp,
        phase: "attempt",
        attempt_at: stamp,
        next_at: "",
      },
    },
  };
}
