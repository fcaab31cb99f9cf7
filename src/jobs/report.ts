import type { Workspace } from "../engine/workspace.ts";
import { type Clock, timestamp } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import type { JobEvent, JobReport, JobsDigest, ReportService, RunReport } from "../plugins/api.ts";
import { openForReport } from "./attempt.ts";
import { type JobContext, record } from "./context.ts";
import { readTime } from "./schedule.ts";
import { type HistoryEntry, type Job, outcomeText } from "./schema.ts";
import { afterRun, transition } from "./transitions.ts";

/** A run that has ended. */
export interface EndedRun {
  /** Its last attempt. */
  entry: HistoryEntry;
  /** Whether the history contains that attempt already. */
  saved: boolean;
  /** The whole answer, and its data. */
  content: string;
  data?: unknown;
  /** Whether the job cannot work; left out: as before the run. */
  blocked?: boolean;
  /** When the backend may be asked again, in milliseconds, as it announced. */
  retry_at?: number;
  /** When the run began. */
  started_at: string;
  /** `next_run_at` when it began. */
  planned: string;
  /** Known ids of the questions that the run parked. */
  asks: number[];
  /** Index of the run's first turn in the session log, if known. */
  turn?: number;
  /** The worktree that was opened for the last attempt. */
  services?: Services;
  /**
   * Ends the summary for the job's memory, the wait for a register that cannot be written, and the report,
   * which is then left to the next start.
   */
  signal?: AbortSignal;
}

/**
 * Ends a run (specification 3.1, 2.11): saves its result and the next due time, updates the job's memory, and
 * reports the run. A process that dies after the save leaves the report to the next start.
 */
export async function concludeRun(
  context: JobContext,
  name: string,
  run: EndedRun,
): Promise<JobReport> {
  const { clock } = context;
  const { entry, saved } = run;
  const job = await record(context, name, (job) => {
    const outcome = transition(job, entry.status);
    return {
      append: saved ? undefined : entry,
      set: {
        ...("set" in outcome ? outcome.set : {}),
        ...afterRun(job, run, clock.now()),
        running: job.running && { ...job.running, phase: "report", session: entry.session },
      },
    };
  }, run.signal);
  return await reportEnd(context, name, run, job);
}

/** Updates the memory and reports a run whose result is saved. */
export async function reportEnd(
  context: JobContext,
  name: string,
  run: EndedRun,
  job: Job | undefined,
): Promise<JobReport> {
  const { clock, worktree, warn } = context;
  const { entry, started_at } = run;
  const payload: JobReport = {
    event: "job.run.completed",
    job: name,
    status: entry.status,
    outcome: outcomeText(entry),
    duration: seconds(started_at, entry.finished_at),
    reason: entry.reason,
    session: entry.session,
    started_at,
    finished_at: entry.finished_at,
    content: run.content,
    checked: entry.checked ?? false,
    denied: entry.denied ?? [],
    ...run.data !== undefined && { data: run.data },
    worktree,
    memory: "",
    usage: {},
    cost: null,
    parked_asks: [],
  };
  let opened: Services | undefined;
  let over = true;
  try {
    if (run.services === undefined && job !== undefined) opened = await openForReport(context, job);
    const services = run.services ?? opened;
    if (services !== undefined) {
      const { workspace } = services;
      const about = { job: name, session: entry.session, attempt: entry.attempt };
      await sendJobEvent(
        services,
        { event: `job.${entry.status}`, reason: entry.reason, ...about },
        clock,
      );
      // Plan mode leaves the memory as it is.
      const remembers = workspace.config.get("mode") !== "plan";
      if (job !== undefined && remembers) await remember(services, job, run);
      payload.memory = workspace.memory.read("job", name).replace(/\s+/g, " ").trim()
        .slice(0, MAX_MEMORY).toWellFormed();
      const { runUsage } = await import("../usage/summary.ts");
      await workspace.spending.ledger.refresh(); // other workers may have made attempts
      Object.assign(payload, runUsage(workspace.spending.ledger, name, started_at));
      payload.parked_asks = parked(services, run);
      over = await reportRun(services, payload, run.signal);
    }
  } catch (error) {
    warn(`${name}: the run is not reported: ${errorMessage(error)}`);
  }
  try {
    if (!over) return payload;
    // Without this record the run would be reported again.
    const parks = ({ status }: Job) => status === "waiting_approval";
    const done = (job: Job) =>
      job.running &&
      { set: { running: parks(job) ? { ...job.running, phase: "parked" as const } : undefined } };
    const after = await record(context, name, done, run.signal);
    if (after?.running && parks(after)) await reportParked(context, after, run.services ?? opened);
    return payload;
  } finally {
    await opened?.workspace.close();
  }
}

/**
 * Reports a run that waits for approval, once. A process that dies before leaves the report to the next start.
 *
 * @param services the worktree, where it is open
 * @throws SvcError when the worktree does not open; `register_write`
 */
export async function reportParked(
  context: JobContext,
  { name, status }: Job,
  services?: Services,
): Promise<void> {
  const { register, clock } = context;
  const opened = services ?? await openForReport(context, register.need(name));
  try {
    if (status === "waiting_approval") {
      await sendJobEvent(opened, { event: "job.waiting_approval", job: name }, clock);
    }
  } finally {
    if (services === undefined) await opened.workspace.close();
  }
  await record(
    context,
    name,
    (job) => job.running?.phase === "parked" ? { set: { running: undefined } } : undefined,
  );
}

const MAX_MEMORY = 1000;

