import assert from "node:assert/strict";
import { holdJob, jobContext } from "../../src/jobs/context.ts";
import { recover, recoverHeld } from "../../src/jobs/recover.ts";
import { Scheduler } from "../../src/jobs/scheduler.ts";
import type { Job } from "../../src/jobs/schema.ts";
import { jobKey, JobWorker, type Step } from "../../src/jobs/worker.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { httpError, say, startBackend, type TestBackend } from "../support/backend.ts";
import { filePostgres } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { TRUSTED } from "../support/trust.ts";
import { aJob, scripted } from "../jobs/support.ts";
import { machine, withTables } from "./support.ts";

const { needed, server } = await filePostgres();
const never = new AbortController().signal;

/** A machine with the jobs of the project `shop`. */
async function jobMachine(store: string, backend: TestBackend) {
  const place = await machine(store, "shop", {
    ...scripted(backend),
    "memory.job": false,
  });
  const { workspace } = place;
  const context = { ...jobContext(workspace), trust: TRUSTED };
  const { queue, leases } = await workspace.store!.open();
  const worker = (labels: string[] = [], concurrency = 1) => {
    const steps: Step[] = [];
    const cancel = new AbortController();
    const worker = new JobWorker(context, queue, { labels, tell: (step) => steps.push(step) });
    worker.work({ signal: never, cancel: cancel.signal, concurrency, hold: 0 });
    return { steps, cancel, close: () => worker.close() };
  };
  return {
    ...place,
    context,
    leases,
    worker,
    scheduler: new Scheduler(context, undefined, { queue, work: false }),
    add: (job: Partial<Job> & { name: string }) =>
      context.register.add(aJob({ schedule: { interval: 86_400 }, ...job })),
    [Symbol.asyncDispose]: () => place[Symbol.asyncDispose](),
  };
}

Deno.test({
  ...needed,
  name: "each due job runs once, on one of the workers, however many schedulers put it",
  async fn() {
    const store = await server.database(withTables);
    const names = ["a", "b", "c", "d", "e", "f"];
    await using backend = startBackend({ replies: names.map((name) => say(name)) });
    await using one = await jobMachine(store, backend);
    await using two = await jobMachine(store, backend);
    for (const name of names) await one.add({ name });
    const workers = [one.worker([], 2), two.worker([], 2)];
    await Promise.all([one, two].map(({ scheduler }) => scheduler.sweep(never)));
    const finished = () =>
      workers.flatMap(({ steps }) => steps.filter(({ step }) => step === "finished"));
    await until(() => finished().length === names.length);
    await Promise.all([one, two].map(({ scheduler }) => scheduler.sweep(never)));
    for (const worker of workers) await worker.close();
    assert.equal(backend.chats.length, names.length);
    await two.workspace.store!.refresh();
    const holders = [one, two].map(({ leases }) => leases.holder);
    for (const name of names) {
      const [entry, ...more] = two.context.register.history(name);
      assert.equal(entry!.status, "verified");
      assert.ok(holders.includes(entry!.worker!));
      assert.deepEqual(more, []);
      assert.equal(two.context.register.need(name).running, undefined);
    }
  },
});

Deno.test({
  ...needed,
  name: "a failed attempt is continued by any worker, in the same session",
  async fn() {
    const store = await server.database(withTables);
    await using backend = startBackend({ replies: [httpError(500), say("done")] });
    await using one = await jobMachine(store, backend);
    await using two = await jobMachine(store, backend);
    await one.add({ name: "flaky", backoff: 0, retries: 1 });
    const first = one.worker();
    await one.scheduler.sweep(never);
    await until(() => first.steps.some(({ step }) => step === "retry"));
    await first.close();
    const second = two.worker();
    await one.scheduler.sweep(never);
    await until(() => second.steps.some(({ step }) => step === "finished"));
    await second.close();
    await one.workspace.store!.refresh();
    const [failed, done] = one.context.register.history("flaky");
    assert.deepEqual([failed!.status, failed!.attempt], ["failed", 1]);
    assert.deepEqual([done!.status, done!.attempt], ["verified", 2]);
    assert.equal(failed!.session, done!.session);
  },
});

