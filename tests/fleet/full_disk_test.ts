import assert from "node:assert/strict";
import { join } from "node:path";
import { systemClock } from "../../src/platform/clock.ts";
import { frozen, mounts, tiny } from "../support/tiny_disk.ts";
import { fleet, until, up } from "./support.ts";

async function fill(folder: string): Promise<string> {
  const file = join(folder, "fill");
  await Deno.writeFile(file, new Uint8Array(65536)).catch(() => {});
  return file;
}

Deno.test(
  "on a full disk an agent waits without a failure, with one warning, and starts once there is space",
  mounts,
  async () => {
    await using here = await fleet();
    await using _ = await tiny(here.project, { at: ".svc" });
    await here.write([{ name: "a", max_restarts: 1 }]);
    const filled = await fill(join(here.project.path, ".svc"));
    let now = Date.UTC(2026, 0, 2);
    const clock = {
      now: () => now,
      sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms, signal),
    };
    const supervisor = here.supervisor({ clock });
    await supervisor.adopt();
    for (let sweep = 0; sweep < 10; sweep++) {
      now += 20_000;
      await supervisor.sweep();
    }
    const [a] = supervisor.agents();
    assert.deepEqual([a!.state, a!.failures], ["down", 0]);
    assert.match(a!.error, /a\.pid cannot be written: No space left/);
    assert.equal(here.said.length, 1);
    assert.equal(here.warnings.length, 1);
    assert.match(here.warnings[0]!, /fleet\.state\.json cannot be written: No space left/);
    assert.deepEqual(here.starts("a"), []);

    await Deno.remove(filled);
    const after = await until(supervisor, ({ a }) => (now += 20, up(a)));
    assert.equal(after.a!.restarts, 0);
    const snapshot = JSON.parse(await here.project.read(".svc/fleet.state.json"));
    assert.deepEqual(Object.keys(snapshot.agents), ["a"]);
    assert.equal(here.warnings.length, 1);
    await supervisor.stop();
  },
);

Deno.test(
  "a disk that fills up does not affect running agents, and one that ends is restarted",
  mounts,
  async () => {
    await using here = await fleet();
    await using _ = await tiny(here.project, { at: ".svc" });
    await here.write([{ name: "a" }, { name: "b" }]);
    let now = Date.UTC(2026, 0, 2);
    const clock = {
      now: () => now,
      sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms, signal),
    };
    const supervisor = here.supervisor({ clock });
    const before = await until(supervisor, ({ a, b }) => (now += 20, up(a) && up(b)));
    Deno.kill(before.b!.pid!, "SIGKILL");
    await until(supervisor, ({ b }) => b!.state === "restarting");
    const filled = await fill(join(here.project.path, ".svc"));
    for (let sweep = 0; sweep < 20; sweep++) {
      now += 20_000;
      await supervisor.sweep();
    }
    const full = await until(supervisor, ({ a }) => (now += 20, up(a)));
    assert.equal(full.a!.pid, before.a!.pid);
    await Deno.remove(filled);
    const after = await until(supervisor, ({ a, b }) => (now += 20, up(a) && up(b)));
    assert.deepEqual([after.a!.pid, after.a!.restarts], [before.a!.pid, 0]);
    assert.equal(here.starts("b").length, 2);
    await supervisor.stop();
  },
);

Deno.test(
  "while the disk is read-only an agent that ends waits, a request is left to later, and the others are looked after",
  mounts,
  async () => {
    await using here = await fleet([{ name: "a", max_restarts: 1 }, { name: "b" }]);
    let now = Date.UTC(2026, 0, 2);
    const clock = {
      now: () => now,
      sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms, signal),
    };
    const supervisor = here.supervisor({ clock });
    const before = await until(supervisor, ({ a, b }) => (now += 20, up(a) && up(b)));
    await Deno.writeTextFile(here.paths.requestOf("b"), "");
    {
      await using _ = await frozen(join(here.project.path, ".svc"));
      Deno.kill(before.a!.pid!, "SIGKILL");
      await until(supervisor, ({ a }) => a!.state === "restarting");
      for (let sweep = 0; sweep < 10; sweep++) {
        now += 20_000;
        await supervisor.sweep();
      }
      const [a, b] = supervisor.agents();
      assert.match(a!.error, /a\.pid cannot be written: Read-only file system/);
      assert.deepEqual([a!.failures, a!.pid], [1, null]);
      assert.equal(b!.pid, before.b!.pid);
    }
    const after = await until(
      supervisor,
      ({ a, b }) => (now += 20, up(a) && up(b) && b!.pid !== before.b!.pid),
    );
    assert.equal(after.a!.restarts, 1);
    assert.equal(here.starts("b").length, 2);
    await supervisor.stop();
  },
);
