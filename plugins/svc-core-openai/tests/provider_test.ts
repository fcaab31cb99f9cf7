import assert from "node:assert/strict";
import type { ChatMessage, ChatOptions } from "../../../src/plugins/api.ts";
import { detectProvider } from "../../../src/providers/resolve.ts";
import { call, startBackend } from "../../../tests/support/backend.ts";
import {
  data,
  eventsOf,
  head,
  json,
  providerOptions,
  WireServer,
} from "../../../tests/providers/support.ts";
import {
  reasoningOf,
  registryOf,
  requestOf,
  sentWithBlocks,
} from "../../../tests/providers/vendor.ts";
import * as plugin from "../src/plugin.ts";

const registry = registryOf(plugin);
const openai = registry.get("openai")!;

Deno.test("openai: defaults and host detection [4.10]", () => {
  assert.equal(openai.DEFAULT_BASE_URL, "https://api.openai.com/v1");
  assert.equal(openai.DEFAULT_MODEL, "gpt-4o-mini");
  assert.equal(openai.ECHO_REASONING, false);
  assert.equal(detectProvider("https://api.openai.com", { providers: registry }), "openai");
});

Deno.test("openai: reasoning is an effort, medium for on and auto, omitted for off [4.10]", async () => {
  assert.deepEqual(await reasoningOf(openai), {
    off: {},
    low: { reasoning_effort: "low" },
    medium: { reasoning_effort: "medium" },
    high: { reasoning_effort: "high" },
    on: { reasoning_effort: "medium" },
    auto: { reasoning_effort: "medium" },
  });
});

Deno.test("openai: with wire chat, blocks of the Responses protocol are left out [4.10]", async () => {
  assert.deepEqual(await sentWithBlocks(openai), { role: "assistant", content: "hi" });
});

Deno.test("openai: tool names are sent plain and restored in calls [4.10]", async () => {
  await using server = startBackend([call("docs_search", { query: "x" })]);
  const provider = new openai(providerOptions({ base_url: server.url }));
  const tools = [{
    type: "function" as const,
    function: {
      name: "docs.search",
      description: "",
      parameters: { type: "object" as const, properties: {} },
    },
  }];
  const events = await eventsOf(provider, { tools });
  assert.equal(server.chats[0].tools[0].function.name, "docs_search");
  const called = events.find((event) => event.type === "tool_calls");
  assert.equal(called?.tool_calls[0]?.function.name, "docs.search");
});

const native = { wire: "native" as const };

Deno.test("openai: with wire native the request stores nothing, asks for sealed reasoning and names the conversation [4.10]", async () => {
  const messages: ChatMessage[] = [
    { role: "system", content: "S" },
    { role: "user", content: "q" },
    { role: "system", content: "a note" },
  ];
  const { path, body } = await requestOf(openai, { ...native, reasoning: "high" }, messages);
  assert.equal(path, "/v1/responses");
  assert.match(body.prompt_cache_key, /^[0-9a-f]{32}$/);
  delete body.prompt_cache_key;
  assert.deepEqual(body, {
    model: "m1",
    instructions: "S",
    input: [
      { type: "message", role: "user", content: "q" },
      { type: "message", role: "system", content: "a note" },
    ],
    temperature: 0.5,
    max_output_tokens: 100,
    reasoning: { effort: "high", summary: "auto" },
    include: ["reasoning.encrypted_content"],
    store: false,
    stream: true,
  });
  const off = await requestOf(openai, { ...native, reasoning: "off", max_tokens: 0 });
  assert.deepEqual([off.body.reasoning, off.body.max_output_tokens], [undefined, undefined]);
});

/** The events of answers of the Responses protocol to equal requests, and the requests. */
async function ask(answers: (string | Record<string, unknown>[])[], options: ChatOptions = {}) {
  await using server = new WireServer(({ number, send }) => {
    const answer = answers[number - 1]!;
    return send(typeof answer === "string" ? answer : head() + data(...answer));
  });
  const provider = new openai(providerOptions({ base_url: server.url, ...native }));
  const events = await eventsOf(provider, options);
  return { events, provider, bodies: server.requests.map(({ body }) => JSON.parse(body)) };
}

