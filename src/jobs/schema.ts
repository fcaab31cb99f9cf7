import * as z from "zod/mini";
import { taskFields } from "../engine/task.ts";
import { isCatalogName, NAME_RULE } from "../catalog/schema.ts";
import { MAX_WAIT, MIN_INTERVAL, readTime, type Schedule, scheduleFault } from "./schedule.ts";

/** The states of a job (specification 3.1). */
export const STATUSES = [
  "proposed",
  "approved",
  "executing",
  "verified",
  "failed",
  "waiting_approval",
] as const;
export type Status = (typeof STATUSES)[number];

const text = z._default(z.string(), "");
const flag = (fallback: boolean) => z._default(z.boolean(), fallback);
const count = (fallback: number) => z._default(z.int().check(z.gte(0)), fallback);
const wait = (fallback: number) => z._default(z.int().check(z.gte(0), z.lte(MAX_WAIT)), fallback);
const time = z._default(
  z.string().check(
    z.refine((value) => value === "" || readTime(value) !== undefined, {
      error: "must be an ISO 8601 datetime",
    }),
  ),
  "",
);

const schedule = z.pipe(
  z.object({
    cron: z.optional(z.string()),
    tz: z.optional(z.string()),
    interval: z.optional(z.number()),
    at: z.optional(z.string()),
  }).check((context) => {
    const fault = scheduleFault(context.value);
    if (fault !== undefined) {
      context.issues.push({ code: "custom", input: context.value, message: fault });
    }
  }),
  z.transform((value): Schedule => value),
);

/** A run that has begun and not ended. The process that works on it holds the job's lock. */
const running = z.object({
  /** Number of the last attempt that has begun, from 1. */
  attempt: z.int().check(z.gte(1), z.lt(Number.MAX_SAFE_INTEGER)),
  session: text,
  /** When the run began. */
  started_at: time,
  /**
   * `attempt`: the attempt runs. `backoff`: it failed, and the next one is due at `next_at`. `report`: the run
   * has ended and its history is saved; memory and report are pending. `parked`: the run waits for approval, and
   * its report is pending.
   */
  phase: z.enum(["attempt", "backoff", "report", "parked"]),
  /** When the attempt began. */
  attempt_at: time,
  next_at: time,
  /** When the run was due; a run by hand, or of a hook, has none. */
  due: z.optional(z.string()),
  /** The accepted run of a hook, which has the data for its attempts. */
  run: z.optional(z.string()),
  /** Who runs it, where several machines share a store: `<host>/<process id>`. */
  worker: z.optional(z.string()),
  /** The token of that worker's lease. Only the worker with the current one changes the run. */
  token: z.optional(z.int()),
});

/** One attempt in a job's history. */
export const historyEntry = z.object({
  started_at: text,
  finished_at: text,
  status: z.enum(["verified", "failed"]),
  /** Why the attempt failed, at most 300 characters. */
  reason: text,
  /** Seconds. */
  duration: z._default(z.number(), 0),
  session: text,
  attempt: z._default(z.int(), 1),
  /** Who made it, where several machines share a store. */
  worker: z.optional(z.string()),
  /** The branch with its work, of a job with a repository. */
  branch: z.optional(z.string()),
  /** The first 1000 characters of the answer. */
  content: text,
  /** Token counts of the attempt's turn and of all agents that it started. */
  usage: z.optional(z.record(z.string(), z.number())),
  /** What they cost; left out where a model has no price. */
  cost: z.optional(z.number()),
  /** Whether the job's command of `verify` ended with exit code 0. */
  checked: z.optional(z.boolean()),
  /** The answer to the job's `schema`, unless it is large. */
  data: z.optional(z.unknown()),
  /** The first calls that were refused, and why. */
  denied: z.optional(z.array(z.object({ tool: z.string(), reason: z.string() }))),
});
export type HistoryEntry = z.infer<typeof historyEntry>;

