import { SvcError } from "../platform/error.ts";
import type { JobContext } from "./context.ts";
import type { EndedRun } from "./report.ts";
import { nextRun, readTime } from "./schedule.ts";
import type { Job, Status } from "./schema.ts";

/**
 * The triggers of transitions (specification 3.1): the operator's gates, the scheduler's tick when the job is
 * due, a `run` by hand, the result of a run, and the death of the process during an attempt.
 */
export const TRIGGERS = [
  "approve",
  "reject",
  "enable",
  "disable",
  "stop",
  "tick",
  "run",
  "verified",
  "failed",
  "interrupted",
] as const;
export type Trigger = (typeof TRIGGERS)[number];

/** The fields of a job that a transition depends on. */
export type Gates = Pick<Job, "status" | "enabled" | "require_approval" | "approval_pending">;

/** The fields that a transition sets, or why it is refused. */
export type Outcome = { set: Partial<Gates> } | { refused: string };

/** Why a run that needs an approval does not begin. */
export const WAITS = "waits for approval";

/** The outcome of each trigger in each state. */
const TABLE: Record<Trigger, Record<Status, (gates: Gates) => Outcome>> = {
  approve: {
    // Earlier programs store a job that waits for its approval as disabled, and `reject` disables one too.
    // The approval of the job is that of its next run too.
    proposed: ({ require_approval }) => ({
      set: { status: "approved", enabled: true, approval_pending: require_approval },
    }),
    approved: arm,
    executing: arm,
    verified: arm,
    failed: arm,
    waiting_approval: () => ({
      set: { status: "approved", enabled: true, approval_pending: true },
    }),
  },
  reject: inAny(() => ({ set: { status: "proposed", enabled: false, approval_pending: false } })),
  enable: inAny(() => ({ set: { enabled: true } })),
  disable: inAny(() => ({ set: { enabled: false } })),
  stop: inAny(() => ({ set: { enabled: false } })),
  tick: {
    proposed: () => refused("is not approved yet"),
    approved: fire,
    executing: () => refused("is running"),
    verified: fire,
    failed: fire,
    waiting_approval: () => refused(WAITS),
  },
  run: {
    proposed: start, // a run by hand is the approval
    approved: start,
    executing: () => refused("is running"),
    verified: start,
    failed: start,
    waiting_approval: start,
  },
  verified: ends(() => to("verified")),
  failed: ends(() => to("failed")),
  interrupted: ends(() => to("failed")),
};

/** The outcome of a trigger for a job. */
export function transition(gates: Gates, trigger: Trigger): Outcome {
  return TABLE[trigger][gates.status](gates);
}

/** Begins a scheduled run, or parks the job when it needs a grant and has none. */
function fire(gates: Gates): Outcome {
  if (!gates.enabled) return refused("is disabled");
  if (gates.require_approval && !gates.approval_pending) return to("waiting_approval");
  return start(gates);
}

/** Begins a run and uses up the grant. */
function start(gates: Gates): Outcome {
  if (!gates.enabled) return refused("is disabled");
  return { set: { status: "executing", approval_pending: false } };
}

/** Grants the next run of a job that requires approval. */
function arm({ require_approval }: Gates): Outcome {
  return require_approval ? { set: { approval_pending: true } } : refused("is approved already");
}

/** Ends a run. A job that was rejected during the run stays rejected. */
function ends(end: () => Outcome): Record<Status, () => Outcome> {
  return { ...inAny(() => refused("is not running")), executing: end };
}

function inAny(outcome: () => Outcome): Record<Status, () => Outcome> {
  return {
    proposed: outcome,
    approved: outcome,
    executing: outcome,
    verified: outcome,
    failed: outcome,
    waiting_approval: outcome,
  };
}

function to(status: Status): Outcome {
  return { set: { status } };
}

function refused(why: string): Outcome {
  return { refused: why };
}

/** The triggers of the operator (specification 3.1). */
export type GateTrigger = "approve" | "reject" | "enable" | "disable" | "stop";

/**
 * Opens or closes a gate of a job. Times that the schedule missed behind a closed gate are not made up for; only
 * a parked run is due at once.
 *
 * @throws SvcError `unknown_job` (exit 2); `job_refused` when the trigger has no effect on the job
 */
export async function moveGate(
  { register, clock }: Pick<JobContext, "register" | "clock">,
  name: string,
  trigger: GateTrigger,
): Promise<Job> {
  const job = await register.change(name, (job) => {
    const outcome = transition(job, trigger);
    if ("refused" in outcome) {
      throw new SvcError("job_refused", `The job ${name} ${outcome.refused}.`);
    }
    const opens = trigger === "enable" ? !job.enabled : job.status === "proposed";
    const missed = job.next_run_at === "" || isDue(job, clock.now());
    return {
      set: {
        ...outcome.set,
        ...((trigger === "enable" || trigger === "approve") && opens && missed && {
          next_run_at: plannedRun(job, clock.now()),
        }),
      },
    };
  });
  return job ?? register.need(name);
}

/** What begins a run: the scheduler when the job is due, a user, or a request of a hook, which approves nothing. */
export type RunTrigger = "tick" | "run" | "hook";

/**
 * The change of a job at the begin of a run; or why the run does not begin, as the end of a sentence that starts
 * with the job. A job that needs a grant may be parked. A run that an earlier process left continues with its
 * next attempt, under its earlier approval.
 *
 * @param options.session creates the session of a run that begins
 * @param options.run the accepted run of a hook
 */
