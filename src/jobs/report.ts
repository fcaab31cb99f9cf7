import type { Workspace } from "../engine/workspace.ts";
import type { JobEvent, JobReport, ReportService } from "../plugins/api.ts";
import { type Clock, timestamp } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";

/** Milliseconds that a service has for a report, and for a step of a job. */
const REPORT_LIMIT = 30_000;
const EVENT_LIMIT = 10_000;
/** Milliseconds that a report has once somebody has asked the program to end. */
const STOP_LIMIT = 2000;

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

/**
 * Sends `job.run.completed` to every service (specification 6.1). Never throws.
 *
 * @param signal leaves the services two more seconds once it aborts
 * @returns false when that was not enough for one of them
 */
export async function reportRun(
  { report, workspace: { config, warn, clock } }: Services,
  payload: JobReport,
  signal?: AbortSignal,
): Promise<boolean> {
  const what = `A report of the job ${payload.job}`;
  const taken = await Promise.all(report.map((service) =>
    safely(
      () => service.report(structuredClone(payload), config),
      { limit: REPORT_LIMIT, clock, warn, what, signal },
    )
  ));
  return taken.every((each) => each !== "cut");
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
  { limit, clock, warn, what, signal }: {
    limit: number;
    clock: Clock;
    warn: (message: string) => void;
    what: string;
    signal?: AbortSignal;
  },
): Promise<"cut" | void> {
  const taken = (async () => void await call())();
  const settled = new AbortController();
  const late = clock.sleep(limit, settled.signal).then(() => {
    throw new Error(`it took longer than ${limit / 1000} seconds`);
  });
  late.catch(() => {}); // the service may have been in time
  const cut = Promise.withResolvers<"cut">();
  const stop = () => {
    clock.sleep(STOP_LIMIT, settled.signal).then(() => cut.resolve("cut"), () => {});
  };
  if (signal?.aborted) stop();
  else signal?.addEventListener("abort", stop, { once: true });
  try {
    if (await Promise.race([taken, late, cut.promise]) !== "cut") return;
    taken.catch(() => {}); // nobody waits for it any more
    warn(`${what} was not taken before the stop; it is left to the next start`);
    return "cut";
  } catch (error) {
    warn(`${what} was not taken: ${errorMessage(error)}`);
  } finally {
    signal?.removeEventListener("abort", stop);
    settled.abort();
  }
}
