import assert from "node:assert/strict";
import type {
  ChatMessage,
  ChatOptions,
  ProviderOptions,
  WireTool,
  WireToolCall,
} from "../../../src/plugins/api.ts";
import { detectProvider } from "../../../src/providers/resolve.ts";
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
const anthropic = registry.get("anthropic")!;

Deno.test("anthropic: defaults and host detection [4.10]", () => {
  assert.equal(anthropic.DEFAULT_BASE_URL, "https://api.anthropic.com/v1");
  assert.equal(anthropic.DEFAULT_MODEL, "claude-sonnet-4-20250514");
  assert.equal(anthropic.ECHO_REASONING, false);
  assert.equal(detectProvider("https://api.anthropic.com", { providers: registry }), "anthropic");
});

Deno.test("anthropic: the key is in x-api-key and in authorization, with a version header [5.1]", async () => {
  const { headers } = await requestOf(anthropic, { api_key: "sk-ant" });
  assert.equal(headers.get("x-api-key"), "sk-ant");
  assert.equal(headers.get("authorization"), "Bearer sk-ant");
  assert.equal(headers.get("anthropic-version"), "2023-06-01");
  assert.equal((await requestOf(anthropic, { api_key: "" })).headers.has("x-api-key"), false);
});

Deno.test("anthropic: reasoning is a token budget [4.10]", async () => {
  const budget = (budget_tokens: number) => ({ thinking: { type: "enabled", budget_tokens } });
  assert.deepEqual(await reasoningOf(anthropic), {
    off: { thinking: { type: "disabled" } },
    low: budget(1024),
    medium: budget(2048),
    high: budget(4096),
    on: budget(2048),
    auto: budget(2048),
  });
});

Deno.test("anthropic: with wire chat, temperature and max_tokens are limited to the accepted values [4.10]", async () => {
  const sent = async (options: Partial<ProviderOptions>) => {
    const { path, body } = await requestOf(anthropic, { ...options, wire: "chat" });
    assert.equal(path, "/v1/chat/completions");
    return [body.temperature, body.max_tokens];
  };
  assert.deepEqual(await sent({ reasoning: "off", temperature: 0.3, max_tokens: 50 }), [0.3, 50]);
  assert.deepEqual(await sent({ reasoning: "off", temperature: 1.7, max_tokens: 50 }), [1, 50]);
  assert.deepEqual(await sent({ reasoning: "on", max_tokens: 8192 }), [1, 8192]);
  assert.deepEqual(await sent({ reasoning: "on", max_tokens: 2048 }), [1, 4096]);
  assert.deepEqual(await sent({ reasoning: "on", max_tokens: 0 }), [1, undefined]);
});

Deno.test("anthropic: with wire chat, blocks of the Messages protocol are left out [4.10]", async () => {
  assert.deepEqual(await sentWithBlocks(anthropic), { role: "assistant", content: "hi" });
});

Deno.test("anthropic: max_tokens is always sent, and a temperature only without thinking [4.10]", async () => {
  const sent = async (options: Partial<ProviderOptions>) => {
    const { path, body } = await requestOf(anthropic, options);
    assert.equal(path, "/v1/messages");
    return [body.temperature, body.max_tokens];
  };
  assert.deepEqual(await sent({ reasoning: "off", temperature: 1.7, max_tokens: 50 }), [1, 50]);
  assert.deepEqual(await sent({ reasoning: "on", max_tokens: 2048 }), [undefined, 4096]);
  assert.deepEqual(await sent({ reasoning: "on", max_tokens: 0 }), [undefined, 8192]);
});

Deno.test("anthropic: models from 4.6 on think as they see fit, with an effort [4.10]", async () => {
  const models: [model: string, adaptive: boolean][] = [
    ["claude-sonnet-4-20250514", false],
    ["claude-3-7-sonnet-20250219", false],
    ["claude-opus-4-1", false],
    ["claude-opus-4-6", true],
    ["claude-sonnet-5", true],
    ["anthropic/claude-opus-4.7", true],
  ];
  for (const [model, adaptive] of models) {
    const { body } = await requestOf(anthropic, { model, reasoning: "high" });
    assert.equal(body.thinking.type, adaptive ? "adaptive" : "enabled", model);
    assert.equal(body.output_config?.effort, adaptive ? "high" : undefined);
  }
});

