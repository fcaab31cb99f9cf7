import assert from "node:assert/strict";
import { jobOpening } from "../../src/jobs/context.ts";
import type { Job } from "../../src/jobs/schema.ts";

Deno.test("the opening of a job names its command of verify, and a task file outside of the worktree", () => {
  const text = (more: Partial<Job>) => jobOpening({ name: "a", ...more } as Job).text;
  assert.equal(text({ task_file: ".svc/jobs/a.md" }), "runs the job a on its schedule");
  assert.equal(
    text({ task_file: "/home/ada/diary.md", verify: "make check" }),
    'runs the job a on its schedule, with the task "/home/ada/diary.md", and the command ' +
      '"make check" to verify its work',
  );
});
