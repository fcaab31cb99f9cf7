import { taskPath } from "../../jobs/task_file.ts";
import { createTaskFile } from "../../jobs/task_file.ts";
import { openEditor } from "../../platform/editor.ts";
import { usageError } from "../../platform/error.ts";
import type { View } from "./view.ts";

/** `jobs edit`: the task file in the user's editor, on a terminal only. */
export async function editTask({ context, io }: View, name: string): Promise<number> {
  const job = context.register.need(name);
  const path = taskPath(context.worktree, job) ??
    taskPath(context.worktree, { ...job, task_file: undefined })!;
  if (!io.isTerminal("in") || !io.isTerminal("out")) {
    throw usageError("no_terminal", "An editor needs a terminal.", `Edit the file itself: ${path}`);
  }
  createTaskFile(path, name);
  if (job.task_file === "") {
    await context.register.change(name, () => ({ set: { task_file: undefined } }));
  }
  const code = await openEditor(io.environment.get("EDITOR") || "vi", path);
  if (code !== 0) io.note(`The editor ended with exit code ${code}.`);
  return code === 0 ? 0 : 1;
}
