import assert from "node:assert/strict";
import { detectProvider } from "../../../src/providers/resolve.ts";
import { reasoningOf, registryOf, requestOf } from "../../../tests/providers/vendor.ts";
import * as plugin from "../src/plugin.ts";

const registry = registryOf(plugin);
const opencode = registry.get("opencode")!;
const go = registry.get("opencode-go")!;

Deno.test("opencode: defaults of both gateways, and the longest host pattern [4.10]", () => {
  assert.equal(opencode.DEFAULT_BASE_URL, "https://opencode.ai/zen/v1");
  assert.equal(opencode.DEFAULT_MODEL, "kimi-k3");
  assert.equal(go.DEFAULT_BASE_URL, "https://opencode.ai/zen/go/v1");
  assert.equal(go.DEFAULT_MODEL, "deepseek-v4-flash");
  assert.equal(detectProvider("https://opencode.ai/zen/", { providers: registry }), "opencode");
  assert.equal(
    detectProvider("https://www.opencode.ai/zen/v1", { providers: registry }),
    "opencode",
  );
  assert.equal(
    detectProvider("https://opencode.ai/zen/go", { providers: registry }),
    "opencode-go",
  );
  assert.equal(
    detectProvider("https://www.opencode.ai/zen/go/v1", { providers: registry }),
    "opencode-go",
  );
});

Deno.test("opencode: the session is sent as a header, encoded [4.10]", async () => {
  for (const cls of [opencode, go]) {
    const sent = async (session_id: string) =>
      (await requestOf(cls, { session_id })).headers.get("x-opencode-session");
    assert.equal(await sent("a1b2c3"), "a1b2c3");
    assert.equal(await sent("naïve plan\n→"), "na%C3%AFve%20plan%0A%E2%86%92");
    assert.equal(await sent(""), null);
  }
});

Deno.test("opencode: earlier reasoning is echoed, the effort is passed through [4.10]", async () => {
  const message = { role: "assistant", content: "a", reasoning_content: "t" } as const;
  for (const cls of [opencode, go]) {
    assert.deepEqual((await requestOf(cls, {}, [message])).body.messages, [message]);
    assert.deepEqual(await reasoningOf(cls), {
      off: { reasoning_effort: "none" },
      low: { reasoning_effort: "low" },
      medium: { reasoning_effort: "medium" },
      high: { reasoning_effort: "high" },
      on: {},
      auto: {},
    });
  }
});
