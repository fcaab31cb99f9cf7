import assert from "node:assert/strict";
import { AGENT_NEEDS } from "../../src/engine/workspace.ts";
import { jobContext } from "../../src/jobs/context.ts";
import { Scheduler } from "../../src/jobs/scheduler.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { ServerLog } from "../../src/server/log.ts";
import { Metrics } from "../../src/server/metrics.ts";
import { Runs } from "../../src/server/runs.ts";
import { startServer } from "../../src/server/server.ts";
import { Turns } from "../../src/server/turns.ts";
import { work } from "../../src/server/worker.ts";
import { aJob, scripted } from "../jobs/support.ts";
import { signIn, visit } from "../server/console.ts";
import { EventClient, type SentEvent } from "../server/support.ts";
import { call, say, startBackend } from "../support/backend.ts";
import { inProcess, testIo } from "../support/io.ts";
import { filePostgres } from "../support/postgres.ts";
import { until } from "../support/processes.ts";
import { TRUSTED } from "../support/trust.ts";
import { type Machine, machine, withTables } from "./support.ts";

const { needed, server } = await filePostgres();
const never = new AbortController().signal;

/** `svc worker` on a machine. */
function startWorker({ workspace }: Machine, concurrency = 2, label: string[] = []) {
  const stop = new AbortController();
  const { home, cwd } = workspace.environment;
  const onInterrupt = () => ({ signal: stop.signal, release: () => {} });
  const io = testIo({ home, cwd }, { onInterrupt });
  const log = new ServerLog(workspace, { format: "text", show: () => {} });
  const ended = work(workspace, { concurrency, label, port: 0 }, io, log);
  return {
    lines: () => io.printed,
    async url() {
      await until(() => io.printed.includes("/metrics"));
      return /http:\S+(?=\/metrics)/.exec(io.printed)![0];
    },
    stop() {
      stop.abort();
      return ended;
    },
  };
}

/** A server that leaves its runs to workers. */
function serve({ workspace }: Machine) {
  const http = startServer({ workspace, host: "127.0.0.1", port: 0, insecure: false, work: false });
  const request = async (path: string, body?: unknown) => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    const response = await fetch(`${http.url}${path}`, init);
    return await response.json();
  };
  return { http, request, [Symbol.asyncDispose]: () => http.stop() };
}

Deno.test({
  ...needed,
  name:
    "a worker runs what a server accepts and what a scheduler puts, and says so in their records",
  async fn() {
    const store = await server.database(withTables);
    await using backend = startBackend({ replies: [say("from the run"), say("from the job")] });
    const settings = scripted(backend);
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    await using api = serve(one);
    const { id, state, error } = await api.request("/runs", { prompt: "go", session: "mine" });
    assert.equal(error, "");
    assert.equal(state, "queued");
    const metrics = async (url: string) => await (await fetch(`${url}/metrics`)).text();
    const worker = startWorker(two);
    const url = await worker.url();
    assert.equal((await (await fetch(`${url}/ready`)).json()).status, "ok");
    assert.match(await metrics(url), /svc_queue_depth\{label=""\} \d/);
    let run = await api.request(`/runs/${id}`);
    await until(async () => (run = await api.request(`/runs/${id}`)).state === "done");
    assert.match(run.worker, /^\S+\/\d+$/);
    const context = { ...jobContext(one.workspace), trust: TRUSTED };
    await context.register.add(aJob({ name: "nightly", schedule: { interval: 86_400 } }));
    const { queue } = await one.workspace.store!.open();
    const scheduler = new Scheduler(context, undefined, { queue, work: false });
    await scheduler.sweep(never);
    await until(() => context.register.history("nightly").length === 1);
    assert.equal(context.register.history("nightly")[0]!.worker, run.worker);
    assert.equal(await worker.stop(), 0);
    assert.match(worker.lines(), /nightly: attempt 1 in session/);
    assert.deepEqual(backend.chats.length, 2);
  },
});

Deno.test({
  ...needed,
  name: "no more runs of a project run at once than project_concurrency says, on all workers",
  async fn() {
    const store = await server.database(withTables);
    let [now, most] = [0, 0];
    const onRequest = async () => {
      most = Math.max(most, ++now);
      await systemClock.sleep(100);
      now--;
    };
    const names = ["a", "b", "c", "d"];
    await using backend = startBackend({ replies: names.map((name) => say(name)) }, { onRequest });
    const settings = { ...scripted(backend), project_concurrency: 1 };
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await using three = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    await using api = serve(one);
    const workers = [startWorker(two, 4), startWorker(three, 4)];
    for (const worker of workers) await worker.url();
    const runs = [];
    for (const prompt of names) runs.push(await api.request("/runs", { prompt }));
    for (const { id } of runs) {
      await until(async () => (await api.request(`/runs/${id}`)).state === "done");
    }
    assert.equal(most, 1);
    for (const worker of workers) assert.equal(await worker.stop(), 0);
  },
});

