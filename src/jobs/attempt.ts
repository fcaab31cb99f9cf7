import { startDeadline } from "../engine/budget.ts";
import { type DeniedCall, ROOT_RUN, type TurnResult } from "../engine/events.ts";
import { unusableWithRoles } from "../engine/agents.ts";
import { type AgentRequest, prepareAgent } from "../engine/start.ts";
import { taskOf } from "../engine/task.ts";
import { JOB_NEEDS, Workspace } from "../engine/workspace.ts";
import { joinSignals } from "../platform/clock.ts";
import { errorMessage, SvcError, usageError } from "../platform/error.ts";
import { type Span, startSpan, within } from "../platform/trace.ts";
import type { ConfigView, Usage } from "../plugins/api.ts";
import type { Authority } from "../policy/roles.ts";
import { headlessOperator } from "../policy/operator.ts";
import type { Session } from "../sessions/session.ts";
import type { JobContext } from "./context.ts";
import { attemptPrompt, type HookEvent, jobSections } from "./prompt.ts";
import { reportServices, type Services } from "./report.ts";
import { MAX_WAIT } from "./schedule.ts";
import type { HistoryEntry, Job } from "./schema.ts";
import type { RunTrigger } from "./transitions.ts";

/** Characters of a reason and of an answer that the history keeps. */
const MAX_REASON = 300;
const MAX_CONTENT = 1000;
/** Characters of JSON, and refused calls, that the history keeps. */
const MAX_DATA = 20_000;
const MAX_DENIED = 20;

/**
 * Opens the worktree for one attempt, with its current configuration and plugins and the job's overrides
 * (specification 4.5).
 *
 * @param folder where its agent works. Default: the worktree
 * @throws SvcError (exit 2) when the configuration or an override is invalid
 */
export async function openForJob(
  context: JobContext,
  job: Job,
  options?: Parameters<Workspace["load"]>[1],
  folder = context.worktree,
): Promise<Services> {
  const { worktree, environment, store, trust, warn } = context;
  const given = { mode: job.mode, provider: job.provider, model: job.model };
  const workspace = Workspace.open({
    path: folder,
    project: worktree,
    environment,
    store,
    trusted: trust.all,
    warn: (message) => warn(`${job.name}: ${message}`),
    overrides: {
      unattended: true,
      ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== "")),
      ...(Object.keys(job.tool_permission).length > 0 && { tool_permission: job.tool_permission }),
    },
  });
  const { config } = workspace;
  config.override("tools.deny", [...new Set([...config.get("tools.deny"), ...job.tools_deny])]);
  const { services } = await workspace.load(JOB_NEEDS, options);
  return reportServices(workspace, services);
}

/** The worktree for a job; undefined when it does not open, which the attempt then reports. */
export async function openSafely(context: JobContext, job: Job): Promise<Services | undefined> {
  try {
    return await openForJob(context, job);
  } catch {
    return undefined;
  }
}

/** The worktree for the report of a job; without the job's mode when it does not open with that. */
export function openForReport(context: JobContext, job: Job): Promise<Services> {
  return openForJob(context, job).catch(() => openForJob(context, { ...job, mode: "" }));
}

/**
 * Checks what can be known of a job without running it: mode, role, provider, model, its approval and price, session.
 * Whether the backend answers, has the model and takes the key is left to the first attempt.
 *
 * @throws SvcError (exit 2) with a hint
 */
export async function checkJob(context: JobContext, job: Job): Promise<void> {
  const { workspace } = await openForJob({ ...context, warn: () => {} }, job);
  try {
    const { sessions } = workspace;
    await sessions.current(job.session);
    if (sessions.list().includes(job.session) && sessions.summary(job.session) === undefined) {
      throw usageError(
        "session_unreadable",
        `The session ${job.session} cannot be read.`,
        "Name another session, or leave --session out: each run then has its own.",
      );
    }
    await prepareAgent(workspace, agentRequest(job, job.session));
  } catch (error) {
    if (!(error instanceof SvcError) || error.code !== "model_not_approved") throw error;
    if (job.approve_model) return; // by its first run
    const hint = "Approve it for the job with --approve-model.";
    throw usageError(error.code, error.message, hint);
  } finally {
    await workspace.close();
  }
}

function agentRequest(job: Job, session: string): AgentRequest {
  return {
    session,
    role: job.role,
    operator: headlessOperator(false),
    headless: true,
    immutable: true, // the operator writes a job's rights
    task: taskOf(job),
  };
}

/** The session of the job, or a new one; empty when the worktree does not open. A handle of none stays as it is. */
export function sessionFor(job: Job, services: Services | undefined): string {
  if (services === undefined) return job.session;
  const { sessions } = services.workspace;
  if (job.session !== "") {
    try {
      return sessions.resolve(job.session);
    } catch {
      return job.session; // the attempt fails with the reason
    }
  }
  const session = sessions.create("job", { role: job.role, job: job.name });
  session.close();
  return session.name;
}

