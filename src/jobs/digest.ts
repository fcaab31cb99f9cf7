import { join } from "node:path";
import type { Ask } from "../asks/store.ts";
import { Workspace } from "../engine/workspace.ts";
import { errorMessage } from "../platform/error.ts";
import { readTextIfExists, writeFileAtomic } from "../platform/files.ts";
import type { JobsDigest, Usage } from "../plugins/api.ts";
import { Ledger, rounded } from "../usage/ledger.ts";
import { summarise } from "../usage/summary.ts";
import type { JobContext } from "./context.ts";
import { healthOf } from "./health.ts";
import { reportServices, sendDigest } from "./report.ts";
import { isSince, isTimeZone, nextCron, readTime } from "./schedule.ts";
import type { HistoryEntry, Job } from "./schema.ts";

/** A run of a job that has ended: its attempts, which share a session. */
export interface PastRun extends
  Pick<
    HistoryEntry,
    | "session"
    | "started_at"
    | "finished_at"
    | "status"
    | "checked"
    | "reason"
    | "content"
    | "worker"
    | "branch"
  > {
  job: string;
  attempts: number;
  /** Seconds of all attempts. */
  duration: number;
  tokens: number;
  /** Null when a model has no price. */
  cost: number | null;
  /** The calls that were refused. */
  denied: NonNullable<HistoryEntry["denied"]>;
}

/** The tokens that usage counts. */
export function tokensOf(
  { prompt_tokens = 0, completion_tokens = 0, total_tokens }: Usage = {},
): number {
  return total_tokens ?? prompt_tokens + completion_tokens;
}

/** The runs in a history, the oldest first. The last one may go on with further attempts. */
export function runsOf(job: string, history: HistoryEntry[]): PastRun[] {
  const runs: PastRun[] = [];
  for (const entry of history) {
    const { usage = {}, cost, denied = [], attempt, duration, ...rest } = entry;
    const tokens = tokensOf(usage);
    const paid = cost ?? (tokens === 0 ? 0 : null);
    const before = runs.at(-1);
    if (before !== undefined && attempt > 1 && before.session === entry.session) {
      const { started_at } = before;
      const sum = before.cost === null || paid === null ? null : rounded(before.cost + paid);
      Object.assign(before, rest, {
        started_at,
        attempts: before.attempts + 1,
        duration: rounded(before.duration + duration),
        tokens: before.tokens + tokens,
        cost: sum,
        denied: [...before.denied, ...denied],
      });
    } else runs.push({ ...rest, job, attempts: 1, duration, tokens, cost: paid, denied });
  }
  return runs;
}

/**
 * What the jobs of a worktree did since a time, and what waits for the operator.
 *
 * @param asks the pending questions
 * @param since milliseconds
 */
export async function digestOf(
  context: JobContext,
  asks: Ask[],
  since: number,
): Promise<JobsDigest> {
  return (await digestWithRuns(context, asks, since)).digest;
}

/** The digest, and each run with an attempt that ended since the time, the newest first. */
export async function digestWithRuns(
  context: JobContext,
  asks: Ask[],
  since: number,
): Promise<{ digest: JobsDigest; runs: PastRun[] }> {
  const spent = await spending(context, since);
  const { register, clock, worktree } = context;
  const now = clock.now();
  const histories = register.histories({ since });
  const jobs = [...register.list()].sort((one, other) => one.name < other.name ? -1 : 1);
  const healths = jobs.map((job) => healthOf(job, histories.get(job.name) ?? [], now));
  const from = new Date(since).toISOString();
  const recent = Array.from(jobs, ({ name: job }) => {
    const history = histories.get(job) ?? [];
    return { job, entries: history.filter(({ finished_at }) => isSince(finished_at, from)) };
  }).filter(({ entries }) => entries.length > 0);
  let all: ReturnType<typeof register.histories> | undefined; // read for sessions that are older
  const asking = (origin: string) =>
    jobOf(origin, jobs, histories) || jobOf(origin, jobs, all ??= register.histories());
  const digest: JobsDigest = {
    event: "jobs.digest",
    worktree,
    since: from,
    until: new Date(now).toISOString(),
    ran: recent.map(({ job, entries }) => {
      const failed = entries.filter(({ status }) => status === "failed").length;
      return { job, runs: entries.length, failed, ...spent(job) };
    }),
    total: spent(),
    failing: healths.flatMap(({ name: job, failing, last_run }) =>
      failing ? [{ job, at: last_run!.finished_at, reason: last_run!.reason }] : []
    ),
    blocked: healths.flatMap(({ name: job, blocked }) =>
      blocked === null ? [] : [{ job, ...blocked }]
    ),
    stuck: healths.flatMap(({ name, stuck }) => stuck ? [name] : []),
    waiting: healths.flatMap(({ name, waiting }) => waiting ? [name] : []),
    asks: asks.map(({ id, origin, question }) => ({ id, job: asking(origin), origin, question })),
    denied: recent.flatMap(({ job, entries }) => deniedIn(job, entries)),
  };
  const runs = recent.flatMap(({ job, entries }) => runsOf(job, entries))
    .sort((one, other) => one.finished_at < other.finished_at ? 1 : -1);
  return { digest, runs };
}