Deno.test({
  ...needed,
  name: "a worker that lost the lease of its job cancels the attempt and records nothing",
  async fn() {
    const store = await server.database(withTables);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let requests = 0;
    const onRequest = () => ++requests === 1 ? held : undefined;
    await using backend = startBackend({ replies: [say("late"), say("done")] }, { onRequest });
    await using one = await jobMachine(store, backend);
    await using two = await jobMachine(store, backend);
    await one.add({ name: "slow" });
    const dead = one.worker();
    await one.scheduler.sweep(never);
    await until(() => requests === 1);
    // As after 15 seconds without a sign of life.
    const { database } = await one.workspace.store!.open();
    await database.query("UPDATE svc.leases SET expires = now() - interval '1 s'");
    await two.scheduler.sweep(never); // takes the run over
    const worker = two.worker();
    await two.scheduler.sweep(never);
    await until(() => worker.steps.some(({ step }) => step === "finished"));
    await worker.close();
    await dead.close(); // its attempt is cancelled when the lease is renewed
    release();
    await one.workspace.store!.refresh();
    const history = one.context.register.history("slow");
    assert.deepEqual(
      history.map(({ attempt, status, reason, worker }) => [attempt, status, reason, worker]),
      [
        [1, "failed", "interrupted", one.leases.holder],
        [2, "verified", "", two.leases.holder],
      ],
    );
    assert.deepEqual(dead.steps.map(({ step }) => step), ["started"]);
    assert.ok(one.warnings.some((line) => line.includes("taken over")), one.warnings.join("\n"));
  },
});

Deno.test({
  ...needed,
  name: "a worker that wakes before the next attempt of its job begins records nothing",
  async fn() {
    const store = await server.database(withTables);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let requests = 0;
    const onRequest = () => ++requests === 1 ? held : undefined;
    await using backend = startBackend({ replies: [say("late"), say("done")] }, { onRequest });
    await using one = await jobMachine(store, backend);
    await using two = await jobMachine(store, backend);
    await one.add({ name: "slow" });
    const dead = one.worker();
    await one.scheduler.sweep(never);
    await until(() => requests === 1);
    const { database } = await one.workspace.store!.open();
    await database.query("UPDATE svc.leases SET expires = now() - interval '1 s'");
    await two.scheduler.sweep(never); // records the attempt as interrupted
    release();
    await dead.close();
    const worker = two.worker();
    await two.scheduler.sweep(never);
    await until(() => worker.steps.some(({ step }) => step === "finished"));
    await worker.close();
    await two.workspace.store!.refresh();
    assert.deepEqual(
      two.context.register.history("slow").map(({ attempt, status }) => [attempt, status]),
      [[1, "failed"], [2, "verified"]],
    );
  },
});

Deno.test({
  ...needed,
  name: "a worker whose clock is behind runs what a scheduler has put, and plans no time once more",
  async fn() {
    const store = await server.database(withTables);
    await using backend = startBackend({ replies: [say("done")] });
    await using one = await jobMachine(store, backend);
    const due = Math.floor(Date.now() / 60_000) * 60_000;
    const next_run_at = new Date(due).toISOString();
    await one.add({ name: "now", schedule: { cron: "* * * * *" }, next_run_at });
    const clock = { ...systemClock, now: () => Date.now() - 240_000 };
    const { queue } = await one.workspace.store!.open();
    const steps: Step[] = [];
    const tell = (step: Step) => void steps.push(step);
    const worker = new JobWorker({ ...one.context, clock }, queue, { tell });
    worker.work({ signal: never, cancel: never, concurrency: 1, hold: 0 });
    await one.scheduler.sweep(never);
    await until(() => steps.some(({ step }) => step === "finished"));
    await worker.close();
    const next = Date.parse(one.context.register.need("now").next_run_at);
    assert.equal(next, due + 60_000, "it is not the minute after that of its own clock");
  },
});

Deno.test({
  ...needed,
  name: "an attempt whose machine died is made again at once, whichever clock finds it",
  async fn() {
    const store = await server.database(withTables);
    await using backend = startBackend({ replies: [say("done")] });
    await using one = await jobMachine(store, backend);
    const due = new Date().toISOString();
    const left = { attempt: 1, session: "", started_at: due, attempt_at: due, next_at: "", due };
    const running = { ...left, phase: "attempt" as const };
    await one.add({ name: "left", status: "executing", next_run_at: due, running, retries: 3 });
    const { queue } = await one.workspace.store!.open();
    await queue.put({ kind: "job", name: "left", key: jobKey("left", due) });
    const at = (minutes: number) => {
      const clock = { ...systemClock, now: () => Date.now() + minutes * 60_000 };
      return { ...one.context, clock };
    };
    await recover(at(3));
    await one.scheduler.sweep(never);
    const steps: Step[] = [];
    const worker = new JobWorker(at(-4), queue, { tell: (step) => void steps.push(step) });
    worker.work({ signal: never, cancel: never, concurrency: 1, hold: 0 });
    await until(() => steps.some(({ step }) => step === "finished"));
    await worker.close();
    const history = one.context.register.history("left");
    assert.deepEqual(history.map(({ reason }) => reason), ["interrupted", ""]);
  },
});

