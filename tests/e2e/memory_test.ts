import assert from "node:assert/strict";
import { call, hang, type Reply, say, startBackend } from "../support/backend.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const as = (system: string, reply: Reply): Reply => ({ ...reply, when: { system } });
const worktree = (url: string) =>
  project({
    ".svc/config.json": JSON.stringify({ base_url: url, model: "test" }),
    ".svc/roles.json": JSON.stringify({ digger: { system_prompt: "YOU DIG" } }),
  });
const DIG = [
  call("delegate", { role: "digger", task: "dig" }),
  as("YOU DIG", say("found coal")),
];

Deno.test("a role's memory outlives the run, is shown, and is cleared [2.12]", async () => {
  await using backend = startBackend([
    ...DIG,
    as("You keep the memory of the role digger", say("coal lies\nbelow")),
    as("## Role memory", say("I know")),
    say("done"),
  ]);
  await using place = await worktree(backend.url);
  const run = (...args: string[]) => svc(args, { cwd: place.path });
  const empty = await run("memory");
  assert.deepEqual([empty.code, empty.stdout], [0, ""]);
  assert.match(empty.stderr, /Nothing is remembered/);

  assert.equal((await run("run", "--output", "text", "go")).stdout, "done\n");
  assert.match((await run("memory")).stdout, /^role {2}digger {2}\S+Z {2}coal lies\n$/);
  const shown = await run("memory", "show", "role", "digger");
  assert.equal(shown.stdout, "coal lies\nbelow\n");
  const [json] = JSON.parse((await run("memory", "list", "--output", "json")).stdout);
  assert.deepEqual([json.scope, json.name, json.text], ["role", "digger", "coal lies\nbelow"]);
  assert.equal((await run("run", "--role", "digger", "--output", "text", "go")).stdout, "I know\n");

  const cleared = await run("memory", "clear", "role", "digger");
  assert.equal(cleared.code, 0, cleared.stderr);
  for (const action of ["clear", "show"]) {
    const again = await run("memory", action, "role", "digger");
    assert.deepEqual([again.code, again.stdout], [2, ""]);
    assert.match(again.stderr, /The role "digger" remembers nothing/);
  }
  const bad = await run("memory", "show", "role", "../roles");
  assert.equal(bad.code, 2);
});

Deno.test("an interrupt while a memory is written ends the program and keeps the outcome of the run", async () => {
  await using backend = startBackend([
    ...DIG,
    as("You keep the memory of the role digger", hang()),
    say("done"),
  ]);
  await using place = await worktree(backend.url);
  const child = startSvc(["run", "--output", "text", "go"], { cwd: place.path });
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let printed = ""; // the answer is printed before the memory is written
  while (printed !== "done\n") printed += (await reader.read()).value;
  await backend.arrived(4);
  child.kill("SIGINT");
  const { code } = await child.status;
  await reader.cancel();
  await child.stderr.cancel();
  assert.equal(code, 0);
  assert.match(await place.read(".svc/memory/roles/digger.md"), /: verified\nfound coal\n$/);
});
