import assert from "node:assert/strict";
import type { JobContext } from "../../src/jobs/context.ts";
import { MAX_WAIT } from "../../src/jobs/schedule.ts";
import { Scheduler } from "../../src/jobs/scheduler.ts";
import { httpError, say } from "../support/backend.ts";
import { watchedSignal } from "../support/watched_signal.ts";
import { jobs, START } from "./support.ts";

const DAY = 86_400_000;
const never = new AbortController().signal;

Deno.test("a due job runs once, is verified, and is due again an interval after its end [1, 2.1, 3.1, 4.5]", async () => {
  await using place = await jobs([say("all is well")], { recorder: true });
  await place.add({ name: "watch" });
  const scheduler = new Scheduler(place.context);
  const next = await scheduler.tick(never);
  assert.deepEqual(place.warnings.filter((line) => !line.includes("runs code of its own")), []);
  const [job] = place.disk().jobs;
  assert.equal(job.status, "verified");
  assert.equal(job.next_run_at, "2026-01-02T04:04:05.000Z");
  assert.equal(job.last_run_at, "2026-01-02T03:04:05.000Z");
  assert.equal(next, START + 3600_000);
  assert.equal(job.running, undefined);
  const [entry] = job.history;
  assert.match(entry.session, /^job_\d{8}_\d{6}_[0-9a-z]{6}$/);
  assert.deepEqual({ ...entry, session: "" }, {
    started_at: "2026-01-02T03:04:05.000Z",
    finished_at: "2026-01-02T03:04:05.000Z",
    status: "verified",
    reason: "",
    duration: 0,
    session: "",
    attempt: 1,
    content: "all is well",
  });
  assert.deepEqual(place.told().map(({ event }) => event), [
    "job.will_run",
    "job.executing",
    "job.verified",
    "job.run.completed",
  ]);
  await scheduler.tick(never);
  assert.equal(place.backend.chats.length, 1);
});

Deno.test("a job in backoff does not hold up others, and is retried when due [4.5]", async () => {
  await using place = await jobs([httpError(500), say("b done"), say("a done")], {
    recorder: true,
  });
  await place.add({ name: "b" }, { name: "a", backoff: 30, retries: 1 });
  const scheduler = new Scheduler(place.context);
  assert.equal(await scheduler.tick(never), START + 30_000);
  assert.equal(place.register.get("a")!.status, "executing");
  assert.equal(place.register.get("b")!.status, "verified");
  place.clock.set(START + 29_999);
  await scheduler.tick(never);
  assert.equal(place.backend.chats.length, 2);
  place.clock.set(START + 30_000);
  await scheduler.tick(never);
  assert.equal(place.register.get("a")!.status, "verified");
  const history = place.register.history("a");
  assert.deepEqual(history.map(({ status, attempt }) => [status, attempt]), [["failed", 1], [
    "verified",
    2,
  ]]);
  assert.equal(history[0]!.session, history[1]!.session);
  assert.match(
    place.backend.chats[2].messages.at(-1).content,
    /^\[Previous attempt 1 failed\. Retry this job and finish it\.\]\n\ngo$/,
  );
  assert.equal(place.told().filter(({ event }) => event === "job.run.completed").length, 2);
});

Deno.test("due jobs run in the order of their names, up to the concurrency [4.5, 8]", async () => {
  for (const [concurrency, most] of [[1, 1], [2, 2]]) {
    let [now, peak] = [0, 0];
    const all = Promise.withResolvers<void>();
    const onRequest = () => now < most! ? all.promise : all.resolve();
    const replies = ["a", "b", "c"].map((text) => say(text));
    await using place = await jobs({ replies }, { onRequest });
    const show: JobContext["show"] = (event) => {
      if (event.type === "turn_started") peak = Math.max(peak, ++now);
      if (event.type === "turn_finished") now--;
    };
    await place.add({ name: "c" }, { name: "b" }, { name: "a" });
    await new Scheduler({ ...place.context, show }).tick(never, concurrency);
    assert.equal(peak, most);
    const histories = [...place.register.histories()].map((
      [name, [entry]],
    ) => [name, entry!.content]);
    if (concurrency === 1) assert.deepEqual(histories, [["c", "c"], ["b", "b"], ["a", "a"]]);
    assert.ok(histories.every(([, content]) => content !== ""));
  }
});

