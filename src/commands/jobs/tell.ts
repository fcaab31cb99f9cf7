import { reportServices, tellStep } from "../../jobs/report.ts";
import type { Job } from "../../jobs/schema.ts";
import type { JobEvent } from "../../plugins/api.ts";
import type { View } from "./view.ts";

/** Tells the report services of what an operator did to a job, where it is a step of its own. */
export async function tellOperated(
  { workspace, context }: View,
  { name: job }: Job,
  action: "propose" | "approve" | "reject" | "enable" | "disable" | "stop",
): Promise<void> {
  const steps: Partial<Record<typeof action, JobEvent["event"]>> = {
    propose: "job.proposed",
    approve: "job.approved",
    reject: "job.proposed", // where it is then
  };
  const event = steps[action];
  if (event === undefined) return;
  const { services } = await workspace.load({ services: ["report"] });
  await tellStep(reportServices(workspace, services), { event, job }, context.clock);
}
