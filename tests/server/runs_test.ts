import assert from "node:assert/strict";
import { type Run, RunStore } from "../../src/engine/run_store.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { Decision, RecordCopy, RecordRow, StoreLink } from "../../src/store/port.ts";
import { call, hang, say } from "../support/backend.ts";
import { until } from "../support/processes.ts";
import { project } from "../support/project.ts";
import { pruneWorktree } from "../../src/jobs/prune.ts";
import { startServer } from "../../src/server/server.ts";
import { EventClient, server, type TestServer } from "./support.ts";

/** Resolves with a run in one of these states. */
// deno-lint-ignore no-explicit-any
async function inState(at: Pick<TestServer, "get">, id: string, ...states: string[]): Promise<any> {
  let run;
  await until(async () => {
    ({ body: run } = await at.get(`/runs/${id}`));
    assert.ok(states.includes(run.state) || run.ended_at === "", JSON.stringify(run));
    return states.includes(run.state);
  });
  return run;
}

/** A further server on the same worktree. */
function another({ workspace }: TestServer) {
  const http = startServer({ workspace, host: "127.0.0.1", port: 0, insecure: false });
  const request = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${http.url}${path}`, init);
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  return {
    http,
    get: (path: string) => request(path),
    post: (path: string, body: unknown) =>
      request(path, { method: "POST", body: JSON.stringify(body) }),
    [Symbol.asyncDispose]: () => http.stop(),
  };
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
  await refused({ prompt: "x", role: "nobody" }, 404);
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
    user: `${place.path}/user`,

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
  const first = store.list({ limit: 2 })[1]!.id;
  assert.equal(await store.prune((run) => run.id === first), 9999);
  assert.deepEqual(store.list({ limit: 100 }).map(({ id }) => id), [run.id, first]);
  await store.close();
});

Deno.test("a message reaches a running turn before its next reply, and is in the log once", async () => {
  let id = "";
  const send = async (message: string) => {
    const { status } = await at.post(`/runs/${id}/messages`, { message });
    assert.equal(status, 202);
  };
  let asked = 0;
  const accepted = Promise.withResolvers<void>();
  await using at = await server([call("list_dir"), say("first"), say("second")], {
    onRequest: async () => {
      await accepted.promise;
      if (++asked < 3) await send(`word ${asked}`);
    },
  });
  id = (await at.post("/runs", { prompt: "go", session: "s" })).body.id;
  accepted.resolve();
  await using client = await EventClient.open(at, id);
  const run = await inState(at, id, "done");
  assert.deepEqual([run.result.content, run.messages, run.turns], ["second", [], [1]]);
  const { turns: [turn] } = at.workspace.sessions.read("s")!;
  assert.deepEqual(turn!.parts.map((part) => part.type === "user" ? part.text : part.type), [
    "go",
    "tool",
    "[message] word 1",
    "text",
    "[message] word 2",
    "text",
  ]);
  const contents = (chat: { messages: { role: string; content: string }[] }) =>
    chat.messages.filter(({ role }) => role === "user").map(({ content }) => content);
  assert.deepEqual(contents(at.backend.chats[1]), ["go", "[message] word 1"]);
  assert.deepEqual(contents(at.backend.chats[2]), ["go", "[message] word 1", "[message] word 2"]);
  const sent = (await client.until()).filter(({ type }) => type === "message");
  assert.deepEqual(sent.map(({ data }) => data.content), ["word 1", "word 2"]);
  // Another process sends the backend the same bytes: the log says all of it.
  const before = at.backend.chats[2].messages;
  await using again = another(at);
  await again.post("/chat", { prompt: "x", session: "s" });
  assert.deepEqual(at.backend.chats[3].messages.slice(0, before.length), before);
  assert.equal((await at.post(`/runs/${id}/messages`, { message: "late" })).status, 409);
  assert.equal((await at.post(`/runs/${id}/messages`, { message: " " })).status, 400);
});

Deno.test("a run that parked asks waits, and its next turn begins when they are answered [3.2]", async () => {
  await using at = await server([
    call("ask", { question: "Which branch?" }),
    say("I wait."),
    say("On main it is."),
  ]);
  const { body: { id } } = await at.post("/runs", { prompt: "go", session: "s" });
  await using client = await EventClient.open(at, id);
  const { asks: [ask], ended_at } = await inState(at, id, "waiting");
  assert.equal(ended_at, "");
  assert.deepEqual(
    (await at.get("/runs?state=waiting")).body.runs.map(({ id }: { id: string }) => id),
    [id],
  );
  assert.equal((await at.post(`/asks/${ask}/answer`, { answer: "main" })).status, 200);
  const run = await inState(at, id, "done");
  assert.deepEqual([run.result.content, run.asks, run.turns], ["On main it is.", [], [1, 3]]);
  const { messages } = at.backend.chats[2];
  assert.deepEqual(messages.slice(-2).map(({ content }: { content: string }) => content), [
    `[answer to parked ask #${ask}] main`,
    "The questions that were parked are answered. Continue.",
  ]);
  const types = (await client.until()).map(({ type }) => type);
  assert.deepEqual(types.filter((type) => /^turn_|result$/.test(type)), [
    "turn_started",
    "tool_result",
    "turn_finished",
    "turn_started",
    "turn_finished",
    "result",
  ]);
});

