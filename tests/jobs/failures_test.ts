import assert from "node:assert/strict";
import { healthOf } from "../../src/jobs/health.ts";
import { beginRun, finishRun, JobRun } from "../../src/jobs/run.ts";
import { Scheduler } from "../../src/jobs/scheduler.ts";
import type { Job } from "../../src/jobs/schema.ts";
import type { StreamEvent } from "../../src/plugins/api.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { hang, httpError, say } from "../support/backend.ts";
import { jobs } from "./support.ts";

/** Later than the time of the system clock, which decides in a turn whether an announced time has come. */
const START = Date.UTC(2126, 0, 2, 3, 4, 5);

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const never = new AbortController().signal;
const iso = (time: number) => new Date(time).toISOString();

/** A provider that answers from `answers.json`, the first event first; without one it says "done". */
const VENDOR = `
const file = new URL("../../../answers.json", import.meta.url);
export function register_providers(providers) {
  class Vendor extends providers.OpenAICompatibleProvider {
    static DEFAULT_BASE_URL = "http://127.0.0.1:9/v1";
    static DEFAULT_MODEL = "m";
    static HOST_PATTERNS = [];
    async *chat(_, { signal }) {
      const [event, ...rest] = JSON.parse(Deno.readTextFileSync(file));
      Deno.writeTextFileSync(file, JSON.stringify(rest));
      Deno.writeTextFileSync(new URL("asked", file), "x", { append: true });
      const { retry_budget } = this.options;
      Deno.writeTextFileSync(new URL("budgets", file), retry_budget + "\\n", { append: true });
      if (event !== undefined) yield event;
      if (event?.type === "wait") {
        await new Promise((_, fail) => signal.addEventListener("abort", () => fail(signal.reason)));
      }
      if (event !== undefined) return;
      yield { type: "token", content: "done" };
      yield { type: "done", reason: "stop", usage: {} };
    }
  }
  providers.register("vendor", Vendor);
}
`;

type Fault = Omit<Extract<StreamEvent, { type: "error" }>, "type">;

