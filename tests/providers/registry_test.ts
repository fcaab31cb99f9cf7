import assert from "node:assert/strict";
import { detectProvider } from "../../src/providers/resolve.ts";
import type { ProviderClass } from "../../src/plugins/api.ts";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { ProviderRegistry } from "../../src/providers/registry.ts";

const BUNDLED = { bundled: true, owner: "svc-core-x" };
const EXTERNAL = { bundled: false, owner: "theirs" };

function provider(base_url: string, ...patterns: string[]): ProviderClass {
  return class extends OpenAICompatibleProvider {
    static override readonly DEFAULT_BASE_URL = base_url;
    static override readonly HOST_PATTERNS = patterns;
  };
}

Deno.test("the provider generic-compatible is always registered [4.10]", () => {
  const registry = new ProviderRegistry();
  assert.deepEqual(registry.names(), ["generic-compatible"]);
  assert.equal(registry.get("generic-compatible"), OpenAICompatibleProvider);
  assert.equal(registry.get("groq"), undefined);
  assert.throws(() => registry.register("generic-compatible", provider(""), EXTERNAL), {
    code: "provider_taken",
  });
});

Deno.test("the name of a bundled provider belongs to it, whichever provider is registered first [4.10]", () => {
  const ours = provider("https://a.test");
  const theirs = provider("https://evil.test");
  const registry = new ProviderRegistry();
  registry.register("acme", ours, BUNDLED);
  assert.throws(() => registry.register("acme", theirs, EXTERNAL), {
    code: "provider_taken",
    message: "Plugin theirs: the provider name acme belongs to a bundled provider.",
  });
  assert.equal(registry.get("acme"), ours);

  const other = new ProviderRegistry();
  other.register("acme", theirs, EXTERNAL);
  other.register("acme", ours, BUNDLED);
  assert.equal(other.get("acme"), ours);
});

Deno.test("a plugin can add a provider; the later of two wins", () => {
  const registry = new ProviderRegistry();
  registry.register("mine", provider("https://a.test"), EXTERNAL);
  const later = provider("https://b.test");
  registry.register("mine", later, EXTERNAL);
  assert.equal(registry.get("mine"), later);
  assert.deepEqual(registry.names(), ["generic-compatible", "mine"]);
});

Deno.test("a name that cannot be part of a ref, or a class without attributes, is rejected", () => {
  const registry = new ProviderRegistry();
  for (const name of ["", "a/b", "a b", "a\n"]) {
    assert.throws(() => registry.register(name, provider(""), BUNDLED), { code: "bad_provider" });
  }
  const bad: unknown[] = [
    class {},
    {},
    undefined,
    class extends OpenAICompatibleProvider {
      static override readonly HOST_PATTERNS = [""];
    },
  ];
  for (const cls of bad) {
    assert.throws(() => registry.register("acme", cls as ProviderClass, BUNDLED), {
      code: "bad_provider",
    });
  }
});

Deno.test("host detection: a default base URL wins, then the longest host pattern; a plugin's provider is found too [4.10]", () => {
  const registry = new ProviderRegistry();
  registry.register("zen", provider("https://code.test/zen/v1", "code.test/zen"), BUNDLED);
  registry.register("go", provider("https://code.test/zen/go/v1", "code.test/zen/go"), BUNDLED);
  registry.register("local", provider("http://localhost:9/v1"), EXTERNAL);
  registry.register("exact", provider("https://api.code.test/zen/go/exact", "x.test"), BUNDLED);
  const detected: [string, string][] = [
    ["https://code.test/zen/v1", "zen"],
    ["https://CODE.test/zen/", "zen"],
    ["https://code.test/zen/go", "go"],
    ["https://code.test/zen/go/v1/", "go"],
    ["https://eu.code.test/zen/go/v1", "go"],
    ["http://localhost:9", "local"],
    ["http://localhost:9/v1/", "local"],
    ["http://localhost:10/v1", "generic-compatible"],
    ["https://api.code.test/zen/go/exact/v1", "exact"],
    ["https://other.test/v1", "generic-compatible"],
    ["https://other.test/v1?next=code.test/zen", "generic-compatible"],
    ["code.test/zen", "generic-compatible"],
    ["", "generic-compatible"],
  ];
  for (const [base_url, name] of detected) {
    assert.equal(detectProvider(base_url, { providers: registry }), name, base_url);
  }
});
