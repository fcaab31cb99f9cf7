import assert from "node:assert/strict";
import { jobsStatus, listJobs, showJob, stepLine } from "../../src/commands/jobs/view.ts";
import { Workspace } from "../../src/engine/workspace.ts";
import { jobOpening } from "../../src/jobs/context.ts";
import { beginRun, JobRun } from "../../src/jobs/run.ts";
import type { JobReport } from "../../src/plugins/api.ts";
import { call, say } from "../support/backend.ts";
import { testIo } from "../support/io.ts";
import { trusting } from "../support/trust.ts";
import { aJob, jobs, type TestJobs } from "./support.ts";

async function run(place: TestJobs): Promise<JobReport> {
  const run = await beginRun(place.context, "a", "run");
  assert.ok(run instanceof JobRun, JSON.stringify(run));
  while (run.next !== undefined) {
    place.clock.set(run.next);
    await run.attempt(new AbortController().signal);
  }
  return run.report!;
}

/** What a person reads of the job: `list`, `status`, `show`, and the line of the scheduler. */
function texts(place: TestJobs, report: JobReport): string[] {
  const { path } = place.project;
  const environment = { home: path, cwd: path, get: trusting };
  const workspace = Workspace.open({ path, environment });
  const view = { workspace, context: place.context, io: testIo({ home: path, cwd: path }) };
  return [
    listJobs(view).text,
    jobsStatus(view).text,
    showJob(view, "a").text,
    stepLine({ job: "a", step: "finished", report }, place.context),
  ];
}

Deno.test("a job is verified by its command alone, and says so to people", async () => {
  await using place = await jobs([say("done"), say("really")], { recorder: true });
  await place.add({ name: "a", verify: "test -f ok || ! touch ok", retries: 0 });
  const report = await run(place);
  assert.deepEqual([report.status, report.checked], ["verified", true]);
  const [job] = place.disk().jobs;
  assert.deepEqual([job.status, job.history[0].checked], ["verified", true]);
  assert.equal(place.told().at(-1).checked, true);
  for (const text of texts(place, report)) {
    assert.match(text, /verified/);
    assert.doesNotMatch(text, /not checked/);
  }
});

Deno.test("a job whose command fails has failed, whatever its model says, and is retried", async () => {
  await using place = await jobs({ replies: [], default: say("all tests pass") });
  await place.add({ name: "a", verify: "echo 2 failed; exit 1", verify_rounds: 1, retries: 1 });
  const report = await run(place);
  assert.deepEqual([report.status, report.checked], ["failed", false]);
  assert.match(report.reason, /exit code 1 after 1 correction: 2 failed/);
  const [job] = place.disk().jobs;
  assert.deepEqual([job.status, job.history.length, place.backend.chats.length], ["failed", 2, 4]);
});

Deno.test("a job without a command ended ok and is not checked, wherever a person reads it [4.5]", async () => {
  await using place = await jobs([say("done")], { recorder: true });
  await place.add({ name: "a" });
  const report = await run(place);
  assert.deepEqual([report.status, report.checked], ["verified", false]); // as the specification has it
  const [job] = place.disk().jobs;
  assert.deepEqual([job.status, job.history[0].status], ["verified", "verified"]);
  for (const text of texts(place, report)) {
    assert.match(text, /ended ok, not checked/);
    assert.doesNotMatch(text, /verified/);
  }
});

Deno.test("a command that is added to a job does not make its earlier runs verified", async () => {
  await using place = await jobs([say("done")]);
  await place.add({ name: "a" });
  const report = await run(place);
  await place.register.change("a", () => ({ set: { verify: "true" } }));
  for (const text of texts(place, report)) assert.match(text, /ended ok, not checked/);
});

Deno.test("the history and the report of a job have its data and what was refused [4.5]", async () => {
  const schema = { type: "object", properties: { n: { type: "integer" } }, required: ["n"] };
  await using place = await jobs([
    call("run_command", { command: "ls" }),
    call("answer", { data: { n: 3 } }),
  ], { recorder: true });
  await place.add({ name: "a", schema });
  const report = await run(place);
  assert.deepEqual(report.data, { n: 3 });
  const [job] = place.disk().jobs;
  assert.deepEqual(job.history[0].data, { n: 3 });
  for (const denied of [report.denied, job.history[0].denied, place.told().at(-1).denied]) {
    assert.deepEqual(denied.map(({ tool }: { tool: string }) => tool), ["run_command"]);
  }
});

Deno.test("a job without valid data fails with the reasons", async () => {
  await using place = await jobs({ replies: [], default: say('{"n": "three"}') });
  const schema = { type: "object", properties: { n: { type: "integer" } } };
  await place.add({ name: "a", schema, retries: 0 });
  const report = await run(place);
  assert.deepEqual([report.status, report.data], ["failed", undefined]);
  assert.match(report.reason, /\/n: .*integer/);
});

Deno.test("the opening of a job names the command that verifies it, and another command is another opening", () => {
  const plain = jobOpening(aJob({ name: "a" }));
  const one = jobOpening(aJob({ name: "a", verify: "npm test" }));
  const other = jobOpening(aJob({ name: "a", verify: "npm run all" }));
  assert.match(one.text, /the command "npm test" to verify its work/);
  assert.equal(new Set([plain.digest(), one.digest(), other.digest()]).size, 3);
});
