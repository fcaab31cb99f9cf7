import assert from "node:assert/strict";
import type { ChatMessage, ProviderOptions, WireTool } from "../../src/plugins/api.ts";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import {
  calls,
  chunk,
  data,
  DONE,
  eventsOf,
  head,
  HELLO,
  json,
  providerOptions,
  TestClock,
  WireServer,
} from "./support.ts";

const TOOL: WireTool = {
  type: "function",
  function: { name: "t", description: "d", parameters: { type: "object", properties: {} } },
};

async function sentPayload(
  options: Partial<ProviderOptions>,
  chat: { tools?: WireTool[]; stream?: boolean } = {},
) {
  await using server = new WireServer((wire) => wire.send(HELLO));
  await eventsOf(
    new OpenAICompatibleProvider(providerOptions({ base_url: server.url, ...options })),
    chat,
  );
  return JSON.parse(server.requests[0]!.body);
}

Deno.test("the payload of a request has the fields of the specification and omits empty ones [2.13, 4.10]", async () => {
  assert.deepEqual(await sentPayload({}, { tools: [TOOL] }), {
    model: "m1",
    messages: [{ role: "user", content: "hi" }],
    temperature: 0.5,
    max_tokens: 100,
    tools: [TOOL],
    stream: true,
    stream_options: { include_usage: true },
  });
  assert.deepEqual(await sentPayload({ max_tokens: 0 }, { tools: [], stream: false }), {
    model: "m1",
    messages: [{ role: "user", content: "hi" }],
    temperature: 0.5,
    stream: false,
  });
});

Deno.test("without a mapping of reasoning the effort is passed through, and omitted for on and auto [4.10]", async () => {
  for (const reasoning of ["low", "medium", "high"] as const) {
    assert.equal((await sentPayload({ reasoning })).reasoning_effort, reasoning);
  }
  assert.equal((await sentPayload({ reasoning: "off" })).reasoning_effort, "none");
  for (const reasoning of ["on", "auto"] as const) {
    assert.equal("reasoning_effort" in await sentPayload({ reasoning }), false);
  }
});

Deno.test("requests carry user agent, content type and the key; no key, no header [4.10, 5.1, 7.4]", async () => {
  for (const api_key of ["sk-1", ""]) {
    await using server = new WireServer((wire) => wire.send(HELLO));
    const options = providerOptions({ base_url: `${server.url}/openai/v1/`, api_key });
    await eventsOf(new OpenAICompatibleProvider(options));
    const { method, path, headers } = server.requests[0]!;
    assert.equal(`${method} ${path}`, "POST /openai/v1/chat/completions");
    assert.equal(headers.get("user-agent"), "svc/9.9.9");
    assert.equal(headers.get("content-type"), "application/json");
    assert.equal(headers.get("authorization"), api_key === "" ? null : "Bearer sk-1");
  }
});

Deno.test("a deployment gets its key in the header api-key, and its query is kept", async () => {
  await using server = new WireServer((wire) => wire.send(HELLO));
  const base_url = `${server.url}/openai/deployments/mine?api-version=2024-10-21`;
  await eventsOf(new OpenAICompatibleProvider(providerOptions({ base_url })));
  const { path, headers } = server.requests[0]!;
  assert.equal(path, "/openai/deployments/mine/chat/completions?api-version=2024-10-21");
  assert.equal(headers.get("api-key"), "sk-very-secret-key");
  assert.equal(headers.has("authorization"), false);
});

Deno.test("a provider class changes defaults, headers, payload, reasoning and endpoint [1, 4.10]", async () => {
  await using server = new WireServer((wire) => wire.send(HELLO));
  class Vendor extends OpenAICompatibleProvider {
    static override readonly DEFAULT_BASE_URL = server.url;
    static override readonly DEFAULT_MODEL = "vendor-1";
    static override readonly ECHO_REASONING = true;
    protected override headers() {
      return { ...super.headers(), "x-session": this.session_id };
    }
    protected override reasoningParameters() {
      return { think: true };
    }
    protected override endpoint(path: string) {
      return `${this.base_url}/special${path}`;
    }
  }
  const provider = new Vendor(providerOptions({ base_url: "", model: "" }));
  assert.equal(provider.model, "vendor-1");
  assert.equal(provider.base_url, server.url);
  provider.session_id = "ses_2";
  const messages: ChatMessage[] = [{ role: "assistant", content: "a", reasoning_content: "t" }];
  await eventsOf(provider, {}, messages);
  const { path, headers, body } = server.requests[0]!;
  assert.equal(path, "/special/chat/completions");
  assert.equal(headers.get("x-session"), "ses_2");
  assert.equal(JSON.parse(body).think, true);
  assert.deepEqual(JSON.parse(body).messages, messages);
});