/** Adds the run to the job's memory: a summary by its model or, if that fails, the result. */
async function remember({ workspace }: Services, job: Job, run: EndedRun): Promise<void> {
  const { entry, turn = 0, signal } = run;
  const ok = entry.status === "verified";
  const ended = { ok, text: ok ? run.content : [entry.reason, run.content].join("\n").trim() };
  const about = { scope: "job" as const, name: job.name };
  if (turn === 0 || signal?.aborted) {
    const summarise = () => Promise.resolve("");
    return await workspace.memory.remember({ ...about, summarise, fallback: ended });
  }
  const { memorize } = await import("../engine/memorize.ts");
  const { sessionRole } = await import("../engine/start.ts");
  const { model } = await sessionRole(workspace, { role: job.role, session: entry.session }) ?? {};
  await memorize({
    workspace,
    ...about,
    turns: workspace.sessions.read(entry.session)?.turns.filter(({ index }) => index >= turn) ?? [],
    ended,
    backend: workspace.backend({ role_model: model }),
    session_id: entry.session,
    signal: signal ?? new AbortController().signal,
  });
}

/** The pending questions of a run: the known ids, and those of its session. */
function parked(
  { workspace }: Services,
  { asks, entry, started_at }: EndedRun,
): JobReport["parked_asks"] {
  const own = (origin: string, created_at: string) =>
    origin === entry.session && created_at >= started_at;
  return workspace.asks.list("pending")
    .filter(({ id, origin, created_at }) => asks.includes(id) || own(origin, created_at))
    .map(({ id, origin, question }) => ({ id, origin, question }));
}

function seconds(from: string, to: string): number {
  const milliseconds = (readTime(to) ?? 0) - (readTime(from) ?? 0);
  return Math.max(0, Math.round(milliseconds / 100)) / 10;
}

/** Milliseconds that a service has for a report, and for a job event that is none. */
const REPORT_LIMIT = 30_000;
const EVENT_LIMIT = 10_000;
/** Milliseconds that a report has after the program was asked to stop. */
const STOP_LIMIT = 2000;

/** The `report` services of a worktree. */
export interface Services {
  report: ReportService[];
  workspace: Workspace;
}

/** The services that plugins have registered under `report`. */
export function reportServices(
  workspace: Workspace,
  services: Map<string, Record<string, unknown>[]>,
): Services {
  return { report: (services.get("report") ?? []) as unknown as ReportService[], workspace };
}

/**
 * Sends `job.run.completed` to every service (specification 6.1). Never throws.
 *
 * @param signal when it aborts, the services have two more seconds
 * @returns false when a service needed longer than that
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

/** Sends a job event to every service that has `job_event`. Never throws. */
export async function sendJobEvent(
  { report, workspace }: Services,
  step: { event: JobEvent["event"]; job: string } & Partial<JobEvent>,
  now: Clock,
): Promise<void> {
  const receivers = report.filter((service) => typeof service.job_event === "function");
  if (receivers.length === 0) return;
  const { paths: { worktree }, config, warn, clock } = workspace;
  const limit = step.event === "job.waiting_approval" ? REPORT_LIMIT : EVENT_LIMIT;
  const event = { session: "", attempt: 0, reason: "", timestamp: timestamp(now), worktree };
  await Promise.all(receivers.map((service) =>
    safely(
      () => service.job_event!({ ...event, ...step }, config),
      { limit, clock, warn, what: `The event ${step.event} of the job ${step.job}` },
    )
  ));
}

/** Sends a digest to every service that takes one. Never throws. */
export async function sendDigest(
  { report, workspace: { config, warn, clock } }: Services,
  digest: JobsDigest,
): Promise<void> {
  await Promise.all(
    report.filter((service) => typeof service.digest === "function").map((service) =>
      safely(
        () => service.digest!(structuredClone(digest), config),
        { limit: REPORT_LIMIT, clock, warn, what: "The digest of the jobs" },
      )
    ),
  );
}

/**
 * Sends the end of a run of the server to its webhook. Never throws.
 *
 * @param signal as in {@linkcode reportRun}
 * @returns false when a service needed longer than that
 */
export async function reportRunEnd(
  { report, workspace: { config, warn, clock } }: Services,
  payload: RunReport,
  webhook: string,
  signal: AbortSignal,
): Promise<boolean> {
  const what = `The webhook of the run ${payload.run}`;
  const taken = await Promise.all(
    report.filter((service) => typeof service.run_ended === "function").map((service) =>
      safely(
        () => service.run_ended!(structuredClone(payload), webhook, config),
        { limit: REPORT_LIMIT, clock, warn, what, signal },
      )
    ),
  );
  return taken.every((each) => each !== "cut");
}

/** Calls a service with a time limit. Errors are warned about. */
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
  late.catch(() => {}); // the service may have finished in time
  const cut = Promise.withResolvers<"cut">();
  const stop = () => {
    clock.sleep(STOP_LIMIT, settled.signal).then(() => cut.resolve("cut"), () => {});
  };
  if (signal?.aborted) stop();
  else signal?.addEventListener("abort", stop, { once: true });
  try {
    if (await Promise.race([taken, late, cut.promise]) !== "cut") return;
    taken.catch(() => {}); // its result is no longer awaited
    warn(`${what} was not taken before the stop; it is left to the next start`);
    return "cut";
  } catch (error) {
    warn(`${what} was not taken: ${errorMessage(error)}`);
  } finally {
    signal?.removeEventListener("abort", stop);
    settled.abort();
  }
}
