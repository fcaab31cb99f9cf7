/** The states of an agent (specification 3.4). */
export const STATES = ["down", "running", "stopping", "restarting", "crashed"] as const;
export type State = typeof STATES[number];

/** How an agent fares. Times are milliseconds since the epoch; 0: none. */
export interface Status {
  state: State;
  /** When it came into this state. */
  since: number;
  /** Whether the process that runs has answered a health probe. */
  healthy: boolean;
  /** Health probes that failed in a row. */
  failed_probes: number;
  /** Failures that count against `max_restarts`, and double the backoff. */
  failures: number;
  /** How often it was started again by itself. */
  restarts: number;
  /** When a `restarting` agent is started again. */
  retry_at: number;
  /** When a `stopping` agent's process is killed. */
  kill_at: number;
  /** What a `stopping` agent becomes. */
  next: "down" | "restarting" | "crashed";
  /** What went wrong last. */
  error: string;
}

/** What an agent is judged by. Times are milliseconds. */
export interface Policy {
  /** 0: as often as it takes. */
  max_restarts: number;
  /** Failed probes in a row that make an agent unhealthy. */
  unhealthy_threshold: number;
  /** What a process has for its last turns before it is killed. */
  grace: number;
}

/** What happens to an agent. */
export type Trigger =
  | { type: "sweep"; enabled: boolean }
  | { type: "spawned" }
  /** It could not be started for want of something that is not its own, such as a port. */
  | { type: "blocked"; error: string }
  | { type: "exited"; error: string }
  /** A health probe came back; with an error it failed. */
  | { type: "probed"; error?: string }
  /** The operator's, or another definition. */
  | { type: "restart" };

/** What is to be done to its process. */
export type Action = "spawn" | "interrupt" | "kill";

export interface Outcome {
  status: Status;
  action?: Action;
}

const BACKOFF = 5_000;
const MAX_BACKOFF = 60_000;
/** What a process has until its first healthy probe. */
const STARTUP = 60_000;
/** A process that does not answer any more is not given longer than this to end by itself. */
const UNHEALTHY_GRACE = 5_000;
/** After so long in health, earlier failures are forgotten: months of them do not add up. */
const STABLE = 600_000;

/** An agent that has not been started. */
export function initialStatus(now: number): Status {
  return {
    state: "down",
    since: now,
    healthy: false,
    failed_probes: 0,
    failures: 0,
    restarts: 0,
    retry_at: 0,
    kill_at: 0,
    next: "down",
    error: "",
  };
}

type Handler<T extends Trigger["type"]> = (
  status: Status,
  trigger: Extract<Trigger, { type: T }>,
  context: Context,
) => Outcome;
interface Context {
  now: number;
  policy: Policy;
}

/** The table: what each trigger does in each state. */
const TABLE: { [T in Trigger["type"]]: Record<State, Handler<T>> } = {
  sweep: {
    down: (status, { enabled }) => enabled ? { status, action: "spawn" } : { status },
    running: (status, { enabled }, context) => {
      if (!enabled) return stop(status, "down", context);
      const late = !status.healthy && context.now - status.since >= STARTUP;
      return late ? unhealthy(status, "was not healthy within 60 s", context) : { status };
    },
    stopping: (status, { enabled }, { now }) => ({
      status: enabled ? status : { ...status, next: "down" },
      action: now >= status.kill_at ? "kill" : undefined,
    }),
    restarting: (status, { enabled }, { now }) => {
      if (!enabled) return { status: initialStatus(now) };
      return { status, action: now >= status.retry_at ? "spawn" : undefined };
    },
    crashed: (status, { enabled }, { now }) => ({ status: enabled ? status : initialStatus(now) }),
  },
  spawned: {
    ...inAny(unchanged),
    down: (status, _, { now }) => ({ status: started(status, now) }),
    restarting: (status, _, { now }) => ({
      status: { ...started(status, now), restarts: status.restarts + 1 },
    }),
  },
  blocked: {
    ...inAny(unchanged),
    down: (status, { error }) => ({ status: { ...status, error } }),
    restarting: (status, { error }) => ({ status: { ...status, error } }),
  },
  exited: {
    ...inAny(unchanged),
    running: (status, { error }, context) => ({ status: failed(status, error, context) }),
    stopping: (status, _, { now }) => ({
      status: status.next === "down"
        ? initialStatus(now)
        : { ...status, state: status.next, since: now, healthy: false },
    }),
  },
  probed: {
    ...inAny(unchanged),
    running: (status, { error }, context) => {
      if (error === undefined) return { status: well(status, context.now) };
      if (!status.healthy) return { status }; // it is still starting
      const failed_probes = status.failed_probes + 1;
      return failed_probes >= context.policy.unhealthy_threshold
        ? unhealthy({ ...status, failed_probes }, error, context)
        : { status: { ...status, failed_probes, error } };
    },
  },
  restart: {
    down: (status, _, { now }) => ({ status: { ...status, ...initialStatus(now) } }),
    running: (status, _, context) => stop(status, "down", context),
    stopping: (status) => ({ status: { ...status, next: "down" } }),
    restarting: (_status, _, { now }) => ({ status: initialStatus(now) }),
    crashed: (_status, _, { now }) => ({ status: initialStatus(now) }),
  },
};

/** What a trigger makes of an agent. */
export function transition(status: Status, trigger: Trigger, context: Context): Outcome {
  const handle = TABLE[trigger.type][status.state] as Handler<Trigger["type"]>;
  return handle(status, trigger as never, context);
}

/** Milliseconds before the start that follows so many failures (specification 8). */
export function backoff(failures: number): number {
  return Math.min(BACKOFF * 2 ** Math.min(failures - 1, 10), MAX_BACKOFF);
}

function started(status: Status, now: number): Status {
  return { ...status, state: "running", since: now, healthy: false, failed_probes: 0, retry_at: 0 };
}

function well(status: Status, now: number): Status {
  const since = status.healthy ? status.since : now;
  const failures = now - since >= STABLE ? 0 : status.failures;
  const error = failures === 0 || status.failed_probes > 0 ? "" : status.error;
  return { ...status, healthy: true, since, failed_probes: 0, failures, error };
}

/** After a failure it is started again, later each time, until that has been done too often. */
function failed(status: Status, error: string, { now, policy }: Context): Status {
  const failures = status.failures + 1;
  const counted = { ...status, failures, error, since: now, healthy: false, failed_probes: 0 };
  const over = policy.max_restarts > 0 && failures > policy.max_restarts;
  return over
    ? { ...counted, state: "crashed" }
    : { ...counted, state: "restarting", retry_at: now + backoff(failures) };
}

function unhealthy(status: Status, error: string, context: Context): Outcome {
  const after = failed(status, error, context);
  const { policy } = context;
  const brief = { ...policy, grace: Math.min(policy.grace, UNHEALTHY_GRACE) };
  return stop(after, after.state as "restarting" | "crashed", { ...context, policy: brief });
}

function stop(status: Status, next: Status["next"], { now, policy }: Context): Outcome {
  return {
    status: { ...status, state: "stopping", since: now, next, kill_at: now + policy.grace },
    action: "interrupt",
  };
}

function unchanged(status: Status): Outcome {
  return { status };
}

function inAny<T extends Trigger["type"]>(handle: Handler<T>): Record<State, Handler<T>> {
  return {
    down: handle,
    running: handle,
    stopping: handle,
    restarting: handle,
    crashed: handle,
  };
}
