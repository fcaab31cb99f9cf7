import assert from "node:assert/strict";
import type { ChatMessage, WireTool } from "../../src/plugins/api.ts";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { SchemaKeywords } from "../../src/providers/quirks.ts";
import { eventsOf, HELLO, json, providerOptions, WireServer } from "./support.ts";

const CALL = { id: "c1", type: "function" as const, function: { name: "n", arguments: "{}" } };
const TALK: ChatMessage[] = [
  { role: "system", content: "be brief" },
  { role: "user", content: "one" },
  { role: "assistant", content: null, reasoning_content: "hm", tool_calls: [CALL] },
  { role: "tool", tool_call_id: "c1", content: "result" },
  { role: "user", content: "two" },
  { role: "assistant", content: "yes" },
  { role: "assistant", content: "and no" },
  { role: "system", content: "a note" },
  { role: "user", content: "three" },
];

class Echoing extends OpenAICompatibleProvider {
  static override readonly ECHO_REASONING = true;
}

/** The messages that a backend gets which rejects a request until `takes` holds. */
async function taken(
  cls: typeof OpenAICompatibleProvider,
  [status, message]: [status: number, message: string],
  takes: (messages: ChatMessage[]) => boolean,
): Promise<ChatMessage[]> {
  await using server = new WireServer((wire, { body }) =>
    wire.send(takes(JSON.parse(body).messages) ? HELLO : json({ error: { message } }, status))
  );
  const provider = new cls(providerOptions({ base_url: server.url }));
  for (let i = 0; i < 2; i++) {
    assert.equal((await eventsOf(provider, {}, TALK)).at(-1)?.type, "done", message);
  }
  assert.equal(server.requests.length, 3);
  return JSON.parse(server.requests[2]!.body).messages;
}

Deno.test("a backend that requires earlier reasoning gets it with every answer, also later", async () => {
  for (
    const message of [
      "The `reasoning_content` in the thinking mode must be passed back to the API.",
      "Missing `reasoning_content` field in the assistant message at message index 2.",
    ]
  ) {
    const messages = await taken(
      OpenAICompatibleProvider,
      [400, message],
      (messages) =>
        messages.every(({ role, content, reasoning_content }) =>
          role !== "assistant" || (content !== null && reasoning_content !== undefined)
        ),
    );
    assert.deepEqual(messages.map((each) => each.reasoning_content), [
      undefined,
      undefined,
      "hm",
      undefined,
      undefined,
      "",
      "",
      undefined,
      undefined,
    ]);
  }
});

Deno.test("a backend that rejects reasoning gets none", async () => {
  for (
    const [status, message] of [
      [400, "property 'messages.2.assistant.reasoning_content' is unsupported"],
      [422, "messages.2.assistant.reasoning_content: Extra inputs are not permitted"],
    ] as const
  ) {
    const messages = await taken(
      Echoing,
      [status, message],
      (messages) => messages.every((each) => each.reasoning_content === undefined),
    );
    assert.deepEqual(messages, TALK.map(({ reasoning_content: _, ...rest }) => rest));
  }
});

Deno.test("a backend that requires an order of roles gets it", async () => {
  for (
    const refusal of [
      [400, "Unexpected role 'user' after role 'tool'"],
      [400, "After the optional system message, conversation roles must alternate user/assistant"],
      [500, "Jinja Exception: System message must be at the beginning."],
    ] as [number, string][]
  ) {
    const messages = await taken(OpenAICompatibleProvider, refusal, (messages) => {
      const roles = messages.map(({ role }) => role).join(" ");
      return roles === "system user assistant tool assistant user assistant user";
    });
    assert.deepEqual(messages.map(({ content }) => content), [
      "be brief",
      "one",
      null,
      "result",
      "(no answer)",
      "two",
      "yes\n\nand no",
      "a note\n\nthree",
    ]);
    assert.deepEqual(messages[2]!.tool_calls, [CALL]);
  }
});

