import assert from "node:assert/strict";
import { Conversation } from "../../src/engine/conversation.ts";
import { beginRun, JobRun } from "../../src/jobs/run.ts";
import type { ChatMessage } from "../../src/plugins/api.ts";
import type { NewPart, Turn } from "../../src/sessions/schema.ts";
import { jobs } from "../jobs/support.ts";
import { agent, collect } from "../support/agent.ts";
import { as, call, calls, cut, hang, httpError, say, think } from "../support/backend.ts";

/** The text of each message of a request. */
const texts = ({ messages }: { messages: ChatMessage[] }) =>
  messages.map((message) => JSON.stringify(message));

/** Whether the messages of each request begin with all of those of the one before it, byte for byte. */
function assertPrefixes(requests: { messages: ChatMessage[] }[]): void {
  for (const [i, request] of requests.entries()) {
    if (i === 0) continue;
    const before = texts(requests[i - 1]!);
    assert.deepEqual(texts(request).slice(0, before.length), before, `request ${i + 1}`);
    assert.ok(texts(request).length > before.length, `request ${i + 1} is no longer`);
  }
}

const files = { "a.txt": "alpha\n", "b.txt": "beta\n" };

Deno.test("each request begins with the whole one before it: rounds, turns, another process", async () => {
  await using it = await agent([
    think("I look.", call("read_file", '{ "file" : "a.txt" }')), // an alias, and spaces
    { ...calls([["file_read", '{"path":"b.txt"}'], ["glob", { pattern: "*" }]]), text: "Both." },
    calls([["file_read", "{broken"], ["no_such_tool", { 2: "b", 1: "a" }]]),
    think("Done.", say("first")),
    cut(["one ", "two "]),
    call("file_read", { path: "b.txt" }),
    { ...say("half"), finish: "length", thinking: "hm" },
    { ...call("list_dir", '{"path": '), finish: "length" },
    say(" whole"),
    say("third"),
    call("glob", { pattern: "*.txt" }),
    say("fourth"),
    say("fifth"),
  ], {
    files,
    // A provider that echoes reasoning.
    config: { provider: "opencode", auto_continue_max: 3 },
  });
  await it.turn("one");
  await it.turn("two");
  await collect(it.another().turn("three"));
  const other = it.another();
  await collect(other.turn("four"));
  await collect(other.turn("five"));
  const { chats } = it.backend;
  assert.equal(chats.length, 13);
  assertPrefixes(chats);
  const sent = JSON.stringify(chats.at(-1).messages);
  for (const text of ["I look.", "read_file", '{ \\"file\\" : \\"a.txt\\" }', "one two "]) {
    assert.ok(sent.includes(JSON.stringify(text).slice(1, -1)) || sent.includes(text), text);
  }
  assert.equal(sent.match(/was cut off/g)?.length, 3);
});

/** A provider that dials the backend in the file `backend`, whatever its base URL says. */
const ROUTED = `export function register_providers(providers) {
  providers.register("routed", class extends providers.OpenAICompatibleProvider {
    static DEFAULT_BASE_URL = "https://api.openai.com/v1";
    static DEFAULT_MODEL = "m";
    static HOST_PATTERNS = [];
    endpoint(path) {
      return Deno.readTextFileSync(new URL("../../backend", import.meta.url)) + path;
    }
  });
}`;
const routed = {
  files: { ...files, ".svc/plugins/routed.ts": ROUTED },
  config: { plugins: [], provider: "routed", base_url: "https://api.openai.com/v1" },
};

/** The key of the prompt cache in each request. */
const cacheKeys = (chats: { prompt_cache_key?: string }[]) =>
  chats.map(({ prompt_cache_key }) => prompt_cache_key);

