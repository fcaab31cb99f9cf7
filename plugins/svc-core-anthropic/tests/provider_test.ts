import assert from "node:assert/strict";
import { detectProvider } from "../../../src/providers/resolve.ts";
import { reasoningOf, registryOf, requestOf } from "../../../tests/providers/vendor.ts";
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

Deno.test("anthropic: temperature and max_tokens are limited to the accepted values [4.10]", async () => {
  const sent = async (options: Parameters<typeof requestOf>[1]) => {
    const { temperature, max_tokens } = (await requestOf(anthropic, options)).body;
    return [temperature, max_tokens];
  };
  assert.deepEqual(await sent({ reasoning: "off", temperature: 0.3, max_tokens: 50 }), [0.3, 50]);
  assert.deepEqual(await sent({ reasoning: "off", temperature: 1.7, max_tokens: 50 }), [1, 50]);
  assert.deepEqual(await sent({ reasoning: "on", max_tokens: 8192 }), [1, 8192]);
  assert.deepEqual(await sent({ reasoning: "on", max_tokens: 2048 }), [1, 4096]);
  assert.deepEqual(await sent({ reasoning: "on", max_tokens: 0 }), [1, undefined]);
});