Deno.test("a backend that requires a text in every message gets an empty one", async () => {
  const refusal = "required properties at '/messages/2' are 'role,content'";
  const messages = await taken(
    OpenAICompatibleProvider,
    [400, refusal],
    (messages) => messages.every(({ content }) => content !== null),
  );
  assert.equal(messages[2]!.content, "");
});

Deno.test("a rejection that no change can solve is reported, not retried", async () => {
  const refusals = ["reasoning_content", "unexpected role", "content"];
  await using server = new WireServer((wire) =>
    wire.send(json({ error: refusals[Math.min(wire.number, 3) - 1] }, 400))
  );
  const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
  const events = await eventsOf(provider, {}, TALK);
  assert.deepEqual(events, [
    {
      type: "error",
      code: 400,
      message: "acme rejected the request (400): content",
      kind: "permanent",
    },
  ]);
  assert.equal(server.requests.length, 3);
});

const TOOL: WireTool = {
  type: "function",
  function: {
    name: "docs_search",
    description: "",
    parameters: {
      type: "object",
      // deno-lint-ignore no-explicit-any
      ...({ $schema: "http://json-schema.org/draft-07/schema#" } as any),
      properties: {
        format: { type: "string", format: "uri" },
        list: { type: "array", items: { type: "object", additionalProperties: false } },
        either: { anyOf: [{ type: "string", pattern: "^a" }, { type: "null" }] },
        fixed: { type: "object", default: { format: "kept", additionalProperties: 1 } },
      },
      additionalProperties: false,
    },
  },
};

/** The properties that are sent after these messages. */
function after(...complaints: string[]) {
  const keywords = new SchemaKeywords();
  const learned = complaints.map((complaint) => keywords.learn(complaint, [TOOL]));
  const [tool] = keywords.adapt([TOOL]);
  return { learned, parameters: tool!.function.parameters as unknown as Record<string, unknown> };
}

Deno.test("rejected keywords are removed from every schema; names and data are kept", () => {
  const at = "at 'tools[0].function_declarations[3].parameters': Cannot find field.";
  const { learned, parameters } = after(
    `Invalid JSON payload received. Unknown name "$schema" ${at}`,
    `Unknown name \\"additionalProperties\\" ${at}`,
    "Invalid schema for function 'docs_search': 'format' is not permitted",
  );
  assert.deepEqual(learned, [true, true, true]);
  assert.deepEqual(parameters, {
    type: "object",
    properties: {
      format: { type: "string" },
      list: { type: "array", items: { type: "object" } },
      either: { anyOf: [{ type: "string", pattern: "^a" }, { type: "null" }] },
      fixed: { type: "object", default: { format: "kept", additionalProperties: 1 } },
    },
  });
});

Deno.test("one message can name several keywords", () => {
  const { parameters } = after(
    "tools.8.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
  );
  const { either } = parameters.properties as Record<string, unknown>;
  assert.deepEqual(either, {});
});

Deno.test("a message about no used keyword changes nothing", () => {
  const { learned, parameters } = after(
    "the default format of the pattern is not supported by this function",
    "Unknown name \"minItems\" at 'tools[0]'",
    "additionalProperties",
  );
  assert.deepEqual(learned, [false, false, false]);
  assert.equal(parameters, TOOL.function.parameters);
});

Deno.test("a rejected keyword is removed in the retry and later", async () => {
  const message = "Unknown name \"$schema\" at 'tools[0].function_declarations[0].parameters'";
  await using server = new WireServer((wire, { body }) =>
    wire.send(body.includes("$schema") ? json([{ error: { message } }], 400) : HELLO)
  );
  const provider = new OpenAICompatibleProvider(providerOptions({ base_url: server.url }));
  for (let i = 0; i < 2; i++) {
    assert.equal((await eventsOf(provider, { tools: [TOOL] })).at(-1)?.type, "done");
  }
  assert.equal(server.requests.length, 3);
});
