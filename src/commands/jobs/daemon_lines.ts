import type { JobContext } from "../../jobs/attempt.ts";
import type { Stopping } from "../../jobs/daemon.ts";
import type { Step } from "../../jobs/tick.ts";
import { nextOf } from "./view.ts";
import { span } from "../table.ts";

/** What the scheduler did, as one line of its log. */
export function stepLine(step: Step | Stopping, { register, clock }: JobContext): string {
  switch (step.step) {
    case "started":
      return `${step.job}: attempt ${step.attempt} in session ${step.session || "(none yet)"}`;
    case "retry": {
      const wait = Math.max(0, step.next - clock.now()) / 1000;
      return `${step.job}: attempt ${step.attempt} failed (${step.reason}); ` +
        `the next one comes in ${span(wait)}`;
    }
    case "parked":
      return `${step.job}: waits for approval (svc jobs approve ${step.job})`;
    case "finished": {
      const { status, reason, duration, parked_asks } = step.report;
      const job = register.get(step.job);
      const asks = parked_asks.map(({ id }) => `; ask #${id} waits for you`).join("");
      const next = job === undefined ? "removed" : nextOf(job, clock.now());
      return `${step.job}: ${status} in ${duration} s${reason && ` (${reason})`}${asks}; ` +
        `next run: ${next}`;
    }
    case "stopping":
      return `scheduler: stopping; ${step.jobs.join(", ")} ${
        step.jobs.length === 1 ? "has" : "have"
      } ${span(step.grace)} to finish`;
  }
}

/** Whether somebody who wants to hear only of what goes wrong wants to hear this. */
export function isTrouble(step: Step | Stopping): boolean {
  return step.step === "finished" && step.report.status === "failed";
}
