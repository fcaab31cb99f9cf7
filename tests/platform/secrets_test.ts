import assert from "node:assert/strict";
import { SecretMask, secretValues } from "../../src/platform/secrets.ts";

const SECRETS = ["sk-live+4/2?=ü", "hunter2-hunter2", "p@ss word"];

function masked(text: string): string {
  return new SecretMask().apply(text, SECRETS);
}

function bytesOf(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}

Deno.test("a secret is masked wherever it occurs", () => {
  for (const secret of SECRETS) {
    assert.equal(masked(`key=${secret}; ${secret}${secret}`), "key=[masked]; [masked][masked]");
  }
  assert.equal(masked("hunter2 sk-live"), "hunter2 sk-live");
});

Deno.test("percent-encoded forms are masked", () => {
  for (const secret of SECRETS) {
    const every = [...bytesOf(secret)].map((byte) => `%${byte.toString(16).padStart(2, "0")}`);
    const forms = [
      encodeURIComponent(secret),
      encodeURIComponent(secret).toLowerCase(),
      new URLSearchParams({ k: secret }).toString().slice(2),
      every.join(""),
      every.join("").toUpperCase(),
      encodeURI(secret),
    ];
    for (const form of forms) assert.equal(masked(`a=${form}&b`), "a=[masked]&b", form);
  }
});

Deno.test("base64 is masked at each alignment, in both alphabets and over line breaks", () => {
  for (const secret of SECRETS) {
    for (const before of ["", "u", "us", "user", "user:", "a long name:"]) {
      for (const after of ["", "x", "xy", "xyz"]) {
        const text = bytesOf(before + secret + after);
        const forms = [text.toBase64(), text.toBase64({ alphabet: "base64url" })];
        for (const form of [...forms, ...forms.map((form) => form.replace(/.{5}/g, "$&\n"))]) {
          const left = masked(form).replace("[masked]", "");
          assert.ok(masked(form).includes("[masked]"), form);
          // What is left are the digits that the neighbours determine.
          assert.ok(
            left.replaceAll("\n", "").length <= (before.length + after.length) * 1.4 + 8,
            form,
          );
        }
      }
    }
  }
});

Deno.test("short values and an empty list mask nothing", () => {
  const mask = new SecretMask();
  assert.equal(
    mask.apply("a true and short value", ["true", "short", "", "value"]),
    "a true and short value",
  );
  assert.equal(mask.apply("text", []), "text");
});

Deno.test("the mask follows changes of the secrets", () => {
  const mask = new SecretMask();
  assert.equal(mask.apply("firstfirst secondsecond", ["firstfirst"]), "[masked] secondsecond");
  assert.equal(mask.apply("firstfirst secondsecond", ["secondsecond"]), "firstfirst [masked]");
});

Deno.test("names tell which values are secrets", () => {
  const values = secretValues(Object.entries({
    OPENAI_API_KEY: "a",
    GITHUB_TOKEN: "b",
    DB_PASSWORD: "c",
    CLIENT_SECRET: "d",
    Authorization: "Bearer e",
    SSH_KEY_FILE: "/home/me/key",
    SSH_AUTH_SOCK: "/tmp/agent",
    PATH: "/bin",
    LANG: "C",
  }));
  assert.deepEqual([...new Set(values)], ["a", "b", "c", "d", "Bearer e", "e"]);
});
