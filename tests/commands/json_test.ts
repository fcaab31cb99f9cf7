import assert from "node:assert/strict";
import { main } from "../../src/cli/main.ts";
import { type Project, project } from "../support/project.ts";
import { testIo } from "../support/io.ts";

async function told(place: Project, ...args: string[]) {
  const io = testIo({ home: place.path, cwd: place.path });
  const code = await main(args, io);
  return { code, out: io.printed, notes: io.notes };
}

const SETTINGS = { provider: "local", model: "m", connect_check: false };
const PROVIDERS = { local: { base_url: "http://127.0.0.1:9/v1", api_key: "sk-hidden" } };

Deno.test("models, model and provider print the same as JSON as in text, and no key", async () => {
  await using work = await project({
    ".svc/config.json": JSON.stringify(SETTINGS),
    ".config/svc/providers.json": JSON.stringify(PROVIDERS),
  });
  const models = await told(work, "models", "--output", "json");
  assert.deepEqual(JSON.parse(models.out), [
    { provider: "local", has_key: true, models: [{ model: "m", active: true }] },
  ]);
  assert.equal((await told(work, "models")).out, "local (key)\n  * local/m\n");
  const backend = {
    provider: "local",
    model: "m",
    base_url: "http://127.0.0.1:9/v1",
    has_key: true,
  };
  for (const command of ["model", "provider"]) {
    const { code, out } = await told(work, command, "--output", "json");
    assert.deepEqual([code, JSON.parse(out)], [0, backend]);
  }
  const chosen = await told(work, "model", "other", "--output", "json");
  assert.deepEqual(JSON.parse(chosen.out), { ...backend, model: "other" });
});

Deno.test("no model is chosen while no provider is connected", async () => {
  await using work = await project();
  const { code, notes } = await told(work, "model", "some-model");
  assert.equal(code, 2);
  assert.match(notes[0]!, /No model provider is connected/);
  assert.equal((await told(work, "config", "--local")).out, "{}\n");
});

Deno.test("mcp list prints the state of each server as JSON", async () => {
  const servers = [{ name: "notes", command: "nonesuch" }];
  await using work = await project({
    ".svc/config.json": JSON.stringify({ "mcp.servers": servers }),
  });
  const shown = { name: "notes", transport: "stdio", prefix: "notes", revision: "" };
  const listed = await told(work, "mcp", "list", "--output", "json");
  assert.deepEqual(JSON.parse(listed.out), [
    { ...shown, state: "disconnected", problem: "", tools: [], skipped: [] },
  ]);
  const tried = await told(work, "mcp", "connect", "notes", "--output", "json");
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
    const json = await told(work, ...line.split(" "), "--output", "json");
    assert.deepEqual(json, { code: 0, out: "[]\n", notes: [] }, line);
    const text = await told(work, ...line.split(" "));
    assert.deepEqual([text.code, text.out, text.notes.length], [0, "", 1], line);
  }
});