const completed = (more = {}) => ({ type: "response.completed", response: more });

Deno.test("openai: models without reasoning, sealed reasoning or a temperature are asked without them [4.10]", async () => {
  const refused = (message: string) => json({ error: { message } }, 400);
  const { events, bodies } = await ask([
    refused("Encrypted content is not supported with this model."),
    refused("Unsupported parameter: 'reasoning.effort' is not supported with this model."),
    refused("Unsupported parameter: 'temperature' is not supported with this model."),
    [{ type: "response.output_text.delta", output_index: 0, delta: "hi" }, completed()],
  ]);
  assert.deepEqual(events, [
    { type: "token", content: "hi" },
    { type: "done", reason: "stop", usage: {} },
  ]);
  const { include, reasoning, temperature, store } = bodies.at(-1);
  assert.deepEqual([include, reasoning, temperature, store], [
    undefined,
    undefined,
    undefined,
    false,
  ]);
});

Deno.test("openai: models that are known to reason get no temperature, others known not to no reasoning [4.10]", async () => {
  const sent = async (model: string) => {
    const { body } = await requestOf(openai, { ...native, model });
    return ["temperature", "reasoning", "include"].filter((name) => name in body);
  };
  assert.deepEqual(await sent("gpt-5.1-codex"), ["reasoning", "include"]);
  assert.deepEqual(await sent("openai/o4-mini"), ["reasoning", "include"]);
  assert.deepEqual(await sent("gpt-4o-mini"), ["temperature"]);
  assert.deepEqual(await sent("my-model"), ["temperature", "reasoning", "include"]);
});

Deno.test("openai: an image of a result is a part of its output [4.10]", async () => {
  const images = [{ name: "a.png", media_type: "image/png", data: "AAAA" }];
  const messages: ChatMessage[] = [{ role: "tool", tool_call_id: "c", content: "seen", images }];
  const { body } = await requestOf(openai, native, messages);
  assert.deepEqual(body.input, [{
    type: "function_call_output",
    call_id: "c",
    output: [
      { type: "input_text", text: "seen" },
      { type: "input_image", image_url: "data:image/png;base64,AAAA" },
    ],
  }]);
});

Deno.test("openai: an answer format and tools have the form of the Responses protocol [4.10]", async () => {
  const parameters = { type: "object" as const, properties: {} };
  const { bodies: [body] } = await ask([[completed()]], {
    tools: [{ type: "function", function: { name: "a", description: "d", parameters } }],
    response_format: { type: "json_schema", json_schema: { name: "n", schema: {} } },
  });
  assert.deepEqual(body.tools, [
    { type: "function", name: "a", description: "d", parameters, strict: false },
  ]);
  assert.deepEqual(body.text, { format: { type: "json_schema", name: "n", schema: {} } });
});