Deno.test("an answer that another process gives continues a run, also after a restart, on one server", async () => {
  await using at = await server([call("ask", { question: "?" }), say("I wait."), say("done")]);
  const { body: { id } } = await at.post("/runs", { prompt: "go" });
  const { asks: [ask] } = await inState(at, id, "waiting");
  await at.http.stop();
  await using one = another(at);
  await using other = another(at);
  await at.workspace.asks.answer(ask, "yes");
  const [run] = await Promise.all([inState(one, id, "done"), inState(other, id, "done")]);
  assert.deepEqual([run.turns.length, at.backend.chats.length], [2, 3]);
});

Deno.test("a message continues a run that waits, and the answer of a sub-agent's ask is in the prompt", async () => {
  await using at = await server([
    call("delegate", { role: "tester", task: "look" }),
    call("ask", { question: "Which?" }),
    say("CANNOT DECIDE"),
    say("asked"),
    say("I wait."),
    say("Still waiting."),
    say("done"),
  ]);
  const { body: { id } } = await at.post("/runs", { prompt: "go", session: "s" });
  const { asks } = await inState(at, id, "waiting");
  assert.equal(asks.length, 1);
  assert.equal((await at.post(`/runs/${id}/messages`, { message: "hurry" })).status, 202);
  await inState(at, id, "waiting");
  await until(() => at.backend.chats.length === 6);
  assert.equal(at.backend.chats[5].messages.at(-1).content, "hurry");
  await inState(at, id, "waiting");
  await at.post(`/asks/${asks[0]}/answer`, { answer: "that" });
  assert.equal((await inState(at, id, "done")).result.content, "done");
  assert.equal(
    at.backend.chats[6].messages.at(-1).content,
    `The questions that were parked are answered. Continue.\n\n[answer to parked ask #${
      asks[0]
    }] that`,
  );
});

Deno.test("a waiting run can be cancelled by any server", async () => {
  await using at = await server([call("ask", { question: "?" }), say("I wait.")]);
  const { body: { id } } = await at.post("/runs", { prompt: "go" });
  await inState(at, id, "waiting");
  await using other = another(at);
  assert.equal((await other.post(`/runs/${id}/cancel`, {})).body.state, "cancelled");
  assert.equal((await at.post(`/runs/${id}/cancel`, "")).body.state, "cancelled");
});

