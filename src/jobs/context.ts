import { isAbsolute, join } from "node:path";
import type { TurnEvent } from "../engine/events.ts";
import type { Workspace } from "../engine/workspace.ts";
import type { Clock } from "../platform/clock.ts";
import type { Environment } from "../platform/environment.ts";
import { SvcError } from "../platform/error.ts";
import { type Opening, openingOf } from "../policy/openings.ts";
import type { Trust } from "../policy/trust.ts";
import { tryHold } from "../platform/files.ts";
import type { Link } from "../store/link.ts";
import { type Change, JobRegister } from "./register.ts";
import type { Job } from "./schema.ts";

/** The context that all job runs of one worktree share. */
export interface JobContext {
  /** Real absolute path of the worktree. */
  worktree: string;
  /** `<worktree>/.svc` */
  state: string;
  environment: Environment;
  register: JobRegister;
  /** The clock of schedules, backoff and timeouts. */
  clock: Clock;
  /** What the user has accepted of the worktree: jobs that are not trusted do not run. */
  trust: Trust;
  warn: (message: string) => void;
  /** The Deno permissions that this process revoked at its start, because no job could use them. */
  withdrawn?: Deno.PermissionName[];
  /** The store that other machines share. Undefined: the files alone. */
  store?: Link;
  /** The token of the lease on whose behalf the register is changed. */
  token?: number;
  /** Receives the events of attempts. */
  show?: (event: TurnEvent, job: string) => void;
}

/** The job context of an open worktree. */
export function jobContext(
  { paths, environment, clock, trust, warn, store }: Pick<
    Workspace,
    "paths" | "environment" | "clock" | "trust" | "warn" | "store"
  >,
): JobContext {
  const { worktree, state } = paths;
  const register = new JobRegister({ state, clock, warn, store });
  return { worktree, state, environment, register, clock, trust, warn, store };
}

/** Characters of a command that the text of an opening shows. */
const MAX_COMMAND = 80;

/** The opening of a job: its definition, without what runs and gates change. */
export function jobOpening(job: Job): Opening {
  const { name, status: _, enabled: _1, approval_pending: _2, running: _3, ...rest } = job;
  const { session: _4, created_at: _5, next_run_at: _6, last_run_at: _7, ...more } = rest;
  const { blocked: _8, ...definition } = more;
  const { verify } = job;
  const command = verify === undefined
    ? ""
    : `, and the command ${JSON.stringify(verify.slice(0, MAX_COMMAND))} to verify its work`;
  const { task_file = "" } = job;
  const elsewhere = isAbsolute(task_file)
    ? `, with the task ${JSON.stringify(task_file.slice(0, MAX_COMMAND))}`
    : "";
  const where = job.git === undefined
    ? ""
    : `, in a clone of ${JSON.stringify(job.git.url.slice(0, MAX_COMMAND))}`;
  const text = `runs the job ${name} on its schedule${where}${elsewhere}${command}`;
  return openingOf(`job:${name}`, text, definition);
}

/** The warning and refusal for a job that is not trusted. */
export const UNTRUSTED_JOB = "is not trusted; see svc trust";

export function isTrusted({ trust }: JobContext, job: Job): boolean {
  return trust.everything || trust.accepts(jobOpening(job));
}

/** The right to run a job, which one process has at a time. */
export interface HeldJob {
  /** Aborts when the worker of another machine has taken the job over. */
  readonly lost?: AbortSignal;
  readonly token?: number;
  /** Who runs it, where several machines share a store: `<host>/<process id>`. */
  readonly worker?: string;
  release(): Promise<void>;
}

/**
 * Takes the lock that a process holds while it runs a job, and its lease where several machines share a store;
 * undefined when another process holds it. The kernel releases the lock with the process, and a lease expires, so a
 * `running` job without them was interrupted.
 *
 * @throws SvcError `store_unreachable`
 */
export async function holdJob(
  { state, store }: Pick<JobContext, "state" | "store">,
  name: string,
): Promise<HeldJob | undefined> {
  const lock = tryHold(join(state, "jobs", `.${name}.lock`));
  if (lock === undefined) return undefined;
  if (store === undefined) return { release: () => Promise.resolve(lock.release()) };
  let held: HeldJob | undefined;
  try {
    const { leases } = await store.open();
    const lease = await leases.take(`job/${name}`);
    if (lease === undefined) return undefined;
    // One that cannot be released expires.
    const release = () => lease.release().catch(() => {}).finally(() => lock.release());
    held = { lost: lease.lost, token: lease.token, worker: leases.holder, release };
    return held;
  } finally {
    if (held === undefined) lock.release();
  }
}

/** Milliseconds between two tries to write the register. */
const PAUSE = 5000;

/**
 * Records an event of a run in the register. While the register cannot be written, such as on a full disk, this
 * waits and tries again, so that the result of an attempt is not lost. Aborting the signal ends the wait;
 * without a signal there is none.
 *
 * @throws SvcError `register_write` when it cannot be written and the wait is over; `lease_lost` when another worker
 * has taken the run over: its register is not changed
 */
export async function record(
  { register, clock, warn, token }: JobContext,
  name: string,
  decide: (job: Job) => Change | undefined,
  signal?: AbortSignal,
): Promise<Job | undefined> {
  const own = (job: Job) => {
    if (token === undefined || job.running?.token === token) return decide(job);
    throw new SvcError("lease_lost", `Another worker has taken over the job ${name}.`);
  };
  for (let tries = 0;; tries++) {
    try {
      return await register.change(name, own);
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "register_write") throw error;
      if (signal === undefined || signal.aborted) throw error;
      if (tries === 0) warn(`${name}: ${error.message} Its end is written down once it can be.`);
      if (!await clock.sleep(PAUSE, signal).then(() => true, () => false)) throw error;
    }
  }
}