export function startOf(
  job: Job,
  trigger: RunTrigger,
  { now, session, run, due }: {
    now: number;
    session: () => string;
    run?: string;
    /** The time at which the scheduler saw the job due: the clock of another machine may be behind its own. */
    due?: string;
  },
): { set?: Partial<Job>; refused?: string; parked?: true } {
  const left = job.running;
  const planned = left === undefined && trigger === "tick" ? job.next_run_at : left?.due;
  const gates = left === undefined ? job : { ...job, require_approval: false };
  const outcome = transition(gates, trigger === "run" ? "run" : "tick");
  if ("refused" in outcome) return outcome;
  if (trigger === "tick" && job.next_run_at !== due && !isDue(job, now)) {
    return { refused: "is not due any more" };
  }
  const stamp = new Date(now).toISOString();
  const begun = { attempt: 1, session: "", started_at: stamp, attempt_at: stamp, next_at: "" };
  if (outcome.set.status === "waiting_approval") {
    if (trigger === "hook") return { refused: WAITS };
    const running = { ...begun, phase: "parked" as const };
    return { set: { ...outcome.set, running }, refused: WAITS, parked: true };
  }
  return {
    set: {
      ...outcome.set,
      ...(left && { approval_pending: job.approval_pending }),
      running: {
        ...begun,
        attempt: (left?.attempt ?? 0) + 1,
        session: left?.session || session(),
        run: left === undefined ? run : left.run,
        started_at: left?.started_at || stamp,
        phase: "attempt",
        ...planned !== undefined && { due: planned },
      },
    },
  };
}

/** Whether the scheduler may run a job (specification 3.1). */
export function isRunnable({ enabled, status }: Job): boolean {
  return enabled && (status === "approved" || status === "verified" || status === "failed");
}

/** Whether a job is due; an overdue one is due at once (specification 4.5). */
export function isDue({ next_run_at }: Job, now: number): boolean {
  const next = readTime(next_run_at);
  return next !== undefined && next <= now;
}

/** Milliseconds by which a correct clock may deviate. */
const TOLERANCE = 3600_000;

/**
 * Whether the time of a past event is in the future: the clock was wrong at that event and has been set back
 * since.
 */
export function isAhead(happened: string, now: number): boolean {
  return (readTime(happened) ?? 0) > now + TOLERANCE;
}

/**
 * The `next_run_at` that a job lacks, because it was added by hand or planned by a clock that ran ahead.
 * Undefined when its plan is valid.
 */
export function missingPlan(job: Job, now: number): string | undefined {
  const { next_run_at, last_run_at, running } = job;
  if (!isRunnable(job)) return undefined;
  const astray = next_run_at !== "" &&
    (isAhead(last_run_at, now) || isAhead(running?.started_at ?? "", now));
  if (next_run_at !== "" && !astray) return undefined;
  const planned = running === undefined ? plannedRun(job, now) : dated(now);
  const sooner = next_run_at === "" || readTime(planned)! < readTime(next_run_at)!;
  return planned !== "" && sooner ? planned : undefined;
}

/** `next_run_at` by the schedule of a job; empty: never. */
export function plannedRun(
  { schedule, last_run_at }: Pick<Job, "schedule" | "last_run_at">,
  now: number,
): string {
  return dated(nextRun(schedule, { now, ran: last_run_at !== "" }));
}

/** Milliseconds before a blocked job is tried again at the earliest. */
const PROBE = 15 * 60_000;

/** Milliseconds by which the clocks of two machines may differ. A due time beyond was planned by a wrong clock. */
const SKEW = 3_600_000;

/**
 * The change of a job at the end of a run: last and next run, the gate of a one-shot job, whether it is blocked, and
 * whether it is parked, since its next run needs another grant (specification 3.1). A run that the schedule plans
 * before the backend may be asked again, or shortly after the job was blocked, is moved behind that time.
 *
 * @param run `planned` is `next_run_at` at its begin; another value that was set during the run stays
 */
export function afterRun(
  job: Job,
  { planned, started_at, entry, blocked, retry_at = 0 }: Pick<
    EndedRun,
    "planned" | "started_at" | "entry" | "blocked" | "retry_at"
  >,
  now: number,
): Partial<Job> {
  const set = job.next_run_at !== planned && !isDue(job, now) ? job.next_run_at : "";
  // The clock of this machine may be behind that of the scheduler by minutes: what was due is not due once more.
  const due = readTime(job.running?.due ?? "") ?? now;
  const after = due > now && due - now < SKEW ? due : now;
  const next = nextRun(job.schedule, { now: after, ran: true });
  const earliest = Math.max(retry_at, blocked ? now + PROBE : 0);
  const next_run_at = set || dated(next && Math.max(next, earliest));
  const enabled = job.enabled && job.schedule.at === undefined;
  const granted = !job.require_approval || job.approval_pending;
  const parks = job.status === "executing" && enabled && next_run_at !== "" && !granted;
  return {
    last_run_at: started_at,
    next_run_at,
    enabled,
    ...(parks && { status: "waiting_approval" as const }),
    ...(blocked !== undefined && {
      blocked: blocked
        ? { since: job.blocked?.since ?? dated(now), reason: entry.reason }
        : undefined,
    }),
  };
}

function dated(time: number | undefined): string {
  return time === undefined ? "" : new Date(time).toISOString();
}
