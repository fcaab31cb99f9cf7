import { SvcError } from "../platform/error.ts";
import type { JobContext } from "./context.ts";
import { nextRun, readTime } from "./schedule.ts";
import type { Job, Status } from "./schema.ts";

/**
 * What moves a job (specification 3.1): the gates that an operator opens and closes, the scheduler's tick
 * when the job is due, a `run` by hand, how a run ended, and the process dying in the middle of an attempt.
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

/** What a transition looks at. */
export type Gates = Pick<Job, "status" | "enabled" | "require_approval" | "approval_pending">;

/** What it changes; or why there is none. */
export type Outcome = { set: Partial<Gates> } | { refused: string };

/** The table: what each trigger answers in each state. */
const TABLE: Record<Trigger, Record<Status, (gates: Gates) => Outcome>> = {
  approve: {
    proposed: () => to("approved"),
    approved: arm,
    executing: arm,
    verified: arm,
    failed: arm,
    waiting_approval: () => ({ set: { status: "approved", approval_pending: true } }),
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
    waiting_approval: () => refused("waits for approval"),
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

/** What a trigger does to a job. */
export function transition(gates: Gates, trigger: Trigger): Outcome {
  return TABLE[trigger][gates.status](gates);
}

/** A scheduled run: parks when it needs a grant and has none. */
function fire(gates: Gates): Outcome {
  if (!gates.enabled) return refused("is disabled");
  if (gates.require_approval && !gates.approval_pending) return to("waiting_approval");
  return start(gates);
}

/** The grant was for this run, and the next one needs another. */
function start(gates: Gates): Outcome {
  if (!gates.enabled) return refused("is disabled");
  return { set: { status: "executing", approval_pending: false } };
}

/** Grants the next run beforehand, where runs need a grant. */
function arm({ require_approval }: Gates): Outcome {
  return require_approval ? { set: { approval_pending: true } } : refused("is approved already");
}

/** A run ends only where one is: a job that was rejected meanwhile stays so. */
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

/** What an operator does to a job's gates (specification 3.1). */
export type GateTrigger = "approve" | "reject" | "enable" | "disable" | "stop";

/**
 * Opens or closes a gate of a job. What its schedule missed behind a closed gate is not made up for; only a
 * run that was parked is made at once.
 *
 * @throws SvcError `unknown_job` (exit 2); `job_refused` when the job does not need it
 */
export async function moveGate(
  { register, clock }: Pick<JobContext, "register" | "clock">,
  name: string,
  trigger: GateTrigger,
): Promise<Job> {
  register.need(name);
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
  return job ?? register.need(name); // it was removed just now
}

/** What begins a run: the scheduler, when the job is due, or a human. */
export type RunTrigger = "tick" | "run";

/**
 * What the beginning of a run changes in a job; or why it does not begin, as the end of a sentence about the
 * job, which may be parked by that. A run that was left goes on with its next attempt, under the approval
 * that it was begun with.
 *
 * @param session gives the run its session, once it is sure to begin
 */
export function startOf(
  job: Job,
  trigger: RunTrigger,
  { now, session }: { now: number; session: () => string },
): { set?: Partial<Job>; refused?: string; parked?: true } {
  const left = job.running;
  const gates = left === undefined ? job : { ...job, require_approval: false };
  const outcome = transition(gates, trigger);
  if ("refused" in outcome) return outcome;
  if (trigger === "tick" && !isDue(job, now)) return { refused: "is not due any more" };
  if (outcome.set.status === "waiting_approval") {
    return { set: outcome.set, refused: "waits for approval", parked: true };
  }
  const stamp = new Date(now).toISOString();
  return {
    set: {
      ...outcome.set,
      ...(left && { approval_pending: job.approval_pending }),
      running: {
        attempt: (left?.attempt ?? 0) + 1,
        session: left?.session || session(),
        started_at: left?.started_at || stamp,
        phase: "attempt",
        attempt_at: stamp,
        next_at: "",
      },
    },
  };
}

/** Whether the scheduler may run a job by itself (specification 3.1). */
export function isRunnable({ enabled, status }: Job): boolean {
  return enabled && (status === "approved" || status === "verified" || status === "failed");
}

/** Whether a job's time has come; one whose time is past is due at once (specification 4.5). */
export function isDue({ next_run_at }: Job, now: number): boolean {
  const next = readTime(next_run_at);
  return next !== undefined && next <= now;
}

/** Milliseconds by which two looks at an honest clock may be at odds. */
const ODDS = 3600_000;

/**
 * Whether something that has happened lies in the future: then the clock was wrong at that time, and has been
 * set back since.
 */
export function isAhead(happened: string, now: number): boolean {
  return (readTime(happened) ?? 0) > now + ODDS;
}

/**
 * The next run that a job lacks: it was written by hand, or planned by a clock that ran ahead, which would
 * keep it waiting for as long. Undefined when its plan is good.
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

/** When a job runs next by its schedule, as the register has it; empty: never. */
export function plannedRun(
  { schedule, last_run_at }: Pick<Job, "schedule" | "last_run_at">,
  now: number,
): string {
  return dated(nextRun(schedule, { now, ran: last_run_at !== "" }));
}

/**
 * What the end of a run changes: when it ran, when the next is due, and a one-shot job's gate.
 *
 * @param planned `next_run_at` as it was when the run began: a later one that was set since then stays
 */
export function afterRun(
  job: Job,
  { now, planned, started_at }: { now: number; planned: string; started_at: string },
): Partial<Job> {
  const set = job.next_run_at !== planned && !isDue(job, now) ? job.next_run_at : "";
  return {
    last_run_at: started_at,
    next_run_at: set || dated(nextRun(job.schedule, { now, ran: true })),
    enabled: job.enabled && job.schedule.at === undefined,
  };
}

function dated(time: number | undefined): string {
  return time === undefined ? "" : new Date(time).toISOString();
}
