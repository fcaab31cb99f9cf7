import type { Workspace } from "../engine/workspace.ts";
import type { Job } from "./schema.ts";
import { readTask } from "./task_file.ts";

/** Stands in when a job says nothing about what it is. */
const GENERIC = "You carry out a recurring job in this project. Nobody is watching: do what the " +
  "request says, check your work with the tools, and end with a short account of what you did, " +
  "found, or could not do.";

/** The prompt of a job whose task file says it all. */
const TRIGGER = "Carry out the job now.";

/**
 * What a job adds to the system prompt, behind its role: the task, the job's own prompt, what was
 * remembered of its runs (specification 2.6).
 *
 * @throws SvcError as `readTask`
 */
export function jobSections(workspace: Workspace, job: Job): string[] {
  const task = readTask(workspace.paths.worktree, job);
  const sections = [
    task === "" ? "" : `## Job task\n\n${task}`,
    job.system_prompt.trim(),
    workspace.memory.block("job", job.name),
  ].filter((section) => section !== "");
  return sections.length === 0 && job.role === "" ? [GENERIC] : sections;
}

/** The prompt of an attempt; a retry says that the one before it failed. */
export function attemptPrompt({ prompt }: Job, attempt: number): string {
  const trigger = prompt.trim() || TRIGGER;
  if (attempt === 1) return trigger;
  return `[Previous attempt ${attempt - 1} failed. Retry this job and finish it.]\n\n${trigger}`;
}