/**
 * Makes one attempt in a session with a new headless, unattended engine. Never throws. At the job's timeout,
 * or when `signal` aborts, the turn is cancelled with its stream, its tools and their processes.
 */
export async function runAttempt(
  { workspace }: Services,
  context: JobContext,
  { job, session: name, attempt, signal }: {
    job: Job;
    session: string;
    attempt: number;
    signal: AbortSignal;
  },
): Promise<AttemptResult> {
  const timeout = timeLimit(job, workspace.config);
  const deadline = startDeadline(context.clock, timeout);
  workspace.spending.job = { job: job.name, run: job.running?.started_at ?? "" };
  const asks: number[] = [];
  let session: Session | undefined;
  let turn = 0;
  let result: TurnResult | undefined;
  let failure: unknown;
  let span: Span | undefined;
  try {
    await workspace.sessions.current(name);
    session = workspace.sessions.open(name, { role: job.role });
    const prepared = await prepareAgent(workspace, {
      ...agentRequest(job, name),
      approve_models: job.approve_model,
      job: jobSections(context.worktree, job),
      memory: workspace.memory.block("job", job.name),
    });
    const { withdrawn = [] } = context;
    if (withdrawn.length > 0) {
      checkPermissions(withdrawn, await unusableFor(workspace, prepared.authority, job));
    }
    const agent = prepared.open(session);
    try {
      using either = joinSignals(signal, deadline.signal);
      const task = { ...taskOf(job), timeout: 0 };
      const prompt = attemptPrompt(job, attempt, await hookEvent(workspace, job));
      const events = agent.turn(prompt, { signal: either.signal, task });
      span = startSpan(`job ${job.name}`, { "svc.job.name": job.name, "svc.job.attempt": attempt });
      for await (const event of span === undefined ? events : within(span, events)) {
        if (event.type === "turn_started" && event.run === ROOT_RUN) turn = event.index;
        context.show?.(event, job.name);
        if (event.type === "ask") asks.push(event.id);
        if (event.type === "turn_finished" && event.run === ROOT_RUN) result = event.result;
      }
    } finally {
      await agent.close();
    }
  } catch (error) {
    failure = error;
    try {
      const message = errorMessage(error);
      await session?.appending(() => session!.recordError(0, message));
    } catch {
      // the history records the failure
    }
  } finally {
    deadline.stop();
    session?.close();
    await workspace.close(signal);
  }
  const checked = result?.verified === true;
  const ok = failure === undefined && (checked || job.verify === undefined) &&
    (result?.status === "ok" || result?.status === "truncated");
  const timed_out = !ok && deadline.signal.aborted;
  const interrupted = !ok && !timed_out && signal.aborted;
  span?.end(ok ? undefined : timed_out ? "timeout" : interrupted ? "interrupted" : "failed");
  const { kind, retry_at } = result?.errors.findLast((error) => error.kind !== undefined) ?? {};
  const permanent = kind === "permanent" || kind === "overflow" ||
    result?.reason === "backend" || result?.reason === "context" ||
    (turn === 0 && failure instanceof SvcError);
  const blocked = !ok && !timed_out && !interrupted && permanent;
  return {
    status: ok ? "verified" : "failed",
    reason: ok
      ? ""
      : timed_out
      ? `timeout after ${timeout} s`
      : interrupted
      ? "interrupted"
      : reasonOf(result, failure).slice(0, MAX_REASON),
    content: result?.content ?? "",
    checked: ok && checked,
    data: result?.data,
    denied: result?.denied ?? [],
    usage: result?.total_usage ?? {},
    cost: result?.cost ?? null,
    timed_out,
    interrupted,
    blocked,
    unreachable: !ok && result?.reason === "unreachable",
    final: blocked || result?.reason === "budget",
    retry_at: ok ? undefined : retry_at,
    asks,
    turn,
  };
}

/** What a hook has sent to the run of a job; undefined for a run that none has started. */
async function hookEvent(workspace: Workspace, { running }: Job): Promise<HookEvent | undefined> {
  const id = running?.run;
  if (id === undefined) return undefined;
  const { RunStore } = await import("../engine/run_store.ts");
  const { paths: { state, user }, clock, store, warn } = workspace;
  const run = await new RunStore({ state, user, clock, warn, store }).fetch(id);
  if (run?.request.hook !== undefined) return { ...run.request.hook, mark: id.slice(-12) };
  throw new SvcError("no_run", `the run ${id} of the hook is gone, and its data with it`);
}

/**
 * The Deno permissions that a job cannot use. External plugins count by their categories alone, since they are not
 * imported yet when the scheduler gives up permissions.
 */
