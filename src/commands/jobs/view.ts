import type { Ask } from "../../asks/store.ts";
import type { Workspace } from "../../engine/workspace.ts";
import { isTrusted, type JobContext } from "../../jobs/context.ts";
import { type DaemonState, runningDaemon } from "../../jobs/daemon.ts";
import { approvalOf, healthOf, isOver, type JobHealth, MAX_INTERVALS } from "../../jobs/health.ts";
import { jobOf, tokensOf } from "../../jobs/digest.ts";
import { taskPath } from "../../jobs/prompt.ts";
import { MAX_HISTORY } from "../../jobs/register_file.ts";
import { describeSchedule, readTime } from "../../jobs/schedule.ts";
import type { Stopping } from "../../jobs/scheduler.ts";
import type { Step } from "../../jobs/worker.ts";
import { type HistoryEntry, type Job, outcomeText } from "../../jobs/schema.ts";
import { terminalColumns } from "../../platform/terminal.ts";
import { amount } from "../../usage/ledger.ts";
import { listText, moment, relative, shortened, span, table, wrappedLine } from "../format.ts";
import type { Io } from "../io.ts";
import type { LogFields } from "../log.ts";

/** The data of the views. */
export interface View {
  workspace: Workspace;
  context: JobContext;
  io: Io;
}

const byName = (one: { name: string }, other: { name: string }) => one.name < other.name ? -1 : 1;

/** `jobs list`: the jobs and their next runs. */
export function listJobs({ context, io }: View): { value: unknown; text: string } {
  const jobs = [...context.register.list()].sort(byName);
  const now = context.clock.now();
  const rows = jobs.map((job) => [
    job.name,
    stateOf(job, context, io),
    nextOf(job, now),
    describeSchedule(job.schedule),
  ]);
  const head = ["NAME", "STATE", "NEXT RUN", "SCHEDULE"];
  const text = listText(io, head, rows, { always: true });
  return { value: jobs, text };
}

/** `jobs status`: each job at a glance, and the questions that wait; exit code 1 when a job fails. */
export function jobsStatus(view: View): { value: unknown; text: string; code: number } {
  const { context, workspace, io } = view;
  const now = context.clock.now();
  const histories = context.register.histories();
  const jobs = [...context.register.list()].sort(byName);
  const healths = jobs.map((job) => healthOf(job, histories.get(job.name) ?? [], now));
  const asks = workspace.asks.list("pending");
  const width = widthOf(io);
  const blocks = jobs.map((job, index) =>
    statusBlock(job, healths[index]!, now, view).map((line) => wrappedLine(line, width)).join(
      "\n",
    ) + "\n"
  );
  const daemon = runningDaemon(context);
  const head = jobs.length === 0 && daemon === undefined ? [] : [
    `${summary(jobs, healths, asks, now)}\n${wrappedLine(daemonLine(daemon, now, io), width)}\n`,
  ];
  const text = [
    ...head,
    ...blocks,
    ...asks.length === 0 ? [] : [asksBlock(asks, jobs, histories, io)],
  ].join("\n");
  const code = healths.some(({ failing, stuck }) => failing || stuck) ? 1 : 0;
  return { value: { jobs: healths, asks, daemon: daemon ?? null }, text, code };
}