Deno.test({
  ...needed,
  name: "POST /chat and svc run wait for no place of project_concurrency",
  async fn() {
    const store = await server.database(withTables);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let asked = 0;
    const onRequest = async () => {
      if (++asked === 1) await held;
    };
    const replies = Array.from({ length: 4 }, () => say("done"));
    await using backend = startBackend({ replies }, { onRequest });
    const settings = { ...scripted(backend), project_concurrency: 1 };
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    await using api = serve(one);
    using _ = { [Symbol.dispose]: release };
    const worker = startWorker(two, 4);
    await worker.url();
    const run = await api.request("/runs", { prompt: "go" });
    await until(() => asked === 1);
    const next = await api.request("/runs", { prompt: "go" });
    assert.equal((await api.request("/chat", { prompt: "hello" })).content, "done");
    const { home, cwd } = one.workspace.environment;
    const args = ["run", "--output", "text", "-p", "hi"];
    const { code, stdout, stderr } = await inProcess(args, { home, cwd });
    assert.deepEqual([code, stdout.trim()], [0, "done"], stderr);
    assert.equal((await api.request(`/runs/${next.id}`)).state, "queued");
    release();
    for (const { id } of [run, next]) {
      await until(async () => (await api.request(`/runs/${id}`)).state === "done");
    }
    assert.equal(await worker.stop(), 0);
  },
});

Deno.test({
  ...needed,
  name: "lists and pages of any machine show the whole, with the worker that each run is on",
  async fn() {
    const store = await server.database(withTables);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let asked = 0;
    const onRequest = async () => {
      if (++asked === 2) await held;
    };
    const replies = [call("ask", { question: "Which branch?" }), say("Done."), say("Again.")];
    await using backend = startBackend({ replies }, { onRequest });
    const settings = scripted(backend);
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    const context = { ...jobContext(one.workspace), trust: TRUSTED };
    const job = { label: "gpu", schedule: { interval: 86_400 } };
    await context.register.add(aJob({ name: "nightly", ...job }));
    await using api = serve(one);
    using _ = { [Symbol.dispose]: release };
    const worker = startWorker(two, 2, ["gpu"]);
    await worker.url();
    const { queue, leases: { holder } } = await one.workspace.store!.open();
    await new Scheduler(context, undefined, { queue, work: false }).sweep(never);
    await until(() => asked === 2);

    const svc = async (...args: string[]) => {
      const { home } = one.workspace.environment;
      const { stdout, stderr } = await inProcess(args, { cwd: one.path, home });
      return stdout + stderr;
    };
    const at = { http: api.http, workspace: one.workspace };
    const cookie = await signIn(at);
    const page = async (path: string) => (await visit(at, path, cookie)).text;
    // Both machines are one process here.
    const shows = (text: string, around: (worker: string) => string) =>
      assert.ok(text.replace(/\s+/g, " ").includes(around(holder)), text);
    shows(await svc("jobs"), (worker) => `running now on ${worker}`);
    shows(await svc("jobs", "show", "nightly"), (worker) => `running now on ${worker}`);
    shows(await svc("sessions"), (worker) => `running on ${worker}`);
    shows(await svc("asks"), (worker) => `${worker} Which branch?`);
    shows(await svc("asks", "show", "1"), (worker) => ` on ${worker}, `);
    // A worker sends what it has used once a moment.
    await until(async () => !(await svc("usage")).startsWith("No requests"));
    shows(await svc("usage", "--by", "worker"), (worker) => worker);
    shows(await page("/sessions?details=true"), (worker) => `"running":true,"worker":"${worker}"`);
    shows(await page("/asks"), (worker) => `"worker":"${worker}"`);
    shows(await page("/usage?by=worker"), (worker) => `"name":"${worker}"`);
    shows(await page("/console/sessions"), (worker) => worker);
    shows(await page("/console/jobs/nightly"), (worker) => worker);
    shows(await page("/console"), (worker) => ` on ${worker}`);
    assert.match(await svc("jobs", "run", "nightly"), /another process/);

    release();
    await until(() => context.register.history("nightly").length === 1);
    shows(await svc("jobs", "show", "nightly"), (worker) => ` ${worker} `);
    shows(await page("/jobs/nightly"), (worker) => `"worker":"${worker}"`);
    assert.doesNotMatch(await svc("sessions"), /running/);
    assert.equal(await worker.stop(), 0);

    const refused = await svc("jobs", "run", "nightly");
    assert.match(refused, /The job nightly is for workers with the label gpu\./);
    assert.match(refused, /svc jobs run nightly --label gpu/);
    const begun = await api.request("/jobs/nightly/run", {});
    assert.match(begun.error, /for workers with the label gpu/);
    assert.match(await svc("jobs", "run", "nightly", "--label", "gpu"), /ended ok/);
  },
});

