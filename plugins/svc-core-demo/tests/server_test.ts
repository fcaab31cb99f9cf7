import assert from "node:assert/strict";
import type { Reply, Script } from "../src/script.ts";
import { type DemoServerOptions, startDemoServer } from "../src/server.ts";

/** Starts a server; `await using` closes it. */
function serve(script: Reply[] | Script | undefined, options: DemoServerOptions = {}) {
  const server = startDemoServer({
    script: Array.isArray(script) ? { replies: script } : script,
    ...options,
  });
  return { ...server, [Symbol.asyncDispose]: () => server.close() };
}

interface Ask {
  stream?: boolean;
  messages?: unknown[];
  signal?: AbortSignal;
  more?: Record<string, unknown>;
}

function ask({ url }: { url: string }, { stream = true, messages = [], signal, more }: Ask = {}) {
  return fetch(`${url}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ model: "m", stream, messages, ...more }),
    signal,
    redirect: "manual",
  });
}

/** The network reads of a body, and whether it broke off. */
async function reads(response: Response): Promise<{ pieces: Uint8Array[]; broken: boolean }> {
  const pieces: Uint8Array[] = [];
  try {
    for await (const piece of response.body!) pieces.push(piece);
  } catch {
    return { pieces, broken: true };
  }
  return { pieces, broken: false };
}

const text = (pieces: Uint8Array[]) =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(
    new Uint8Array(pieces.flatMap((piece) => [...piece])),
  );

/** The `data` of each event; the JSON ones parsed. */
// deno-lint-ignore no-explicit-any
function events(body: string): any[] {
  return body.split("\n\n").filter((event) => event !== "").map((event) => {
    assert.match(event, /^data: /);
    return event === "data: [DONE]" ? "[DONE]" : JSON.parse(event.slice(6));
  });
}

// deno-lint-ignore no-explicit-any
async function streamed(reply: Reply): Promise<any[]> {
  await using server = serve([reply]);
  return events(await (await ask(server)).text());
}

// deno-lint-ignore no-explicit-any
const deltas = (list: any[]) =>
  list.filter((event) => event.choices?.length > 0).map((event) => event.choices[0].delta);

Deno.test("a text is streamed in words, with finish reason, usage and [DONE]", async () => {
  const list = await streamed({ text: "Hello  big\nworld", usage: { total_tokens: 7 } });
  assert.deepEqual(deltas(list), [
    { role: "assistant", content: "Hello  " },
    { content: "big\n" },
    { content: "world" },
    {},
  ]);
  assert.equal(list[0].object, "chat.completion.chunk");
  assert.equal(list[0].model, "m");
  assert.equal(new Set(list.slice(0, -1).map((event) => event.id)).size, 1);
  assert.deepEqual(list.slice(0, 4).map((event) => event.choices[0].finish_reason), [
    null,
    null,
    null,
    "stop",
  ]);
  assert.deepEqual([list[4].choices, list[4].usage], [[], { total_tokens: 7 }]);
  assert.equal(list[5], "[DONE]");
});

Deno.test("without stream a completion is one JSON document", async () => {
  await using server = serve([{
    text: ["a", "b"],
    thinking: "why",
    tool_calls: [{ name: "x", arguments: { y: 1 }, id: "call_x" }],
    usage: { total_tokens: 7 },
  }]);
  const response = await ask(server, { stream: false });
  assert.equal(response.headers.get("content-type"), "application/json");
  const { choices, usage, object } = await response.json();
  assert.equal(object, "chat.completion");
  assert.deepEqual(usage, { total_tokens: 7 });
  assert.deepEqual(choices, [{
    index: 0,
    message: {
      role: "assistant",
      content: "ab",
      reasoning_content: "why",
      tool_calls: [{
        id: "call_x",
        type: "function",
        function: { name: "x", arguments: '{"y":1}' },
      }],
    },
    finish_reason: "tool_calls",
  }]);
});

Deno.test("each element of a text is an event and a write", async () => {
  await using server = serve([{ text: ["one", " two"] }]);
  const { pieces } = await reads(await ask(server));
  assert.equal(pieces.length, 4);
  assert.deepEqual(deltas(events(text(pieces))).map((delta) => delta.content), [
    "one",
    " two",
    undefined,
  ]);
});

Deno.test("reasoning is sent first, in either field", async () => {
  const usual = await streamed({ thinking: "hm", text: "yes" });
  assert.deepEqual(deltas(usual)[0], { role: "assistant", reasoning_content: "hm" });
  const other = await streamed({ thinking: ["h", "m"], reasoning_key: "reasoning" });
  assert.deepEqual(deltas(other).map((delta) => delta.reasoning), ["h", "m", undefined]);
});

Deno.test("fragments of tool calls alternate", async () => {
  const list = await streamed({
    tool_calls: [
      { name: "a", arguments: { text: "größer" }, fragments: 4 },
      { name: "b", arguments: "{not json", fragments: 2, id: "mine" },
      { name: "c" },
    ],
  });
  const calls = deltas(list).flatMap((delta) => delta.tool_calls ?? []);
  assert.deepEqual(calls.map((call) => call.index), [0, 1, 2, 0, 1, 0, 0]);
  const whole = [0, 1, 2].map((index) =>
    calls.filter((call) => call.index === index).map((call) => call.function.arguments).join("")
  );
  assert.deepEqual(whole, ['{"text":"größer"}', "{not json", "{}"]);
  assert.deepEqual(calls.slice(0, 3).map((call) => call.function.name), ["a", "b", "c"]);
  assert.equal(calls[1].id, "mine");
  assert.notEqual(calls[0].id, calls[2].id);
  assert.ok(calls.slice(3).every((call) => call.id === undefined));
  assert.equal(list.at(-2).choices[0].finish_reason, "tool_calls");
});

Deno.test("finish, done and end_early change the end of the stream", async () => {
  assert.equal(
    (await streamed({ text: "a", finish: "length" }))[1].choices[0].finish_reason,
    "length",
  );
  assert.deepEqual((await streamed({ text: "a", finish: null })).slice(1), ["[DONE]"]);
  assert.equal(
    (await streamed({ text: "a", done: false })).at(-1).choices[0].finish_reason,
    "stop",
  );
  assert.deepEqual((await streamed({ text: "a", done: 2 })).slice(2), ["[DONE]", "[DONE]"]);
  const early = await streamed({ text: "a", end_early: true, usage: { total_tokens: 1 } });
  assert.deepEqual(deltas(early), [{ role: "assistant", content: "a" }]);
  assert.equal(early.length, 1);
});

Deno.test("cut breaks the connection after the content, or after n writes", async () => {
  await using server = serve([
    { text: "one two three", cut: true },
    { text: "one two three", cut: { after: 2 } },
    { text: "one", cut: { after: 0 } },
    { text: "one two three four", cut: true },
  ]);
  for (const writes of [3, 2, 0]) {
    const { pieces, broken } = await reads(await ask(server));
    assert.ok(broken);
    assert.equal(events(text(pieces)).length, writes);
  }
  const document = await reads(await ask(server, { stream: false }));
  assert.ok(document.broken);
  assert.throws(() => JSON.parse(text(document.pieces)));
});

Deno.test("on the wire, a cut answer has no last chunk and its connection is closed", async () => {
  await using server = serve([{ text: "one two", cut: true }]);
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.port });
  const body = JSON.stringify({ stream: true, messages: [] });
  await connection.write(new TextEncoder().encode(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  ));
  const answer = await new Response(connection.readable).text(); // ends when the server closes
  assert.match(answer, /transfer-encoding: chunked/);
  assert.match(answer, /"content":"two"/);
  assert.doesNotMatch(answer, /\r\n0\r\n/);
});

Deno.test("hang sends the content, then nothing until the client disconnects", async () => {
  await using server = serve([{ text: "wait", hang: true }], { record: true });
  const client = new AbortController();
  const reader = (await ask(server, { signal: client.signal })).body!.getReader();
  const { value } = await reader.read();
  assert.deepEqual(deltas(events(text([value!]))), [{ role: "assistant", content: "wait" }]);
  const more = reader.read();
  client.abort();
  await assert.rejects(more);
  await server.requests[0]!.gone;
});

Deno.test("hang without content does not even send headers", async () => {
  for (const stream of [true, false]) {
    const arrived = Promise.withResolvers<{ gone: Promise<void> }>();
    await using server = serve([{ hang: true }], { onRequest: arrived.resolve });
    const client = new AbortController();
    const answer = ask(server, { stream, signal: client.signal });
    const failed = assert.rejects(answer, { name: "AbortError" });
    const { gone } = await arrived.promise;
    client.abort();
    await failed;
    await gone;
  }
});

Deno.test("raw bytes are sent whole before a cut", async () => {
  await using server = serve([{ raw: "data: half an ev", cut: true }]);
  const { pieces, broken } = await reads(await ask(server));
  assert.ok(broken);
  assert.equal(text(pieces), "data: half an ev");
});

Deno.test("close ends answers that hang, wait or are being sent", async () => {
  const replies = [
    { hang: true },
    { text: "a", hang: true },
    { text: "a", delay_ms: 1_000_000 },
    { text: "a b", chunk_delay_ms: 1_000_000 },
  ];
  let arrived = 0;
  const all = Promise.withResolvers<void>();
  const server = startDemoServer({
    script: { replies },
    onRequest: () => void (++arrived === replies.length && all.resolve()),
  });
  const answers = replies.map(() => ask(server).then((response) => response.text()));
  const failures = Promise.all(answers.map((answer) => assert.rejects(answer)));
  await all.promise;
  await server.close();
  await failures;
});

Deno.test("an HTTP error has its status, headers and body", async () => {
  await using server = serve([
    { status: 429, headers: { "retry-after": "3" }, body: { error: { message: "slow" } } },
    { status: 502, headers: { "content-type": "text/html" }, body: "<h1>Bad</h1>" },
    { status: 503 },
    { status: 204 },
  ]);
  const limited = await ask(server);
  assert.equal(limited.status, 429);
  assert.equal(limited.headers.get("retry-after"), "3");
  assert.deepEqual(await limited.json(), { error: { message: "slow" } });
  const page = await ask(server);
  assert.equal(page.status, 502);
  assert.equal(page.headers.get("content-type"), "text/html");
  assert.equal(await page.text(), "<h1>Bad</h1>");
  const bare = await ask(server);
  assert.deepEqual([bare.status, await bare.text()], [503, ""]);
  assert.equal((await ask(server)).status, 204);
});

Deno.test("the target of a redirect is served too", async () => {
  await using server = serve([
    { redirect: { location: "/moved/v1/chat/completions" } },
    { redirect: { status: 302, location: "http://127.0.0.1:1/" } },
    { text: "here" },
  ]);
  const moved = await ask(server);
  assert.equal(moved.status, 307);
  assert.equal((await ask(server)).headers.get("location"), "http://127.0.0.1:1/");
  const target = new URL(moved.headers.get("location")!, server.url);
  const response = await fetch(target, { method: "POST", body: '{"messages":[]}' });
  assert.equal((await response.json()).choices[0].message.content, "here");
  await moved.body?.cancel();
});

Deno.test("raw bodies are sent byte for byte", async () => {
  const bytes = new Uint8Array([0xff, 0xfe, 0x0a, 0x64, 0xc3]);
  await using server = serve([
    { raw: "\ufeffdata: x\r\n\r\n" },
    { raw: ["data: {", '"a"}\n\n'] },
    { raw: { base64: btoa(String.fromCharCode(...bytes)) }, headers: { "content-type": "x/y" } },
  ]);
  const first = await ask(server);
  assert.equal(first.headers.get("content-type"), "text/event-stream");
  assert.equal(text([await first.bytes()]), "\ufeffdata: x\r\n\r\n");
  const { pieces } = await reads(await ask(server));
  assert.deepEqual(pieces.map((piece) => text([piece])), ["data: {", '"a"}\n\n']);
  const last = await ask(server);
  assert.equal(last.headers.get("content-type"), "x/y");
  assert.deepEqual(await last.bytes(), bytes);
});

Deno.test("split_bytes splits characters of several bytes", async () => {
  await using server = serve([{ text: "é世🌍", split_bytes: 1 }, { raw: "é世🌍", split_bytes: 2 }]);
  const { pieces } = await reads(await ask(server));
  assert.ok(pieces.every((piece) => piece.length === 1));
  assert.equal(deltas(events(text(pieces)))[0].content, "é世🌍");
  const raw = await reads(await ask(server));
  assert.deepEqual(raw.pieces.map((piece) => piece.length), [2, 2, 2, 2, 1]);
  assert.equal(text(raw.pieces), "é世🌍");
});

Deno.test("delays keep the content and its order", async () => {
  await using server = serve([{ text: "a b c", delay_ms: 1, chunk_delay_ms: 1 }]);
  const { pieces, broken } = await reads(await ask(server));
  assert.ok(!broken);
  assert.equal(pieces.length, 5);
  assert.equal(deltas(events(text(pieces))).map((delta) => delta.content ?? "").join(""), "a b c");
});

Deno.test("echo answers with a part of the request", async () => {
  const parts = ["last_user", "system", "messages", "tools", "headers", "body"] as const;
  await using server = serve(parts.map((echo) => ({ echo })));
  const messages = [{ role: "system", content: "be kind" }, { role: "user", content: "hello" }];
  const said = [];
  for (const _ of parts) {
    const response = await ask(server, { stream: false, messages, more: { tools: [1] } });
    said.push((await response.json()).choices[0].message.content);
  }
  assert.deepEqual(said.slice(0, 4), ["hello", "be kind", JSON.stringify(messages), "[1]"]);
  assert.equal(JSON.parse(said[4]!)["host"], new URL(server.url).host);
  assert.deepEqual(JSON.parse(said[5]!), { model: "m", stream: false, messages, tools: [1] });
});

Deno.test("an exhausted script is an error with a long Retry-After", async () => {
  await using server = serve([{ text: "only" }]);
  await (await ask(server)).text();
  const response = await ask(server);
  assert.equal(response.status, 500);
  assert.equal(response.headers.get("retry-after"), "86400");
  assert.deepEqual(await response.json(), {
    error: { message: "script exhausted: none left for request 2", type: "script_exhausted" },
  });
});

Deno.test("models: the demo's list, the script's list, or the script's reply", async () => {
  const models = async (script?: Script) => {
    await using server = serve(script);
    const response = await fetch(`${server.url}/models`);
    return [response.status, await response.json()];
  };
  const entry = (id: string) => ({ id, object: "model", created: 0, owned_by: "svc" });
  assert.deepEqual(await models(), [200, { object: "list", data: [entry("demo")] }]);
  assert.deepEqual(await models({ replies: [], models: ["a", "b"] }), [
    200,
    { object: "list", data: [entry("a"), entry("b")] },
  ]);
  assert.deepEqual(await models({ replies: [], models: { status: 401, body: { error: "key" } } }), [
    401,
    { error: "key" },
  ]);
});

Deno.test("other requests get a JSON 404, and no request breaks the server", async () => {
  await using server = serve([{ text: "still here" }]);
  const lost = await fetch(new URL("/v2/other?x=1", server.url));
  assert.equal(lost.status, 404);
  assert.equal((await lost.json()).error.message, "not found: GET /v2/other");
  const get = await fetch(`${server.url}/chat/completions`);
  assert.equal(get.status, 404);
  await get.body?.cancel();
  for (const body of ["", "no json", "[]", "null", '{"messages":{}}']) {
    const bad = await fetch(`${server.url}/chat/completions`, { method: "POST", body });
    assert.equal(bad.status, 400);
    assert.match(
      (await bad.json()).error.message,
      /^the body (is not JSON|has no "messages" list)$/,
    );
  }
  const odd = await ask(server, { messages: [null, 1, "x", { role: 5, content: { a: 1 } }] });
  assert.match(await odd.text(), /still /);
});

Deno.test("with record the latest requests are kept", async () => {
  const request = async (server: { url: string }, path: string) => {
    await (await fetch(server.url + path, { headers: { "x-test": path } })).body?.cancel();
  };
  await using silent = serve([]);
  await request(silent, "/a");
  assert.deepEqual(silent.requests, []);
  await using server = serve([{}], { record: 2 });
  for (const path of ["/a", "/b?c=d"]) await request(server, path);
  await (await ask(server)).text();
  const [first, second] = server.requests;
  assert.equal(server.requests.length, 2);
  assert.deepEqual([first!.method, first!.path, first!.headers["x-test"], first!.body], [
    "GET",
    "/v1/b?c=d",
    "/b?c=d",
    "",
  ]);
  assert.equal(second!.method, "POST");
  assert.deepEqual(second!.body, { model: "m", stream: true, messages: [] });
});

Deno.test("an answer waits for the promise of onRequest", async () => {
  const gate = Promise.withResolvers<void>();
  let open = false;
  await using server = serve([{ text: "a" }], { onRequest: () => gate.promise });
  const answer = ask(server).then((response) => {
    assert.ok(open);
    return response.text();
  });
  open = true;
  gate.resolve();
  assert.match(await answer, /"content":"a"/);
});

Deno.test("two hundred concurrent conversations get separate answers", async () => {
  const users = Array.from({ length: 200 }, (_, i) => `user ${i};`);
  await using server = serve({
    replies: users.flatMap((user) => [
      { when: { user }, text: `first for ${user}` },
      { when: { user }, text: `second for ${user}` },
    ]),
  });
  await Promise.all(users.map(async (user) => {
    const messages = [{ role: "user", content: user }];
    for (const turn of ["first", "second"]) {
      const response = await ask(server, { stream: false, messages });
      assert.equal((await response.json()).choices[0].message.content, `${turn} for ${user}`);
    }
  }));
});

Deno.test("without a script the rules answer, and count tokens", async () => {
  await using server = serve(undefined);
  const messages = [{ role: "user", content: "how many lines does README.md have?" }];
  const tools = [{ type: "function", function: { name: "file_read" } }];
  const list = events(await (await ask(server, { messages, more: { tools } })).text());
  const [call] = deltas(list)[0].tool_calls;
  assert.equal(call.function.name, "file_read");
  assert.deepEqual(JSON.parse(call.function.arguments), { path: "README.md", limit: 0 });
  const { prompt_tokens, completion_tokens, total_tokens } = list.at(-2).usage;
  const size = JSON.stringify({ model: "m", stream: true, messages, tools }).length;
  assert.equal(prompt_tokens, Math.ceil(size / 4));
  assert.ok(completion_tokens > 0);
  assert.equal(total_tokens, prompt_tokens + completion_tokens);
});
