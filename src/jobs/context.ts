import { join } from "node:path";
import type { TurnEvent } from "../engine/events.ts";
import type { Workspace } from "../engine/workspace.ts";
import type { Clock } from "../platform/clock.ts";
import type { Environment } from "../platform/environment.ts";
import { SvcError } from "../platform/error.ts";
import { type HeldLock, tryHold } from "../platform/files.ts";
import { type Change, JobRegister } from "./register.ts";
import type { Job } from "./schema.ts";

/** What the runs of one worktree's jobs have in common. */
export interface JobContext {
  /** Real absolute path of the worktree. */
  worktree: string;
  /** `<worktree>/.svc` */
  state: string;
  environment: Environment;
  register: JobRegister;
  /** Of schedules, backoff and timeouts. */
  clock: Clock;
  warn: (message: string) => void;
  /** The Deno permissions that this process gave up at its start, because no job could use them. */
  withdrawn?: Deno.PermissionName[];
  /** Shows what an attempt does. */
  show?: (event: TurnEvent, job: string) => void;
}

/** The jobs of an open worktree, by its clock. */
export function jobContext(
  { paths, environment, clock, warn }: Pick<Workspace, "paths" | "environment" | "clock" | "warn">,
): JobContext {
  const { worktree, state } = paths;
  const register = new JobRegister({ state, clock, warn });
  return { worktree, state, environment, register, clock, warn };
}

/**
 * The lock that whoever runs a job holds; undefined while somebody does. The kernel releases it with the
 * process, so that a run without its lock is one that was cut.
 */
export function holdJob({ state }: { state: string }, name: string): HeldLock | undefined {
  return tryHold(join(state, "jobs", `.${name}.lock`));
}

/** Milliseconds between two attempts to write what cannot be written. */
const PAUSE = 5000;

/**
 * Changes a job by what has happened to it. While the register cannot be written, as on a full disk, this
 * waits: an attempt that has ended is neither lost nor made again for that. Aborting the signal ends the wait;
 * without one there is none.
 *
 * @throws SvcError `register_write` when nobody waits (any more)
 */
export async function record(
  { register, clock, warn }: JobContext,
  name: string,
  decide: (job: Job) => Change | undefined,
  signal?: AbortSignal,
): Promise<Job | undefined> {
  for (let tries = 0;; tries++) {
    try {
      return await register.change(name, decide);
    } catch (error) {
      if (!(error instanceof SvcError) || error.code !== "register_write") throw error;
      if (signal === undefined || signal.aborted) throw error;
      if (tries === 0) warn(`${name}: ${error.message} Its end is written down once it can be.`);
      if (!await clock.sleep(PAUSE, signal).then(() => true, () => false)) throw error;
    }
  }
}
