import assert from "node:assert/strict";
import { basename } from "node:path";
import { streamTurn } from "../../src/server/routes/chat.ts";
import type { TurnEnd, TurnRequest, Turns } from "../../src/server/turns.ts";
import { call, hang, say } from "../support/backend.ts";
import { until } from "../support/processes.ts";
import { Raw, server, type TestServer, wire } from "./support.ts";

function statuses(at: TestServer): string[] {
  return at.workspace.sessions.list().map((name) =>
    at.workspace.sessions.read(name)!.turns.map(({ status }) => status).join()
  );
}

Deno.test("POST /chat: turns of one session run one after another, and others side by side [4.1]", async () => {
  await using at = await server([hang(), hang(), hang()], {
    config: { "serve.max_concurrent": 3 },
  });
  using a = await Raw.open(at);
  using b = await Raw.open(at);
  using c = await Raw.open(at);
  await a.send(wire("/chat", { prompt: "1", session: "one" }));
  await at.backend.arrived(1);
  await b.send(wire("/chat", { prompt: "2", session: "one" }));
  await c.send(wire("/chat", { prompt: "3", session: "two" }));
  await at.backend.arrived(2);
  await until(async () => (await at.get("/runs")).body.runs.length === 3);
  // deno-lint-ignore no-explicit-any
  const runs = (await at.get("/runs")).body.runs.map((run: any) => [run.session, run.status]);
  assert.deepEqual(runs.sort(), [["one", "queued"], ["one", "running"], ["two", "running"]]);
  assert.equal(at.backend.chats.length, 2);
});

Deno.test("POST /chat beyond the queue is rejected with 429 and Retry-After [8]", async () => {
  const config = { "serve.max_concurrent": 1, "serve.max_queue": 1 };
  await using at = await server([hang()], { config });
  using a = await Raw.open(at);
  using b = await Raw.open(at);
  await a.send(wire("/chat", { prompt: "1" }));
  await at.backend.arrived(1);
  await b.send(wire("/chat", { prompt: "2" }));
  await until(async () => (await at.get("/runs")).body.runs.length === 2);
  for (const stream of [false, true]) {
    const { status, headers, body } = await at.post("/chat", { prompt: "3", stream });
    assert.deepEqual([status, body], [429, { error: "too many turns are waiting" }]);
    assert.equal(headers.get("retry-after"), "5");
  }
  assert.deepEqual((await at.get("/health")).body, { status: "ok" });
});

Deno.test("a client that disconnects cancels its turn, running or queued, as JSON or as a stream", async () => {
  for (const stream of [false, true]) {
    const config = { "serve.max_concurrent": 1 };
    await using at = await server([hang("half"), say("next")], { config });
    const a = await Raw.open(at);
    const b = await Raw.open(at);
    await a.send(wire("/chat", { prompt: "1", session: "a", stream }));
    const { gone } = await at.backend.arrived(1);
    await b.send(wire("/chat", { prompt: "2", session: "b", stream }));
    await until(async () => (await at.get("/runs")).body.runs.length === 2);
    b[Symbol.dispose]();
    await until(async () =>
      // deno-lint-ignore no-explicit-any
      (await at.get("/runs")).body.runs.every((run: any) => run.status !== "queued")
    );
    a[Symbol.dispose]();
    await gone;
    await until(() => statuses(at).join() === "cancelled");
    assert.deepEqual(at.workspace.sessions.list(), ["a"], "what was queued left nothing");
    assert.equal((await at.post("/chat", { prompt: "3", session: "a" })).body.content, "next");
  }
});

Deno.test("a half-closed POST is answered, or its turn is cancelled where Deno closes the connection [4.1]", async () => {
  await using at = await server([hang("half"), say("whole")]);
  // Deno.serve takes the end of a request that arrived in one piece for a disconnect. It aborts the request's signal and
  // sends nothing afterwards, whatever the handler returns.
  using one = await Raw.open(at);
  await one.send(wire("/chat", { prompt: "1", session: "a" }));
  await at.backend.arrived(1);
  await one.closeWrite();
  assert.equal(await one.until(/never/), "");
  await until(() => statuses(at).join() === "cancelled");
  // A longer body is read as a stream, and the end after it is not looked at.
  using other = await Raw.open(at);
  await other.send(wire("/chat", { prompt: "word ".repeat(1000), session: "b" }));
  await other.closeWrite();
  assert.match(await other.until(/never/), /^HTTP\/1\.1 200 .*"content":"whole"/s);
});

