import { resolve } from "node:path";
import { NAME_RULE } from "../catalog/schema.ts";
import { timestamp } from "../platform/clock.ts";
import { usageError } from "../platform/error.ts";
import { statIfExists } from "../platform/files.ts";
import { checkSessionName } from "../sessions/names.ts";
import { checkJob } from "./attempt.ts";
import type { JobContext } from "./context.ts";
import { createTaskFile, defaultTaskFile, storedPath } from "./prompt.ts";
import { checkSchedule, readTime, type Schedule } from "./schedule.ts";
import { isJobName, type Job, job as jobSchema } from "./schema.ts";
import { plannedRun } from "./transitions.ts";

/** The fields of a new job; missing ones have their defaults (specification 2.6, 4.5). */
export interface NewJob extends Partial<Omit<Job, "schedule">> {
  name: string;
  schedule: Schedule;
  /** Absolute path of the task file; left out: the default one. */
  file?: string;
  /** The task for a task file that is created. */
  task?: string;
}

/**
 * Adds a job, and creates its task file from the template when there is none. Nothing is written when a field
 * is invalid.
 *
 * @returns the job, and the path of the task file when it was created, else empty
 * @throws SvcError (exit 2)
 */
export async function createJob(
  context: JobContext,
  { file, task, ...given }: NewJob,
): Promise<{ job: Job; created: string }> {
  const { register, clock, worktree, store } = context;
  const { name, schedule } = given;
  if (!isJobName(name)) {
    const shown = JSON.stringify(name.slice(0, 80));
    throw usageError("job_name", `${shown} cannot be the name of a job.`, `Use ${NAME_RULE}.`);
  }
  checkSchedule(schedule);
  if (given.session) checkSessionName(given.session);
  if (given.git !== undefined) {
    const { readRepository } = await import("./clones.ts");
    const { url, ref } = given.git;
    readRepository(ref === "" ? url : `${url}#${ref}`, context.environment);
  }
  const path = file ?? resolve(worktree, defaultTaskFile(name));
  if (statIfExists(path)?.isDirectory) {
    throw usageError("task_file", `The task file ${path} is a folder.`);
  }
  const now = clock.now();
  checkAhead(schedule, now);
  const job = jobSchema.parse({
    ...given,
    task_file: storedPath(worktree, path),
    created_at: timestamp(clock),
    next_run_at: plannedRun({ schedule, last_run_at: "" }, now),
  });
  if (register.get(name) === undefined) await checkJob(context, job);
  await register.add(job); // first: it rejects a name that is in use
  const created = createTaskFile(path, name, task) ? path : "";
  if (created !== "" && store !== undefined) await register.change(name, () => ({})); // its row has the task
  return { job, created };
}

/** Tolerance of `at`: datetimes are often written without seconds. */
const MINUTE = 60_000;

/** Rejects an `at` in the past: missed times are not made up for (specification 4.5). */
function checkAhead({ at }: Schedule, now: number): void {
  if (at === undefined || readTime(at)! > now - MINUTE) return;
  throw usageError(
    "past_schedule",
    `${JSON.stringify(at)} is past; it is ${new Date(now).toISOString().slice(0, 19)} UTC now.`,
    "A datetime without an offset is in UTC. To run a job now: svc jobs run.",
  );
}