Deno.test({
  ...needed,
  name: "a job with a label waits for a worker with it",
  async fn() {
    const store = await server.database(withTables);
    await using backend = startBackend({ replies: [say("plain"), say("gpu")] });
    await using one = await jobMachine(store, backend);
    await one.add({ name: "train", label: "gpu" });
    await one.add({ name: "sweep" });
    const plain = one.worker([], 2);
    await one.scheduler.sweep(never);
    await until(() => plain.steps.some(({ step }) => step === "finished"));
    await plain.close();
    assert.deepEqual([...await (await one.workspace.store!.open()).queue.depth()], [["gpu", 1]]);
    const gpu = one.worker(["gpu"]);
    await until(() => gpu.steps.some(({ step }) => step === "finished"));
    await gpu.close();
    assert.deepEqual(new Set(plain.steps.map(({ job }) => job)), new Set(["sweep"]));
  },
});

Deno.test({
  ...needed,
  name: "a run that has ended on another machine a moment ago is not recorded as interrupted",
  async fn() {
    const store = await server.database(withTables);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let requests = 0;
    const onRequest = () => ++requests === 1 ? held : undefined;
    await using backend = startBackend({ replies: [say("done")] }, { onRequest });
    await using one = await jobMachine(store, backend);
    await using two = await jobMachine(store, backend);
    await one.add({ name: "last", retries: 0 });
    const worker = one.worker();
    await one.scheduler.sweep(never);
    await until(() => requests === 1);
    await two.workspace.store!.refresh();
    assert.equal(two.context.register.get("last")!.status, "executing");
    release();
    await until(() => worker.steps.some(({ step }) => step === "finished"));
    await worker.close();
    await recover(two.context); // its copy is that of a moment ago
    await one.workspace.store!.refresh();
    assert.deepEqual(
      one.context.register.history("last").map(({ attempt, status }) => [attempt, status]),
      [[1, "verified"]],
    );
    assert.equal(one.context.register.get("last")!.status, "verified");
  },
});

Deno.test({
  ...needed,
  name: "a run that its worker ends while another machine takes it over is not interrupted",
  async fn() {
    const store = await server.database(withTables);
    await using backend = startBackend({ replies: [] });
    await using one = await jobMachine(store, backend);
    await using two = await jobMachine(store, backend);
    const now = new Date().toISOString();
    const left = { attempt: 1, session: "", started_at: now, attempt_at: now, next_at: "" };
    const running = { ...left, phase: "attempt" as const, token: 1, worker: "one/1" };
    await one.add({ name: "last", status: "executing", running, retries: 3 });
    await two.workspace.store!.refresh();
    const lock = await holdJob(two.context, "last");
    const append = { ...left, ...{ finished_at: now, status: "verified" as const, reason: "" } };
    await one.context.register.change("last", () => ({
      append: { ...append, duration: 1, content: "done" },
      set: { status: "verified", running: { ...running, phase: "report" } },
    }));
    await recoverHeld(two.context, "last", lock!); // its copy is that of a moment ago
    await lock!.release();
    const { register } = two.context;
    assert.deepEqual(register.history("last").map(({ status }) => status), ["verified"]);
    const { status, running: after } = register.need("last");
    assert.deepEqual([status, after], ["verified", undefined]);
  },
});

Deno.test({
  ...needed,
  name: "a run that has begun goes on before other jobs begin",
  async fn() {
    const store = await server.database(withTables);
    await using backend = startBackend({ replies: [say("first"), say("second")] });
    await using one = await jobMachine(store, backend);
    const now = new Date().toISOString();
    const left = { attempt: 1, session: "", started_at: now, attempt_at: now, next_at: now };
    await one.add({ name: "a-new", next_run_at: now });
    await one.add({
      name: "b-begun",
      next_run_at: now,
      status: "failed",
      retries: 3,
      running: { ...left, phase: "backoff" },
    });
    await one.scheduler.sweep(never);
    const worker = one.worker();
    await until(() => worker.steps.filter(({ step }) => step === "finished").length === 2);
    await worker.close();
    assert.deepEqual(
      worker.steps.filter(({ step }) => step === "started").map(({ job }) => job),
      ["b-begun", "a-new"],
    );
  },
});