Deno.test({
  ...needed,
  name: "any server cancels a run and sends it messages, whichever worker has it",
  async fn() {
    const store = await server.database(withTables);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    const onRequest = () => held;
    await using backend = startBackend({ replies: [say("a"), say("b")] }, { onRequest });
    const settings = scripted(backend);
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    await using api = serve(one);
    const worker = startWorker(two);
    await worker.url();
    const { id } = await api.request("/runs", { prompt: "go" });
    await until(async () => (await api.request(`/runs/${id}`)).state === "running");
    const sent = await api.request(`/runs/${id}/messages`, { message: "hurry" });
    assert.equal(sent.state, "running");
    await until(async () => (await api.request(`/runs/${id}`)).messages.length === 1);
    const cancelled = await api.request(`/runs/${id}/cancel`, {});
    assert.equal(cancelled.state, "cancelled");
    release();
    assert.equal(await worker.stop(), 0);
  },
});

Deno.test({
  ...needed,
  name: "a message to a run of another machine is read once, also when connections are cut",
  async fn() {
    const store = await server.database(withTables);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    await using backend = startBackend({ replies: [say("a"), say("b")] }, {
      onRequest: () => held,
    });
    const settings = scripted(backend);
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    await using api = serve(one);
    const worker = startWorker(two);
    await worker.url();
    const { id } = await api.request("/runs", { prompt: "go" });
    await until(async () => (await api.request(`/runs/${id}`)).state === "running");
    const message = "hurry ".repeat(3000);
    await server.cut(store.split("/").at(-1));
    const sent = await api.request(`/runs/${id}/messages`, { message });
    assert.equal(sent.state, "running");
    release();
    await until(async () => (await api.request(`/runs/${id}`)).state === "done");
    const prompts = JSON.stringify(backend.chats.at(-1).messages).split(message);
    assert.equal(prompts.length, 2);
    const late = await api.request(`/runs/${id}/messages`, { message });
    assert.match(late.error, /has ended/);
    assert.equal(await worker.stop(), 0);
  },
});

Deno.test({
  ...needed,
  name: "a worker that is stopped leaves what has not begun to others",
  async fn() {
    const store = await server.database(withTables);
    const { promise: held, resolve: release } = Promise.withResolvers<void>();
    let requests = 0;
    const onRequest = () => ++requests === 1 ? held : undefined;
    const replies = [say("a"), say("b")];
    await using backend = startBackend({ replies }, { onRequest });
    const settings = scripted(backend);
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await using three = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    await using api = serve(one);
    const first = startWorker(two, 1);
    await first.url();
    const runs = [];
    for (const prompt of ["a", "b"]) runs.push(await api.request("/runs", { prompt }));
    await until(() => requests === 1);
    const stopped = first.stop();
    const second = startWorker(three);
    await until(async () => {
      const { runs } = await api.request("/runs?state=done");
      return runs.length === 1;
    });
    release();
    assert.equal(await stopped, 0);
    for (const { id } of runs) {
      await until(async () => (await api.request(`/runs/${id}`)).state === "done");
    }
    assert.equal(await second.stop(), 0);
  },
});

Deno.test({
  ...needed,
  name: "any server streams the events of a run that a worker has, with the same ids [6.2]",
  async fn() {
    const store = await server.database(withTables);
    await using backend = startBackend({
      replies: [call("file_list", { path: "." }), {
        ...say(["one ", "two ", "three"]),
        hang: true,
      }],
    });
    const settings = scripted(backend);
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    await using api = serve(one);
    const worker = startWorker(two);
    await worker.url();
    const { id } = await api.request("/runs", { prompt: "go" });
    const text = (events: SentEvent[]) =>
      events.flatMap(({ type, data }) => type === "token" ? [data.content] : []).join("");
    await using first = await EventClient.open(api, id);
    await first.until((events) => text(events) === "one two three");
    await using second = await EventClient.open(api, id);
    const seen = await second.until((events) => text(events) === "one two three");
    assert.deepEqual(seen.map(({ type }) => type).filter((type) => type !== "token"), [
      "turn_started",
      "tool_call",
      "tool_result",
    ]);
    assert.equal(seen.at(-1)!.id, first.events.findLast(({ id }) => id)!.id);
    await api.request(`/runs/${id}/cancel`, {});
    const ended = (await second.until()).map(({ type }) => type);
    assert.deepEqual(ended.slice(-2), ["turn_finished", "result"]);
    assert.equal(text(await first.until()), "one two three");
    await using last = await EventClient.open(api, id);
    assert.equal(text(await last.until()), "one two three");
    assert.equal(last.events.at(-1)!.id, second.events.at(-1)!.id);
    assert.equal(await worker.stop(), 0);
  },
});