Deno.test("the session routes requests to a warm prompt cache, at backends that take it [4.10]", async () => {
  await using server = new WireServer((wire, { body }) =>
    wire.send(
      JSON.parse(body).model === "strict" && "prompt_cache_key" in JSON.parse(body)
        ? json({ error: { message: "Unknown parameter: prompt_cache_key" } }, 400)
        : HELLO,
    )
  );
  class Elsewhere extends OpenAICompatibleProvider {
    protected override endpoint(path: string) {
      return `${server.url}/v1${path}`;
    }
  }
  const sent = async (base_url: string, model = "m") => {
    const session_id = "ses 1";
    await eventsOf(new Elsewhere(providerOptions({ base_url, model, session_id })));
    const { headers, body } = server.requests.at(-1)!;
    const names = ["x-grok-conv-id", "x-session-id", "x-session-affinity"];
    return [JSON.parse(body).prompt_cache_key, ...names.map((name) => headers.get(name))];
  };
  const key = "ce7c403a253f452b4fc4cf5fbff9742a"; // a hash of the session's name
  assert.deepEqual(await sent("https://api.openai.com/v1"), [key, null, null, null]);
  assert.deepEqual(await sent("https://api.mistral.ai"), [key, null, null, null]);
  assert.deepEqual(await sent("https://api.x.ai/v1"), [undefined, key, null, null]);
  assert.deepEqual(await sent("https://openrouter.ai/api/v1"), [undefined, null, key, null]);
  assert.deepEqual(await sent("https://api.fireworks.ai/inference/v1"), [
    ...[undefined, null, null, key],
  ]);
  assert.deepEqual(await sent("https://api.cloudflare.com/client/v4/accounts/a/ai/v1"), [
    ...[undefined, null, null, key],
  ]);
  assert.deepEqual(await sent("http://localhost:8080"), [undefined, null, null, null]);
  assert.deepEqual(await sent("https://api.openai.com/v1", "strict"), [
    ...[undefined, null, null, null],
  ]);
});

Deno.test("a reply to an accepted request that breaks off is told with what arrived of it [7.2]", async () => {
  await using server = new WireServer(async (wire, { body }) => {
    const { model, stream } = JSON.parse(body);
    if (model === "refused") return await wire.send(json({ error: { message: "no" } }, 400));
    if (model === "none") return; // no answer at all
    await wire.send(head(200, stream ? {} : { "content-type": "application/json" }));
    if (model === "some") await wire.send(data({ choices: [{ delta: { content: "four" } }] }));
    if (model === "counted") await wire.send(data({ choices: [], usage: { prompt_tokens: 1 } }));
  });
  const cuts = async (model: string, stream = true) => {
    const told: number[] = [];
    const provider = new OpenAICompatibleProvider(
      providerOptions({ base_url: server.url, model, retry_budget: 0 }),
    );
    const options = { cut: (arrived: number) => void told.push(arrived) };
    const messages = [{ role: "user" as const, content: "hi" }];
    if (stream) { for await (const _ of provider.chat(messages, options)); }
    else await assert.rejects(provider.chat_nonstreaming(messages, options));
    return told;
  };
  assert.deepEqual(await cuts("some"), [4]);
  assert.deepEqual(await cuts("empty"), [0]);
  assert.deepEqual(await cuts("empty", false), [0]);
  for (const model of ["refused", "none", "counted"]) {
    assert.deepEqual(await cuts(model), [], model);
  }
});

Deno.test("earlier reasoning is not echoed by default [4.10]", async () => {
  await using server = new WireServer((wire) => wire.send(HELLO));
  const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
  assert.equal(provider.echo_reasoning, false);
  const message: ChatMessage = { role: "assistant", content: "a", reasoning_content: "t" };
  await eventsOf(provider, {}, [message]);
  assert.deepEqual(JSON.parse(server.requests[0]!.body).messages, [{
    role: "assistant",
    content: "a",
  }]);
  assert.equal(message.reasoning_content, "t");
});

