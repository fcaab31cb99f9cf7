import assert from "node:assert/strict";
import { join } from "node:path";
import { systemClock } from "../../src/platform/clock.ts";
import { fastClock, fleet, somePorts, until, up } from "./support.ts";

/** A clock that goes on only when a test moves it, save that requests keep their time limit. */
function handClock() {
  let now = Date.UTC(2026, 0, 2);
  return {
    now: () => now,
    sleep: systemClock.sleep,
    /** Milliseconds. */
    move: (ms: number) => void (now += ms),
  };
}

Deno.test("the next sweep starts an enabled agent on a port, and it becomes healthy [3.4, 4.6]", async () => {
  await using here = await fleet([{ name: "a" }, { name: "b", enabled: false }]);
  const supervisor = here.supervisor();
  await supervisor.adopt();
  await supervisor.sweep();
  assert.deepEqual(supervisor.agents().map(({ state }) => state), ["running", "down"]);
  const { a } = await until(supervisor, ({ a }) => up(a));
  assert.deepEqual(here.starts("a"), [`${a!.pid} ${a!.port}`]);
  const snapshot = JSON.parse(await here.project.read(".svc/fleet.state.json"));
  const [running, down] = supervisor.agents();
  const { a: stored } = snapshot.agents;
  assert.deepEqual({ ...stored, ...running }, stored);
  assert.deepEqual({ ...snapshot.agents.b, ...down, pid: 0, port: 0 }, snapshot.agents.b);
  // The field names of the file of an earlier program.
  const { status, last_error, consecutive_unhealthy, started_at } = stored;
  assert.deepEqual([status, last_error, consecutive_unhealthy], ["healthy", "", 0]);
  assert.deepEqual([started_at, snapshot.agents.b.status], [running!.since, "disabled"]);
  assert.deepEqual([snapshot.supervisor.pid, snapshot.supervisor_pid], [Deno.pid, Deno.pid]);
  assert.equal(await here.project.read(".svc/logs/a.log"), `here on ${a!.port}\n`);
  await supervisor.stop();
  assert.deepEqual(here.starts("b"), []);
});

Deno.test("stopping an agent sends SIGINT, and SIGKILL when it runs after the grace period [3.4]", async () => {
  await using here = await fleet([{ name: "a" }, { name: "b" }]);
  await here.project.write("b/stubborn", "yes");
  const clock = handClock();
  const supervisor = here.supervisor({ clock, grace: 7000 });
  await until(supervisor, ({ a, b }) => {
    clock.move(20); // as fast as time itself: a start may take long
    return up(a) && up(b);
  });
  await here.write([{ name: "a", enabled: false }, { name: "b", enabled: false }]);
  const halfway = await until(
    supervisor,
    ({ a, b }) =>
      a?.state === "down" && b?.state === "stopping" &&
      Deno.readTextFileSync(here.paths.logOf("b")).endsWith("no\n"),
  );
  clock.move(6999);
  await supervisor.sweep();
  assert.equal(supervisor.agents()[1]!.pid, halfway.b!.pid);
  clock.move(1);
  await until(supervisor, ({ b }) => b?.state === "down");
  assert.deepEqual(supervisor.agents().map(({ pid }) => pid), [null, null]);
});

Deno.test("a supervisor that is interrupted stops its agents [3.4]", async () => {
  await using here = await fleet([{ name: "a" }]);
  const interrupt = new AbortController();
  const supervisor = here.supervisor({
    sweep: 50,
    say: (line) => /healthy/.test(line) && interrupt.abort(),
  });
  await supervisor.run(interrupt.signal);
  assert.deepEqual(supervisor.agents().map(({ state, pid }) => [state, pid]), [["down", null]]);
  const snapshot = JSON.parse(await here.project.read(".svc/fleet.state.json"));
  assert.equal(snapshot.supervisor, null);
  assert.deepEqual([...Deno.readDirSync(here.paths.folder)], []);
});