Deno.test({
  ...needed,
  name: "a worker runs the jobs of hooks, one after another",
  async fn() {
    const store = await server.database(withTables);
    let [now, most] = [0, 0];
    const onRequest = async () => {
      most = Math.max(most, ++now);
      await systemClock.sleep(300);
      now--;
    };
    await using backend = startBackend({ replies: [say("a"), say("b")] }, { onRequest });
    const settings = scripted(backend);
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    const context = { ...jobContext(one.workspace), trust: TRUSTED };
    const job = { name: "notify", schedule: { interval: 86_400 }, next_run_at: "2999-01-01" };
    await context.register.add(aJob(job));
    const runs = new Runs(one.workspace, new Turns(one.workspace, new Metrics()), context);
    const worker = startWorker(two, 4);
    await worker.url();
    const accepted = [];
    for (const key of ["first", "second"]) {
      accepted.push((await runs.acceptHook({ job: "notify", event: "push", data: key }, key))!.run);
    }
    const again = await runs.acceptHook({ job: "notify", event: "push", data: "first" }, "first");
    assert.deepEqual([again!.known, again!.run.id], [true, accepted[0]!.id]);
    for (const { id } of accepted) {
      await until(() => runs.store.get(id)?.state === "done");
      assert.match(runs.store.get(id)!.worker, /^\S+\/\d+$/);
    }
    assert.equal(most, 1);
    assert.equal(await worker.stop(), 0);
    await runs.close();
    await one.workspace.store!.refresh();
    assert.equal(context.register.history("notify").length, 2);
  },
});

Deno.test({
  ...needed,
  name: "a run that waits for an answer continues on a worker when any server has it [3.2]",
  async fn() {
    const store = await server.database(withTables);
    const replies = [call("ask", { question: "Which branch?" }), say("I wait."), say("On main.")];
    await using backend = startBackend({ replies });
    const settings = { ...scripted(backend), unattended: true };
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    await using api = serve(one);
    const worker = startWorker(two);
    await worker.url();
    const { id } = await api.request("/runs", { prompt: "go" });
    const inState = (state: string) =>
      until(async () => (await api.request(`/runs/${id}`)).state === state);
    await inState("waiting");
    const { asks: [ask] } = await api.request(`/runs/${id}`);
    await api.request(`/asks/${ask}/answer`, { answer: "main" });
    await inState("done");
    assert.match(JSON.stringify(backend.chats.at(-1)), /answer to parked ask/);
    assert.equal(backend.chats.length, 3);
    assert.equal(await worker.stop(), 0);
  },
});

Deno.test({
  ...needed,
  name: "a worker goes on when the session of a run that it takes over cannot be read",
  async fn() {
    const store = await server.database(withTables);
    await using backend = startBackend({ replies: [say("next")] });
    const settings = scripted(backend);
    await using one = await machine(store, "shop", settings);
    await using two = await machine(store, "shop", settings);
    await one.workspace.load(AGENT_NEEDS);
    await one.workspace.store!.follow();
    const runs = new Runs(
      one.workspace,
      new Turns(one.workspace, new Metrics()),
      jobContext(one.workspace),
    );
    const request = { prompt: "go", role: "", task: {}, confirmed: false, webhook: "" };
    const { run: { id } } = await runs.accept({ request, body: "a" });
    await runs.store.take(id, () => true, () => {});
    runs.store.note(id, { state: "running", session: "broken", owner: "" });
    await runs.store.flush();
    await two.workspace.store!.open();
    await Deno.mkdir(`${two.path}/.svc/sessions`, { recursive: true });
    await Deno.writeTextFile(`${two.path}/.svc/sessions/broken.json`, "{");
    const worker = startWorker(two);
    await worker.url();
    await until(() => runs.store.get(id)?.state === "failed");
    assert.equal(runs.store.get(id)!.reason, "interrupted");
    const { run: next } = await runs.accept({ request, body: "b" });
    await until(() => runs.store.get(next.id)?.state === "done");
    assert.equal(await worker.stop(), 0);
    await runs.close();
  },
});