Deno.test("a rejected parameter is not sent again", async () => {
  await using server = new WireServer((wire, { body }) => {
    const { reasoning_effort, stream_options } = JSON.parse(body);
    if (stream_options) return wire.send(json({ error: "stream_options?" }, 400));
    if (reasoning_effort) return wire.send(json({ error: "no reasoning_effort here" }, 422));
    return wire.send(HELLO);
  });
  const options = providerOptions({ base_url: server.url, reasoning: "high" });
  const provider = new OpenAICompatibleProvider(options);
  for (let i = 0; i < 2; i++) assert.equal((await eventsOf(provider)).at(-1)?.type, "done");
  assert.equal(server.requests.length, 4);
});

Deno.test("a rejected parameter is found in a validation error, and in one behind a gateway", async () => {
  const detail = [{ loc: ["body", "stream_options"], msg: "Extra inputs are not permitted" }];
  const raw = JSON.stringify({ error: { message: "Unknown field: stream_options" } });
  const message = "Provider returned error";
  for (const refusal of [{ detail }, { error: { message, code: 400, metadata: { raw } } }]) {
    await using server = new WireServer((wire, { body }) =>
      wire.send("stream_options" in JSON.parse(body) ? json(refusal, 422) : HELLO)
    );
    const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
    assert.equal((await eventsOf(provider)).at(-1)?.type, "done");
  }
});

Deno.test("a backend that rejects a tool name gets plain names, in the retry and later", async () => {
  const dotted = { ...TOOL, function: { ...TOOL.function, name: "docs.search" } };
  for (
    const [message, requests] of [
      ["Invalid 'tools[0].function.name': string does not match pattern '^[a-zA-Z0-9_-]+$'.", 3],
      ["tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", 3],
      ["Function name was docs.search but must be a-z, A-Z, 0-9, or contain underscores", 3],
      ["no such model name", 2],
    ] as const
  ) {
    const call = { index: 0, id: "c", function: { name: "docs_search", arguments: "{}" } };
    const answer = head() + data(calls(call), chunk({}, "tool_calls"), DONE);
    await using server = new WireServer((wire, { body }) =>
      wire.send(
        body.includes("docs.search") ? json({ error: { message } }, 400) : answer,
      )
    );
    const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
    for (let i = 0; i < 2; i++) {
      const events = await eventsOf(provider, { tools: [dotted] });
      const called = events.flatMap((event) =>
        event.type === "tool_calls" ? event.tool_calls.map((each) => each.function.name) : []
      );
      assert.deepEqual(called, requests === 3 ? ["docs.search"] : []);
    }
    assert.equal(server.requests.length, requests);
  }
});

Deno.test("a temperature out of range is reported, an unsupported one is omitted", async () => {
  for (
    const [message, requests] of [
      ["temperature must be below 2", 1],
      ["'temperature' does not support 0.5 with this model", 2],
      ["Unsupported parameter: temperature", 2],
      ["invalid temperature: only 1 is allowed for this model", 2],
      ["`temperature` may only be set to 1 when thinking is enabled", 2],
      ["Unrecognized request argument supplied: temperature", 2],
    ] as const
  ) {
    await using server = new WireServer((wire, { body }) =>
      wire.send("temperature" in JSON.parse(body) ? json({ error: { message } }, 400) : HELLO)
    );
    const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
    const { type } = (await eventsOf(provider)).at(-1)!;
    assert.equal(type, requests === 1 ? "error" : "done");
    assert.equal(server.requests.length, requests);
  }
});

Deno.test("a redirect keeps the POST request and drops credentials at another origin [4.10, 5.1]", async () => {
  for (const status of [307, 308, 302]) {
    await using other = new WireServer((wire) => wire.send(HELLO));
    await using server = new WireServer((wire) =>
      wire.send(head(status, { location: `${other.url}/there`, "content-length": "0" }))
    );
    class Vendor extends OpenAICompatibleProvider {
      protected override headers() {
        return { ...super.headers(), "x-api-key": "sk-very-secret-key", "x-session": "s" };
      }
    }
    const provider = new Vendor(providerOptions({ base_url: server.url }));
    assert.equal((await eventsOf(provider)).at(-1)?.type, "done");
    const { method, path, headers, body } = other.requests[0]!;
    assert.equal(`${method} ${path}`, "POST /there");
    assert.equal(body, server.requests[0]!.body);
    assert.equal(headers.get("user-agent"), "svc/9.9.9");
    assert.equal(JSON.stringify([...headers]).includes("secret"), false);
    assert.equal(headers.has("x-session"), false);
  }
});

