import assert from "node:assert/strict";
import { join } from "node:path";
import { readRecord } from "../../src/platform/detached.ts";
import { somePorts } from "../fleet/support.ts";
import { isAlive, poll } from "../support/processes.ts";
import { type Project, project } from "../support/project.ts";
import { type Ended, startSvc, svc } from "../support/program.ts";

/** A worktree with two agents that the demo model serves; its fleet is down in the end. */
async function worktree(): Promise<Project & { run(...args: string[]): Promise<Ended> }> {
  const place = await project({
    "notes/.svc/config.json": '{"provider": "demo"}\n',
    "notes/todo.txt": "one\ntwo\nthree\n",
    "deep/er/.svc/config.json": '{"provider": "demo"}\n',
  });
  const { first, last } = somePorts();
  // The address is for servers of a container; agents listen on this machine alone whatever it is.
  const env = { SVC_FLEET_PORT: `${first}-${last}`, SVC_HOST: "0.0.0.0" };
  const run = (...args: string[]) => svc(["fleet", ...args], { cwd: place.path, env });
  return {
    ...place,
    run,
    async [Symbol.asyncDispose]() {
      await run("down");
      await place[Symbol.asyncDispose]();
    },
  };
}

interface Status {
  supervisor: { pid: number } | null;
  agents: { name: string; state: string; healthy: boolean; pid: number; port: number }[];
}

/** The status once it is as wanted. */
async function statusWhen(
  { run }: Awaited<ReturnType<typeof worktree>>,
  wanted: (status: Status) => boolean,
): Promise<Status> {
  const look = async () => JSON.parse((await run("status", "--output", "json")).stdout);
  return await poll(look, wanted);
}

const allUp = ({ agents }: Status) =>
  agents.length > 0 && agents.every(({ state, healthy }) => state === "running" && healthy);

/** The log of an agent that was started once. The first agent of a user makes a token. */
function listening(port: number): RegExp {
  return new RegExp(
    `^(made a token in .*\n)?listening on http://127.0.0.1:${port}\n(open the console .*\n)?$`,
  );
}

Deno.test("a fleet from init to down: supervisor, chat, logs, folders [1, 2.8, 4.4, 4.6]", async () => {
  await using here = await worktree();
  const init = await here.run("init");
  assert.equal(init.stdout, "Added er: deep/er\nAdded notes: notes\n", init.stderr);
  const up = await here.run("up", "--detach");
  assert.equal(up.code, 0, up.stderr);
  const { supervisor, agents } = await statusWhen(here, allUp);
  assert.match(up.stdout, new RegExp(`process ${supervisor!.pid}\\.`));
  const { port } = agents.find(({ name }) => name === "notes")!;

  const chat = await here.run("chat", "notes", "how many lines does todo.txt have?");
  assert.match(chat.stdout, /todo\.txt has 3 lines/, chat.stderr);
  assert.deepEqual([...Deno.readDirSync(join(here.path, "notes/.svc/sessions"))].length > 0, true);
  const logs = await here.run("logs", "notes");
  assert.match(logs.stdout, listening(port));
  const table = (await here.run("status")).stdout.split("\n");
  assert.match(table[0]!, /^supervisor: process \d+, started .*; 2 of 2 healthy$/);
  assert.match(table[2]!, /^AGENT +ENABLED +PORT +PID +STATE +RESTARTS +ERROR$/);
  assert.match(table[4]!, new RegExp(`^notes +yes +${port} +\\d+ +running +0`));

  const second = await here.run("up");
  assert.equal(second.code, 2);
  assert.match(second.stderr, /A supervisor is at work here already: process \d+\./);
  const down = await here.run("down");
  assert.equal(down.stdout, "The fleet is down.\n", down.stderr);
  const after = JSON.parse((await here.run("status", "--output", "json")).stdout);
  assert.equal(after.supervisor, null);
  assert.deepEqual(after.agents.map(({ state }: { state: string }) => state), ["down", "down"]);
  const gone = await here.run("chat", "notes", "hello?");
  assert.equal(gone.code, 1);
  assert.match(gone.stderr, /The agent notes is not running\./);
});

Deno.test("a killed fleet supervisor leaves its agents to the next one [4.6]", async () => {
  await using here = await worktree();
  await here.run("init");
  await here.run("up", "--detach");
  const before = await statusWhen(here, allUp);
  Deno.kill(before.supervisor!.pid, "SIGKILL");
  const alone = await statusWhen(here, ({ supervisor }) => supervisor === null);
  assert.deepEqual(alone.agents.map(({ pid }) => pid), before.agents.map(({ pid }) => pid));
  assert.equal((await here.run("up", "--detach")).code, 0);
  const after = await statusWhen(here, allUp);
  assert.notEqual(after.supervisor!.pid, before.supervisor!.pid);
  assert.deepEqual(after.agents.map(({ pid }) => pid), before.agents.map(({ pid }) => pid));

  Deno.kill(after.supervisor!.pid, "SIGKILL");
  await statusWhen(here, ({ supervisor }) => supervisor === null);
  const record = readRecord(join(here.path, ".svc/fleet/notes.pid"))!;
  assert.equal(await isAlive(record), true);
  assert.equal((await here.run("down")).code, 0, "agents without a supervisor are stopped as well");
  assert.equal(await isAlive(record), false);
});

