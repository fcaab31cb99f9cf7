import assert from "node:assert/strict";
import {
  call,
  calls,
  cut,
  empty,
  hang,
  httpError,
  raw,
  say,
  startBackend,
  type TestBackend,
  think,
  usage,
} from "./backend.ts";

function ask(backend: TestBackend, content = "hi", signal?: AbortSignal): Promise<Response> {
  const messages = [{ role: "user", content }];
  return fetch(`${backend.url}/chat/completions`, {
    method: "POST",
    body: JSON.stringify({ messages }),
    signal,
  });
}

// deno-lint-ignore no-explicit-any
async function choice(backend: TestBackend): Promise<any> {
  return (await (await ask(backend)).json()).choices[0];
}

Deno.test("the builders make what their names say", async () => {
  const bytes = new Uint8Array([0xff, 0x00]);
  await using backend = startBackend([
    say("a", { finish: "length" }),
    think("why", say("b")),
    call("file_read", { path: "x" }),
    calls([["a", {}], ["b", "{raw"]], { text: "both" }),
    empty(),
    say("c", usage(3, 4)),
    httpError(429, "slow", { "retry-after": "1" }),
    raw(bytes),
  ]);
  assert.equal((await choice(backend)).finish_reason, "length");
  const { message } = await choice(backend);
  assert.deepEqual([message.reasoning_content, message.content], ["why", "b"]);
  const one = await choice(backend);
  assert.deepEqual(one.message.tool_calls[0].function, {
    name: "file_read",
    arguments: '{"path":"x"}',
  });
  const both = await choice(backend);
  assert.equal(both.message.content, "both");
  assert.deepEqual(
    // deno-lint-ignore no-explicit-any
    both.message.tool_calls.map((each: any) => each.function.arguments),
    ["{}", "{raw"],
  );
  assert.equal((await choice(backend)).message.content, null);
  assert.deepEqual((await (await ask(backend)).json()).usage, {
    prompt_tokens: 3,
    completion_tokens: 4,
    total_tokens: 7,
  });
  const limited = await ask(backend);
  assert.deepEqual([limited.status, limited.headers.get("retry-after"), await limited.text()], [
    429,
    "1",
    "slow",
  ]);
  assert.deepEqual(await (await ask(backend)).bytes(), bytes);
});

Deno.test("requests and their bodies are remembered, in order", async () => {
  await using backend = startBackend({ replies: [{ repeat: 2 }] });
  await (await ask(backend, "one")).text();
  await (await fetch(`${backend.url}/models`)).text();
  await (await ask(backend, "two")).text();
  assert.deepEqual(backend.requests.map((request) => request.path), [
    "/v1/chat/completions",
    "/v1/models",
    "/v1/chat/completions",
  ]);
  assert.deepEqual(backend.chats.map((body) => body.messages[0].content), ["one", "two"]);
});

Deno.test("a test can wait for a request, and for the client to leave", async () => {
  await using backend = startBackend([hang(), hang("part")]);
  for (const n of [1, 2]) {
    const client = new AbortController();
    const answer = ask(backend, "hi", client.signal).then((response) => response.text());
    const request = await backend.arrived(n);
    client.abort();
    await assert.rejects(answer, { name: "AbortError" });
    if (n === 1) await request.gone;
  }
});

Deno.test("cut answers break off", async () => {
  await using backend = startBackend([cut("a"), cut(["a", "b"], 0)]);
  for (let i = 0; i < 2; i++) {
    const response = await ask(backend);
    await assert.rejects(response.text());
  }
});