Deno.test("two servers on one worktree: each shows and streams the runs of the other, and changes none", async () => {
  await using at = await server([hang("half")]);
  await using other = another(at);
  const { body: { id } } = await at.post("/runs", { prompt: "go" });
  await inState(other, id, "running");
  await using client = await EventClient.open(other, id);
  await client.until((events) => events.length > 0);
  assert.equal((await other.post(`/runs/${id}/cancel`, {})).status, 409);
  assert.equal((await other.post(`/runs/${id}/messages`, { message: "x" })).status, 409);
  await other.http.stop();
  await using third = another(at);
  assert.equal((await third.get(`/runs/${id}`)).body.state, "running", "it is not taken");
  await using follower = await EventClient.open(third, id);
  await at.post(`/runs/${id}/cancel`, "");
  const events = await follower.until();
  assert.deepEqual(events.map(({ type }) => type), [
    "turn_started",
    "token",
    "turn_finished",
    "result",
  ]);
  assert.equal(at.backend.chats.length, 1);
});

Deno.test("a stopped server leaves what waits to the next one, and fails what it has to cut off", async () => {
  await using at = await server([hang("half"), say("later")], {
    config: { "serve.max_concurrent": 1 },
  });
  const { body: { id: cut } } = await at.post("/runs", { prompt: "1" });
  const { body: { id: left } } = await at.post("/runs", { prompt: "2" });
  await at.backend.arrived(1);
  await inState(at, cut, "running");
  await at.http.stop();
  await using next = another(at);
  assert.equal((await inState(next, left, "done")).result.content, "later");
  const { state, reason, error } = (await next.get(`/runs/${cut}`)).body;
  assert.deepEqual([state, reason, error], ["failed", "interrupted", "the server is stopping"]);
});

Deno.test("a server that was killed after the end of a run is not told of twice", async () => {
  await using at = await server();
  const { body: { id } } = await at.post("/runs", { prompt: "go" });
  await inState(at, id, "done");
  await at.http.stop();
  await at.project.write(`.svc/runs/open/${id}`, "");
  await using next = another(at);
  await until(() => !existsOpen(at, id));
  await next.http.stop();
  assert.deepEqual(at.warnings, []);
});

Deno.test("a run that came with a clone is not taken up, and takes no message", async () => {
  await using at = await server();
  const { body: { id } } = await at.post("/runs", { prompt: "go" });
  await inState(at, id, "done");
  const planted = `run_20260101000000000_${"x".repeat(22)}`;
  const run = JSON.parse(await at.project.read(`.svc/runs/${id}.json`));
  const request = { ...run.request, prompt: "planted", confirmed: true };
  const record = { ...run, id: planted, state: "queued", request, owner: "", ended_at: "" };
  await at.project.write(`.svc/runs/${planted}.json`, JSON.stringify(record));
  await at.project.write(`.svc/runs/open/${planted}`, "");
  await at.http.stop();
  await using next = another(at);
  await until(() => at.warnings.some((text) => text.includes(planted)));
  assert.match(at.warnings.join(), /is not taken up: no server of this user has accepted it/);
  assert.equal((await next.post(`/runs/${planted}/messages`, { message: "go" })).status, 409);
  assert.equal((await next.get(`/runs/${planted}`)).body.state, "queued");
  assert.equal(at.backend.chats.length, 1);
});

Deno.test("runs are accepted where the user's settings are read-only", async () => {
  await using at = await server();
  await at.home.write(".config/svc/serve.runs/folder", ""); // a folder in place of the file
  await at.project.write(".svc/runs/key", "k".repeat(64)); // readable by others: it came with a clone
  const { body: { id } } = await at.post("/runs", { prompt: "go" });
  await inState(at, id, "done");
  const { mode } = await Deno.stat(`${at.project.path}/.svc/runs/key`);
  assert.equal(mode! & 0o777, 0o600);
  assert.notEqual(await at.project.read(".svc/runs/key"), "k".repeat(64));
});

Deno.test("a run beyond serve.timeout fails; its wait in the queue does not count", async () => {
  const config = { "serve.max_concurrent": 1, "serve.timeout": 0.2 };
  await using at = await server([hang("half"), say("in time")], { config });
  const { body: { id: slow } } = await at.post("/runs", { prompt: "1" });
  const { body: { id: patient } } = await at.post("/runs", { prompt: "2" });
  assert.equal((await inState(at, slow, "failed")).reason, "timeout");
  assert.equal((await inState(at, patient, "done", "failed")).state, "done");
  await using client = await EventClient.open(at, slow);
  const events = await client.until();
  assert.deepEqual(events.slice(-2).map(({ type }) => type), ["error", "result"]);
});

