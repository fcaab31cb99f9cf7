import assert from "node:assert/strict";
import { RunStore } from "../../src/engine/run_store.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { call, hang, say } from "../support/backend.ts";
import { project } from "../support/project.ts";
import { eventually, server, type TestServer } from "./support.ts";

/** Resolves with a run in one of these states. */
// deno-lint-ignore no-explicit-any
async function inState(at: TestServer, id: string, ...states: string[]): Promise<any> {
  let run;
  await eventually(async () => {
    ({ body: run } = await at.get(`/runs/${id}`));
    return states.includes(run.state);
  });
  return run;
}

Deno.test("POST /runs answers 202 with an id, and the run goes on without its client [4.1]", async () => {
  await using at = await server([say("Hello")]);
  const accepted = await at.post("/runs", { prompt: "go", session: "mine" });
  assert.equal(accepted.status, 202);
  const { id, state, session, prompt } = accepted.body;
  assert.match(id, /^run_\d{17}_[\w-]{22}$/);
  assert.equal(accepted.headers.get("location"), `/runs/${id}`);
  assert.deepEqual([state, session, prompt], ["queued", "mine", "go"]);
  const run = await inState(at, id, "done");
  assert.deepEqual([run.status, run.session, run.turns], ["ok", "mine", [1]]);
  assert.equal(at.workspace.sessions.read("mine")!.turns[0]!.status, "ok");
  assert.equal((await at.get("/runs/run_1")).status, 404);
});

Deno.test("the record of a run is readable by its owner alone, and has none of the session's texts", async () => {
  await using at = await server([say("a secret answer")]);
  const { body: { id } } = await at.post("/runs", { prompt: "go" });
  await inState(at, id, "done");
  const path = `${at.project.path}/.svc/runs/${id}.json`;
  assert.equal(Deno.statSync(path).mode! & 0o777, 0o600);
  assert.ok(!Deno.readTextFileSync(path).includes("secret"));
});

Deno.test("a run that cannot begin is not accepted", async () => {
  await using at = await server();
  const refused = async (body: unknown, status: number) => {
    const answer = await at.post("/runs", body);
    assert.equal(answer.status, status, JSON.stringify(answer.body));
  };
  await refused({}, 400);
  await refused({ prompt: "x", session: "a/b" }, 400);
  await refused({ prompt: "x", session: "#nobody" }, 404);
  await refused({ prompt: "x", role: "nobody" }, 400);
  await refused({ prompt: "x", schema: { type: 1 } }, 400);
  await refused({ prompt: "x", verify: "true" }, 403);
  await refused({ prompt: "x", max_cost: 1 }, 409);
  assert.deepEqual((await at.get("/runs")).body.runs, []);
});

Deno.test("the same Idempotency-Key gives the same run, and 422 with another body", async () => {
  await using at = await server([say("once")]);
  const headers = { "idempotency-key": "order 7" };
  const post = (prompt: string) => at.post("/runs", { prompt }, { headers });
  const both = await Promise.all([post("go"), post("go")]);
  assert.deepEqual(both.map(({ status }) => status).sort(), [200, 202]);
  assert.equal(both[0]!.body.id, both[1]!.body.id);
  const { id } = both[0]!.body;
  await inState(at, id, "done");
  assert.deepEqual([(await post("go")).status, (await post("go")).body.id], [200, id]);
  assert.equal((await post("else")).status, 422);
  assert.equal(at.backend.chats.length, 1);
  for (const key of ["", "x".repeat(256)]) {
    const { status } = await at.post("/runs", { prompt: "go" }, {
      headers: { "idempotency-key": key },
    });
    assert.equal(status, 400);
  }
});

Deno.test("POST /runs/ID/cancel ends a queued and a running run", async () => {
  await using at = await server([hang("half")], { config: { "serve.max_concurrent": 1 } });
  const { body: { id } } = await at.post("/runs", { prompt: "1", session: "s" });
  const { body: other } = await at.post("/runs", { prompt: "2", session: "s" });
  await at.backend.arrived(1);
  await inState(at, id, "running");
  assert.equal((await at.post(`/runs/${other.id}/cancel`, "")).body.state, "cancelled");
  const { status, body } = await at.post(`/runs/${id}/cancel`, "");
  assert.deepEqual([status, body.state, body.status], [200, "cancelled", "cancelled"]);
  assert.equal((await at.post(`/runs/${id}/cancel`, "")).status, 200, "a second time");
  assert.equal((await at.post("/runs/run_1/cancel", "")).status, 404);
  const { turns } = at.workspace.sessions.read("s")!;
  assert.deepEqual(turns.map(({ status }) => status), ["cancelled"]);
});

