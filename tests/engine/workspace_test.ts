import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { Workspace } from "../../src/engine/workspace.ts";
import { headlessOperator } from "../../src/policy/operator.ts";
import { agent, results } from "../support/agent.ts";
import { calls, say } from "../support/backend.ts";
import { project } from "../support/project.ts";
import { trusting } from "../support/trust.ts";

interface Case {
  name: string;
  config?: Record<string, unknown>;
  flags: Record<string, string>;
  expected: { provider: string; model: string; base_url: string };
}

const OPENAI = "https://api.openai.com/v1";
const GROQ = "https://api.groq.com/openai/v1";
const LOCAL = "http://127.0.0.1:9/v1";

const CASES: Case[] = [
  {
    name: "configured provider and model",
    config: { provider: "openai", model: "gpt-5" },
    flags: {},
    expected: { provider: "openai", model: "gpt-5", base_url: OPENAI },
  },
  {
    name: "a configured model ref names the provider",
    config: { provider: "openai", model: "groq/llama" },
    flags: {},
    expected: { provider: "groq", model: "llama", base_url: GROQ },
  },
  {
    name: "--provider leaves the other provider's model behind",
    config: { provider: "groq", model: "llama" },
    flags: { provider: "openai" },
    expected: { provider: "openai", model: "gpt-4o-mini", base_url: OPENAI },
  },
  {
    name: "--provider wins over a configured ref",
    config: { model: "groq/llama" },
    flags: { provider: "openai" },
    expected: { provider: "openai", model: "gpt-4o-mini", base_url: OPENAI },
  },
  {
    name: "--provider leaves a configured address behind",
    config: { base_url: LOCAL, model: "local" },
    flags: { provider: "openai" },
    expected: { provider: "openai", model: "gpt-4o-mini", base_url: OPENAI },
  },
  {
    name: "--provider of the configured provider keeps its model and address",
    config: { provider: "openai", base_url: LOCAL, model: "m" },
    flags: { provider: "openai" },
    expected: { provider: "openai", model: "m", base_url: LOCAL },
  },
  {
    name: "a bare configured model goes with any provider",
    config: { model: "m" },
    flags: { provider: "openai" },
    expected: { provider: "openai", model: "m", base_url: OPENAI },
  },
  {
    name: "--model as a ref changes the provider and leaves the address behind",
    config: { provider: "openai", base_url: LOCAL, model: "m" },
    flags: { model: "groq/llama" },
    expected: { provider: "groq", model: "llama", base_url: GROQ },
  },
  {
    name: "--model next to --provider is a bare id, slash and all",
    flags: { provider: "openai", model: "groq/llama" },
    expected: { provider: "openai", model: "groq/llama", base_url: OPENAI },
  },
  {
    name: "--base-url alone is recognised by its host",
    flags: { base_url: GROQ, model: "m" },
    expected: { provider: "groq", model: "m", base_url: GROQ },
  },
  {
    name: "--base-url of an unknown host is the generic provider",
    flags: { base_url: LOCAL, model: "m" },
    expected: { provider: "generic-compatible", model: "m", base_url: LOCAL },
  },
];

for (const { name, config = {}, flags, expected } of CASES) {
  Deno.test(`backend: ${name}`, async () => {
    await using place = await project({ ".svc/config.json": JSON.stringify(config) });
    const workspace = Workspace.open({
      path: place.path,
      environment: { home: place.path, cwd: place.path, get: trusting },
      overrides: flags,
    });
    await workspace.load({ providers: "all" });
    const { provider, model, base_url } = workspace.backend();
    assert.deepEqual({ provider, model, base_url }, expected);
  });
}

Deno.test("a misspelt name in tools.deny or tools.allow is warned about once, with the nearest tool", async () => {
  await using place = await project();
  const warnings: string[] = [];
  const workspace = Workspace.open({
    path: place.path,
    environment: { home: place.path, cwd: place.path, get: trusting },
    overrides: {
      "tools.deny": ["file_wirte", "bash", "notes.search", "somebody_elses"],
      "tools.allow": ["file_reed", "list_dir"],
    },
    warn: (message) => warnings.push(message),
  });
  await workspace.load({ tools: "all" });
  await workspace.load({ tools: "all" });
  assert.deepEqual(warnings, [
    'There is no tool "file_wirte", so tools.deny denies nothing with it; did you mean file_write?',
    'There is no tool "file_reed", so tools.allow allows nothing with it; did you mean file_read?',
  ]);
});

Deno.test("the tokens of the HTTP API are shown to no agent, wherever their file lies", async () => {
  const place = await project({ "keys/tokens": "SECRET\n" });
  const file = join(place.path, "keys", "tokens");
  await using it = await agent([
    calls([
      ["file_read", { path: file }],
      ["grep", { pattern: "SEC", path: dirname(file) }],
    ]),
    say("done"),
  ], { config: { "serve.token_file": file }, operator: headlessOperator(true) });
  const { events } = await it.turn("go");
  await place[Symbol.asyncDispose]();
  const [read, found] = results(events);
  assert.match(read!, /^Error: permission denied: .* holds keys, which no tool may touch/);
  assert.doesNotMatch(found!, /SECRET/);
});