Deno.test("a killed agent is restarted after 5 s, and after 10 s the next time [1, 3.4]", async () => {
  await using here = await fleet([{ name: "a" }]);
  const clock = handClock();
  const supervisor = here.supervisor({ clock });
  for (const [round, wait] of [5000, 10_000].entries()) {
    const { a } = await until(supervisor, ({ a }) => {
      clock.move(a?.state === "running" ? 20 : 0);
      return up(a);
    });
    Deno.kill(a!.pid!, "SIGKILL");
    const down = await until(supervisor, ({ a }) => a?.state === "restarting");
    assert.equal(down.a!.error, `was ended by signal 9: here on ${a!.port}`);
    clock.move(wait - 1);
    await supervisor.sweep();
    assert.equal(here.starts("a").length, round + 1);
    clock.move(1);
    const again = await until(supervisor, ({ a }) => a?.state === "running");
    assert.equal(again.a!.restarts, round + 1);
    const well = await until(supervisor, ({ a }) => {
      clock.move(a?.healthy ? 0 : 20);
      return up(a);
    });
    assert.deepEqual([well.a!.failed_probes, well.a!.error], [0, down.a!.error]);
  }
  await supervisor.stop();
});

Deno.test("an agent that is unhealthy twice in a row is replaced [3.4, 8]", async () => {
  await using here = await fleet([{ name: "a" }]);
  const supervisor = here.supervisor({ clock: fastClock(4) });
  const { a } = await until(supervisor, ({ a }) => up(a));
  await here.project.write("a/health", "ill");
  const ill = await until(supervisor, ({ a }) => a?.state === "restarting");
  assert.equal(ill.a!.error, "GET /health answered 500");
  await Deno.remove(join(here.project.path, "a/health"));
  const well = await until(supervisor, ({ a }) => up(a));
  assert.notEqual(well.a!.pid, a!.pid);
  assert.equal(well.a!.restarts, 1);
  await supervisor.stop();
});

Deno.test("an agent that hangs is killed after the probe and grace timeouts [4.6, 8]", async () => {
  await using here = await fleet([{ name: "a" }]);
  const supervisor = here.supervisor({ clock: fastClock(4) });
  const { a } = await until(supervisor, ({ a }) => up(a));
  Deno.kill(a!.pid!, "SIGSTOP");
  const hung = await until(supervisor, ({ a }) => a?.state === "stopping");
  assert.equal(hung.a!.error, "GET /health was not answered within 2 s");
  const after = await until(supervisor, ({ a }) => up(a) && a!.restarts > 0);
  assert.notEqual(after.a!.pid, a!.pid);
  await supervisor.stop();
});

Deno.test("an agent that misses one probe and recovers is not restarted", async () => {
  await using here = await fleet([{ name: "a" }]);
  const supervisor = here.supervisor({ clock: fastClock(4) });
  const { a } = await until(supervisor, ({ a }) => up(a));
  Deno.kill(a!.pid!, "SIGSTOP");
  await until(supervisor, ({ a }) => a!.error !== "");
  Deno.kill(a!.pid!, "SIGCONT");
  const after = await until(supervisor, ({ a }) => up(a) && a!.error === "");
  assert.deepEqual([after.a!.pid, after.a!.restarts], [a!.pid, 0]);
  assert.equal(here.starts("a").length, 1);
  await supervisor.stop();
});

Deno.test("an agent beyond max_restarts is crashed until it is restarted [3.4]", async () => {
  const command = ["sh", "-c", "echo no luck; exit 3"];
  await using here = await fleet([{ name: "a", command, max_restarts: 2 }]);
  const clock = handClock();
  const supervisor = here.supervisor({ clock });
  await until(supervisor, ({ a }) => {
    clock.move(1000);
    return a?.state === "crashed";
  });
  const end = "exited with code 3: no luck; crashed after 3 failures, until it is restarted";
  assert.equal(here.said.at(-1), `a: ${end}`);
  clock.move(86_400_000);
  await supervisor.sweep();
  const [crashed] = supervisor.agents();
  assert.deepEqual([crashed!.state, crashed!.error], ["crashed", "exited with code 3: no luck"]);
  // What `fleet restart` leaves behind in another process.
  await here.project.write(".svc/fleet/a.restart", "");
  await supervisor.sweep();
  const [a] = supervisor.agents();
  assert.deepEqual([a!.state, a!.restarts, a!.failures], ["running", 0, 0]);
  await supervisor.stop();
});

