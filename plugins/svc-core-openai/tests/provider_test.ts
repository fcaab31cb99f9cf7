import assert from "node:assert/strict";
import { reasoningOf, registryOf } from "../../../tests/providers/vendor.ts";
import * as plugin from "../src/plugin.ts";

const registry = registryOf(plugin);
const openai = registry.get("openai")!;

Deno.test("openai is known by its defaults and its host", () => {
  assert.equal(openai.DEFAULT_BASE_URL, "https://api.openai.com/v1");
  assert.equal(openai.DEFAULT_MODEL, "gpt-4o-mini");
  assert.equal(openai.ECHO_REASONING, false);
  assert.equal(registry.detect("https://api.openai.com"), "openai");
});

Deno.test("openai takes an effort, medium for on and auto, none when reasoning is off", async () => {
  assert.deepEqual(await reasoningOf(openai), {
    off: {},
    low: { reasoning_effort: "low" },
    medium: { reasoning_effort: "medium" },
    high: { reasoning_effort: "high" },
    on: { reasoning_effort: "medium" },
    auto: { reasoning_effort: "medium" },
  });
});