/** `jobs show`: everything about one job. */
export function showJob(view: View, name: string): { value: unknown; text: string } {
  const { context, workspace, io } = view;
  const job = context.register.need(name);
  const history = context.register.history(name);
  const now = context.clock.now();
  const task = taskPath(context.worktree, job) ?? "";
  const memory = { path: memoryPath(workspace, name), text: workspace.memory.read("job", name) };
  const sessions = new Set([job.session, ...history.map(({ session }) => session)]);
  const asks = workspace.asks.list("pending").filter(({ origin }) => sessions.has(origin));
  const width = widthOf(io);
  const lines = [
    ...statusBlock(job, healthOf(job, history, now), now, view),
    ...definition(job, workspace.config).map(([key, value]) =>
      `  ${`${key}:`.padEnd(17)} ${value}`
    ),
    `  ${"task file:".padEnd(17)} ${task || "none"}`,
    `  ${"memory:".padEnd(17)} ${memory.path}`,
    ...preview(memory.text),
  ].map((line) => wrappedLine(line, width));
  const workers = history.some(({ worker }) => worker !== undefined);
  const branches = history.some(({ branch }) => branch !== undefined);
  const runs = history.slice(-10).reverse().map((entry) => [
    `  ${entry.started_at}`,
    outcomeText(entry),
    `attempt ${entry.attempt}`,
    `${entry.duration} s`,
    used(entry),
    entry.session,
    ...workers ? [entry.worker ?? ""] : [],
    ...branches ? [entry.branch ?? ""] : [],
    shortened(entry.reason, 200),
  ]);
  const more = history.length > runs.length
    ? `, the newest ${runs.length} of ${history.length}`
    : "";
  const last = history.at(-1)?.content ?? "";
  const text = [
    lines.join("\n") + "\n",
    ...(runs.length === 0 ? [] : [`history${more}:\n${table(runs, width)}`]),
    ...(last === "" ? [] : [`last output:\n${last.trim().replaceAll(/^/gm, "  ")}\n`]),
    ...(asks.length === 0 ? [] : [asksBlock(asks, [job], new Map([[name, history]]), io)]),
  ].join("\n");
  return { value: { ...job, task_path: task, memory, history, asks }, text };
}

/** The tokens and the cost of an attempt; empty when the backend reported none. */
function used({ usage, cost }: HistoryEntry): string {
  const tokens = tokensOf(usage);
  if (tokens === 0) return "";
  return `${tokens} tokens${cost === undefined ? "" : `, cost ${amount(cost)}`}`;
}

/** When a job runs next, or why it does not. */
export function nextOf(job: Job, now: number): string {
  if (job.status === "executing") {
    const { phase, attempt, next_at, worker } = job.running ?? {};
    return phase === "backoff"
      ? `attempt ${attempt! + 1} at ${moment(next_at!, now)}`
      : `running now${worker === undefined ? "" : ` on ${worker}`}`;
  }
  if (isOver(job)) return "none: it has run";
  if (!job.enabled) return "none: disabled";
  if (job.status === "proposed") return "none: not approved";
  const at = readTime(job.next_run_at);
  const when = at === undefined
    ? "with the next tick of the scheduler"
    : at <= now
    ? `due since ${job.next_run_at.slice(0, 19).replace("T", " ")} UTC`
    : moment(job.next_run_at, now);
  return approvalOf(job) === "waiting" ? `${when}, WAITING for approve` : when;
}

/** The status of a job, for people. */
export function statusText({ name, status, verify }: Job, { register }: JobContext): string {
  if (status !== "verified") return status;
  // Most jobs have no command, and need no look at their history.
  const last = verify && register.history(name).findLast((entry) => entry.status === "verified");
  return last ? outcomeText(last) : outcomeText({ status });
}

function stateOf(job: Job, context: JobContext, { program }: Io): string {
  const state = [
    statusText(job, context),
    ...(job.blocked === undefined ? [] : ["blocked"]),
    ...(job.enabled ? [] : ["disabled"]),
  ].join(", ");
  return isTrusted(context, job) ? state : `${state}, not trusted (${program}trust)`;
}

