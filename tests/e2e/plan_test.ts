import assert from "node:assert/strict";
import { signIn, visit } from "../server/console.ts";
import { server } from "../server/support.ts";
import { call, say, startBackend } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { project } from "../support/project.ts";
import { session } from "../support/repl.ts";

const plan = call("plan", {
  steps: [
    { step: "read the code", state: "done" },
    { step: "write the test", state: "active" },
    { step: "land", state: "pending" },
  ],
});
const LIST = "Plan, 1 of 3 done:\n[x] read the code\n[>] write the test\n[ ] land";

Deno.test("the terminal session draws a plan as a list", async () => {
  await using open = await session([plan, say("I go on.")]);
  await open.enter("go", "I go on.");
  assert.match(
    open.pty.screen.text(),
    /✓ plan: 1 of 3 done\n {2}\[x\] read the code\n {2}\[>\] write the test\n {2}\[ \] land\n/,
  );
});

Deno.test("svc run --verbose shows a plan as a list", async () => {
  await using backend = startBackend([plan, say("done")]);
  const settings = { base_url: backend.url, model: "test", memory_enabled: false };
  await using place = await project({ ".svc/config.json": JSON.stringify(settings) });
  const { code, stderr } = await inProcess(["run", "--verbose", "-p", "go"], { cwd: place.path });
  assert.equal(code, 0);
  assert.match(
    stderr,
    /plan: 1 of 3 done\n.*\n {4}\[x\] read the code\n {4}\[>\] write/,
  );
});

Deno.test("the HTTP API streams a plan, and the console shows it", async () => {
  await using at = await server([plan, say("done")]);
  const response = await fetch(`http://127.0.0.1:${at.http.port}/chat`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ prompt: "go", session: "long work", stream: true }),
  });
  const events = (await response.text()).split("\n").filter((line) => line.startsWith("data: "))
    .map((line) => JSON.parse(line.slice(6)));
  const called = events.find((event) => event.name === "plan" && event.arguments !== undefined);
  assert.equal(called.arguments.steps[1].state, "active");
  assert.ok(events.some(({ output }) => output === LIST));
  const cookie = await signIn(at);
  const { text } = await visit(at, "/console/sessions/long%20work", cookie);
  assert.match(text, /<details class="tool"[^>]* open/);
  assert.match(text, /\[x\] read the code\n\[&gt;\] write the test\n\[ \] land/);
});
