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