Deno.test("an edit of the roster takes effect with the next sweep [4.6]", async () => {
  await using here = await fleet([{ name: "a" }, { name: "b" }]);
  const supervisor = here.supervisor();
  const before = await until(supervisor, ({ a, b }) => up(a) && up(b));
  await here.write([{ name: "a", enabled: false }, { name: "c" }]);
  const after = await until(supervisor, ({ a, b, c }) => a?.state === "down" && !b && up(c));
  assert.equal(after.a!.pid, null);
  await here.write([{ name: "a" }, { name: "c", prefer_port: before.b!.port! }]);
  await until(supervisor, ({ a, c }) => up(a) && up(c) && c!.port === before.b!.port);
  assert.equal(here.starts("c").length, 2, "another port means another process");
  await supervisor.stop();
});

Deno.test("a broken roster changes nothing, is kept, and takes effect once repaired", async () => {
  await using here = await fleet([{ name: "a" }]);
  const supervisor = here.supervisor();
  const { a } = await until(supervisor, ({ a }) => up(a));
  await here.project.write(".svc/fleet.json", "{ agents: oops");
  await supervisor.sweep();
  await supervisor.sweep();
  assert.equal(supervisor.agents()[0]!.pid, a!.pid);
  assert.equal(here.warnings.length, 1);
  assert.match(here.warnings[0]!, /^The roster is left as it is: .*fleet\.json is not valid JSON/);
  assert.equal(await here.project.read(".svc/fleet.json"), "{ agents: oops");
  await here.write([]);
  await until(supervisor, (agents) => Object.keys(agents).length === 0);
});

Deno.test("a broken entry does not affect its running agent", async () => {
  await using here = await fleet([{ name: "a" }, { name: "b" }]);
  const supervisor = here.supervisor();
  const before = await until(supervisor, ({ a, b }) => up(a) && up(b));
  await here.write([{ name: "a", max_restarts: "many" }, { name: "b" }]);
  await supervisor.sweep();
  assert.deepEqual(supervisor.agents().map(({ pid }) => pid), [before.a!.pid, before.b!.pid]);
  assert.match(here.warnings[0]!, /agents\[0\] \("a"\): max_restarts /);
  await supervisor.stop();
});

Deno.test("without a free port an agent waits with an error, and starts when there is one [3.4]", async () => {
  await using here = await fleet([{ name: "a" }]);
  const { first } = somePorts();
  const thief = Deno.listen({ hostname: "127.0.0.1", port: first });
  const supervisor = here.supervisor({ ports: { first, last: first } });
  await supervisor.sweep();
  const error = `no free port from ${first} to ${first}`;
  assert.deepEqual(supervisor.agents().map(({ state, error }) => [state, error]), [[
    "down",
    error,
  ]]);
  assert.deepEqual(here.said, [`a: ${error}`]);
  thief.close();
  const { a } = await until(supervisor, ({ a }) => up(a));
  assert.equal(a!.port, first);
  assert.equal(a!.error, "");
  await supervisor.stop();
});

Deno.test("no two agents get the same port, even if they prefer it [4.6]", async () => {
  const { first, last } = somePorts();
  const names = ["a", "b", "c", "d"];
  await using here = await fleet(names.map((name) => ({ name, prefer_port: first + 1 })));
  const supervisor = here.supervisor({ ports: { first, last } });
  await until(supervisor, (agents) => names.every((name) => up(agents[name])));
  const ports = supervisor.agents().map(({ port }) => port);
  assert.deepEqual(ports, [first + 1, first, first + 2, first + 3]);
  await supervisor.stop();
});