Deno.test("unapproved, disabled, future and invalid jobs do not run and do not block others [2.6, 3.1]", async () => {
  await using place = await jobs([say("done")]);
  const later = new Date(START + 1).toISOString();
  await place.add(
    { name: "a", status: "proposed" },
    { name: "b", enabled: false },
    { name: "c", next_run_at: later },
    { name: "d", status: "waiting_approval" },
    { name: "e" },
  );
  const text = await place.project.read(".svc/jobs.json");
  await place.project.write(
    ".svc/jobs.json",
    text.replace('"jobs": [', '"jobs": [ { "name": 1 },'),
  );
  assert.equal(await new Scheduler(place.context).tick(never), START + 1);
  const ran = [...place.register.histories()].filter(([, history]) => history.length > 0);
  assert.deepEqual(ran.map(([name]) => name), ["e"]);
});

Deno.test("a job added by hand gets its next run, and an edited job runs as edited [2.6, 3.1]", async () => {
  await using place = await jobs([say("done")]);
  await place.add({ name: "a", next_run_at: "" });
  const scheduler = new Scheduler(place.context);
  assert.equal(await scheduler.tick(never), START + 3600_000);
  const text = await place.project.read(".svc/jobs.json");
  const edited = text.replace('"prompt": "go"', '"prompt": "stop"')
    .replace("2026-01-02T04:04:05.000Z", "2026-01-02T03:04:05.000Z");
  await place.project.write(".svc/jobs.json", edited);
  await scheduler.tick(never);
  assert.equal(place.backend.chats[0].messages.at(-1).content, "stop");
});

Deno.test("runs that were planned by a clock ahead are planned again once it is set back", async () => {
  await using place = await jobs([say("one"), say("two"), httpError(500), say("three")]);
  const ahead = new Date(START + 1000 * DAY).toISOString();
  await place.add(
    { name: "a", next_run_at: ahead },
    { name: "b", next_run_at: ahead, schedule: { cron: "0 5 * * *" } },
    { name: "c", next_run_at: ahead },
    // A user has postponed this one.
    { name: "off", next_run_at: ahead.replace("20", "21"), last_run_at: "2026-01-01T00:00:00Z" },
  );
  const scheduler = new Scheduler(place.context);
  place.clock.set(START + 1000 * DAY);
  await scheduler.tick(never);
  assert.deepEqual(place.register.list().map(({ status }) => status), [
    "verified",
    "verified",
    "executing", // waits out its backoff
    "approved",
  ]);
  place.clock.set(START + DAY);
  await scheduler.tick(never);
  place.clock.set(START + DAY + 15_000);
  await scheduler.tick(never);
  const next = new Map(place.register.list().map(({ name, next_run_at }) => [name, next_run_at]));
  assert.deepEqual([...next], [
    ["a", new Date(START + DAY + 3600_000).toISOString()],
    ["b", "2026-01-03T05:00:00.000Z"],
    ["c", new Date(START + DAY + 3600_000).toISOString()],
    ["off", ahead.replace("20", "21")],
  ]);
  assert.equal(place.register.history("c").at(-1)!.content, "three");
  assert.equal(place.backend.chats.length, 4);
});

Deno.test("an interrupted run continues at once after the clock was set back", async () => {
  await using place = await jobs([httpError(500), say("done")]);
  await place.add({ name: "a" });
  place.clock.set(START + DAY);
  const scheduler = new Scheduler(place.context);
  await scheduler.tick(never);
  await scheduler.close();
  place.clock.set(START);
  await new Scheduler(place.context).tick(never);
  assert.deepEqual(place.register.history("a").map(({ status, attempt }) => [status, attempt]), [
    ["failed", 1],
    ["verified", 2],
  ]);
});