Deno.test("each session has its own key of the prompt cache, also when it is resumed [4.10]", async () => {
  const to = (task: string, more = {}) => call("delegate", { role: "digger", task, ...more });
  const dug = [as("YOU DIG", say("coal")), say("done")];
  await using it = await agent(
    [to("dig"), ...dug, to("more", { resume: "#2" }), ...dug, say("ok")],
    {
      ...routed,
      files: {
        ...routed.files,
        ".svc/roles.json": JSON.stringify({ digger: { system_prompt: "YOU DIG" } }),
      },
    },
  );
  await it.project.write("backend", `${it.backend.url}/v1`);
  await it.turn("go");
  await it.turn("again");
  await collect(it.another().turn("in another process"));
  const [root, sub, ...rest] = cacheKeys(it.backend.chats);
  assert.match(root!, /^[0-9a-f]{32}$/);
  assert.match(sub!, /^[0-9a-f]{32}$/);
  assert.notEqual(root, sub);
  assert.deepEqual(rest, [root, root, sub, root, root]);
});

Deno.test("the runs of a job on a lasting session have one key of the prompt cache, which hides its name [4.10]", async () => {
  await using place = await jobs([say("one"), say("two"), say("three")], routed);
  await place.project.write("backend", `${place.backend.url}/v1`);
  await place.add({ name: "a", session: "for acme" }, { name: "b" });
  for (const name of ["a", "a", "b"]) {
    const run = await beginRun(place.context, name, "run");
    assert.ok(run instanceof JobRun);
    await run.attempt(new AbortController().signal);
  }
  const [first, second, other] = cacheKeys(place.backend.chats);
  assert.match(first!, /^[0-9a-f]{32}$/);
  assert.equal(second, first);
  assert.notEqual(other, first);
});

Deno.test("a searched text stays where it was sent", async () => {
  await using web = searching();
  await using it = await agent([say("ok"), say("again"), say("and again")], {
    config: web.config,
  });
  await it.turn("bees");
  await it.turn("wasps");
  await collect(it.another().turn("ants"));
  assertPrefixes(it.backend.chats);
  assert.equal(it.backend.chats[2].messages.length, 9);
});

Deno.test("a result that the log leaves out is sent again after a restart, until its session is removed", async () => {
  await using it = await agent([
    calls([["file_read", { path: "a.txt" }], ["file_read", { path: "b.txt" }]]),
    say("one"),
    call("file_read", { path: "b.txt" }),
    say("two"),
    say("three"),
    say("fresh"),
  ], { files, config: { noise_tools: ["file_read"] } });
  await it.turn("one");
  await collect(it.another().turn("two"));
  await collect(it.another().turn("three"));
  assertPrefixes(it.backend.chats);
  assert.match(JSON.stringify(it.backend.chats[4].messages), /alpha.*beta.*beta/);
  const { name } = it.session;
  const folder = `${it.project.path}/.svc/sessions`;
  assert.doesNotMatch(Deno.readTextFileSync(`${folder}/${name}.json`), /alpha|beta/);

  // Where the file is lost or damaged, the model is sent what the log has.
  Deno.writeTextFileSync(`${folder}/.${name}.results`, '{"turn":1,"part":1,\n[]\n');
  await collect(it.another().turn("four"));
  assert.doesNotMatch(JSON.stringify(it.backend.chats[5].messages), /alpha|beta/);

  it.session.close();
  it.workspace.sessions.remove(name);
  assert.deepEqual([...Deno.readDirSync(folder)].filter((each) => each.name.includes(name)), []);
});