function statusBlock(job: Job, health: JobHealth, now: number, { context, io }: View): string[] {
  const { last_run, fired, ok, failed, attempts, last_error, last_error_at, created_at } = health;
  const line = (key: string, value: string) => `  ${`${key}:`.padEnd(17)} ${value}`;
  const said = last_run?.status === "failed" ? last_run.reason : last_run?.content.trim() ?? "";
  const age = readTime(created_at);
  return [
    `${job.name}: ${stateOf(job, context, io)}, ${describeSchedule(job.schedule)}`,
    line("next run", nextOf(job, now)),
    ...(health.running_session === "" ? [] : [line("session", health.running_session)]),
    ...(health.stuck
      ? [line("UNHEALTHY", `its attempt runs for more than ${MAX_INTERVALS} of its intervals`)]
      : []),
    ...(health.blocked === null ? [] : [line(
      "BLOCKED",
      `since ${moment(health.blocked.since, now)}: ${health.blocked.reason}`,
    )]),
    ...(health.approval === "" ? [] : [line(
      "approval",
      health.approval === "approved"
        ? "the next run is approved"
        : `WAITING for approve (${io.program}jobs approve ${job.name})`,
    )]),
    line(
      "last run",
      last_run === null
        ? "never"
        : `${outcomeText(last_run)} ${relative(readTime(last_run.finished_at) ?? now, now)} ` +
          `in ${last_run.duration} s` +
          (said === "" ? "" : `: ${said}`),
    ),
    line(
      "times fired",
      `${fired} (${ok} ok, ${failed} failed)` +
        (attempts > fired ? `, ${attempts} attempts` : "") +
        (attempts >= MAX_HISTORY ? "; older ones are not kept" : ""),
    ),
    ...(last_error === ""
      ? []
      : [line("last error", `${moment(last_error_at, now)}: ${last_error}`)]),
    ...(age === undefined ? [] : [line("up since", `${moment(created_at, now)}`)]),
  ];
}

/** One line that sums up the jobs. */
function summary(jobs: Job[], healths: JobHealth[], asks: Ask[], now: number): string {
  const failing = healths.filter(({ failing }) => failing);
  const named = (what: string, some: { name: string }[]) =>
    some.length === 0 ? [] : [`${what}: ${some.map(({ name }) => name).join(", ")}`];
  const waiting = healths.filter(({ waiting }) => waiting);
  const [next] = healths.filter(({ next_run_at, enabled }) => enabled && next_run_at !== "")
    .sort((one, other) => one.next_run_at < other.next_run_at ? -1 : 1);
  const at = next && readTime(next.next_run_at);
  return [
    `${jobs.length} ${jobs.length === 1 ? "job" : "jobs"}`,
    ...(failing.length === 0 ? ["none failing"] : named("failing", failing)),
    ...named("blocked", healths.filter(({ blocked }) => blocked !== null)),
    ...named("stuck", healths.filter(({ stuck }) => stuck)),
    ...(at === undefined ? [] : [`next: ${next!.name} ${at <= now ? "now" : relative(at, now)}`]),
    ...named("WAITING for approve", waiting),
    ...(asks.length === 0 ? [] : [`asks waiting for you: ${asks.length}`]),
  ].join("; ");
}

function asksBlock(
  asks: Ask[],
  jobs: Job[],
  histories: Map<string, HistoryEntry[]>,
  io: Io,
): string {
  const rows = asks.map(({ id, origin, question }) => [
    `  #${id}`,
    jobOf(origin, jobs, histories),
    origin,
    question.trim(),
  ]);
  const head = `asks that wait for an answer (${io.program}asks answer <id> <text>)`;
  return `${head}:\n${table(rows, widthOf(io))}`;
}