Deno.test("the webhook of a run is told of its end once, signed, and only where the operator allows it", async () => {
  const told: { signature: string | null; delivery: string | null; body: string }[] = [];
  const hook = Deno.serve({ port: 0, onListen: () => {} }, async (request) => {
    const { headers } = request;
    told.push({
      signature: headers.get("x-svc-signature"),
      delivery: headers.get("x-svc-delivery"),
      body: await request.text(),
    });
    return new Response();
  });
  const origin = `http://127.0.0.1:${hook.addr.port}`;
  await using at = await server([say("Hello")], {
    config: { "serve.webhooks": [origin], "report.secret": "s3cret" },
  });
  const webhook = `${origin}/done?key=1`;
  const { body: { id } } = await at.post("/runs", { prompt: "go", webhook });
  await until(() => told.length === 1);
  const { run, state, content, event } = JSON.parse(told[0]!.body);
  assert.deepEqual([event, run, state, content], ["run.ended", id, "done", "Hello"]);
  assert.equal(told[0]!.delivery, id);
  assert.match(told[0]!.signature!, /^sha256=[0-9a-f]{64}$/);
  for (
    const wrong of [
      "http://127.0.0.1:1/",
      "http://169.254.169.254/latest",
      `http://user:pass@127.0.0.1:${hook.addr.port}/`,
      "file:///etc/passwd",
      "nonsense",
    ]
  ) {
    const { status } = await at.post("/runs", { prompt: "go", webhook: wrong });
    assert.equal(status, 403, wrong);
  }
  await until(() => !existsOpen(at, id));
  await at.http.stop();
  await using next = another(at);
  await next.get("/version");
  assert.equal(told.length, 1);
  await hook.shutdown();
});

Deno.test("the record of a run goes with its session, and its key with it", async () => {
  await using at = await server([say("a"), say("b")], { config: { "sessions.keep_days": 1 } });
  const headers = { "idempotency-key": "k" };
  const { body: { id: old } } = await at.post("/runs", { prompt: "go", session: "old" }, {
    headers,
  });
  await inState(at, old, "done");
  const { body: { id: kept } } = await at.post("/runs", { prompt: "go", session: "kept" });
  await inState(at, kept, "done");
  at.workspace.sessions.remove("old");
  await pruneWorktree(at.workspace);
  assert.deepEqual(
    [(await at.get(`/runs/${old}`)).status, (await at.get(`/runs/${kept}`)).status],
    [
      404,
      200,
    ],
  );
  assert.deepEqual([...Deno.readDirSync(`${at.project.path}/.svc/runs/keys`)], []);
});

/** Whether a run is still among those that are not settled. */
function existsOpen(at: TestServer, id: string): boolean {
  return [...Deno.readDirSync(`${at.project.path}/.svc/runs/open`)].some(({ name }) => name === id);
}

/** A record store that keeps rows and does what `fail` says after each decision; its copies. */
function recordStore(fail: () => void, before: (copy: RecordCopy) => unknown = () => {}) {
  const rows = new Map<string, RecordRow>();
  const copies: RecordCopy[] = [];
  const lease = { token: 1, lost: new AbortController().signal, release: () => Promise.resolve() };
  const records = {
    async change(copy: RecordCopy, decide: () => Promise<Decision<unknown>>) {
      for (let tries = 0;; tries++) {
        await before(copy);
        const { rows: made, result, written } = await decide();
        try {
          fail();
        } catch (error) {
          if (tries > 0) throw error;
          continue; // the connection was lost
        }
        for (const row of made) rows.set(row.key, structuredClone(row));
        await copy.apply(made, false);
        written?.();
        return result;
      }
    },
    get: (_: string, key: string) => Promise.resolve(rows.get(key)?.value),
    add: (row: RecordRow) => Promise.resolve(void rows.set(row.key, row)),
  };
  const held: { name: string }[] = [];
  const leases = { take: () => Promise.resolve(lease), held: () => Promise.resolve([...held]) };
  const link = {
    open: () => Promise.resolve({ records, leases }),
    register: (copy: RecordCopy) => void copies.push(copy),
  } as unknown as StoreLink;
  return { rows, copies, held, link };
}

