import { lockDaemon, runningDaemon } from "../../src/jobs/daemon.ts";
import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import { project } from "../support/project.ts";
import { frozen, mounts } from "../support/tiny_disk.ts";

Deno.test("a scheduler releases its lock on a disk that became read-only", mounts, async () => {
  await using place = await project();
  const where = { state: place.path, clock: systemClock };
  const first = await lockDaemon(where);
  const pulse = { since: "", tick: 1, detached: false, last_tick: "", next: "", busy: [] };
  first.write(pulse);
  assert.equal(runningDaemon(where)?.pid, Deno.pid);
  {
    await using _ = await frozen(place.path);
    first.release();
  }
  assert.equal(runningDaemon(where), undefined);
  (await lockDaemon(where)).release();
});
