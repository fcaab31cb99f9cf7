import { join } from "node:path";
import * as z from "zod/mini";
import { agentRole, authorityOf } from "../engine/agents.ts";
import type { Workspace } from "../engine/workspace.ts";
import type { Clock } from "../platform/clock.ts";
import { ownIdentity, type ProcessIdentity } from "../platform/detached.ts";
import { usageError } from "../platform/error.ts";
import {
  type HeldLock,
  readTextIfExists,
  removeIfExists,
  tryHold,
  tryRemove,
  writeFileAtomic,
} from "../platform/files.ts";
import { openForJob, unusableFor } from "./attempt.ts";
import type { JobContext } from "./context.ts";
import { type Job, job as jobSchema } from "./schema.ts";

const state = z.object({
  pid: z.int(),
  /** Start time of the process, to distinguish it from a later one with its number; empty: unknown. */
  started: z.string(),
  /** Start of the scheduler, ISO 8601 as all times here. */
  since: z.string(),
  /** Seconds between two ticks. */
  tick: z.number(),
  detached: z.boolean(),
  last_tick: z.string(),
  /** When the next job is due; empty: none is planned. */
  next: z.string(),
  /** Whether the last tick found nothing that keeps the scheduler from its work. */
  healthy: z._default(z.boolean(), true),
  /** Jobs with a running attempt. */
  busy: z.array(z.string()),
});

/** The status of a worktree's scheduler, `.svc/jobs.daemon.json`. */
export type DaemonState = z.infer<typeof state>;

/** The lock of the one scheduler that a worktree has (specification 8). */
export interface DaemonLock {
  /** The identity of this process. */
  identity: ProcessIdentity;
  /** Writes the status for other processes. */
  write(state: Omit<DaemonState, keyof ProcessIdentity>): void;
  release(): void;
}

/**
 * Takes the lock of a worktree's scheduler. The kernel releases it with the process.
 *
 * @param options.state `<worktree>/.svc`
 * @throws SvcError `scheduler_running` (exit 2) that names the process that holds it
 */
export async function lockDaemon(
  { state, clock }: { state: string; clock: Clock },
): Promise<DaemonLock> {
  const lock = await hold(state, clock);
  if (lock === undefined) {
    const holder = readState(state);
    throw usageError(
      "scheduler_running",
      holder === undefined
        ? "Another scheduler of this worktree is just starting."
        : `The scheduler of this worktree is running already: process ${holder.pid}, since ` +
          `${holder.since}.`,
      "See it with: svc jobs daemon status. Stop it with: svc jobs daemon stop",
    );
  }
  removeIfExists(stateFile(state)); // left by a process that died
  const identity = await ownIdentity().catch(() => ({ pid: Deno.pid, started: "" }));
  return {
    identity,
    write: (rest) =>
      writeFileAtomic(stateFile(state), JSON.stringify({ ...identity, ...rest }, null, 2) + "\n"),
    release() {
      tryRemove(stateFile(state)); // without the lock, a file that stays is ignored
      lock.release();
    },
  };
}

/** The status of the running scheduler of a worktree; undefined when none runs. */
export function runningDaemon({ state }: { state: string }): DaemonState | undefined {
  const found = readState(state);
  if (found === undefined) return undefined; // none runs, or it is just starting
  const lock = tryHold(lockFile(state));
  lock?.release();
  return lock === undefined ? found : undefined;
}

/** Tries several times: `runningDaemon` in another process holds the lock for a moment. */
async function hold(state: string, clock: Clock): Promise<HeldLock | undefined> {
  for (let tries = 0; tries < 10; tries++) {
    const lock = tryHold(lockFile(state));
    if (lock !== undefined) return lock;
    await clock.sleep(30);
  }
  return undefined;
}

function readState(folder: string): DaemonState | undefined {
  try {
    return state.parse(JSON.parse(readTextIfExists(stateFile(folder)) ?? ""));
  } catch {
    return undefined;
  }
}

const stateFile = (state: string) => join(state, "jobs.daemon.json");
const lockFile = (state: string) => join(state, ".jobs.daemon.lock");

/**
 * Revokes, for the rest of the process, the Deno permissions that no job of the register can use under its
 * mode, role and overrides, nor a job without any. A job whose worktree does not open may need them all.
 *
 * @returns the revoked permissions; a job that needs one later fails until the scheduler is restarted
 */
export async function withdrawForJobs(context: JobContext): Promise<Deno.PermissionName[]> {
  const plain = jobSchema.parse({ name: "job", schedule: { interval: 3600 } });
  const kinds = new Map([plain, ...context.register.list()].map((job) => [kindOf(job), job]));
  let names: Deno.PermissionName[] | undefined;
  for (const job of kinds.values()) {
    const unused = await unusedBy(context, job);
    names = (names ?? unused).filter((name) => unused.includes(name));
  }
  const held = (names ?? []).filter((name) =>
    Deno.permissions.querySync({ name }).state === "granted"
  );
  for (const name of held) Deno.permissions.revokeSync({ name });
  return held;
}

/** Jobs of the same kind have the same rights. */
function kindOf({ mode, role, tool_permission, tools_deny, verify }: Job): string {
  return JSON.stringify([mode, role, tool_permission, tools_deny, verify !== undefined]);
}

async function unusedBy(context: JobContext, job: Job): Promise<Deno.PermissionName[]> {
  let workspace: Workspace | undefined;
  try {
    ({ workspace } = await openForJob({ ...context, warn: () => {} }, job, { external: false }));
    const role = job.role === "" ? undefined : await agentRole(workspace, job.role);
    return await unusableFor(workspace, authorityOf(workspace.config, role), job);
  } catch {
    return [];
  } finally {
    await workspace?.close();
  }
}
