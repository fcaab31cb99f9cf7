import assert from "node:assert/strict";
import { recover } from "../../src/jobs/recover.ts";
import { beginRun, JobRun } from "../../src/jobs/run.ts";
import { Scheduler } from "../../src/jobs/scheduler.ts";
import { hang, httpError, say } from "../support/backend.ts";
import { jobs, START } from "./support.ts";

const never = new AbortController().signal;
const stamp = new Date(START).toISOString();

const running = (phase: "attempt" | "backoff" | "report" | "parked", attempt = 1) => ({
  phase,
  attempt,
  session: "job_20260102_030405_abcdef",
  started_at: stamp,
  attempt_at: stamp,
  next_at: phase === "backoff" ? new Date(START + 60_000).toISOString() : "",
});

Deno.test("an interrupted attempt is recorded as failed and counts, and the run continues [3.1]", async () => {
  await using place = await jobs([say("done")], { recorder: true });
  await place.add({ name: "a", status: "executing", running: running("attempt"), retries: 1 });
  const scheduler = new Scheduler(place.context);
  place.clock.set(START + 5000);
  await scheduler.tick(never);
  const [job] = place.disk().jobs;
  assert.deepEqual([job.status, job.running], ["verified", undefined]);
  assert.deepEqual(
    job.history.map((
      { attempt, status, reason, duration, session }: Record<string, unknown>,
    ) => [attempt, status, reason, duration, session]),
    [
      [1, "failed", "interrupted", 5, "job_20260102_030405_abcdef"],
      [2, "verified", "", 0, "job_20260102_030405_abcdef"],
    ],
  );
  assert.match(place.backend.chats[0].messages.at(-1).content, /^\[Previous attempt 1 failed\./);
  assert.equal(place.told().filter(({ event }) => event === "job.run.completed").length, 1);
});

Deno.test("the last attempt that was interrupted ends the run, which is reported", async () => {
  await using place = await jobs([], { recorder: true });
  await place.add({ name: "a", status: "executing", running: running("attempt", 4) });
  await place.project.write(".svc/.jobs.json.abc123.tmp", '{"jobs": [');
  await recover(place.context);
  await assert.rejects(place.project.read(".svc/.jobs.json.abc123.tmp"), Deno.errors.NotFound);
  const [job] = place.disk().jobs;
  assert.deepEqual([job.status, job.running, job.history[0].attempt], ["failed", undefined, 4]);
  assert.equal(job.next_run_at, "2026-01-02T04:04:05.000Z");
  const last = place.told().at(-1);
  assert.deepEqual([last.event, last.status, last.reason], [
    "job.run.completed",
    "failed",
    "interrupted",
  ]);
  await recover(place.context);
  assert.equal(place.register.history("a").length, 1);
});

Deno.test("a run that waits for approval is reported once, also when the process died before [3.1]", async () => {
  await using place = await jobs([], { recorder: true });
  const left = { status: "waiting_approval", running: running("parked") } as const;
  await place.add({ name: "a", require_approval: true, ...left });
  await place.add({ name: "b", require_approval: true, ...left, status: "approved" });
  for (let n = 0; n < 2; n++) await recover(place.context);
  assert.deepEqual(place.told().map(({ event, job }) => [event, job]), [
    ["job.waiting_approval", "a"],
  ]);
  assert.deepEqual(place.disk().jobs.map(({ running }) => running), [undefined, undefined]);
});

Deno.test("a run that was interrupted in its backoff waits for the rest of it", async () => {
  await using place = await jobs([say("done")]);
  await place.add({ name: "a", status: "executing", running: running("backoff") });
  const scheduler = new Scheduler(place.context);
  assert.equal(await scheduler.tick(never), START + 60_000);
  assert.deepEqual([place.register.get("a")!.status, place.register.history("a")], ["failed", []]);
  place.clock.set(START + 60_000);
  await scheduler.tick(never);
  assert.equal(place.register.get("a")!.status, "verified");
  assert.equal(place.register.history("a")[0]!.attempt, 2);
});

Deno.test("a run that had ended is reported, and not repeated", async () => {
  await using place = await jobs([], { recorder: true });
  const entry = {
    started_at: stamp,
    finished_at: stamp,
    status: "verified" as const,
    reason: "",
    duration: 0,
    session: "job_20260102_030405_abcdef",
    attempt: 1,
    content: "all done",
  };
  const next_run_at = new Date(START + 3600_000).toISOString();
  await place.add({ name: "a", status: "verified", next_run_at });
  await place.register.change("a", () => ({ append: entry, set: { running: running("report") } }));
  await new Scheduler(place.context).tick(never);
  assert.equal(place.register.get("a")!.running, undefined);
  assert.deepEqual(place.told().map(({ event }) => event), ["job.verified", "job.run.completed"]);
  assert.equal(place.told()[1].content, "all done");
  assert.equal(place.backend.chats.length, 0);
});

Deno.test("an executing job without a record of its run has failed; one with a live process is not touched", async () => {
  await using place = await jobs([say("done")]);
  await place.add({ name: "a", status: "executing", retries: 0 }, { name: "b" });
  const alive = await beginRun(place.context, "b", "run");
  assert.ok(alive instanceof JobRun);
  await recover(place.context);
  const states = place.register.list().map(({ name, status }) => [name, status]);
  assert.deepEqual(states, [["a", "failed"], ["b", "executing"]]);
  assert.equal(place.register.history("a")[0]!.reason, "interrupted");
  await alive.attempt(never);
  assert.equal(place.register.get("b")!.status, "verified");
});

Deno.test("a scheduler that is stopped cancels its attempt and leaves no job executing", async () => {
  await using place = await jobs([httpError(500), hang(), say("a done"), say("b done")]);
  await place.add({ name: "a", backoff: 600 }, { name: "b" });
  const scheduler = new Scheduler(place.context);
  const stop = new AbortController();
  const second = place.backend.arrived(2);
  const ticked = scheduler.tick(stop.signal);
  await second;
  stop.abort();
  await ticked;
  await scheduler.close();
  const found = place.disk().jobs.map((job) => [job.status, job.history.length, job.next_run_at]);
  assert.deepEqual(found, [
    ["failed", 1, new Date(START + 600_000).toISOString()],
    ["failed", 1, stamp],
  ]);
  const later = new Scheduler(place.context);
  place.clock.set(START + 600_000);
  await later.tick(never);
  assert.deepEqual(
    place.disk().jobs.map((job) => job.history.map(({ attempt }: { attempt: number }) => attempt)),
    [[1, 2], [1, 2]],
  );
  assert.deepEqual(place.register.list().map(({ status }) => status), ["verified", "verified"]);
});

Deno.test("a run by hand after an interrupted run reports that run and is a new one", async () => {
  await using place = await jobs([say("done")], { recorder: true });
  await place.add({ name: "a", status: "executing", running: running("attempt") });
  const run = await beginRun(place.context, "a", "run");
  assert.ok(run instanceof JobRun);
  await run.attempt(never);
  const reports = place.told().filter(({ event }) => event === "job.run.completed");
  assert.deepEqual(reports.map(({ status, reason }) => [status, reason]), [
    ["failed", "interrupted"],
    ["verified", ""],
  ]);
  assert.notEqual(reports[0].session, reports[1].session);
  assert.deepEqual(place.register.history("a").map(({ attempt }) => attempt), [1, 1]);
});

Deno.test("an interrupted run continues under its earlier approval", async () => {
  await using place = await jobs([say("done")]);
  const gated = { require_approval: true, approval_pending: true };
  await place.add({ name: "a", status: "executing", running: running("attempt"), ...gated });
  await new Scheduler(place.context).tick(never);
  const { status, approval_pending } = place.register.get("a")!;
  assert.deepEqual([status, approval_pending], ["verified", true]);
});
