import assert from "node:assert/strict";
import { detectProvider } from "../../../src/providers/resolve.ts";
import { reasoningOf, registryOf } from "../../../tests/providers/vendor.ts";
import * as plugin from "../src/plugin.ts";

const registry = registryOf(plugin);
const ollama = registry.get("ollama")!;

Deno.test("ollama: defaults, host detection, and the port of a local server [4.10]", () => {
  assert.equal(ollama.DEFAULT_BASE_URL, "https://api.ollama.com");
  assert.equal(ollama.DEFAULT_MODEL, "llama3.2");
  assert.equal(ollama.ECHO_REASONING, false);
  for (const base_url of ["https://api.ollama.com/v1", "https://ollama.com", "http://nas:11434"]) {
    assert.equal(detectProvider(base_url, { providers: registry }), "ollama");
  }
});

Deno.test("ollama: reasoning is a switch without levels [4.10]", async () => {
  const on = { enable_thinking: true };
  const level = { enable_thinking: true, chat_template_kwargs: { thinking: true } };
  assert.deepEqual(await reasoningOf(ollama), {
    off: { enable_thinking: false },
    low: level,
    medium: level,
    high: level,
    on,
    auto: on,
  });
});
