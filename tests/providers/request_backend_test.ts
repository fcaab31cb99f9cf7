import assert from "node:assert/strict";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { ConnectionStore } from "../../src/providers/connections.ts";
import { ProviderRegistry } from "../../src/providers/registry.ts";
import { type NamedBackend, requestBackend, resolveBackend } from "../../src/providers/resolve.ts";
import { scratch } from "../config/support.ts";
import { TestClock } from "./support.ts";

class Acme extends OpenAICompatibleProvider {
  static override readonly DEFAULT_BASE_URL: string = "https://api.acme.test/v1";
  static override readonly DEFAULT_MODEL = "acme-1";
}

class Other extends Acme {
  static override readonly DEFAULT_BASE_URL = "https://api.other.test/v1";
}

const registry = new ProviderRegistry();
registry.register("acme", Acme, { bundled: true, owner: "svc-core-acme" });
registry.register("other", Other, { bundled: true, owner: "svc-core-other" });

/** Where a provider or an address can be named. */
interface Named {
  global?: NamedBackend;
  local?: NamedBackend;
  flags?: NamedBackend;
  /** The model of the role that the run has. */
  role?: string;
  /** Stored connections: their addresses. */
  connected?: Record<string, string>;
}

async function resolved({ global, local, flags = {}, role: role_model, connected = {} }: Named) {
  using files = scratch({ global, local });
  const config = files.open();
  for (const [key, value] of Object.entries(flags)) config.override(key, value);
  const connections = new ConnectionStore(files.paths.user, new TestClock(), assert.fail);
  for (const [name, base_url] of Object.entries(connected)) {
    await connections.save(name, { base_url, api_key: `sk-${name}` });
  }
  const sources = { config, providers: registry, connections };
  return resolveBackend(requestBackend(sources, { role_model }), sources);
}

const GLOBAL = "https://global.test/v1";
const LOCAL = "https://local.test/v1";
const FLAG = "https://flag.test/v1";
const OWN = "the provider's own";

const PROVIDERS: Record<string, Named> = {
  "nowhere": {},
  "by the key of the user's file": { global: { provider: "acme" } },
  "by a ref in the user's file": { global: { model: "acme/m" } },
  "by the key of the worktree's file": { local: { provider: "acme" } },
  "by a ref in the worktree's file": { local: { model: "acme/m" } },
  "by the role's model": { role: "acme/m" },
  "by --model": { flags: { model: "acme/m" } },
  "by --provider": { flags: { provider: "acme" } },
};

const ADDRESSES: Record<string, Named> = {
  "nowhere": {},
  "in the user's file": { global: { base_url: GLOBAL } },
  "in the worktree's file": { local: { base_url: LOCAL } },
  "by --base-url": { flags: { base_url: FLAG } },
};

/** Where the provider is named, and the address that is dialled for each of ADDRESSES. */
const DIALLED: Record<keyof typeof PROVIDERS, (string | undefined)[]> = {
  "nowhere": [undefined, GLOBAL, LOCAL, FLAG],
  "by the key of the user's file": [OWN, GLOBAL, LOCAL, FLAG],
  "by a ref in the user's file": [OWN, GLOBAL, LOCAL, FLAG],
  "by the key of the worktree's file": [OWN, OWN, LOCAL, FLAG],
  "by a ref in the worktree's file": [OWN, OWN, LOCAL, FLAG],
  "by the role's model": [OWN, OWN, OWN, FLAG],
  "by --model": [OWN, OWN, OWN, FLAG],
  "by --provider": [OWN, OWN, OWN, FLAG],
};

for (const [where, provider] of Object.entries(PROVIDERS)) {
  for (const [index, [at, address]] of Object.entries(ADDRESSES).entries()) {
    const named: Named = {
      global: { ...provider.global, ...address.global },
      local: { ...provider.local, ...address.local },
      flags: { ...provider.flags, ...address.flags },
      role: provider.role,
    };
    Deno.test(`the provider is named ${where}, the address ${at} [4.4]`, async () => {
      const expected = DIALLED[where]![index];
      if (expected === undefined) {
        await assert.rejects(resolved(named), { code: "no_provider" });
        return;
      }
      if (where === "nowhere") named.flags = { ...named.flags, model: "m" };
      for (const own of ["", "https://proxy.test/v1", GLOBAL, LOCAL, FLAG]) {
        // Another provider's connection at the named address changes nothing.
        const connected: Record<string, string> = { mine: FLAG, other: LOCAL };
        if (own !== "" && where !== "nowhere") connected.acme = own;
        const { base_url, api_key, provider } = await resolved({ ...named, connected });
        const acme = connected.acme ?? Acme.DEFAULT_BASE_URL;
        assert.equal(base_url, expected === OWN ? acme : expected);
        if (where === "nowhere") continue;
        assert.equal(provider, "acme");
        assert.equal(api_key, connected.acme === base_url ? "sk-acme" : "");
      }
    });
  }
}

const PAIRS: { name: string; named: Named; expected: Record<string, unknown> }[] = [
  {
    name: "a stronger layer that names the same provider keeps its address and model",
    named: {
      global: { provider: "acme", base_url: GLOBAL, model: "m" },
      flags: { provider: "acme" },
    },
    expected: { provider: "acme", base_url: GLOBAL, model: "m" },
  },
  {
    name: "a stronger layer that names another provider discards address and model",
    named: {
      global: { provider: "other", base_url: GLOBAL, model: "m" },
      local: { provider: "acme" },
    },
    expected: { provider: "acme", base_url: Acme.DEFAULT_BASE_URL, model: "acme-1" },
  },
  {
    name: "a ref does not use the address that `svc connect` wrote for another provider",
    named: {
      global: { provider: "mine", base_url: "https://mine.test", model: "acme/m" },
      connected: { mine: "https://mine.test/v1" },
    },
    expected: { provider: "acme", base_url: Acme.DEFAULT_BASE_URL, model: "m" },
  },
  {
    name: "a ref uses the address in its file when no provider owns it",
    named: { global: { provider: "generic-compatible", base_url: GLOBAL, model: "acme/m" } },
    expected: { provider: "acme", base_url: GLOBAL, model: "m" },
  },
  {
    name: "--base-url is used as given, also when it is another provider's connection",
    named: {
      global: { provider: "mine", base_url: "https://mine.test/v1" },
      flags: { provider: "acme", base_url: "https://mine.test/v1" },
      connected: { mine: "https://mine.test/v1" },
    },
    expected: { provider: "acme", base_url: "https://mine.test/v1", api_key: "" },
  },
  {
    name: "--model wins over the model of a role",
    named: { role: "other/r", flags: { model: "acme/m" } },
    expected: { provider: "acme", model: "m" },
  },
  {
    name: "--provider ignores a role's model of another provider",
    named: {
      global: { provider: "acme", model: "m" },
      role: "other/r",
      flags: { provider: "acme" },
    },
    expected: { provider: "acme", model: "m", ref: undefined },
  },
  {
    name: "--provider takes a role's model of the same provider",
    named: { role: "acme/r", flags: { provider: "acme" } },
    expected: { provider: "acme", model: "r", ref: { provider: "acme", model: "r" } },
  },
  {
    name: "a role's bare model belongs to the named provider",
    named: {
      global: { provider: "other", base_url: GLOBAL, model: "m" },
      role: "r",
    },
    expected: { provider: "other", base_url: GLOBAL, model: "r", ref: undefined },
  },
];

for (const { name, named, expected } of PAIRS) {
  Deno.test(`backend: ${name}`, async () => {
    assert.partialDeepStrictEqual(await resolved(named), expected);
  });
}