Deno.test("a refused connection, an unknown host and a failed handshake are one sentence each", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  const quiet = { hostname: "127.0.0.1", port: 0, onListen: () => {} };
  await using plain = Deno.serve(quiet, () => new Response("plain HTTP"));
  const cases: [string, RegExp][] = [
    [`http://127.0.0.1:${port}`, /^acme refused the connection to 127\.0\.0\.1:\d+\. Is a server/],
    ["http://nowhere.invalid", /^The host nowhere\.invalid of acme was not found\. Check the base/],
    [`https://127.0.0.1:${plain.addr.port}`, /^No secure connection to 127\.0\.0\.1:\d+ of acme/],
    ["localhost:8080", /^The base URL "localhost:8080" is no web address\. Write it with its/],
  ];
  for (const [base_url, message] of cases) {
    const options = providerOptions({ base_url, retry_budget: 0 });
    const events = await eventsOf(new OpenAICompatibleProvider(options));
    assert.equal(events.length, 1);
    const [event] = events;
    assert(event?.type === "error" && event.code === 0);
    assert.match(event.message, message);
    assert.doesNotMatch(event.message, /secret|\n|os error|TypeError/);
  }
});

Deno.test("the error for a key that no header can hold does not contain the key", async () => {
  for (const api_key of ["sk-sec\nret", "sk-secret-→"]) {
    const provider = new OpenAICompatibleProvider(providerOptions({ api_key }));
    assert.deepEqual(await eventsOf(provider), [{
      type: "error",
      code: 0,
      message:
        "The key stored for acme holds characters that cannot be sent. Store it again with " +
        "`svc connect acme`",
      kind: "permanent",
    }]);
  }
});

Deno.test("an aborted signal ends the request and its pauses with the signal's reason", async () => {
  const reason = new Error("stop it");
  const gone = Promise.withResolvers<void>();
  await using server = new WireServer(async (wire) => {
    if (wire.number === 1) {
      await wire.send(head(), data(chunk({ content: "a" })));
      await wire.gone();
      return gone.resolve();
    }
    await wire.send(json({}, 429, { "retry-after": "5" }));
  });
  const provider = new OpenAICompatibleProvider(
    providerOptions({ base_url: server.url }),
    new TestClock(),
  );
  for (const awaited of ["token", "wait"]) {
    const controller = new AbortController();
    const stream = provider.chat([], { signal: controller.signal });
    assert.equal((await stream.next()).value?.type, awaited);
    const next = stream.next();
    controller.abort(reason);
    await assert.rejects(next, reason);
  }
  await gone.promise;
  await assert.rejects(provider.chat([], { signal: AbortSignal.abort(reason) }).next(), reason);
  await assert.rejects(provider.list_models(AbortSignal.abort(reason)), reason);
  await assert.rejects(provider.check_connection(AbortSignal.abort(reason)), reason);
  assert.equal(server.requests.length, 2);
});

Deno.test("a stream that is not read further closes its connection", async () => {
  const gone = Promise.withResolvers<void>();
  await using server = new WireServer(async (wire) => {
    await wire.send(head(), data(chunk({ content: "a" })));
    await wire.gone();
    gone.resolve();
  });
  const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
  for await (const _ of provider.chat([])) break;
  await gone.promise;
});

Deno.test("a stream that is read to its end leaves the connection open for the next request", async () => {
  const ports = new Set<number>();
  const body = data(chunk({ content: "a" }, "stop"), "[DONE]");
  await using server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, onListen: () => {} },
    (_, { remoteAddr }) => {
      ports.add(remoteAddr.port);
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    },
  );
  const base_url = `http://127.0.0.1:${server.addr.port}`;
  const provider = new OpenAICompatibleProvider(providerOptions({ base_url }));
  for (let i = 0; i < 3; i++) assert.equal((await eventsOf(provider)).length, 2);
  assert.equal(ports.size, 1);
});

Deno.test("chat_nonstreaming returns one text, without streaming [4.10]", async () => {
  const message = { content: "short", reasoning_content: "because" };
  await using server = new WireServer((wire) =>
    wire.send(json({ choices: [{ message, finish_reason: "stop" }] }))
  );
  const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
  assert.equal(await provider.chat_nonstreaming([{ role: "user", content: "q" }]), "short");
  assert.equal(JSON.parse(server.requests[0]!.body).stream, false);
});