Deno.test("an agent that is restarted keeps its port, unless the roster gives it to another [4.6]", async () => {
  await using here = await fleet([{ name: "a" }, { name: "b" }]);
  const supervisor = here.supervisor();
  const before = await until(supervisor, ({ a, b }) => a!.healthy && b!.healthy);
  await Deno.writeTextFile(here.paths.requestOf("b"), "");
  await here.write([{ name: "new" }, { name: "a" }, { name: "b" }]);
  const restarted = await until(
    supervisor,
    (agents) => agents.b!.healthy && agents.b!.pid !== before.b!.pid && agents.new!.healthy,
  );
  assert.equal(restarted.b!.port, before.b!.port);

  await here.write([{ name: "a" }, { name: "b", enabled: false }]);
  await until(supervisor, ({ b }) => b!.state === "down" && b!.pid === null);
  const { port } = before.b!;
  await here.write([{ name: "a", prefer_port: port }, { name: "b" }]);
  const moved = await until(supervisor, ({ a, b }) => a!.port === port && b!.healthy);
  assert.notEqual(moved.b!.port, port);
});

Deno.test("a missing folder is a failure of its agent only", async () => {
  await using here = await fleet([{ name: "a", dir: "nowhere" }, { name: "b" }]);
  const supervisor = here.supervisor();
  const { a } = await until(supervisor, ({ b }) => up(b));
  assert.equal(a!.state, "restarting");
  assert.match(a!.error, /nowhere/);
  await supervisor.stop();
});

Deno.test("another supervisor adopts the agents of the first and starts none twice", async () => {
  await using here = await fleet([{ name: "a" }, { name: "b" }]);
  const before = await until(here.supervisor(), ({ a, b }) => up(a) && up(b));
  const second = here.supervisor();
  await second.adopt();
  const after = await until(second, ({ a, b }) => up(a) && up(b));
  for (const name of ["a", "b"]) {
    assert.equal(after[name]!.pid, before[name]!.pid);
    assert.equal(after[name]!.port, before[name]!.port);
    assert.equal(here.starts(name).length, 1);
  }
  await second.stop();
  assert.deepEqual(second.agents().map(({ pid }) => pid), [null, null]);
});

Deno.test("agents are adopted without a snapshot too, and a broken snapshot is kept [2.8, 7.6]", async () => {
  await using here = await fleet([{ name: "a" }]);
  const before = await until(here.supervisor(), ({ a }) => up(a));
  await here.project.write(".svc/fleet.state.json", "torn {");
  const second = here.supervisor();
  await second.adopt();
  const after = await until(second, ({ a }) => up(a));
  assert.equal(after.a!.pid, before.a!.pid);
  const kept = [...Deno.readDirSync(join(here.project.path, ".svc"))].map(({ name }) => name)
    .filter((name) => name.startsWith("fleet.state.json.broken-"));
  assert.equal(await here.project.read(`.svc/${kept[0]}`), "torn {");
  await second.stop();
});

Deno.test("the end of an adopted agent is noticed, and it is restarted", async () => {
  await using here = await fleet([{ name: "a" }]);
  const before = await until(here.supervisor(), ({ a }) => up(a));
  const second = here.supervisor({ clock: fastClock(4) });
  await second.adopt();
  Deno.kill(before.a!.pid!, "SIGKILL");
  const after = await until(second, ({ a }) => a?.restarts === 1 && up(a));
  assert.notEqual(after.a!.pid, before.a!.pid);
  await second.stop();
});