/** The fields of a job that differ from their defaults, and its limits, with their names. */
export function definition(job: Job, config: Workspace["config"]): [string, string][] {
  const timeout = job.timeout ?? config.get("jobs.timeout");
  const budget = (["max_cost", "max_total_tokens", "max_tool_calls", "max_rounds"] as const)
    .flatMap((name) => job[name] === undefined ? [] : [`${name} ${job[name]}`]).join(", ");
  const { prompt, role, mode, provider, model, session, system_prompt, retries, backoff } = job;
  const given: [string, string][] = [
    ["prompt", prompt],
    ["role", role],
    ["mode", mode],
    ["provider", provider],
    ["model", model + (job.approve_model && model + role !== "" ? " (approved)" : "")],
    ["session", session],
    ["system prompt", system_prompt],
    ["tools denied", job.tools_deny.join(", ")],
    [
      "tool permission",
      Object.entries(job.tool_permission).map(([key, value]) => `${key}=${value}`).join(", "),
    ],
    ["retries", `${retries}, after ${span(backoff)}, doubled each time`],
    [
      "timeout",
      `${timeout === 0 ? "none" : `${span(timeout)} for an attempt`}${
        job.timeout === undefined ? " (jobs.timeout)" : ""
      }`,
    ],
    ["quota wait", job.quota_wait === undefined ? "" : span(job.quota_wait)],
    ["budget", budget],
    ["repository", repositoryText(job)],
    ["label", job.label ?? ""],
    ["priority", String(job.priority ?? "")],
    ["verify", job.verify ?? ""],
    ["verify rounds", String(job.verify_rounds ?? "")],
    ["schema", job.schema === undefined ? "" : JSON.stringify(job.schema)],
  ];
  return given.filter(([, value]) => value !== "");
}

function repositoryText({ git }: Job): string {
  if (git === undefined) return "";
  return `${git.url}${git.ref && ` at ${git.ref}`}${git.push ? "" : ", nothing is pushed"}`;
}

function preview(memory: string): string[] {
  const lines = memory.split("\n").filter((line) => line.trim() !== "");
  return [
    ...lines.slice(0, 5).map((line) => `    | ${line}`),
    ...(lines.length > 5 ? [`    | ... (${lines.length - 5} more lines)`] : []),
  ];
}

function memoryPath(workspace: Workspace, name: string): string {
  try {
    return workspace.memory.path("job", name);
  } catch {
    return "";
  }
}

function widthOf(io: Io): number {
  return io.isTerminal("out") ? terminalColumns() ?? 80 : Infinity;
}

/** The scheduler in one line. */
export function daemonLine(
  running: DaemonState | undefined,
  now: number,
  { program }: Pick<Io, "program">,
): string {
  if (running === undefined) {
    return `scheduler: none runs in this worktree (${program}jobs daemon --detach)`;
  }
  const { pid, since, last_tick, tick, busy, detached, healthy } = running;
  return [
    `scheduler: process ${pid}${detached ? " in the background" : ""}`,
    `since ${moment(since, now)}`,
    `last tick ${moment(last_tick, now)}, every ${tick} s`,
    ...(healthy ? [] : ["UNHEALTHY: the register cannot be read or written"]),
    ...(busy.length === 0 ? [] : [`running ${busy.join(", ")}`]),
  ].join("; ");
}

/** A step of the scheduler as one line of its log. */
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
      const { outcome, reason, duration, parked_asks } = step.report;
      const job = register.get(step.job);
      const asks = parked_asks.map(({ id }) => `; ask #${id} waits for you`).join("");
      const next = job === undefined ? "removed" : nextOf(job, clock.now());
      return `${step.job}: ${outcome} in ${duration} s${reason && ` (${reason})`}${asks}; ` +
        `next run: ${next}`;
    }
    case "stopping":
      return `scheduler: stopping; ${step.jobs.join(", ")} ${
        step.jobs.length === 1 ? "has" : "have"
      } ${span(step.grace)} to finish`;
  }
}

/** A step as the fields of a JSON log. */
export function stepFields(step: Step | Stopping): LogFields {
  if (step.step !== "finished") return { event: "job", ...step };
  const { job, status, outcome, reason, duration, session, usage, cost } = step.report;
  const level = status === "failed" ? "warning" : "info";
  const report = { status, outcome, reason, duration, session, usage, cost };
  return { level, event: "job", step: step.step, job, ...report };
}

/** Whether `--quiet` prints the step: it is a failed run. */
export function isTrouble(step: Step | Stopping): boolean {
  return step.step === "finished" && step.report.status === "failed";
}
