import assert from "node:assert/strict";
import { detectProvider } from "../../../src/providers/resolve.ts";
import { reasoningOf, registryOf, requestOf } from "../../../tests/providers/vendor.ts";
import * as plugin from "../src/plugin.ts";

const registry = registryOf(plugin);
const groq = registry.get("groq")!;

Deno.test("groq: defaults and host detection [4.10]", async () => {
  assert.equal(groq.DEFAULT_BASE_URL, "https://api.groq.com/openai/v1");
  assert.equal(groq.DEFAULT_MODEL, "llama-3.3-70b-versatile");
  assert.equal(groq.ECHO_REASONING, false);
  assert.equal(detectProvider("https://api.groq.com/openai", { providers: registry }), "groq");
  const { headers } = await requestOf(groq, { api_key: "gsk" });
  assert.equal(headers.get("authorization"), "Bearer gsk");
});

Deno.test("groq: the effort is passed through, and omitted for on and auto [4.10]", async () => {
  assert.deepEqual(await reasoningOf(groq), {
    off: { reasoning_effort: "none" },
    low: { reasoning_effort: "low" },
    medium: { reasoning_effort: "medium" },
    high: { reasoning_effort: "high" },
    on: {},
    auto: {},
  });
});