Deno.test("openai: reasoning items, texts and calls are sent back in their order [4.10, 6.2]", async () => {
  const seal = (n: number) => (
    { type: "reasoning", id: `rs_${n}`, summary: [], encrypted_content: `e${n}` }
  );
  const done = (output_index: number, item: Record<string, unknown>) => (
    { type: "response.output_item.done", output_index, item }
  );
  const call = { type: "function_call", call_id: "c1", name: "a", arguments: '{"b":1}' };
  const { events, provider } = await ask([[
    { type: "response.output_item.added", output_index: 0, item: { type: "reasoning" } },
    { type: "response.reasoning_summary_part.added", output_index: 0 },
    { type: "response.reasoning_summary_text.delta", output_index: 0, delta: "one" },
    { type: "response.reasoning_summary_part.added", output_index: 0 },
    { type: "response.reasoning_summary_text.delta", output_index: 0, delta: "two" },
    done(0, seal(1)),
    { type: "response.output_text.delta", output_index: 1, delta: "Look:" },
    done(1, { type: "message", content: [{ type: "output_text", text: "Look:" }] }),
    done(2, seal(2)),
    done(3, { type: "reasoning", summary: [] }), // without its content it cannot be sent again
    { type: "response.output_item.added", output_index: 4, item: { ...call, arguments: "" } },
    { type: "response.function_call_arguments.delta", output_index: 4, delta: '{"b"' },
    { type: "response.function_call_arguments.delta", output_index: 4, delta: ":1}" },
    done(4, call),
    done(5, { ...call, call_id: "c2" }),
    completed({
      usage: {
        input_tokens: 10,
        output_tokens: 5,
        input_tokens_details: { cached_tokens: 4 },
        output_tokens_details: { reasoning_tokens: 3 },
      },
    }),
  ]]);
  const got = events.find((event) => event.type === "tool_calls")!;
  const thought = events.flatMap((event) => event.type === "thinking" ? [event.content] : []);
  assert.equal(thought.join(""), "one\n\ntwo");
  assert.deepEqual(events.at(-1), {
    type: "done",
    reason: "tool_calls",
    usage: { prompt_tokens: 10, completion_tokens: 5, cached_tokens: 4, reasoning_tokens: 3 },
  });
  const message: ChatMessage = { role: "assistant", content: "Look:", ...got };
  const results = ["c1", "c2"].map((tool_call_id): ChatMessage => (
    { role: "tool", tool_call_id, content: "r" }
  ));
  const { body } = await requestOf(openai, native, [message, ...results]);
  const item = (n: number) => ({ type: "reasoning", summary: [], encrypted_content: `e${n}` });
  assert.deepEqual(body.input, [
    item(1),
    { type: "message", role: "assistant", content: [{ type: "output_text", text: "Look:" }] },
    item(2),
    call,
    { ...call, call_id: "c2" },
    { type: "function_call_output", call_id: "c1", output: "r" },
    { type: "function_call_output", call_id: "c2", output: "r" },
  ]);
  assert.equal(provider.name, "acme");
});

Deno.test("openai: answers that are cut, filtered or fail end with the reason of svc [6.2, 7.2]", async () => {
  const incomplete = (reason: string) => [
    { type: "response.output_text.delta", output_index: 0, delta: "half" },
    { type: "response.incomplete", response: { incomplete_details: { reason } } },
  ];
  const ends = async (answer: Record<string, unknown>[]) => (await ask([answer])).events.at(-1);
  const cut = await ends(incomplete("max_output_tokens"));
  assert.equal(cut?.type === "done" && cut.reason, "length");
  const filtered = await ends(incomplete("content_filter"));
  assert.equal(filtered?.type === "done" && filtered.reason, "content_filter");
  const error = {
    code: "context_length_exceeded",
    message: "Your input exceeds the context window",
  };
  for (
    const failed of [
      { type: "response.failed", response: { error } },
      { type: "error", ...error },
      { error },
    ]
  ) {
    const event = await ends([failed]);
    assert.ok(event?.type === "error" && event.kind === "overflow", JSON.stringify(event));
  }
});

Deno.test("openai: a whole document of the Responses protocol is read like a stream [4.10]", async () => {
  const document = {
    object: "response",
    error: null,
    output: [
      { type: "reasoning", summary: [{ text: "hm" }], encrypted_content: "e" },
      { type: "message", content: [{ type: "output_text", text: "hello" }] },
      { type: "function_call", call_id: "c", name: "a", arguments: "{}" },
    ],
    usage: { input_tokens: 1, output_tokens: 2 },
  };
  const { events } = await ask([json(document)], { stream: false });
  assert.deepEqual(events.map(({ type }) => type), ["thinking", "token", "tool_calls", "done"]);
});
