import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { readRecord } from "../../src/platform/detached.ts";
import { FULL, length, Random } from "../support/random.ts";
import { fastClock, fleet, somePorts, until, up } from "./support.ts";

/** How long agents are disturbed. */
const SECONDS = length(60, 4);
/** Time goes that many times as fast for the supervisor; an agent has 12 s to start on a busy machine. */
const SPEED = 5;
const NAMES = Array.from({ length: 8 }, (_, index) => `agent${index}`);

Deno.test(`after ${SECONDS} s of random faults every agent is healthy and runs once`, async () => {
  const ports = somePorts(20);
  await using here = await fleet(NAMES.map((name) => ({ name, max_restarts: 0 })));
  const clock = fastClock(SPEED);
  const options = { ports, clock, sweep: 500, grace: 5000 };
  let supervisor = here.supervisor(options);
  await until(supervisor, (agents) => NAMES.every((name) => up(agents[name])));

  const thieves: Deno.Listener[] = [];
  const random = new Random();
  const done: Record<string, number> = {};
  const disasters: Record<string, (name: string, pid: number) => void | Promise<void>> = {
    kill: (_, pid) => Deno.kill(pid, "SIGKILL"),
    interrupt: (_, pid) => Deno.kill(pid, "SIGINT"),
    stop: (_, pid) => Deno.kill(pid, "SIGSTOP"),
    sicken: (name) => here.project.write(`${name}/health`, "ill"),
    heal: (name) => here.project.write(`${name}/health`, ""),
    steal(name, pid) {
      const port = Number(readRecord(here.paths.recordOf(name))!.note);
      Deno.kill(pid, "SIGKILL");
      try {
        thieves.push(Deno.listen({ hostname: "127.0.0.1", port }));
      } catch {
        // the agent has not released it yet
      }
      if (thieves.length > 5) thieves.shift()!.close();
    },
    restart: (name) => here.project.write(`.svc/fleet/${name}.restart`, ""),
    async succeed() {
      // As after kill -9 of the supervisor before, which released its port locks.
      const reservations = `${here.project.path}/.svc/ports-${done.succeed ?? 0}`;
      supervisor = here.supervisor({ ...options, reservations });
      await supervisor.adopt();
    },
  };
  const kinds = Object.keys(disasters);
  const end = Date.now() + SECONDS * 1000;
  while (Date.now() < end) {
    const name = NAMES[random.below(NAMES.length)]!;
    const kind = kinds[random.below(kinds.length)]!;
    const { pid } = supervisor.agents().find((agent) => agent.name === name)!;
    if (pid !== null) {
      try {
        await disasters[kind]!(name, pid);
        done[kind] = (done[kind] ?? 0) + 1;
      } catch (error) {
        if (!(error instanceof Deno.errors.NotFound)) throw error; // it has just ended
      }
    }
    for (let sweep = random.below(5); sweep >= 0; sweep--) {
      await supervisor.sweep();
      await systemClock.sleep(20);
    }
    const live = supervisor.agents().flatMap(({ port }) => port ?? []);
    assert.equal(new Set(live).size, live.length, "no two agents have one port");
  }

  for (const name of NAMES) await here.project.write(`${name}/health`, "");
  const agents = await until(
    supervisor,
    (agents) => NAMES.every((name) => up(agents[name]) && steady(agents[name]!.since, clock.now())),
  );
  for (const name of NAMES) {
    const { pid, port } = agents[name]!;
    assert.equal(
      here.starts(name).at(-1),
      `${pid} ${port}`,
      "the last that was started is the one",
    );
    const answer = await fetch(`http://127.0.0.1:${port}/health`);
    assert.deepEqual([answer.status, await answer.json()], [200, { status: "ok" }]);
  }
  assert.equal(await processesIn(here.project.path), NAMES.length, "one process for each agent");
  for (const thief of thieves) thief.close();
  await supervisor.stop();
  assert.equal(await processesIn(here.project.path), 0);
  if (FULL) assert.ok(kinds.every((kind) => done[kind]! > 0), JSON.stringify(done));
});

/** Healthy for half a minute of the supervisor's time. */
function steady(since: string, now: number): boolean {
  return now - Date.parse(since) > 30_000;
}

/** How many processes work below a folder. */
async function processesIn(folder: string): Promise<number> {
  const args = ["-c", 'readlink /proc/[0-9]*/cwd | grep -F -c -- "$1"', "sh", `${folder}/`];
  const { stdout } = await new Deno.Command("sh", { args, cwd: "/", stderr: "null" }).output();
  return Number(new TextDecoder().decode(stdout));
}
