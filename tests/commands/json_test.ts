import assert from "node:assert/strict";
import { project } from "../support/project.ts";
import { runMain } from "../support/io.ts";

const SETTINGS = { provider: "local", model: "m", connect_check: false };
const PROVIDERS = { local: { base_url: "http://127.0.0.1:9/v1", api_key: "sk-hidden" } };

Deno.test("models, model and provider print the same as JSON as in text, and no key", async () => {
  await using work = await project({
    ".svc/config.json": JSON.stringify(SETTINGS),
    ".config/svc/providers.json": JSON.stringify(PROVIDERS),
  });
  const models = await runMain(work.path, "models", "--output", "json");
  assert.deepEqual(JSON.parse(models.out), [
    { provider: "local", has_key: true, models: [{ model: "m", active: true }] },
  ]);
  assert.equal((await runMain(work.path, "models")).out, "local (key)\n  * local/m\n");
  const backend = {
    provider: "local",
    model: "m",
    base_url: "http://127.0.0.1:9/v1",
    has_key: true,
  };
  for (const command of ["model", "provider"]) {
    const { code, out } = await runMain(work.path, command, "--output", "json");
    assert.deepEqual([code, JSON.parse(out)], [0, backend]);
  }
  const chosen = await runMain(work.path, "model", "other", "--output", "json");
  assert.deepEqual(JSON.parse(chosen.out), { ...backend, model: "other" });
});

Deno.test("no model is chosen while no provider is connected", async () => {
  await using work = await project();
  const { code, notes } = await runMain(work.path, "model", "some-model");
  assert.equal(code, 2);
  assert.match(notes[0]!, /No model provider is connected/);
  assert.equal((await runMain(work.path, "config", "--local")).out, "{}\n");
});

Deno.test("mcp list prints the state of each server as JSON", async () => {
  const servers = [{ name: "notes", command: "nonesuch" }];
  await using work = await project({
    ".svc/config.json": JSON.stringify({ "mcp.servers": servers }),
  });
  const shown = { name: "notes", transport: "stdio", prefix: "notes", revision: "" };
  const listed = await runMain(work.path, "mcp", "list", "--output", "json");
  assert.deepEqual(JSON.parse(listed.out), [
    {
      ...shown,
      state: "failed",
      problem: "The program nonesuch was not found",
      tools: [],
      skipped: [],
    },
  ]);
  const tried = await runMain(work.path, "mcp", "connect", "notes", "--output", "json");
  assert.equal(tried.code, 1);
  const [server] = JSON.parse(tried.out);
  assert.deepEqual([server.state, server.problem], [
    "failed",
    "The program nonesuch was not found",
  ]);
});

Deno.test("an empty list is [] as JSON, and a note in text", async () => {
  await using work = await project();
  for (const line of ["models", "mcp list", "asks", "jobs", "memory", "skills"]) {
    const json = await runMain(work.path, ...line.split(" "), "--output", "json");
    assert.deepEqual(json, { code: 0, out: "[]\n", notes: [] }, line);
    const text = await runMain(work.path, ...line.split(" "));
    assert.deepEqual([text.code, text.out, text.notes.length], [0, "", 1], line);
  }
});