Deno.test("a resumed sub-agent whose memory has changed is sent the change behind its conversation", async () => {
  const to = (task: string, more = {}) => call("delegate", { role: "digger", task, ...more });
  await using it = await agent([
    as("You keep the memory", say("known later", { repeat: 2 })),
    { ...to("dig"), when: { user: "go" } },
    as("YOU DIG", call("file_read", { path: "a.txt" })),
    as("YOU DIG", say("coal")),
    { ...say("one"), when: { user: "go" } },
    { ...to("dig more", { resume: "#2" }), when: { user: "again" } },
    as("YOU DIG", say("tin")),
    { ...say("two"), when: { user: "again" } },
  ], {
    files: {
      ...files,
      ".svc/roles.json": JSON.stringify({ digger: { system_prompt: "YOU DIG" } }),
      ".svc/memory/roles/digger.md": "known at first",
    },
    config: { memory_enabled: true, "memory.role": true },
  });
  await it.turn("go");
  await it.workspace.background.settle();
  await it.turn("again");
  const dug = it.backend.chats.filter(({ messages }) => messages[0].content.includes("YOU DIG"));
  assert.equal(dug.length, 3);
  assertPrefixes(dug);
  assert.match(dug[0].messages[0].content, /## Role memory[^]*known at first/);
  assert.match(dug[2].messages.at(-2).content, /^## Role memory[^]*known later$/);
  assert.deepEqual(dug[2].messages.at(-1), { role: "user", content: "dig more" });
});

Deno.test("the runs of a job on a lasting session share their beginning, and its memory follows [2.6]", async () => {
  const memory = (text: string) => as("You keep the memory of the job a", say(text));
  await using place = await jobs([
    call("file_read", { path: "a.txt" }),
    say("one"),
    memory("After one run."),
    say("two"),
    memory("After two runs."),
    say("three"),
    memory("After three runs."),
  ], { files, config: { "memory.job": true } });
  await place.add({ name: "a", session: "lasting" });
  for (let i = 0; i < 3; i++) {
    const run = await beginRun(place.context, "a", "run");
    assert.ok(run instanceof JobRun);
    await run.attempt(new AbortController().signal);
  }
  const own = place.backend.chats.filter(({ messages }) =>
    !messages[0].content.startsWith("You keep")
  );
  assert.equal(own.length, 4);
  assertPrefixes(own);
  assert.match(own[3].messages.at(-2).content, /^## Run memory[^]*After two runs\.$/);
});

Deno.test("a turn without a reply leaves the conversation and stays in the log", async () => {
  await using it = await agent([
    say("ready"),
    httpError(400),
    httpError(404),
    hang(),
    say("now"),
    say("later"),
  ]);
  await it.turn("hello");
  await it.turn("order 1");
  await it.turn("order 2");
  const stop = new AbortController();
  const cancelled = it.turn("order 3", stop.signal);
  await it.backend.arrived(4);
  stop.abort();
  await cancelled;
  await it.turn("order 4");
  await collect(it.another().turn("order 5"));
  const contents = (n: number) =>
    it.backend.chats[n].messages.slice(1).map(({ content }: ChatMessage) => content);
  assert.deepEqual(contents(4), ["hello", "ready", "order 4"]);
  assert.deepEqual(contents(5), ["hello", "ready", "order 4", "now", "order 5"]);
  assert.match(JSON.stringify(it.session.document().turns), /order 1.*order 2.*order 3/);
});

Deno.test("failed attempts of a job leave no copies of its prompt", async () => {
  await using place = await jobs([...[500, 502, 503].map((code) => httpError(code)), say("done")]);
  await place.add({ name: "a", session: "lasting", retries: 2 });
  for (let i = 0; i < 2; i++) {
    const run = await beginRun(place.context, "a", "run");
    assert.ok(run instanceof JobRun);
    while (run.next !== undefined) {
      place.clock.set(run.next);
      await run.attempt(new AbortController().signal);
    }
  }
  assert.deepEqual(place.backend.chats[3].messages.slice(1), [{ role: "user", content: "go" }]);
});

Deno.test("a cancelled turn with partial work stays, with a note", async () => {
  await using it = await agent([
    call("file_read", { path: "a.txt" }),
    { text: ["I found"], hang: true },
    say("two"),
    say("three"),
  ], { files });
  const stop = new AbortController();
  for await (const event of it.engine.turn("one", { signal: stop.signal })) {
    if (event.type === "token") stop.abort();
  }
  await it.turn("two");
  await collect(it.another().turn("three"));
  const [, after, restarted] = it.backend.chats.slice(1);
  assertPrefixes([after, restarted]);
  const roles = after.messages.map(({ role }: ChatMessage) => role);
  assert.deepEqual(roles, [
    ...["system", "user", "assistant", "tool"],
    ...["assistant", "user", "user"],
  ]);
  assert.match(after.messages.at(-2).content, /cancelled here/);
});

Deno.test("what svc asks in the middle of a turn is sent again in its place", async () => {
  const again = () => call("file_read", { path: "a.txt" });
  await using it = await agent([
    ...[again(), again(), again(), again(), say("done")],
    ...[say("really"), say("and now")],
    say("two"),
    say("three"),
  ], { files });
  const task = { verify: "exit 1", verify_rounds: 2 };
  const { result } = await collect(it.engine.turn("one", { task }));
  assert.equal(result.reason, "verify");
  await it.turn("two");
  await collect(it.another().turn("three"));
  const { chats } = it.backend;
  assertPrefixes(chats);
  const users = chats.at(-1).messages.filter(({ role }: ChatMessage) => role === "user");
  assert.ok(users.length > 6, `${users.length} questions`);
});

Deno.test("a turn whose process was killed stays with what it did, or leaves when it did nothing", async () => {
  await using it = await agent([say("one"), say("four"), say("five")], { files });
  await it.turn("order 1");
  const head = { model: "test", provider: "generic-compatible", mode: "build", reasoning: "auto" };
  for (const part of [undefined, { type: "text" as const, text: "I begin.", round: 1 }]) {
    const killed = it.workspace.sessions.open(it.session.name);
    await killed.acquireTurn();
    const log = killed.beginTurn(head);
    log.append({ type: "user", text: part === undefined ? "order 2" : "order 3" });
    if (part !== undefined) log.append(part);
    killed.close();
  }
  await it.turn("order 4");
  await collect(it.another().turn("order 5"));
  assertPrefixes(it.backend.chats);
  const contents = it.backend.chats[1].messages.slice(1).map(({ content }: ChatMessage) => content);
  const note = "[The turn ended here without an answer. What it had begun may be unfinished.]";
  assert.deepEqual(contents, ["order 1", "one", "order 3", "I begin.", note, "order 4"]);
});

Deno.test("no message has more than 128 calls, whether they are in one reply or in an old log", async () => {
  const many = Array.from({ length: 200 }, () => ["file_read", { path: "a.txt" }] as const);
  await using it = await agent([calls(many.map((each) => [...each])), say("one"), say("two")], {
    files,
  });
  await it.turn("go");
  await collect(it.another().turn("more"));
  assertPrefixes(it.backend.chats);
  checkCalls(it.backend.chats[2].messages, 200);

  const timestamp = "2026-01-02T03:04:05.000Z";
  const part: NewPart = { type: "tool", name: "t", input: {}, output: "x", is_error: false };
  const parts = Array.from({ length: 300 }, () => ({ ...part, timestamp }));
  const head = { model: "m", provider: "p", mode: "build", reasoning: false };
  const times = { started_at: timestamp, ended_at: timestamp, status: "ok" as const };
  const turn: Turn = { index: 1, ...head, ...times, parts };
  checkCalls(new Conversation([turn]).messages(), 300);
});

function checkCalls(messages: ChatMessage[], total: number): void {
  let calls = 0;
  for (const [i, { tool_calls = [] }] of messages.entries()) {
    assert.ok(tool_calls.length <= 128);
    calls += tool_calls.length;
    const answers = messages.slice(i + 1, i + 1 + tool_calls.length);
    assert.deepEqual(answers.map((each) => each.tool_call_id), tool_calls.map(({ id }) => id));
  }
  assert.equal(calls, total);
}

Deno.test("ids and reasoning blocks of another backend are not sent to this one", async () => {
  await using it = await agent([
    { tool_calls: [{ name: "file_read", arguments: '{ "path": "a.txt" }', id: "toolu_1" }] },
    say("one"),
    say("two"),
  ], { files });
  await it.turn("go");
  it.workspace.config.override("model", "another");
  await collect((await it.prepare({ model_named: true })).open(it.session).turn("more"));
  const [{ id, function: sent }] = it.backend.chats[2].messages[2].tool_calls;
  assert.match(id, /^[a-z0-9]{9}$/);
  assert.equal(sent.arguments, '{ "path": "a.txt" }');
});

/** A search engine that finds something else for every prompt. */
function searching() {
  let found = 0;
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen() {} },
    () =>
      Response.json({ results: [{ title: `Page ${++found}`, url: "http://x/", content: "Buzz" }] }),
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  return {
    config: { web_search: true, "web.search_engine": "searxng", "web.search_url": url },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
