/** The states of an agent (specification 3.4). */
export const STATES = ["down", "running", "stopping", "restarting", "crashed"] as const;
export type State = typeof STATES[number];

/** The status of an agent. Times are milliseconds since the epoch; 0: none. */
export interface Status {
  state: State;
  /** When it entered this state. */
  since: number;
  /** Whether the running process has answered a health probe. */
  healthy: boolean;
  /** Health probes that failed in a row. */
  failed_probes: number;
  /** Failures that count against `max_restarts`, and double the backoff. */
  failures: number;
  /** Automatic restarts. */
  restarts: number;
  /** When a `restarting` agent is restarted. */
  retry_at: number;
  /** When a `stopping` agent's process is killed. */
  kill_at: number;
  /** The state that follows `stopping`. */
  next: "down" | "restarting" | "crashed";
  /** The last error. */
  error: string;
}

/** Limits of an agent. Times are milliseconds. */
export interface Policy {
  /** 0: no limit. */
  max_restarts: number;
  /** Failed probes in a row that make an agent unhealthy. */
  unhealthy_threshold: number;
  /** Time for the last turns between the interrupt and the kill. */
  grace: number;
}

/** An event about an agent. */
export type Trigger =
  | { type: "sweep"; enabled: boolean }
  | { type: "spawned" }
  /** It could not be started for a reason outside of the agent, such as no free port. */
  | { type: "blocked"; error: string }
  | { type: "exited"; error: string }
  /** A health probe has ended, with an error if it failed. */
  | { type: "probed"; error?: string }
  /** Requested by the operator, or by a changed definition. */
  | { type: "restart" };

/** The action on the process that a transition requires. */
export type Action = "spawn" | "interrupt" | "kill";

export interface Outcome {
  status: Status;
  action?: Action;
}

const BACKOFF = 5_000;
const MAX_BACKOFF = 60_000;
/** Time until the first healthy probe. */
const STARTUP = 60_000;
/** The longest grace of a process that does not answer any more. */
const UNHEALTHY_GRACE = 5_000;
/** Time in health after which earlier failures no longer count. */
const STABLE = 600_000;

/** The status of an agent that has not been started. */
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

/** The effect of each trigger in each state. */
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

/** Applies a trigger to a status. */
export function transition(status: Status, trigger: Trigger, context: Context): Outcome {
  const handle = TABLE[trigger.type][status.state] as Handler<Trigger["type"]>;
  return handle(status, trigger as never, context);
}

/** Milliseconds before the restart after a number of failures (specification 8). */
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

/** After a failure the agent is restarted with a growing backoff, or crashed beyond `max_restarts`. */
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