/** Jobs whose model fails as told. */
async function failing(given: Partial<Job> & { name: string }, ...faults: Partial<Fault>[]) {
  const place = await jobs([], {
    recorder: true,
    config: { provider: "vendor", base_url: "", model: "" },
    files: {
      ".svc/plugins/vendor/manifest.json": '{ "name": "vendor", "entry": "plugin.js" }',
      ".svc/plugins/vendor/plugin.js": VENDOR,
    },
  });
  const answer = (...faults: Partial<Fault>[]) =>
    place.project.write(
      "answers.json",
      JSON.stringify(
        faults.map((fault) => ({ type: "error", code: 500, message: "no", ...fault })),
      ),
    );
  await answer(...faults);
  await place.add(given);
  place.clock.set(START);
  let scheduler = new Scheduler(place.context);
  return {
    place,
    answer,
    job: () => place.register.get(given.name)!,
    health: () =>
      healthOf(
        place.register.get(given.name)!,
        place.register.history(given.name),
        place.clock.now(),
      ),
    /** The requests so far. */
    asked: () => place.project.read("asked").then((text) => text.length, () => 0),
    /** Lets the scheduler look at a time. */
    at(time: number): Promise<number | undefined> {
      place.clock.set(time);
      return scheduler.tick(never);
    },
    async restart() {
      await scheduler.close();
      scheduler = new Scheduler(place.context);
    },
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

const GONE: Partial<Fault> = { code: 404, message: "the model is gone", kind: "permanent" };

Deno.test("a permanent failure of a job is one attempt, and the job is blocked until a due run works [2.6]", async () => {
  await using it = await failing({ name: "a" }, GONE, GONE);
  await it.at(START);
  assert.deepEqual([await it.asked(), it.job().status], [1, "failed"]);
  assert.deepEqual(it.health().blocked, { since: iso(START), reason: "the model is gone" });
  assert.equal(it.job().next_run_at, iso(START + HOUR));
  await it.at(START + HOUR);
  assert.deepEqual([await it.asked(), it.health().blocked?.since], [2, iso(START)]);
  await it.at(START + 2 * HOUR);
  assert.deepEqual([await it.asked(), it.job().status, it.health().blocked], [3, "verified", null]);
  assert.ok(!("blocked" in it.place.disk().jobs[0]));
});

Deno.test("a conversation that does not fit, and a job that is at fault itself, block it too", async () => {
  await using full = await failing({ name: "a" }, { kind: "overflow", code: 400 });
  await full.at(START);
  assert.equal(await full.asked(), 1);
  assert.match(full.health().blocked!.reason, /^no\./);
  await using lost = await failing({ name: "a", role: "nobody" });
  await lost.at(START);
  assert.match(lost.health().blocked!.reason, /nobody/);
  assert.deepEqual([await lost.asked(), lost.place.register.history("a").length], [0, 1]);
});

Deno.test("a blocked job with a short interval is tried every 15 minutes", async () => {
  await using it = await failing({ name: "a", schedule: { interval: 60 } }, GONE);
  assert.equal(await it.at(START), START + 15 * MINUTE);
  assert.equal(await it.at(START + 15 * MINUTE), START + 16 * MINUTE);
  assert.equal(it.health().blocked, null);
});

Deno.test("the attempt after an announced time is not before it, also after a restart", async () => {
  const opens = START + 3 * HOUR;
  await using it = await failing({ name: "a" }, { kind: "announced", code: 429, retry_at: opens });
  assert.equal(await it.at(START), opens);
  assert.equal(it.health().blocked, null);
  await it.restart();
  await it.at(opens - 1);
  assert.equal(await it.asked(), 1);
  await it.at(opens);
  const history = it.place.register.history("a");
  assert.deepEqual(history.map(({ attempt, status }) => [attempt, status]), [
    [1, "failed"],
    [2, "verified"],
  ]);
  assert.equal(history[0]!.session, history[1]!.session);
});

Deno.test("a run that the schedule plans before an announced time is moved behind it, once", async () => {
  const opens = START + 2.5 * HOUR;
  const schedules = [{ interval: 3600 }, { cron: "4 * * * *" }];
  for (const schedule of schedules) {
    const fault = { kind: "announced" as const, code: 429, retry_at: opens };
    await using it = await failing({ name: "a", retries: 0, schedule }, fault);
    await it.at(START);
    assert.deepEqual([it.job().status, it.job().next_run_at], ["failed", iso(opens)]);
    await it.at(opens);
    assert.deepEqual([await it.asked(), it.job().status], [2, "verified"]);
    const next = schedule.interval ? opens + HOUR : Date.UTC(2126, 0, 2, 6, 4);
    assert.equal(it.job().next_run_at, iso(next));
  }
});

Deno.test("a transient failure is retried after the backoff", async () => {
  await using it = await failing({ name: "a" }, { kind: "transient" }, { kind: "stalled" });
  assert.equal(await it.at(START), START + MINUTE);
  assert.equal(await it.at(START + MINUTE), START + 3 * MINUTE);
  await it.at(START + 3 * MINUTE);
  assert.deepEqual([it.job().status, it.health().blocked], ["verified", null]);
});

Deno.test("after an attempt that did not reach the backend, the next ones make one request each", async () => {
  await using it = await failing({ name: "a" }, { kind: "transient" }, { kind: "transient" });
  const config = { provider: "vendor", plugins: [], "memory.job": false, "jobs.timeout": 0 };
  await it.place.project.write(".svc/config.json", JSON.stringify(config));
  await it.at(START);
  await it.at(START + MINUTE);
  await it.at(START + 3 * MINUTE);
  assert.equal(it.job().status, "verified");
  assert.equal(await it.place.project.read("budgets"), "60\n0\n0\n");
});

Deno.test("a run by hand waits for an announced time for as long as its quota_wait allows", async () => {
  for (const [quota_wait, status] of [[undefined, "failed"], [3600, "verified"]] as const) {
    const opens = START + HOUR;
    const fault = { kind: "announced" as const, code: 429, retry_at: opens };
    await using it = await failing({ name: "a", quota_wait }, fault);
    const run = await beginRun(it.place.context, "a", "run");
    assert.ok(run instanceof JobRun);
    await finishRun(run, { clock: it.place.clock, signal: never });
    assert.equal(run.report!.status, status);
    assert.ok(it.job().next_run_at >= iso(opens));
  }
});

Deno.test("an attempt without a timeout of its own has the setting's, and one with 0 has none [2.6, 8]", async () => {
  const cases: [Partial<Job>, limit: number | undefined][] = [
    [{}, 7200],
    [{ quota_wait: 600 }, 7800],
    [{ timeout: 0 }, undefined],
    [{ timeout: 5 }, 5],
  ];
  for (const [given, limit] of cases) {
    await using place = await jobs([say("done")], { config: { "jobs.timeout": 7200 } });
    const limits: number[] = [];
    const sleep = (ms: number, signal?: AbortSignal) => {
      limits.push(ms);
      return new Promise<void>((_, reject) =>
        signal?.addEventListener("abort", () => reject(signal.reason))
      );
    };
    const context = { ...place.context, clock: { now: place.clock.now, sleep } };
    await place.add({ name: "a", ...given });
    await new Scheduler(context).tick(never);
    assert.equal(place.register.get("a")!.status, "verified");
    assert.deepEqual(limits, limit === undefined ? [] : [limit * 1000]);
  }
});

Deno.test("a job that runs for several of its intervals is stuck, and holds up no other job [8]", async () => {
  const cases: [Partial<Job>, hold: number, stuck: boolean, after: number][] = [
    [{ schedule: { interval: 60 } }, 0, true, 3 * MINUTE],
    [{ schedule: { cron: "*/10 * * * *" } }, 0, true, 30 * MINUTE],
    [{ schedule: { cron: "0 0 * * *" } }, 7200, false, 2 * HOUR],
  ];
  for (const [given, hold, stuck, after] of cases) {
    await using place = await jobs([hang("half"), say("b done"), say("c done")]);
    await place.add({ name: "a", retries: 0, ...given }, { name: "b" }, { name: "c" });
    place.clock.set(START);
    const stop = new AbortController();
    const scheduler = new Scheduler(place.context);
    const sweep = () => scheduler.sweep(never, { hold, cancel: stop.signal });
    await sweep();
    await place.backend.arrived(1);
    place.clock.set(START + after);
    await sweep();
    assert.deepEqual(scheduler.busy, ["a"]);
    place.clock.set(START + after + 1);
    await sweep();
    await place.backend.arrived(2);
    await place.backend.arrived(3); // the same worker goes on with the next job
    const { stuck: shown } = healthOf(place.register.get("a")!, [], place.clock.now());
    assert.equal(shown, stuck);
    stop.abort();
    await scheduler.close();
  }
});

Deno.test("the answers of a backend count by their kind", async () => {
  const refused = (status: number, code: string) =>
    httpError(status, { error: { message: "no", code } });
  const permanent = [
    refused(401, "invalid_api_key"),
    refused(404, "model_not_found"),
    refused(429, "insufficient_quota"),
  ];
  for (const answer of permanent) {
    await using place = await jobs([answer]);
    await place.add({ name: "a" });
    await new Scheduler(place.context).tick(never);
    const { status, blocked } = place.register.get("a")!;
    assert.deepEqual([place.backend.chats.length, status], [1, "failed"]);
    assert.match(blocked!.reason, /no/);
  }
  const limited = httpError(429, { error: { message: "slow down" } }, { "retry-after": "7200" });
  await using place = await jobs([limited, say("done")], { clock: systemClock });
  await place.add({ name: "a" });
  const before = systemClock.now();
  const next = await new Scheduler(place.context).tick(never);
  assert.ok(next! >= before + 7_200_000, String(next! - before));
  const { status, blocked, running } = place.register.get("a")!;
  assert.deepEqual([place.backend.chats.length, status, blocked], [1, "executing", undefined]);
  assert.equal(running!.next_at, iso(next!));
});

Deno.test("an attempt that waits for a quota holds up no other job", async () => {
  await using it = await failing({ name: "a", quota_wait: 7200, next_run_at: iso(START) });
  const { place } = it;
  const wait = { type: "wait", seconds: 3600, reason: "closed", retry_at: START + HOUR };
  await place.project.write("answers.json", JSON.stringify([wait]));
  await place.add({ name: "b", retries: 0 });
  const waiting = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<string>();
  const stop = new AbortController();
  const scheduler = new Scheduler({
    ...place.context,
    show: (event) => event.type === "notice" && waiting.resolve(),
  }, (step) => step.step === "finished" && ended.resolve(step.job));
  const sweep = () => scheduler.sweep(never, { cancel: stop.signal });
  await sweep();
  await waiting.promise;
  await sweep();
  assert.equal(await ended.promise, "b");
  assert.ok(scheduler.busy.includes("a"));
  stop.abort();
  await scheduler.close();
});