Deno.test("a small step of the clock does not repeat a run", async () => {
  await using place = await jobs([say("done")]);
  await place.add({
    name: "a",
    schedule: { cron: "4 3 * * *" },
    next_run_at: "2026-01-02T03:04:00.000Z",
  });
  const scheduler = new Scheduler(place.context);
  await scheduler.tick(never);
  for (const step of [-10_000, -5000, 0, 20_000]) {
    place.clock.set(START + step);
    assert.equal(await scheduler.tick(never), Date.UTC(2026, 0, 3, 3, 4));
  }
  assert.equal(place.backend.chats.length, 1);
});

Deno.test("jobs with dates out of range are left out and do not block others", async () => {
  await using place = await jobs([say("done")]);
  const far = Number.MAX_SAFE_INTEGER;
  const entries = [
    { schedule: { interval: far } },
    { schedule: { at: "9999-12-31T23:59:59-23:00" } },
    { schedule: { at: "0000-01-01T00:00:00+01:00" } },
    { schedule: { interval: 60 }, backoff: far },
    { schedule: { interval: 60 }, timeout: far },
    { schedule: { interval: 60 }, next_run_at: "+012026-01-01T00:00:00Z" },
    { schedule: { interval: 60 }, next_run_at: "0000-01-01" },
  ].map((entry, place) => ({ name: `job-${place}`, prompt: "go", status: "approved", ...entry }));
  await place.project.write(".svc/jobs.json", JSON.stringify({ jobs: entries }));
  assert.equal(await new Scheduler(place.context).tick(never), START + 60_000);
  assert.equal(place.warnings.length, 6);
  assert.deepEqual(place.register.list().map(({ name }) => name), ["job-6"]);
  assert.equal(place.disk().jobs.length, 7);
});

Deno.test("the longest backoff, doubled many times, is a valid date", async () => {
  await using place = await jobs([httpError(500)]);
  await place.add({
    name: "a",
    backoff: MAX_WAIT,
    retries: 5000,
    running: {
      attempt: 4000,
      session: "",
      started_at: "2026-01-01T00:00:00Z",
      phase: "backoff",
      attempt_at: "",
      next_at: "2026-01-01T00:00:00Z",
    },
  });
  const scheduler = new Scheduler(place.context);
  assert.equal(await scheduler.tick(never), START + MAX_WAIT * 1000);
  await scheduler.close();
  assert.equal(
    place.register.get("a")!.next_run_at,
    new Date(START + MAX_WAIT * 1000).toISOString(),
  );
  assert.deepEqual(place.warnings, []);
});

Deno.test("no run begins after the tick is aborted", async () => {
  await using place = await jobs([]);
  await place.add({ name: "a" });
  await new Scheduler(place.context).tick(AbortSignal.abort());
  assert.equal(place.register.get("a")!.status, "approved");
});

Deno.test("a run leaves no listeners on the scheduler's signals", async () => {
  const replies = [httpError(500), say("done"), say("a summary"), say("more"), say("another")];
  await using place = await jobs(replies, { config: { "memory.job": true } });
  await place.add({ name: "a", backoff: 30, retries: 1 });
  using stop = watchedSignal();
  using cancel = watchedSignal();
  const scheduler = new Scheduler(place.context);
  for (const later of [0, 30_000, 3_700_000]) {
    place.clock.set(START + later);
    await scheduler.sweep(stop.signal, { cancel: cancel.signal });
    await scheduler.idle();
  }
  assert.deepEqual(place.register.history("a").map(({ status }) => status), [
    "failed",
    "verified",
    "verified",
  ]);
  assert.equal(place.backend.chats.length, replies.length);
  assert.deepEqual([stop.held(), cancel.held()], [0, 0]);
});
