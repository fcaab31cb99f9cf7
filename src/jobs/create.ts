import { resolve } from "node:path";
import { NAME_RULE } from "../catalog/schema.ts";
import type { Workspace } from "../engine/workspace.ts";
import { timestamp } from "../platform/clock.ts";
import { usageError } from "../platform/error.ts";
import { checkMode } from "../policy/settings.ts";
import { checkSessionName } from "../sessions/names.ts";
import type { JobContext } from "./context.ts";
import { plannedRun } from "./transitions.ts";
import { checkSchedule, readTime, type Schedule } from "./schedule.ts";
import { isJobName, type Job, job as jobSchema } from "./schema.ts";
import { createTaskFile, defaultTaskFile, storedPath } from "./prompt.ts";

/** What a job is made of; what is left out has its default (specification 2.6, 4.5). */
export interface NewJob extends Partial<Omit<Job, "schedule">> {
  name: string;
  schedule: Schedule;
  /** Absolute path of the task file; left out: the default one. */
  file?: string;
  /** What a task file that is made for it says is to be done. */
  task?: string;
}

/**
 * Adds a job, and its task file from the template when there is none. Nothing is written when anything is
 * wrong.
 *
 * @returns the job, and the path of the task file when it was made
 * @throws SvcError (exit 2)
 */
export async function createJob(
  { register, clock, worktree }: JobContext,
  workspace: Workspace,
  { file, task, ...given }: NewJob,
): Promise<{ job: Job; created: string }> {
  const { name, schedule } = given;
  if (!isJobName(name)) {
    const shown = JSON.stringify(name.slice(0, 80));
    throw usageError("job_name", `${shown} cannot be the name of a job.`, `Use ${NAME_RULE}.`);
  }
  checkSchedule(schedule);
  if (given.mode) checkMode(workspace.config, given.mode);
  if (given.session) checkSessionName(given.session);
  const path = file ?? resolve(worktree, defaultTaskFile(name));
  if (isFolder(path)) throw usageError("task_file", `The task file ${path} is a folder.`);
  const now = clock.now();
  checkAhead(schedule, now);
  const job = jobSchema.parse({
    ...given,
    task_file: storedPath(worktree, path),
    created_at: timestamp(clock),
    next_run_at: plannedRun({ schedule, last_run_at: "" }, now),
  });
  await register.add(job); // first: it refuses a name that is taken
  return { job, created: createTaskFile(path, name, task) ? path : "" };
}

/** The minute that has begun is not past: datetimes are often written without seconds. */
const MINUTE = 60_000;

/** A moment that is over is a slip: missed times are not made up for (specification 4.5). */
function checkAhead({ at }: Schedule, now: number): void {
  if (at === undefined || readTime(at)! > now - MINUTE) return;
  throw usageError(
    "past_schedule",
    `${JSON.stringify(at)} is past; it is ${new Date(now).toISOString().slice(0, 19)} UTC now.`,
    "A datetime without an offset is in UTC. To run a job now: svc jobs run.",
  );
}

function isFolder(path: string): boolean {
  try {
    return Deno.statSync(path).isDirectory;
  } catch {
    return false;
  }
}