Deno.test("fleet up in the foreground: an interrupt stops every agent and then the supervisor [3.4, 4.6]", async () => {
  await using here = await worktree();
  const { first } = somePorts();
  const flags = ["--dir", "notes", "--port", `${first + 1}`, "--max-restarts", "3"];
  await here.run("add", "only", ...flags);
  assert.deepEqual(JSON.parse(await here.read(".svc/fleet.json")), {
    agents: [{ name: "only", dir: "notes", prefer_port: first + 1, max_restarts: 3 }],
  });
  const child = startSvc(["fleet", "up", "--port", `${first}`], {
    cwd: here.path,
    env: { SVC_FLEET_PORT: `${first + 1}` },
  });
  let noted = "";
  const reader = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
  while (!noted.includes("only: is healthy")) noted += (await reader.read()).value;
  assert.match(noted, new RegExp(`only: started, pid \\d+, port ${first + 1}\n`));
  const base = `http://127.0.0.1:${first}`;
  const { agents } = await (await fetch(`${base}/agents`)).json();
  assert.deepEqual([agents[0].name, agents[0].state, agents[0].healthy], ["only", "running", true]);
  assert.match(
    await (await fetch(`${base}/metrics`)).text(),
    /svc_fleet_agent_up\{agent="only"\} 1/,
  );
  child.kill("SIGINT");
  for (let read; !(read = await reader.read()).done;) noted += read.value;
  assert.equal((await child.status).code, 0);
  await child.stdout.cancel();
  assert.match(noted, /only: is down\n$/);
});

Deno.test("fleet disable, enable, restart and remove reach a running supervisor [2.8, 3.4, 4.6]", async () => {
  await using here = await worktree();
  await here.run("init");
  await here.run("up", "--detach", "--sweep", "1");
  const before = await statusWhen(here, allUp);
  const notes = ({ agents }: Status) => agents.find(({ name }) => name === "notes");
  await here.run("disable", "notes");
  await statusWhen(here, (status) => notes(status)!.state === "down");
  await here.run("enable", "notes");
  const again = await statusWhen(here, allUp);
  assert.notEqual(notes(again)!.pid, notes(before)!.pid);
  await here.run("restart", "er");
  const er = ({ agents }: Status) => agents.find(({ name }) => name === "er")!;
  await statusWhen(here, (status) => allUp(status) && er(status).pid !== er(before).pid);
  await here.run("remove", "notes");
  await statusWhen(here, (status) => notes(status) === undefined);
  const unknown = await here.run("restart", "note");
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /There is no agent "note" in the fleet\./);
});

Deno.test("fleet config writes the passed options and keeps the rest, comments included [1, 4.6]", async () => {
  await using here = await worktree();
  const file = "notes/.svc/config.json";
  await here.write(
    file,
    '{\n  // why: cheap\n  "provider": "demo",\n  "tool_permission": {"bash": "allow"}\n}\n',
  );
  await here.run("init");
  const set = ["--mode", "plan", "--tools-deny", "git", "--tool-permission", "web=deny"];
  const { code, stderr } = await here.run(
    "config",
    "notes",
    ...set,
    "--system-prompt",
    "Be brief.",
  );
  assert.equal(code, 0, stderr);
  const text = await here.read(file);
  assert.match(text, /\/\/ why: cheap\n {2}"provider": "demo",/);
  assert.deepEqual(JSON.parse(text.replace(/\/\/.*/, "")), {
    provider: "demo",
    tool_permission: { bash: "allow", web: "deny" },
    mode: "plan",
    "tools.deny": ["git"],
    system_prompt: "Be brief.",
  });
});

Deno.test("fleet config copies a role of any layer once its model is approved, and an unknown role aborts the write [4.6, 5.2, 7.6]", async () => {
  await using here = await worktree();
  await here.write(
    ".svc/roles.json",
    JSON.stringify({
      clerk: { system_prompt: "You file.", model: "demo/m", tool_permission: { web: "deny" } },
    }),
  );
  await here.run("init");
  const file = "notes/.svc/config.json";
  const before = await here.read(file);
  const unknown = await here.run("config", "notes", "--role", "clark", "--mode", "plan");
  assert.equal(unknown.code, 2);
  assert.match(unknown.stderr, /clerk/);
  const unapproved = await here.run("config", "notes", "--role", "clerk");
  assert.equal(unapproved.code, 2);
  assert.match(unapproved.stderr, /model not approved: demo\/m/);
  assert.equal(await here.read(file), before);
  const { code, stderr } = await here.run("config", "notes", "--role", "clerk", "--approve-model");
  assert.equal(code, 0, stderr);
  assert.deepEqual(JSON.parse(await here.read(file)), {
    provider: "demo",
    system_prompt: "You file.",
    model: "demo/m",
    tool_permission: { web: "deny" },
  });
  const bundled = await here.run("config", "er", "--role", "researcher");
  assert.equal(bundled.code, 0, bundled.stderr);
  assert.equal(
    JSON.parse(await here.read("deep/er/.svc/config.json")).tool_permission.bash,
    "deny",
  );
});

Deno.test("no agent is started twice, even if a supervisor is killed at its start", async () => {
  await using here = await worktree();
  await here.run("init");
  const { first, last } = somePorts();
  for (let lines = 0; lines <= 2; lines++) {
    const child = startSvc(["fleet", "up"], {
      cwd: here.path,
      env: { SVC_FLEET_PORT: `${first}-${last}` },
    });
    // One line for each agent that is started or found. Each round gets one line further.
    const reader = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
    let said = "";
    while (said.split("\n").length <= lines) said += (await reader.read()).value;
    child.kill("SIGKILL");
    await child.status;
    await reader.cancel();
    await child.stdout.cancel();
  }
  assert.equal((await here.run("up", "--detach")).code, 0);
  const { agents } = await statusWhen(here, allUp);
  for (const { name, port } of agents) {
    assert.match(await here.read(`.svc/logs/${name}.log`), listening(port));
  }
});