Deno.test("POST /chat as a stream sends each event under its type and ends with the result [4.1]", async () => {
  await using at = await server([call("list_dir", { path: "." }), say(["Hel", "lo"])]);
  const answer = await at.post("/chat", { prompt: "go", session: "s" }, {
    headers: { accept: "text/event-stream" },
  });
  assert.equal(answer.headers.get("content-type"), "text/event-stream");
  const events = answer.body.trimEnd().split("\n\n").map((block: string) => {
    const [, type, data] = /^event: (\w+)\ndata: (.*)$/.exec(block)!;
    return { type, data: JSON.parse(data!) };
  });
  // deno-lint-ignore no-explicit-any
  const types = events.map((event: any) => event.type);
  for (const type of ["turn_started", "tool_call", "tool_result", "token", "turn_finished"]) {
    assert.ok(types.includes(type), type);
  }
  // deno-lint-ignore no-explicit-any
  assert.ok(events.slice(0, -1).every((event: any) => event.type === event.data.type));
  const last = events.at(-1);
  assert.deepEqual([last.type, last.data.content, last.data.session], ["result", "Hello", "s"]);
});

Deno.test("a turn that takes too long is cancelled and answered with 504", async () => {
  const config = { "serve.timeout": 0.05 };
  await using at = await server([hang("half"), hang("half")], { config });
  const { status, body } = await at.post("/chat", { prompt: "a", session: "a" });
  assert.deepEqual([status, body], [504, { error: "the turn took longer than 0.05 seconds" }]);
  const streamed = await at.post("/chat", { prompt: "a", session: "b", stream: true });
  assert.match(
    streamed.body,
    /event: error\ndata: {"error":"the turn took longer than 0\.05 seconds"}\n\nevent: result\ndata: .*"status":"cancelled","reason":""}\n\n$/,
  );
  assert.deepEqual(statuses(at), ["cancelled", "cancelled"]);
});

Deno.test("stopping lets turns finish, and cancels the rest after the grace period", async () => {
  const held = Promise.withResolvers<void>();
  const at = await server([say("whole"), say("queued")], {
    config: { "serve.grace": 60, "serve.max_concurrent": 1 },
    onRequest: () => held.promise,
  });
  await using _ = at.project;
  await using __ = at.home;
  await using ___ = at.backend;
  using raw = await Raw.open(at);
  await raw.send(wire("/chat", { prompt: "a", session: "a" }));
  await at.backend.arrived(1);
  using second = await Raw.open(at);
  await second.send(wire("/chat", { prompt: "b", session: "b" }));
  await until(async () => (await at.get("/runs")).body.runs.length === 2);
  const stopped = at.http.stop();
  held.resolve();
  assert.match(await raw.until(/\}$/), /^HTTP\/1\.1 200 .*"content":"whole"/s);
  assert.match(await second.until(/\}$/), /^HTTP\/1\.1 200 .*"content":"queued"/s);
  await stopped;
  await assert.rejects(Raw.open(at), Deno.errors.ConnectionRefused);

  const late = await server([hang("half")]);
  await using ____ = late.project;
  await using _____ = late.home;
  await using ______ = late.backend;
  using slow = await Raw.open(late);
  await slow.send(wire("/chat", { prompt: "a", session: "a" }));
  await late.backend.arrived(1);
  using idle = await Raw.open(late);
  await idle.send("POST /chat HTTP/1.1\r\nhost: localhost\r\ncontent-le");
  await late.http.stop();
  assert.match(await slow.until(/\}$/), /^HTTP\/1\.1 503 .*"the server is stopping"/s);
  assert.deepEqual(statuses(late), ["cancelled"]);
});

Deno.test("200 chats on 200 sessions at once are all answered and logged", async () => {
  await using at = await server();
  const names = Array.from({ length: 200 }, (_, i) => `s${i}`);
  const answers = await Promise.all(
    names.map((session) => at.post("/chat", { prompt: "a", session })),
  );
  assert.deepEqual(answers.map(({ body }) => body.session), names);
  assert.ok(answers.every(({ status, body }) => status === 200 && body.content === "done"));
  assert.deepEqual(statuses(at), names.map(() => "ok"));
});