Deno.test("POST /runs/ID/cancel cancels a turn of POST /chat too, and a run that has ended is a 409", async () => {
  await using at = await server([hang("half"), say("done")]);
  const chat = at.post("/chat", { prompt: "1" });
  await at.backend.arrived(1);
  const [{ id, state }] = (await at.get("/runs?state=running")).body.runs;
  assert.deepEqual([id, state], [1, "running"]);
  assert.equal((await at.post("/runs/1/cancel", "")).body.state, "cancelled");
  assert.equal((await chat).body.status, "cancelled");
  const { body: run } = await at.post("/runs", { prompt: "2" });
  await inState(at, run.id, "done");
  assert.equal((await at.post(`/runs/${run.id}/cancel`, "")).status, 409);
});

Deno.test("GET /runs lists accepted runs with the turns of POST /chat, also by state [4.1]", async () => {
  await using at = await server([say("chat"), say("run"), hang("half")]);
  await at.post("/chat", { prompt: "1" });
  const { body: { id } } = await at.post("/runs", { prompt: "2" });
  await inState(at, id, "done");
  const { body: { id: live } } = await at.post("/runs", { prompt: "3" });
  await inState(at, live, "running");
  const listed = async (query = "") =>
    (await at.get(`/runs${query}`)).body.runs.map((run: { id: unknown }) => run.id);
  assert.deepEqual(await listed(), [live, id, 1]);
  assert.deepEqual(await listed("?state=done"), [id, 1]);
  assert.deepEqual(await listed("?state=running"), [live]);
  assert.deepEqual(await listed("?state=failed"), []);
  assert.deepEqual(await listed("?limit=1"), [live]);
  assert.equal((await at.get("/runs?state=asleep")).status, 400);
});

Deno.test("beyond the queue, POST /runs is rejected with 429 and Retry-After [8]", async () => {
  const config = { "serve.max_concurrent": 1, "serve.max_queue": 1 };
  await using at = await server([hang()], { config });
  await at.post("/runs", { prompt: "1" });
  await at.backend.arrived(1);
  assert.equal((await at.post("/runs", { prompt: "2" })).status, 202);
  const { status, headers } = await at.post("/runs", { prompt: "3" });
  assert.deepEqual([status, headers.get("retry-after")], [429, "5"]);
});

Deno.test("a run that fails says why", async () => {
  await using at = await server([call("list_dir"), call("list_dir")]);
  const { body: { id } } = await at.post("/runs", { prompt: "1", max_rounds: 1 });
  const { reason, error, status } = await inState(at, id, "failed");
  assert.deepEqual([status, reason], ["error", "rounds"]);
  assert.match(error, /^Stopped after 1 rounds/);
});

Deno.test("a list reads the open runs and a page of the others, however many there are", async () => {
  await using place = await project();
  const store = new RunStore({
    state: `${place.path}/.svc`,
    clock: systemClock,
    warn: (text) => assert.fail(text),
  });
  const request = { prompt: "p", role: "", task: {}, confirmed: false, webhook: "" };
  const { run } = await store.accept({ request });
  const ended = JSON.stringify({ ...run, state: "done", ended_at: run.queued_at });
  for (let i = 0; i < 10_000; i++) {
    const id = `run_202601010000${String(i).padStart(5, "0")}_${"x".repeat(22)}`;
    Deno.writeTextFileSync(
      `${place.path}/.svc/runs/${id}.json`,
      ended.replaceAll(run.id, id),
    );
  }
  let reads = 0;
  const read = Deno.readTextFileSync;
  Deno.readTextFileSync = (path) => {
    reads++;
    return read(path);
  };
  try {
    assert.equal(store.list({ limit: 100 }).length, 100);
    assert.equal(reads, 100);
    store.list({ limit: 100, states: ["queued", "running"] });
    assert.equal(reads, 101);
    store.list({ limit: 100 });
    assert.equal(reads, 102, "ended runs are read once");
  } finally {
    Deno.readTextFileSync = read;
  }
  assert.equal(store.prune({ keep_days: 0, keep_count: 10 }), 9990);
  assert.equal(store.list({ limit: 100 }).length, 11);
  store.close();
});
