import assert from "node:assert/strict";
import { join } from "node:path";
import { AGENT, somePorts } from "../fleet/support.ts";
import { poll } from "../support/processes.ts";
import { type Project, project } from "../support/project.ts";
import { commandLine, type Ended, startSvc, svc } from "../support/program.ts";
import { Pty } from "../support/pty.ts";

/** What people see of a fleet: its agents talk, and its status is watched. */
async function fleet(files: Record<string, string>): Promise<
  Project & { options: { cwd: string; env: Record<string, string> }; run: Run }
> {
  const place = await project(files);
  const { first, last } = somePorts();
  const options = { cwd: place.path, env: { SVC_FLEET_PORT: `${first}-${last}` } };
  const run: Run = (...args) => svc(["fleet", ...args], options);
  return {
    ...place,
    options,
    run,
    async [Symbol.asyncDispose]() {
      await run("down");
      await place[Symbol.asyncDispose]();
    },
  };
}

type Run = (...args: string[]) => Promise<Ended>;

async function allHealthy(run: Run): Promise<void> {
  const look = async () => JSON.parse((await run("status", "--output", "json")).stdout);
  await poll(look, ({ agents }) => agents.every(({ healthy }: { healthy: boolean }) => healthy));
}

Deno.test("an agent that requires a token is probed, adopted and used by fleet chat", async () => {
  const token = "a-token-of-more-than-16-characters";
  await using here = await fleet({ "notes/todo.txt": "one\ntwo\nthree\n" });
  const file = join(here.path, "token");
  await here.write("token", `# for notes\n${token}\n`);
  await Deno.chmod(file, 0o600);
  const config = { provider: "demo", "serve.token_file": file };
  await here.write("notes/.svc/config.json", JSON.stringify(config));
  await here.run("init");
  await here.run("up", "--detach");
  await allHealthy(here.run);
  const status = await here.run("status", "--output", "json");
  const { supervisor, agents: [agent] } = JSON.parse(status.stdout);
  const bare = await fetch(`http://127.0.0.1:${agent.port}/version`);
  assert.equal(bare.status, 401);
  await bare.body?.cancel();

  const said = await here.run("chat", "notes", "how many lines does todo.txt have?");
  assert.match(said.stdout, /todo\.txt has 3 lines/, said.stderr);
  const json = await here.run("chat", "notes", "hello", "--output", "json", "--session", "s");
  assert.deepEqual([json.code, JSON.parse(json.stdout).session], [0, "s"]);

  Deno.kill(supervisor.pid, "SIGKILL");
  await here.run("up", "--detach");
  await allHealthy(here.run);
  const after = JSON.parse((await here.run("status", "--output", "json")).stdout);
  assert.deepEqual([after.agents[0].pid, after.agents[0].restarts], [agent.pid, 0]);

  await here.write("token", "another-token-of-more-than-16\n");
  const refused = await here.run("chat", "notes", "hello");
  assert.equal(refused.code, 1);
  assert.match(refused.stderr, /notes did not answer: /);
  assert.doesNotMatch(refused.stderr, /a-token|another-token/);
});

Deno.test("an answer is shown as it arrives, sanitised, and an aborted one is an error", async () => {
  await using here = await fleet({ "a/.keep": "" });
  const roster = { agents: [{ name: "a", dir: "a", command: AGENT }] };
  await here.write(".svc/fleet.json", JSON.stringify(roster));
  await here.run("up", "--detach");
  await allHealthy(here.run);
  for (
    const [end, code, stderr] of [["break", 1, /late\n.*its answer broke off/s], ["on", 0, /late/]]
  ) {
    await Deno.remove(join(here.path, "a/go")).catch(() => {});
    const child = startSvc(["fleet", "chat", "a", "count"], here.options);
    const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
    let seen = "";
    for (let next; !seen.includes("one") && !(next = await reader.read()).done;) seen += next.value;
    await here.write("a/go", end as string); // the agent waits for this
    for (let next; !(next = await reader.read()).done;) seen += next.value;
    assert.equal(seen, "one two\n");
    assert.match(await new Response(child.stderr).text(), stderr as RegExp);
    assert.equal((await child.status).code, code);
  }
});

Deno.test("fleet status --watch updates a terminal until it is interrupted [4.6]", async () => {
  await using here = await fleet({ "notes/.svc/config.json": '{"provider": "demo"}' });
  await here.run("init");
  await using screen = new Pty(commandLine(["fleet", "status", "--watch"]), here.options, 60);
  await screen.until("no supervisor (svc fleet up); 0 of 1 healthy");
  const before = await screen.settings();
  await here.run("up", "--detach");
  await screen.until(
    /^supervisor: process \d+, started .*; 1 of 1 healthy\n\nAGENT .*\n(?: +ERROR\n)?notes +yes +\d+ +\d+ +running/,
  );
  assert.doesNotMatch(screen.screen.text(), /no supervisor/, "each look replaces the one before");
  assert.equal(await screen.settings(), before);
  await screen.type("\x03");
  assert.equal(await screen.ended, 0);
});
