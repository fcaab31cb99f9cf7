import assert from "node:assert/strict";
import { detectProvider } from "../../../src/providers/resolve.ts";
import { call, startBackend } from "../../../tests/support/backend.ts";
import { eventsOf, providerOptions } from "../../../tests/providers/support.ts";
import { reasoningOf, registryOf } from "../../../tests/providers/vendor.ts";
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