Deno.test("a served agent is denied calls that need approval, and cannot change its configuration [4.1, 5.3]", async () => {
  await using at = await server([
    call("run_command", { command: "touch made" }),
    call("file_write", { path: ".svc/config.json", content: "{}" }),
    call("file_write", { path: "mine.txt", content: "x" }),
    call("file_write", { path: "linked/roles.json", content: "{}" }),
    say("end"),
  ], { files: { ".svc/keep": "" } });
  await Deno.symlink(`${at.project.path}/.svc`, `${at.project.path}/linked`);
  const { body } = await at.post("/chat", { prompt: "a", session: "s" });
  assert.equal(body.content, "end");
  const { permissions } = at.workspace.sessions.read("s")!;
  assert.deepEqual(permissions.map(({ tool, action, decision }) => [tool, action, decision]), [
    ["run_command", "ask", "declined"],
    ["file_write", "deny", "denied"],
    ["file_write", "allow", "granted"],
    ["file_write", "deny", "denied"],
  ]);
});

Deno.test("a stream gets a comment after fifteen seconds of silence, and not earlier", async () => {
  let now = 0;
  let wake = () => {};
  const slept: number[] = [];
  const clock = {
    now: () => now,
    sleep: (ms: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        const end = now + ms;
        slept.push(ms);
        wake = () => {
          now = end;
          resolve();
        };
        signal?.addEventListener("abort", () => reject(signal.reason));
      }),
  };
  const ended = Promise.withResolvers<TurnEnd>();
  let emit!: NonNullable<TurnRequest["emit"]>;
  const run = (request: TurnRequest) => {
    emit = request.emit!;
    request.onAdmitted!();
    return ended.promise;
  };
  const response = await streamTurn({ run } as Turns, { prompt: "p" }, clock);
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  const next = async () => (await reader.read()).value;
  wake();
  assert.equal(await next(), ": keep-alive\n\n");
  assert.equal(now, 15_000);
  now += 5_000;
  emit({ type: "token", run: 1, content: "x" });
  assert.match((await next())!, /^event: token\n/);
  wake(); // ten seconds after the event: not silent for long enough
  await new Promise((resume) => setImmediate(resume));
  assert.deepEqual(slept, [15_000, 15_000, 5_000]);
  wake();
  assert.equal(await next(), ": keep-alive\n\n");
  assert.equal(now, 35_000);
  ended.resolve({ result: { status: "ok" } } as TurnEnd);
  assert.match((await next())!, /^event: result\n/);
  assert.equal(await next(), undefined);
});

Deno.test("GET /runs shows an agent that handed over as paused [2.5, 3.6]", async () => {
  await using at = await server([
    call("delegate", { role: "tester", task: "look" }),
    call("handoff", { target: "root" }),
    say("done"),
  ]);
  assert.equal((await at.post("/chat", { prompt: "go" })).body.content, "done");
  const { runs: [{ agents }] } = (await at.get("/runs")).body;
  assert.deepEqual(agents.map(({ role, status }: Record<string, string>) => [role, status]), [
    ["", "ok"],
    ["tester", "paused"],
  ]);
});

Deno.test("a turn that follows another one in its session does not read the log again", async () => {
  await using at = await server([say("one"), say("two"), say("three")]);
  const chat = (prompt: string) => at.post("/chat", { prompt, session: "a" });
  await chat("1");
  const { openSync } = Deno;
  const opened: string[] = [];
  Deno.openSync = (path, options) => {
    if (String(path).includes("/sessions/")) opened.push(basename(String(path)));
    return openSync(path, options);
  };
  try {
    await chat("2");
    opened.length = 0; // it has read the first line
    assert.equal((await chat("3")).body.content, "three");
    assert.deepEqual(opened, [".a.turn"]);
  } finally {
    Deno.openSync = openSync;
  }
  // deno-lint-ignore no-explicit-any
  const sent = at.backend.chats[2].messages.slice(1).map(({ content }: any) => content);
  assert.deepEqual(sent, ["1", "one", "2", "two", "3"]);
});

Deno.test("a long answer is sent in pieces, as the JSON that it is when it is short [4.1]", async () => {
  const long = 'a "word" in 😀 and \n '.repeat(13_000);
  await using at = await server([say("short"), say(long)]);
  const chat = () => at.post("/chat", { prompt: "go", session: "a" });
  const [short, sent] = [await chat(), await chat()];
  assert.equal(short.headers.has("content-length"), true);
  assert.equal(sent.headers.has("content-length"), false);
  assert.equal(sent.headers.get("content-type"), short.headers.get("content-type"));
  assert.ok(sent.body.content.trim() === long.trim());
  assert.deepEqual(Object.keys(sent.body), Object.keys(short.body));
});
