import assert from "node:assert/strict";
import { type Entry, fleet, somePorts } from "../fleet/support.ts";
import { startSvc } from "../support/program.ts";

const STATE = ".svc/fleet.state.json";

Deno.test("a supervisor that was stopped continues: it starts nothing twice and misses nothing", async () => {
  const entries: Entry[] = ["calm", "killed", "hung", "removed"].map((name) => ({ name }));
  await using here = await fleet(entries);
  const { first, last } = somePorts(20);
  const cwd = here.project.path;
  const supervisor = startSvc(
    ["fleet", "up", "--sweep", "1", "--unhealthy-threshold", "1"],
    { cwd, env: { SVC_FLEET_PORT: `${first}-${last}` } },
  );
  const wanted = async (names: string[], so: (name: string, starts: number) => boolean) => {
    for (const deadline = Date.now() + 120_000;;) {
      const stored = JSON.parse(await here.project.read(STATE).catch(() => "{}")) as {
        agents?: Record<string, { name: string; healthy: boolean; pid: number }>;
      };
      const agents = Object.values(stored.agents ?? {});
      const well = names.every((name) =>
        agents.some((agent) => agent.name === name && agent.healthy) &&
        so(name, here.starts(name).length)
      );
      if (well && agents.length === names.length) return agents;
      assert.ok(Date.now() < deadline, JSON.stringify(agents));
      await new Promise((again) => setTimeout(again, 50));
    }
  };
  const before = await wanted(entries.map(({ name }) => name), () => true);
  const pid = (name: string) => before.find((agent) => agent.name === name)!.pid;

  supervisor.kill("SIGSTOP");
  Deno.kill(pid("killed"), "SIGKILL");
  Deno.kill(pid("hung"), "SIGSTOP");
  await here.write([...entries.slice(0, 3), { name: "added" }]);
  supervisor.kill("SIGCONT");

  const twice = ["killed", "hung"];
  const after = await wanted(
    ["calm", "killed", "hung", "added"],
    (name, starts) => starts >= (twice.includes(name) ? 2 : 1),
  );
  for (const { name, pid: now } of after) {
    assert.equal(here.starts(name).length, twice.includes(name) ? 2 : 1, name);
    assert.equal(here.starts(name).at(-1)!.split(" ")[0], String(now), name);
  }
  assert.equal(after.find(({ name }) => name === "calm")!.pid, pid("calm"));
  assert.throws(() => Deno.kill(pid("removed"), "SIGKILL"), Deno.errors.NotFound);
  supervisor.kill("SIGTERM");
  const { code } = await supervisor.output();
  assert.equal(code, 0);
});
