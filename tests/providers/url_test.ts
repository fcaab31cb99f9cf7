import assert from "node:assert/strict";
import { canonicalBase, endpointUrl, originOf } from "../../src/providers/url.ts";

const ENDPOINTS: [base: string, chat: string][] = [
  ["http://h", "http://h/v1/chat/completions"],
  ["http://h/", "http://h/v1/chat/completions"],
  ["http://h/v1", "http://h/v1/chat/completions"],
  ["http://h/v1//", "http://h/v1/chat/completions"],
  ["https://h/openai", "https://h/openai/v1/chat/completions"],
  ["https://h/openai/v1", "https://h/openai/v1/chat/completions"],
  ["https://h/zen/go/v1/", "https://h/zen/go/v1/chat/completions"],
  ["https://h/v1/chat/completions", "https://h/v1/chat/completions"],
  ["https://h/inference/chat/completions", "https://h/inference/chat/completions"],
  ["https://h/chat/completions/?a=b", "https://h/chat/completions?a=b"],
  [
    "https://h/openai/deployments/mine?api-version=2024-10-21",
    "https://h/openai/deployments/mine/chat/completions?api-version=2024-10-21",
  ],
  ["https://h/v1/acc/gw/compat/chat/completions", "https://h/v1/acc/gw/compat/chat/completions"],
  ["https://h/api/paas/v4", "https://h/api/paas/v4/chat/completions"],
  ["https://h/v1beta/openai/", "https://h/v1beta/openai/chat/completions"],
  ["https://h/v1/account/openai", "https://h/v1/account/openai/chat/completions"],
  ["https://h/v1?api-version=2", "https://h/v1/chat/completions?api-version=2"],
  ["http://[::1]:8080", "http://[::1]:8080/v1/chat/completions"],
];

for (const [base, chat] of ENDPOINTS) {
  Deno.test(`the base URL ${base} results in ${chat} [4.10, 9]`, () => {
    assert.equal(endpointUrl(base, "/chat/completions"), chat);
    assert.equal(endpointUrl(canonicalBase(base), "/chat/completions"), chat);
  });
}

Deno.test("a base URL that is no web address is a configuration error with a hint [4.10]", () => {
  for (const base of ["localhost:11434", "ftp://h", "h", "", "file:///etc"]) {
    assert.throws(() => endpointUrl(base, "/models"), { code: "bad_base_url", exit: 2 });
    assert.equal(originOf(base), "");
    assert.equal(canonicalBase(base), "");
  }
});

Deno.test("credentials in a base URL are an error that does not contain them", () => {
  assert.throws(() => endpointUrl("https://me:pass@h.test/v1", "/models"), {
    code: "bad_base_url",
    message: "The base URL of h.test holds a user name or a password.",
  });
});

Deno.test("base URLs of the same endpoint have one canonical form", () => {
  const forms = ["https://H.test/a", "https://h.test/a/", "https://h.test:443/a/v1/"];
  assert.deepEqual(new Set(forms.map(canonicalBase)), new Set(["https://h.test/a"]));
  assert.notEqual(canonicalBase("https://h.test/a"), canonicalBase("http://h.test/a"));
  assert.notEqual(canonicalBase("https://h.test/a"), canonicalBase("https://h.test/b"));
});

Deno.test("an origin is scheme, host and port", () => {
  assert.equal(originOf("https://h.test:8443/v1"), "https://h.test:8443");
});
