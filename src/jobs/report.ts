import type { Workspace } from "../engine/workspace.ts";
import type { JobEvent, JobReport, ReportService } from "../plugins/api.ts";
import { type Clock, timestamp } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";

/** Milliseconds that a service has for a report, and for a step of a job. */
const REPORT_LIMIT = 30_000;
const EVENT_LIMIT = 10_000;

/** The `report` services of a worktree. */
export interface Services {
  report: ReportService[];
  workspace: Workspace;
}

/** The services that the plugins register under `report`; `load` of the workspace has brought them. */
export function reportServices(
  workspace: Workspace,
  services: Map<string, Record<string, unknown>[]>,
): Services {
  return { report: (services.get("report") ?? []) as unknown as ReportService[], workspace };
}

/** Sends `job.run.completed` to every service (specification 6.1). Never throws. */
export async function reportRun(
  { report, workspace: { config, warn, clock } }: Services,
  payload: JobReport,
): Promise<void> {
  await Promise.all(report.map((service) =>
    safely(
      () => service.report(structuredClone(payload), config),
      { limit: REPORT_LIMIT, clock, warn, what: `A report of the job ${payload.job}` },
    )
  ));
}

/** Tells every service that takes them of a step of a job. Never throws. */
export async function tellStep(
  { report, workspace }: Services,
  step: { event: JobEvent["event"]; job: string } & Partial<JobEvent>,
  now: Clock,
): Promise<void> {
  const takers = report.filter((service) => typeof service.job_event === "function");
  if (takers.length === 0) return;
  const { paths: { worktree }, config, warn, clock } = workspace;
  const event = { session: "", attempt: 0, reason: "", timestamp: timestamp(now), worktree };
  await Promise.all(takers.map((service) =>
    safely(
      () => service.job_event!({ ...event, ...step }, config),
      { limit: EVENT_LIMIT, clock, warn, what: `The event ${step.event} of the job ${step.job}` },
    )
  ));
}

/** Waits for a service as long as it may take; what goes wrong is warned about. */
async function safely(
  call: () => unknown,
  { limit, clock, warn, what }: {
    limit: number;
    clock: Clock;
    warn: (message: string) => void;
    what: string;
  },
): Promise<void> {
  const settled = new AbortController();
  const late = clock.sleep(limit, settled.signal).then(() => {
    throw new Error(`it took longer than ${limit / 1000} seconds`);
  });
  late.catch(() => {}); // the service may have been in time
  try {
    await Promise.race([(async () => await call())(), late]);
  } catch (error) {
    warn(`${what} was not taken: ${errorMessage(error)}`);
  } finally {
    settled.abort();
  }
}
