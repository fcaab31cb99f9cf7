import assert from "node:assert/strict";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { ConnectionStore } from "../../src/providers/connections.ts";
import { parseModelRef } from "../../src/providers/resolve.ts";
import { ProviderRegistry } from "../../src/providers/registry.ts";
import { resolveBackend, resolveConnection } from "../../src/providers/resolve.ts";
import { TestClock } from "./support.ts";

class Acme extends OpenAICompatibleProvider {
  static override readonly DEFAULT_BASE_URL = "https://api.acme.test/v1";
  static override readonly DEFAULT_MODEL = "acme-1";
  static override readonly HOST_PATTERNS = ["acme.test"];
}

class Demo extends OpenAICompatibleProvider {
  static override readonly DEFAULT_MODEL = "demo-1";
}

const owner = { bundled: true, owner: "svc-core-acme" };
const registry = new ProviderRegistry();
registry.register("acme", Acme, owner);
registry.register("demo", Demo, owner);

const NOTHING = { provider: "", base_url: "", model: "" };

/** Runs `test` with a store of these connections. */
async function withStored(
  stored: Record<string, { base_url?: string; api_key?: string }>,
  test: (connections: ConnectionStore) => void,
): Promise<void> {
  const directory = Deno.makeTempDirSync();
  try {
    const connections = new ConnectionStore(directory, new TestClock(), assert.fail);
    for (const [name, entry] of Object.entries(stored)) await connections.save(name, entry);
    test(connections);
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
}

const STORED = {
  acme: { api_key: "sk-acme" },
  mine: { base_url: "https://llm.mine.test/api", api_key: "sk-mine" },
};

Deno.test("without configuration it is wrong usage, even with stored keys", async () => {
  await withStored(STORED, (connections) => {
    assert.throws(
      () => resolveBackend({ ...NOTHING, model: "m" }, { providers: registry, connections }),
      {
        code: "no_provider",
        exit: 2,
        message: "No model provider is connected.",
        hint: /`svc connect`.*`--provider demo`/,
      },
    );
  });
});

Deno.test("a backend has its own address or the stored one, its default model and the stored key [5.1]", async () => {
  const custom = { provider: "mine", base_url: "https://llm.mine.test/api", api_key: "sk-mine" };
  const cases: [Partial<typeof NOTHING>, Record<string, unknown>][] = [
    [{ provider: "acme" }, {
      provider: "acme",
      cls: Acme,
      base_url: "https://api.acme.test/v1",
      model: "acme-1",
      api_key: "sk-acme",
    }],
    [{ base_url: "https://api.acme.test" }, { provider: "acme", cls: Acme, api_key: "sk-acme" }],
    [{ provider: "mine", model: "m" }, { ...custom, cls: OpenAICompatibleProvider, model: "m" }],
    [{ base_url: "https://llm.mine.test/api/v1/", model: "m" }, {
      ...custom,
      base_url: "https://llm.mine.test/api/v1/",
    }],
    [{ base_url: "https://new.test", model: "m" }, {
      provider: "generic-compatible",
      base_url: "https://new.test",
      api_key: "",
    }],
    [{ provider: "demo" }, { provider: "demo", base_url: "", model: "demo-1", api_key: "" }],
  ];
  await withStored(STORED, (connections) => {
    for (const [request, expected] of cases) {
      const backend = resolveBackend({ ...NOTHING, ...request }, {
        providers: registry,
        connections,
      });
      assert.partialDeepStrictEqual(backend, expected);
    }
  });
});

Deno.test("a key is sent only to the origin that it was stored for [5.1]", async () => {
  const cases: [provider: string, base_url: string, api_key: string][] = [
    ["acme", "https://api.acme.test/other/v1", "sk-acme"],
    ["acme", "https://API.acme.test:443", "sk-acme"],
    ["acme", "https://evil.test/v1", ""],
    ["acme", "http://api.acme.test/v1", ""],
    ["acme", "https://api.acme.test:8443/v1", ""],
    ["acme", "https://api.acme.test@evil.test/v1", ""],
    ["acme", "https://api.acme.test.evil.test/v1", ""],
    ["acme", "https://eu.acme.test/v1", ""],
    ["", "https://eu.acme.test/v1", ""],
    ["", "https://evil.test/api.acme.test", ""],
    ["mine", "https://evil.test/api", ""],
    ["mine", "https://llm.mine.test/else", "sk-mine"],
    ["generic-compatible", "https://llm.mine.test/api", ""],
    ["acme", "not a url", ""],
  ];
  await withStored(STORED, (connections) => {
    for (const [provider, base_url, api_key] of cases) {
      const request = { provider, base_url, model: "m" };
      const backend = resolveBackend(request, { providers: registry, connections });
      assert.equal(backend.api_key, api_key, base_url);
      assert.equal(backend.base_url, base_url);
    }
  });
});

Deno.test("a key that is stored with an address belongs to that address", async () => {
  const stored = { acme: { base_url: "https://proxy.test/v1", api_key: "sk-proxy" } };
  await withStored(stored, (connections) => {
    const at = (base_url: string) =>
      resolveBackend({ ...NOTHING, provider: "acme", base_url }, {
        providers: registry,
        connections,
      });
    assert.partialDeepStrictEqual(at(""), {
      base_url: "https://proxy.test/v1",
      api_key: "sk-proxy",
    });
    assert.equal(at("https://api.acme.test/v1").api_key, "");
  });
});

Deno.test("a key that is stored without an address is not sent", async () => {
  await withStored({ "generic-compatible": { api_key: "sk-1" } }, (connections) => {
    const request = { provider: "generic-compatible", base_url: "https://h.test", model: "m" };
    assert.equal(resolveBackend(request, { providers: registry, connections }).api_key, "");
  });
});

Deno.test("a request that cannot be resolved is wrong usage with a hint", async () => {
  const cases: [Partial<typeof NOTHING>, string, RegExp][] = [
    [{ provider: "acm" }, "unknown_provider", /^Did you mean acme\?$/],
    [{ provider: "other" }, "unknown_provider", /^Known: acme, demo, generic-compatible, mine\./],
    [{ provider: "mien" }, "unknown_provider", /^Did you mean mine\?$/],
    [{ provider: "generic-compatible", model: "m" }, "no_base_url", /--base-url/],
    [{ base_url: "https://h.test" }, "no_model", /`svc models list generic-compatible`/],
    [{ provider: "mine" }, "no_model", /--model/],
  ];
  await withStored(STORED, (connections) => {
    for (const [request, code, hint] of cases) {
      assert.throws(
        () => resolveBackend({ ...NOTHING, ...request }, { providers: registry, connections }),
        {
          code,
          hint,
          exit: 2,
        },
      );
    }
    const listing = resolveConnection({ ...NOTHING, provider: "mine" }, {
      providers: registry,
      connections,
    });
    assert.partialDeepStrictEqual(listing, { model: "", api_key: "sk-mine" });
  });
});

Deno.test("a model ref is split only for a provider with an address [4.10]", async () => {
  const cases: [text: string, provider: string, model: string][] = [
    ["acme/m1", "acme", "m1"],
    ["acme/vendor/m1:free", "acme", "vendor/m1:free"],
    ["mine/m1", "mine", "m1"],
    ["other/m1", "", "other/m1"],
    ["generic-compatible/m1", "", "generic-compatible/m1"],
    ["demo/m1", "", "demo/m1"],
    ["acme/", "", "acme/"],
    ["/m1", "", "/m1"],
    ["acme", "", "acme"],
    ["m1", "", "m1"],
    ["", "", ""],
  ];
  await withStored(STORED, (connections) => {
    for (const [text, provider, model] of cases) {
      assert.deepEqual(parseModelRef(text, { providers: registry, connections }), {
        provider,
        model,
      });
    }
  });
});
