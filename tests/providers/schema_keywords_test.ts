import assert from "node:assert/strict";
import type { WireTool } from "../../src/plugins/api.ts";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { SchemaKeywords } from "../../src/providers/quirks.ts";
import { eventsOf, HELLO, json, providerOptions, WireServer } from "./support.ts";

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