Deno.test("the end of a run reaches the store, also after lost connections", async () => {
  await using place = await project();
  let faults = 0;
  const { rows, link } = recordStore(() => {
    if (faults-- > 0) throw new Error("the connection was lost");
  });
  const warnings: string[] = [];
  const store = new RunStore({
    state: `${place.path}/.svc`,
    user: `${place.path}/user`,
    clock: systemClock,
    warn: (text) => void warnings.push(text),
    store: link,
  });
  const request = { prompt: "go", role: "", task: {}, confirmed: false, webhook: "" };
  const { run } = await store.accept({ request });
  const stored = () => (rows.get(run.id)!.value as Run).state;
  faults = 1;
  store.note(run.id, { state: "running" });
  await store.flush();
  assert.equal(stored(), "running");
  faults = 2; // as long as it is tried again
  store.note(run.id, { state: "done" });
  await assert.rejects(store.flush(), /the connection was lost/);
  await store.close();
  assert.equal(stored(), "done");
  assert.equal(warnings.length, 1);
});

Deno.test("a server changes no run that another one has taken over", async () => {
  await using place = await project();
  const { rows, copies, link } = recordStore(() => {});
  const options = { state: `${place.path}/.svc`, user: `${place.path}/user`, clock: systemClock };
  const store = new RunStore({ ...options, warn: () => {}, store: link });
  const request = { prompt: "go", role: "", task: {}, confirmed: false, webhook: "" };
  const { run } = await store.accept({ request });
  const theirs = { ...run, state: "failed", reason: "interrupted", owner: crypto.randomUUID() };
  rows.set(run.id, { ...rows.get(run.id)!, value: theirs });
  await copies[0]!.apply([{ kind: "run", key: run.id, value: theirs }], false);
  store.note(run.id, { state: "failed", reason: "error" });
  await store.flush();
  assert.equal(store.need(run.id).reason, "interrupted");
  assert.deepEqual(rows.get(run.id)!.value, theirs);
});

Deno.test("rows of a store write no file outside of the folder of the runs", async () => {
  await using place = await project();
  const { copies, link } = recordStore(() => {});
  const options = { state: `${place.path}/.svc`, user: `${place.path}/user`, clock: systemClock };
  const store = new RunStore({ ...options, warn: () => {}, store: link });
  const request = { prompt: "go", role: "", task: {}, confirmed: false, webhook: "" };
  const { run } = await store.accept({ request });
  await place.write("victim.json", "kept");
  await copies[0]!.apply([
    { kind: "run_key", key: "../../../key", value: { id: "x" } },
    { kind: "run_key", key: "../../../victim.json" },
    { kind: "run", key: "../../victim" },
    { kind: "run", key: run.id, value: { ...run, id: "../../made" } },
  ], false);
  const files = [...Deno.readDirSync(place.path)].map(({ name }) => name).sort();
  assert.deepEqual(files, [".svc", "victim.json"]);
  assert.equal(store.need(run.id).id, run.id);
});

Deno.test("a run is not taken from a server that has just started and taken it", async () => {
  await using place = await project();
  let start = async () => {};
  const { copies, held, link } = recordStore(() => {}, () => start());
  const options = { state: `${place.path}/.svc`, user: `${place.path}/user`, clock: systemClock };
  const store = new RunStore({ ...options, warn: () => {}, store: link });
  const request = { prompt: "go", role: "", task: {}, confirmed: false, webhook: "" };
  const { run } = await store.accept({ request });
  start = async () => {
    held.push({ name: "server/other" });
    await copies[0]!.apply(
      [{ kind: "run", key: run.id, value: { ...run, owner: "other" } }],
      false,
    );
  };
  const taken: string[] = [];
  assert.equal(await store.take(run.id, () => true, ({ id }) => void taken.push(id)), false);
  assert.deepEqual(taken, []);
});