/** The job that has asked in a session; empty: none. */
export function jobOf(
  origin: string,
  jobs: Job[],
  histories: Map<string, HistoryEntry[]>,
): string {
  const asked = ({ name, running }: Job) =>
    [running, ...histories.get(name) ?? []].some((run) => run?.session === origin);
  return jobs.find(asked)?.name ?? "";
}

function deniedIn(job: string, entries: HistoryEntry[]): JobsDigest["denied"] {
  const calls = entries.flatMap(({ denied = [] }) => denied);
  return [...Map.groupBy(calls, ({ tool, reason }) => JSON.stringify([tool, reason])).values()]
    .map((same) => ({ job, ...same[0]!, times: same.length }));
}

/** Reads the ledger. The returned function has the usage of a job, or of all; null is a cost that is not known. */
async function spending(
  { state, clock, store, warn }: JobContext,
  since: number,
): Promise<(job?: string) => { tokens: number; cost: number | null }> {
  const ledger = new Ledger({ state, clock, store, warn });
  await ledger.refresh();
  const { groups, total } = summarise(ledger, since, "job");
  return (job) => {
    const sum = job === undefined ? total : groups.find(({ name }) => name === job);
    if (sum === undefined) return { tokens: 0, cost: 0 };
    return { tokens: sum.in + sum.out, cost: sum.unpriced > 0 ? null : sum.cost ?? 0 };
  };
}

/**
 * Sends a digest to the report services once a day. `.svc/jobs.digest.json` has the time of the last one, so that
 * a restart sends none twice, and one that was missed while no scheduler ran is sent by the next.
 */
export class DailyDigest {
  readonly #context: JobContext;
  readonly #file: string;
  #sending = Promise.resolve();

  constructor(context: JobContext) {
    this.#context = context;
    this.#file = join(context.state, "jobs.digest.json");
  }

  /**
   * Begins to send the digest when it is due. No tick waits for it. The first call only notes the time.
   *
   * @param at the setting `jobs.digest_at`: empty, or a time such as `07:00` with an optional time zone
   */
  look(at: string): void {
    if (at === "") return;
    const { clock, warn } = this.#context;
    const [, hour, minute, tz = "UTC"] = /^([01]\d|2[0-3]):([0-5]\d)(?: (\S+))?$/.exec(at) ?? [];
    if (hour === undefined || !isTimeZone(tz)) {
      return warn(`jobs.digest_at is no time such as 07:00 Europe/Berlin: ${JSON.stringify(at)}.`);
    }
    const now = clock.now();
    const last = this.#last();
    // A time in the future was noted by a clock that ran ahead.
    if (last === undefined || last > now) return this.#note(now);
    if (nextCron(`${minute} ${hour} * * *`, last, tz)! > now) return;
    this.#note(now);
    this.#sending = this.#send(last).catch((error) =>
      warn(`The digest is not sent: ${errorMessage(error)}`)
    );
  }

  /** Resolves when no digest is being sent. */
  async idle(): Promise<void> {
    await this.#sending;
  }

  #last(): number | undefined {
    try {
      return readTime(JSON.parse(readTextIfExists(this.#file) ?? "").sent);
    } catch {
      return undefined;
    }
  }

  #note(now: number): void {
    writeFileAtomic(this.#file, JSON.stringify({ sent: new Date(now).toISOString() }) + "\n");
  }

  async #send(since: number): Promise<void> {
    const { worktree: path, environment, trust, warn } = this.#context;
    const workspace = Workspace.open({ path, environment, trusted: trust.all, warn });
    try {
      const { services } = await workspace.load({ services: ["report"] });
      const digest = await digestOf(this.#context, workspace.asks.list("pending"), since);
      await sendDigest(reportServices(workspace, services), digest);
    } finally {
      await workspace.close();
    }
  }
}