Deno.test("chat_nonstreaming throws one sentence for a failed or missing answer", async () => {
  const answers: [string, object][] = [
    [json({ error: "bad" }, 400), {
      code: "backend",
      status: 400,
      message: "acme rejected the request (400): bad.",
    }],
    [head(200, { "content-length": "0" }), { message: "acme sent no complete answer." }],
  ];
  for (const [answer, expected] of answers) {
    await using server = new WireServer((wire) => wire.send(answer));
    const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
    await assert.rejects(provider.chat_nonstreaming([]), expected);
  }
});

Deno.test("models are listed from GET <base>/v1/models, in either shape [4.10]", async () => {
  const list = [{ id: "a" }, { id: "b\x1b[31m" }, { name: "no id" }, null];
  for (const body of [{ object: "list", data: list }, list]) {
    await using server = new WireServer((wire) => wire.send(json(body)));
    const provider = new OpenAICompatibleProvider(
      providerOptions({ base_url: `${server.url}/v1` }),
    );
    assert.deepEqual(await provider.list_models(), ["a", "b"]);
    const { method, path, headers } = server.requests[0]!;
    assert.equal(`${method} ${path}`, "GET /v1/models");
    assert.equal(headers.get("authorization"), "Bearer sk-very-secret-key");
  }
});

Deno.test("check_connection returns a message, and does not wait for a busy backend [4.10]", async () => {
  const probes: [string, boolean, string][] = [
    [json({ data: [{ id: "a" }] }), true, "1 model on offer"],
    [json({ data: [] }), true, "0 models on offer"],
    [json({ error: { message: "bad key" } }, 401), false, "acme refused the key (401): bad key."],
    [json({}, 503), false, "acme failed (503)."],
    [head() + "<html>", false, "acme answered, but not with a list of models."],
    ["", false, "The connection to acme broke off."],
  ];
  for (const [answer, ok, message] of probes) {
    await using server = new WireServer((wire) => wire.send(answer));
    const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
    assert.deepEqual(await provider.check_connection(), { ok, message });
    assert.equal(server.requests.length, 1);
  }
});

Deno.test("the hint for another address of a vendor names the address, not the vendor", async () => {
  class Vendor extends OpenAICompatibleProvider {
    static override readonly DEFAULT_BASE_URL = "https://vendor.invalid/v1";
  }
  await using server = new WireServer((wire) => wire.send(json({}, 401)));
  const options = providerOptions({ base_url: server.url, api_key: "" });
  for (
    const provider of [
      new Vendor(options),
      new OpenAICompatibleProvider({ ...options, name: "generic-compatible" }),
    ]
  ) {
    const [event] = await eventsOf(provider);
    assert(event?.type === "error");
    assert(event.message.endsWith(`Store one with \`svc connect ${server.url}\``), event.message);
  }
});

Deno.test("a large request is made in pieces, with the bytes that it has when it is made at once", async () => {
  const messages: ChatMessage[] = [];
  for (let i = 0; i < 6; i++) {
    const call = { name: "t", arguments: JSON.stringify({ text: "é\n".repeat(150_000) }) };
    const tool_calls = [{ id: `c${i}`, type: "function" as const, function: call }];
    messages.push({ role: "assistant", content: null, tool_calls });
    messages.push({ role: "tool", tool_call_id: `c${i}`, content: '"😀" '.repeat(200_000) });
  }
  const bodies: string[] = [];
  const answer = data(chunk({ content: "hi" }, "stop"), DONE);
  await using server = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, async (it) => {
    assert.equal(it.headers.get("transfer-encoding"), null); // some backends take no chunks
    bodies.push(await it.text());
    return new Response(answer, { headers: { "content-type": "text/event-stream" } });
  });
  const base_url = `http://127.0.0.1:${server.addr.port}`;
  let pieces = 0;
  const pace = { turn: () => Promise.resolve(void pieces++) };
  for (const paced of [{}, { pace }]) {
    const options = { base_url, ...paced };
    const provider = new OpenAICompatibleProvider(providerOptions(options));
    for await (const event of provider.chat(messages)) assert.notEqual(event.type, "error");
  }
  assert.ok(bodies[0] === bodies[1] && bodies.length === 2);
  assert.ok(pieces > 10, `${pieces} pieces`);
});
