import { SvcError } from "../platform/error.ts";
import type { JobContext } from "./attempt.ts";
import { isDue, plannedRun } from "./due.ts";
import type { Job } from "./schema.ts";
import { transition } from "./transitions.ts";

/** What an operator does to a job's gates (specification 3.1). */
export type GateTrigger = "approve" | "reject" | "enable" | "disable" | "stop";

/**
 * Opens or closes a gate of a job. What its schedule missed behind a closed gate is not made up for; only a
 * run that was parked is made at once.
 *
 * @throws SvcError `unknown_job` (exit 2); `job_refused` when the job does not need it
 */
export async function moveGate(
  { register, clock }: Pick<JobContext, "register" | "clock">,
  name: string,
  trigger: GateTrigger,
): Promise<Job> {
  register.need(name);
  const job = await register.change(name, (job) => {
    const outcome = transition(job, trigger);
    if ("refused" in outcome) {
      throw new SvcError("job_refused", `The job ${name} ${outcome.refused}.`);
    }
    const opens = trigger === "enable" ? !job.enabled : job.status === "proposed";
    const missed = job.next_run_at === "" || isDue(job, clock.now());
    return {
      set: {
        ...outcome.set,
        ...((trigger === "enable" || trigger === "approve") && opens && missed && {
          next_run_at: plannedRun(job, clock.now()),
        }),
      },
    };
  });
  return job ?? register.need(name); // it was removed just now
}