const tool = (name: string): WireTool => ({
  type: "function",
  function: { name, description: "d", parameters: { type: "object", properties: {} } },
});
const called = (id: string, name = "m.t"): WireToolCall => ({
  id,
  type: "function",
  function: { name, arguments: '{"a": 1}' },
});

/** The events of an answer, and the requests. */
async function ask(
  answers: Record<string, unknown>[][],
  messages: ChatMessage[],
  options: ChatOptions & Partial<ProviderOptions> = {},
) {
  await using server = new WireServer(({ number, send }) =>
    send(head() + answers[number - 1]!.map((each) => data(each)).join(""))
  );
  const provider = new anthropic(providerOptions({ base_url: server.url, ...options }));
  const events = await eventsOf(provider, options, messages);
  return { events, bodies: server.requests.map(({ body }) => JSON.parse(body)) };
}

const start = (usage = {}) => ({ type: "message_start", message: { usage } });
const block = (index: number, content_block: unknown, ...deltas: unknown[]) => [
  { type: "content_block_start", index, content_block },
  ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
  { type: "content_block_stop", index },
];
const end = (stop_reason: string, usage = {}) => [
  { type: "message_delta", delta: { stop_reason }, usage },
  { type: "message_stop" },
];

const CACHED = { cache_control: { type: "ephemeral" } };

Deno.test("anthropic: tools, the system prompt, the last message and the one that the request before ended with are marked for the cache [4.10]", async () => {
  const messages: ChatMessage[] = [
    { role: "system", content: "S" },
    { role: "user", content: "one" },
    { role: "assistant", content: "Reading.", tool_calls: [called("t:1"), called("t2")] },
    { role: "tool", tool_call_id: "t:1", content: "r1" },
    { role: "tool", tool_call_id: "t2", content: "" },
    { role: "assistant", content: "Done." },
    { role: "system", content: "a note" },
    { role: "user", content: "two" },
  ];
  const { bodies: [body] } = await ask([end("end_turn")], messages, {
    tools: [tool("a"), tool("m.t")],
  });
  const schema = { description: "d", input_schema: { type: "object", properties: {} } };
  const text = (text: string, more = {}) => ({ type: "text", text, ...more });
  const use = (id: string) => ({ type: "tool_use", id, name: "m_t", input: { a: 1 } });
  const result = (tool_use_id: string, content: string, more = {}) => (
    { type: "tool_result", tool_use_id, content, ...more }
  );
  assert.deepEqual(body.tools, [{ name: "a", ...schema }, { name: "m_t", ...schema, ...CACHED }]);
  assert.deepEqual(body.system, [text("S", CACHED)]);
  assert.deepEqual(body.messages, [
    { role: "user", content: [text("one")] },
    { role: "assistant", content: [text("Reading."), use("t_1"), use("t2")] },
    { role: "user", content: [result("t_1", "r1"), result("t2", "", CACHED)] },
    { role: "assistant", content: [text("Done.")] },
    { role: "user", content: [text("a note"), text("two", CACHED)] },
  ]);
  assert.equal(JSON.stringify(body).match(/cache_control/g)!.length, 4);
});

Deno.test("anthropic: an image of a result is a part of its content [4.10]", async () => {
  const images = [{ name: "a.png", media_type: "image/png", data: "AAAA" }];
  const { bodies: [body] } = await ask([end("end_turn")], [
    { role: "tool", tool_call_id: "c", content: "seen", images },
  ]);
  assert.deepEqual(body.messages[0].content[0].content, [
    { type: "text", text: "seen" },
    { type: "image", source: { type: "base64", media_type: "image/png", data: "AAAA" } },
  ]);
});