export async function unusableFor(
  workspace: Workspace,
  authority: Authority,
  { verify }: Pick<Job, "verify">,
): Promise<Deno.PermissionName[]> {
  const use = { yes: false, external: true, verifies: verify !== undefined };
  return await unusableWithRoles(workspace, authority, workspace.bundledTools(), use);
}

/**
 * Rejects a job that may use a Deno permission which this process has revoked at its start.
 *
 * @throws SvcError `restart_needed`
 */
function checkPermissions(withdrawn: Deno.PermissionName[], unused: Deno.PermissionName[]): void {
  const lacking = withdrawn.filter((name) => !unused.includes(name));
  if (lacking.length === 0) return;
  throw new SvcError(
    "restart_needed",
    `the job may use programs now (${lacking.join(", ")}), which no job could when the scheduler ` +
      "was started; start it anew: svc jobs daemon stop",
  );
}

function reasonOf(result: TurnResult | undefined, failure: unknown): string {
  if (failure !== undefined) return errorMessage(failure);
  const errors = result?.errors.map(({ message }) => message).join("; ") ?? "";
  return errors || `the turn ended with status ${result?.status ?? "error"}`;
}

/** Seconds that an attempt may take, the wait for a quota included; 0: no cap. */
function timeLimit({ timeout, quota_wait }: Job, config: ConfigView): number {
  if (timeout !== undefined) return timeout;
  const limit: number = config.get("jobs.timeout");
  return limit === 0 ? 0 : limit + (quota_wait ?? config.get("quota_wait"));
}

/** The result of an attempt. */
export interface AttemptResult {
  status: "verified" | "failed";
  /** Why it failed, at most 300 characters. */
  reason: string;
  content: string;
  /** Whether the command of `verify` ended with exit code 0. */
  checked: boolean;
  data?: unknown;
  denied: DeniedCall[];
  /** Of its turn and of all agents that it started; null without a price. */
  /** The branch with its work. */
  branch?: string;
  usage: Usage;
  cost: number | null;
  timed_out: boolean;
  interrupted: boolean;
  /** Whether the job cannot work: the job itself, the model, the key or the size of its conversation is at fault. */
  blocked: boolean;
  /** Whether a retry is pointless. */
  final: boolean;
  /** Whether the backend could not be reached: the next attempt makes one request. */
  unreachable?: boolean;
  /** When the backend may be asked again, in milliseconds, as it announced. */
  retry_at?: number;
  /** Ids of the questions that the attempt parked. */
  asks: number[];
  /** Index of its turn in the session log; 0: none. */
  turn: number;
}

/** The history entry of an attempt. */
export function entryOf(
  { status, reason, content, checked, data, denied, branch, usage, cost }: AttemptResult,
  { started, finished, session, attempt, worker }: {
    /** Milliseconds, as `finished`. */
    started: number;
    finished: number;
    session: string;
    attempt: number;
    worker?: string;
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
    ...worker !== undefined && { worker },
    ...branch !== undefined && { branch },
    content: content.slice(0, MAX_CONTENT).toWellFormed(),
    ...checked && { checked },
    ...data !== undefined && JSON.stringify(data).length <= MAX_DATA && { data },
    ...denied.length > 0 && { denied: denied.slice(0, MAX_DENIED) },
    ...Object.keys(usage).length > 0 && { usage },
    ...cost !== null && { cost },
  };
}

/**
 * When the next attempt is due after a result, in milliseconds; undefined when there is none. It is not before the
 * time that a backend has announced, for which a run by hand does not wait longer than `quota_wait`. Only the
 * scheduler continues an interrupted run.
 */
export function retryAt(
  { status, enabled, retries, backoff, quota_wait = 0 }: Job,
  { status: ended, final, interrupted, retry_at = 0 }: AttemptResult,
  { attempt, now, trigger }: { attempt: number; now: number; trigger: RunTrigger },
): number | undefined {
  if (ended === "verified" || final) return undefined;
  if (status !== "executing" || !enabled || attempt > retries) return undefined;
  if (interrupted) return trigger === "tick" ? now : undefined;
  const next = now + Math.min(backoff * 2 ** Math.min(attempt - 1, 40), MAX_WAIT) * 1000;
  if (trigger === "run" && retry_at > Math.max(next, now + quota_wait * 1000)) return undefined;
  return Math.max(next, retry_at);
}

/** The result of an attempt that failed before its turn, such as when the worktree does not open. */
export function failedBefore(reason: string): AttemptResult {
  return {
    status: "failed",
    reason: reason.slice(0, MAX_REASON),
    content: "",
    checked: false,
    denied: [],
    usage: {},
    cost: null,
    timed_out: false,
    interrupted: false,
    blocked: true,
    final: true,
    asks: [],
    turn: 0,
  };
}
