import type { JobReport } from "../plugins/api.ts";
import { errorMessage } from "../platform/error.ts";
import { afterRun } from "./due.ts";
import { type JobContext, openForJob } from "./attempt.ts";
import { readTime } from "./schedule.ts";
import { record } from "./record.ts";
import { reportRun, type Services, tellStep } from "./report.ts";
import type { HistoryEntry, Job } from "./schema.ts";
import { transition } from "./transitions.ts";

/** What is known of a run that is over. */
export interface EndedRun {
  /** Its last attempt. */
  entry: HistoryEntry;
  /** Whether the history has that attempt yet. */
  saved: boolean;
  /** The whole answer. */
  content: string;
  /** When the run began. */
  started_at: string;
  /** `next_run_at` when it began. */
  planned: string;
  /** Ids of the questions that it parked, as far as they are known. */
  asks: number[];
  /** Index of its first turn in the session's log, where that is known. */
  turn?: number;
  /** The worktree as it was opened for the last attempt. */
  services?: Services;
  /**
   * Cuts the summary for the job's memory short, the wait for a register that cannot be written, and the
   * report, which is then left to the next start.
   */
  signal?: AbortSignal;
}

/**
 * Ends a run (specification 3.1, 2.11): saves its end with the next due time, lets the job remember it, and
 * reports it once. A process that dies after the save leaves the report to the next start.
 */
export async function concludeRun(
  context: JobContext,
  name: string,
  run: EndedRun,
): Promise<JobReport> {
  const { clock } = context;
  const { entry, saved, started_at, planned } = run;
  const job = await record(context, name, (job) => {
    const outcome = transition(job, entry.status);
    return {
      append: saved ? undefined : entry,
      set: {
        ...("set" in outcome ? outcome.set : {}),
        ...afterRun(job, { now: clock.now(), planned, started_at }),
        running: job.running && { ...job.running, phase: "report", session: entry.session },
      },
    };
  }, run.signal);
  return await reportEnd(context, name, run, job);
}

/** Tells of a run whose end is saved: memory, services. */
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
    duration: seconds(started_at, entry.finished_at),
    reason: entry.reason,
    session: entry.session,
    started_at,
    finished_at: entry.finished_at,
    content: run.content,
    worktree,
    memory: "",
    parked_asks: [],
  };
  let opened: Services | undefined;
  let over = true;
  try {
    if (run.services === undefined && job !== undefined) opened = await openForJob(context, job);
    const services = run.services ?? opened;
    if (services !== undefined) {
      const { workspace } = services;
      const about = { job: name, session: entry.session, attempt: entry.attempt };
      await tellStep(
        services,
        { event: `job.${entry.status}`, reason: entry.reason, ...about },
        clock,
      );
      if (job !== undefined) await remember(services, name, run);
      payload.memory = workspace.memory.read("job", name).replace(/\s+/g, " ").trim()
        .slice(0, MAX_MEMORY).toWellFormed();
      payload.parked_asks = parked(services, run);
      over = await reportRun(services, payload, run.signal);
    }
  } catch (error) {
    warn(`${name}: the run is not reported: ${errorMessage(error)}`);
  }
  await opened?.workspace.close();
  // What cannot be written down now would be reported again and again.
  const done = (job: Job) => job.running && { set: { running: undefined } };
  if (over) await record(context, name, done, run.signal);
  return payload;
}

const MAX_MEMORY = 1000;

/** Has the job remember the run: in the words of its model, or when that fails, how it ended. */
async function remember({ workspace }: Services, name: string, run: EndedRun): Promise<void> {
  const { entry, turn = 0, signal } = run;
  const ok = entry.status === "verified";
  const ended = { ok, text: ok ? run.content : [entry.reason, run.content].join("\n").trim() };
  const about = { scope: "job" as const, name };
  if (turn === 0 || signal?.aborted) {
    const summarise = () => Promise.resolve("");
    return await workspace.memory.remember({ ...about, summarise, fallback: ended });
  }
  const { memorize } = await import("../engine/agents/memorize.ts");
  await memorize({
    workspace,
    ...about,
    turns: workspace.sessions.read(entry.session)?.turns.filter(({ index }) => index >= turn) ?? [],
    ended,
    backend: workspace.backend(),
    session_id: entry.session,
    signal: signal ?? new AbortController().signal,
  });
}

/** The questions of a run that still wait: those that were seen, and those of its session. */
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