Deno.test("anthropic: blocks of thinking are sent back where they stood, redacted ones too [4.10, 6.2]", async () => {
  const answer = [
    start(),
    ...block(0, { type: "thinking", thinking: "" }, { type: "thinking_delta", thinking: "hm" }, {
      type: "signature_delta",
      signature: "s1",
    }),
    ...block(1, { type: "redacted_thinking", data: "x" }),
    ...block(2, { type: "text", text: "" }, { type: "text_delta", text: "Look:" }),
    ...block(3, { type: "thinking", thinking: "so", signature: "s2" }),
    ...block(4, { type: "tool_use", id: "t1", name: "a", input: {} }, {
      type: "input_json_delta",
      partial_json: '{"b"',
    }, { type: "input_json_delta", partial_json: ": 2}" }),
    ...block(5, { type: "tool_use", id: "t2", name: "a", input: {} }),
    { type: "ping" },
    ...end("tool_use", { output_tokens: 7 }),
  ];
  const asked: ChatMessage = { role: "user", content: "q" };
  const { events } = await ask([answer], [asked]);
  const got = events.find((event) => event.type === "tool_calls")!;
  assert.deepEqual(got.tool_calls.map((call) => [call.id, call.function.arguments]), [
    ["t1", '{"b": 2}'],
    ["t2", ""],
  ]);
  const message: ChatMessage = {
    role: "assistant",
    content: "Look:",
    reasoning_content: "hmso",
    reasoning_details: got.reasoning_details,
    tool_calls: [got.tool_calls[0]!, called("t2", "a")],
  };
  const results = ["t1", "t2"].map((tool_call_id): ChatMessage => (
    { role: "tool", tool_call_id, content: "r" }
  ));
  const { bodies: [body] } = await ask([end("end_turn")], [asked, message, ...results]);
  assert.deepEqual(body.messages[1].content, [
    { type: "thinking", thinking: "hm", signature: "s1" },
    { type: "redacted_thinking", data: "x" },
    { type: "text", text: "Look:" },
    { type: "thinking", thinking: "so", signature: "s2" },
    { type: "tool_use", id: "t1", name: "a", input: { b: 2 } },
    { type: "tool_use", id: "t2", name: "a", input: { a: 1 } },
  ]);
  assert.equal(body.thinking.type, "enabled");
  const { reasoning_details: _, ...foreign } = message;
  const { bodies: [other] } = await ask([end("end_turn")], [asked, foreign, ...results]);
  assert.equal(other.thinking, undefined); // a turn that began without thinking cannot go on with it
  assert.equal(other.temperature, 0.5);
});

Deno.test("anthropic: stop reasons and token counts have the names of svc [6.2]", async () => {
  const usage = { input_tokens: 5, cache_read_input_tokens: 900, cache_creation_input_tokens: 95 };
  const reasons = {
    end_turn: "stop",
    stop_sequence: "stop",
    max_tokens: "length",
    model_context_window_exceeded: "length",
    refusal: "content_filter",
    new_reason: "new_reason",
  };
  for (const [stop_reason, reason] of Object.entries(reasons)) {
    const { events } = await ask([[
      start({ ...usage, output_tokens: 1 }),
      ...end(stop_reason, { output_tokens: 7 }),
    ]], [{ role: "user", content: "q" }]);
    assert.deepEqual(events, [{
      type: "done",
      reason,
      usage: {
        prompt_tokens: 1000,
        completion_tokens: 7,
        cached_tokens: 900,
        cache_write_tokens: 95,
      },
    }]);
  }
  const { events } = await ask([[start(usage)]], [{ role: "user", content: "q" }]);
  assert.deepEqual(events.at(-1), { type: "done", reason: "eof", usage: {} });
});

Deno.test("anthropic: a whole document is read like a stream [4.10]", async () => {
  const content = [
    { type: "thinking", thinking: "hm", signature: "s" },
    { type: "text", text: "hello" },
    { type: "tool_use", id: "t", name: "a", input: { b: 1 } },
  ];
  await using server = new WireServer(({ send }) =>
    send(json({ type: "message", content, stop_reason: "tool_use", usage: { output_tokens: 3 } }))
  );
  const provider = new anthropic(providerOptions({ base_url: server.url }));
  const events = await eventsOf(provider, { stream: false });
  assert.deepEqual(events.map(({ type }) => type), ["thinking", "token", "tool_calls", "done"]);
  assert.deepEqual(events[2]?.type === "tool_calls" && events[2].reasoning_details, [content[0]]);
  assert.equal(await provider.chat_nonstreaming([{ role: "user", content: "q" }]), "hello");
});

Deno.test("anthropic: a model that does not think is asked without it, also by a gateway in other words [4.10]", async () => {
  const refusals = [
    "thinking: this model does not support thinking",
    "together_ai does not support parameters: ['reasoning_effort']",
  ];
  for (const message of refusals) {
    await using server = new WireServer(({ number, send }) =>
      send(number === 1 ? json({ error: { message } }, 400) : head() + data(...end("end_turn")))
    );
    const provider = new anthropic(providerOptions({ base_url: server.url }));
    assert.equal((await eventsOf(provider)).at(-1)?.type, "done");
    assert.equal(JSON.parse(server.requests[1]!.body).thinking, undefined);
  }
});
