import assert from "node:assert/strict";
import { join } from "node:path";
import { project } from "../support/project.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { fleet, somePorts, until, up } from "./support.ts";

Deno.test("two fleets that start at once with one range assign each port once", async () => {
  const names = ["a", "b", "c"];
  await using one = await fleet(names.map((name) => ({ name })));
  await using two = await fleet(names.map((name) => ({ name })));
  await using user = await project();
  const options = { ports: somePorts(), reservations: join(user.path, "ports") };
  const [first, second] = [one.supervisor(options), two.supervisor(options)];
  await first.sweep();
  await second.sweep(); // none of the first's listens yet
  const ports = () => [first, second].flatMap((each) => each.agents().map(({ port }) => port));
  const { first: port } = options.ports;
  assert.deepEqual(ports(), [0, 1, 2, 3, 4, 5].map((more) => port + more));
  await until(first, (agents) => names.every((name) => up(agents[name])));
  await until(second, (agents) => names.every((name) => up(agents[name])));
  for (const name of names) {
    assert.equal(one.starts(name).length, 1);
    assert.equal(two.starts(name).length, 1);
  }
  await first.stop();
  await second.stop();
  const third = two.supervisor(options);
  await third.sweep();
  assert.equal(third.agents()[0]!.port, port, "what was stopped holds no port");
  await third.stop();
});

Deno.test("agents start although the folder of port locks is not writable", async () => {
  await using here = await fleet([{ name: "a" }]);
  await here.project.write("file", "");
  const supervisor = here.supervisor({ reservations: join(here.project.path, "file/ports") });
  await until(supervisor, ({ a }) => up(a));
  await supervisor.stop();
});

Deno.test("an agent's folder may be a link or outside of the fleet; a shared folder is warned about once", async () => {
  await using outside = await project({ "far/.keep": "" });
  await using here = await fleet();
  const far = join(outside.path, "far");
  await Deno.symlink(far, join(here.project.path, "link"));
  await here.write([{ name: "a", dir: "link" }, { name: "b", dir: far }]);
  const supervisor = here.supervisor();
  const { a, b } = await until(supervisor, ({ a, b }) => up(a) && up(b));
  assert.deepEqual(
    (await outside.read("far/starts")).trim().split("\n").sort(),
    [`${a!.pid} ${a!.port}`, `${b!.pid} ${b!.port}`].sort(),
  );
  assert.deepEqual(here.warnings, [
    `a and b have one folder, ${far}: they share its settings, sessions and jobs.`,
  ]);
  await supervisor.stop();
});

Deno.test("an agent whose folder is removed continues; after its end it waits for the folder", async () => {
  await using here = await fleet([{ name: "a" }]);
  let now = Date.UTC(2026, 0, 2);
  const clock = { now: () => now, sleep: systemClock.sleep };
  const supervisor = here.supervisor({ clock });
  const tick = () => now += 20;
  const { a } = await until(supervisor, ({ a }) => (tick(), up(a)));
  const folder = join(here.project.path, "a");
  await Deno.rename(folder, `${folder}.away`);
  for (let sweep = 0; sweep < 20; sweep++) {
    now += 2000;
    await supervisor.sweep();
    await systemClock.sleep(5);
  }
  assert.deepEqual(supervisor.agents().map(({ state, pid }) => [state, pid]), [
    ["running", a!.pid],
  ]);
  Deno.kill(a!.pid!, "SIGKILL");
  await until(supervisor, ({ a }) => a?.state === "restarting");
  now += 5000;
  const gone = await until(supervisor, ({ a }) => a?.failures === 2);
  assert.match(gone.a!.error, /No such cwd|No such file/);
  await Deno.rename(`${folder}.away`, folder);
  now += 10_000;
  const back = await until(supervisor, ({ a }) => (tick(), up(a)));
  assert.notEqual(back.a!.pid, a!.pid);
  await supervisor.stop();
});

Deno.test("clock jumps and a stopped supervisor do not affect agents", async () => {
  await using here = await fleet([{ name: "a" }, { name: "b", command: ["sh", "-c", "exit 3"] }]);
  let now = Date.UTC(2026, 0, 2);
  const clock = { now: () => now, sleep: systemClock.sleep };
  const supervisor = here.supervisor({ clock });
  const failed = await until(supervisor, ({ b }) => b?.state === "restarting");
  const pid = failed.a!.pid;
  for (const jump of [86_400_000, -7 * 86_400_000]) {
    now += jump;
    await supervisor.sweep();
    const [a, b] = supervisor.agents();
    assert.deepEqual([a!.state, a!.pid], ["running", pid]);
    assert.deepEqual([b!.state, b!.failures], ["restarting", 1], "its wait is as long as before");
    assert.equal(Date.parse(b!.retry_at) - now, 5000, "and is shown by the clock as it is now");
  }
  now += 4999;
  await supervisor.sweep();
  assert.equal(supervisor.agents()[1]!.state, "restarting");
  now += 1;
  const after = await until(supervisor, ({ a, b }) => (now += 20, up(a) && b!.failures > 1));
  assert.equal(after.a!.pid, pid);
  assert.equal(here.starts("a").length, 1);
  await supervisor.stop();
});