Deno.test("another program with the process number of an agent is neither adopted nor signalled", async () => {
  await using here = await fleet([{ name: "a" }]);
  const stranger = new Deno.Command("sleep", { args: ["1000"] }).spawn();
  const record = (port: number) => `${stranger.pid} another-boot/12345 ${port}\n`;
  await here.project.write(".svc/fleet/a.pid", record(8780));
  await here.project.write(".svc/fleet/gone.pid", record(8781));
  const supervisor = here.supervisor();
  await supervisor.adopt();
  const { a } = await until(supervisor, ({ a }) => up(a));
  assert.notEqual(a!.pid, stranger.pid);
  await supervisor.stop();
  stranger.kill("SIGTERM"); // the first signal that it gets
  assert.equal((await stranger.status).signal, "SIGTERM");
});

Deno.test("an agent's process that does not answer is replaced; no second one runs next to it", async () => {
  await using here = await fleet([{ name: "a" }]);
  const before = await until(here.supervisor(), ({ a }) => up(a));
  Deno.kill(before.a!.pid!, "SIGSTOP");
  const second = here.supervisor({ clock: fastClock(4) });
  await second.adopt();
  const [found] = second.agents();
  assert.deepEqual([found!.state, found!.pid], ["stopping", before.a!.pid]);
  const after = await until(second, ({ a }) => up(a) && a!.pid !== before.a!.pid);
  assert.equal(after.a!.restarts, 1);
  await second.stop();
});

Deno.test("an agent that runs svc serve is adopted only when it answers GET /version as svc does", async () => {
  await using here = await fleet();
  await here.write([{ name: "a", command: undefined }]);
  // The program of tests takes no notice of the arguments: serve --host 127.0.0.1 --port ...
  const { AGENT: svc } = await import("./support.ts");
  const before = await until(here.supervisor({ svc }), ({ a }) => up(a));
  const second = here.supervisor({ svc });
  await second.adopt();
  assert.deepEqual(second.agents().map(({ state, pid }) => [state, pid]), [
    ["running", before.a!.pid],
  ]);
  await here.project.write("a/version", "none");
  const third = here.supervisor({ svc });
  await third.adopt();
  const [a] = third.agents();
  assert.deepEqual([a!.state, a!.error], ["stopping", "GET /version is not answered as svc does"]);
  await third.stop();
});

Deno.test("an agent that was removed from the roster without a supervisor is stopped", async () => {
  await using here = await fleet([{ name: "a" }]);
  await until(here.supervisor(), ({ a }) => up(a));
  await here.write([]);
  const second = here.supervisor();
  await second.adopt();
  await until(second, (agents) => Object.keys(agents).length === 0);
  assert.equal(here.said.at(-1), "a: is down");
});

Deno.test("a crashed agent stays crashed for the next supervisor", async () => {
  await using here = await fleet([{ name: "a", command: ["false"], max_restarts: 1 }]);
  const clock = fastClock(100);
  await until(here.supervisor({ clock }), ({ a }) => a?.state === "crashed");
  const second = here.supervisor({ clock });
  await second.adopt();
  await second.sweep();
  assert.equal(second.agents()[0]!.state, "crashed");
});

Deno.test("the logs of agents are rotated while they write [2.8]", async () => {
  await using here = await fleet([{ name: "a" }]);
  const old = "x".repeat(6 * 1024 * 1024);
  await here.project.write(".svc/logs/a.log", old);
  const supervisor = here.supervisor();
  const { a } = await until(supervisor, ({ a }) => up(a));
  const written = await here.project.read(".svc/logs/a.log.1") +
    await here.project.read(".svc/logs/a.log");
  assert.equal(written, `${old}here on ${a!.port}\n`);
  await supervisor.stop();
});

Deno.test("svc serve of an agent is started with the log format of its supervisor", async () => {
  await using here = await fleet([{ name: "a", command: undefined }]);
  const svc = ["sh", "-c", 'echo "$*"', "svc"];
  const supervisor = here.supervisor({ svc, serve: ["--log", "json"] });
  await until(supervisor, ({ a }) => a!.state === "restarting");
  assert.match(
    await Deno.readTextFile(here.paths.logOf("a")),
    /^serve --host 127\.0\.0\.1 --port \d+ --path \S+ --log json$/m,
  );
});