/** How an attempt ended, for people: the status `verified` alone does not say that anything was checked. */
export function outcomeText(
  { status, checked = false }: Pick<HistoryEntry, "status" | "checked">,
): string {
  return status === "verified" && !checked ? "ended ok, not checked" : status;
}

/** A label of workers. */
export const LABEL = /^[\w.-]{1,60}$/;
/** The largest priority of a job, and the smallest with a minus. */
export const MAX_PRIORITY = 1000;

const definition = z.object({
  name: z.string().check(z.refine(isJobName, { error: `must be ${NAME_RULE}` })),
  schedule,
  prompt: text,
  /** Relative to the worktree, or absolute. Left out: `.svc/jobs/<name>.md`, if it exists. */
  task_file: z.optional(z.string()),
  /** Empty: a new session for every run. */
  session: text,
  mode: text,
  role: text,
  system_prompt: text,
  provider: text,
  model: text,
  tools_deny: z._default(z.array(z.string()), []),
  tool_permission: z._default(z.record(z.string(), z.enum(["allow", "ask", "deny"])), {}),
  /** Attempts after the first. */
  retries: count(3),
  /** Seconds before the first retry, doubled for each further one. */
  backoff: wait(60),
  ...taskFields(),
  /** In place of the settings `sessions.keep_days` and `sessions.keep_count`. */
  keep_days: z.optional(z.int().check(z.gte(0))),
  keep_count: z.optional(z.int().check(z.gte(0))),
  /** Only workers with this label run it. */
  label: z.optional(z.string().check(z.regex(LABEL, { error: "must be letters, digits, . _ -" }))),
  /** Of the jobs that are due, those with a larger one run first. */
  priority: z.optional(z.int().check(z.gte(-MAX_PRIORITY), z.lte(MAX_PRIORITY))),
  /** The repository that it works in, instead of the worktree: each run in a clone at a ref. */
  git: z.optional(z.object({
    url: z.string(),
    /** A branch, a tag or a commit; empty: the repository's own. */
    ref: text,
    /** Whether what a run changes is pushed, as the branch `svc/<job>/<run>`. */
    push: flag(true),
  })),
  require_approval: flag(false),
  /** The grant for the next run of a job that requires approval. */
  approval_pending: flag(false),
  approve_model: flag(false),
  enabled: flag(true),
  status: z._default(z.enum(STATUSES), "proposed"),
  created_at: time,
  /** The single source of truth for scheduling; empty: there is no next run. */
  next_run_at: time,
  last_run_at: time,
  running: z.optional(running),
  /**
   * Why the job cannot work, and since when: its last run failed in a way that no retry can help. The next due
   * run makes one attempt.
   */
  blocked: z.optional(z.object({ since: time, reason: text })),
});

/** A job of the register, without its history (specification 2.6). */
export const job = z.pipe(z.transform(modern), definition);
export type Job = z.infer<typeof definition>;

/** Whether a name is valid for a job; its files are named after it. */
export function isJobName(name: string): boolean {
  return isCatalogName(name);
}

/**
 * Reads what earlier programs wrote: `null` for a missing field, `type` for `role`, an interval under the shortest
 * one, and fractions of a second in `backoff`.
 */
function modern(entry: unknown): unknown {
  if (typeof entry !== "object" || entry === null || Array.isArray(entry)) return entry;
  const { type, ...given } = Object.fromEntries(
    Object.entries(entry).filter(([, value]) => value !== null),
  );
  const role = given.role || type;
  if (typeof given.schedule === "object") {
    given.schedule = Object.fromEntries(
      Object.entries(given.schedule).filter(([, value]) => value !== null),
    );
    if (isShort(given.schedule)) given.schedule.interval = MIN_INTERVAL;
  }
  if (typeof given.backoff === "number") given.backoff = Math.ceil(given.backoff);
  return role === undefined ? given : { ...given, role };
}

/** Whether the interval of a schedule, as written in the register, is under the shortest one. */
export function isShort(schedule: unknown): boolean {
  const { interval } = (schedule ?? {}) as { interval?: unknown };
  return typeof interval === "number" && interval < MIN_INTERVAL;
}
