import assert from "node:assert/strict";
import { Pace } from "../../src/platform/clock.ts";
import { type PruneRequest, pruneSessions } from "../../src/sessions/retention.ts";
import { begin, inPlace, type Place } from "./support.ts";

const NOW = Date.UTC(2026, 0, 31);
const DAY = 86_400_000;

/** Sessions by the days since their last write. */
async function age({ directory }: Place, days: Record<string, number>): Promise<void> {
  for (const [name, ago] of Object.entries(days)) {
    const path = `${directory}/${name}.json`;
    const time = new Date(NOW - ago * DAY).toISOString();
    const text = await Deno.readTextFile(path);
    await Deno.writeTextFile(path, text.replace(/"updated_at":"[^"]*"/, `"updated_at":"${time}"`));
  }
}

function saved({ store }: Place, name: string, origin: { job?: string; parent_id?: string } = {}) {
  store.open(name, origin).close();
}

async function pruned(place: Place, request: Partial<PruneRequest>): Promise<string[]> {
  const retention = { keep_days: 0, keep_count: 0 };
  const jobs = new Map();
  const found = await pruneSessions(place.store, {
    ...{ retention, jobs, kept: new Set<string>(), now: NOW, pace: new Pace() },
    ...request,
  });
  return found.map(({ name, reason }) => `${name} ${reason}`).sort();
}

Deno.test("sessions older than the limit go, with the ones they spawned, and nothing else", () =>
  inPlace(async (place) => {
    for (const name of ["old", "new", "waits", "running"]) saved(place, name);
    saved(place, "sub", { parent_id: "old" });
    saved(place, "subsub", { parent_id: "sub" });
    saved(place, "asks", { parent_id: "waits" });
    saved(place, "fresh", { parent_id: "grown" });
    saved(place, "grown");
    Deno.writeTextFileSync(place.file("broken"), "{");
    await age(place, { old: 40, new: 29, waits: 40, running: 40, sub: 40, subsub: 40, asks: 40 });
    await age(place, { grown: 40, fresh: 1, broken: 400 });
    const running = place.store.open("running");
    const turn = await begin(running);
    await age(place, { running: 40 });
    const request = { retention: { keep_days: 30, keep_count: 0 }, kept: new Set(["asks"]) };
    const gone = ["old age", "sub parent", "subsub parent"];
    assert.deepEqual(await pruned(place, { ...request, dry_run: true }), gone);
    assert.equal(place.store.list().length, 10, "a dry run deletes nothing");
    assert.deepEqual(await pruned(place, request), gone);
    assert.deepEqual(
      place.store.list(),
      ["asks", "broken", "fresh", "grown", "new", "running", "waits"],
    );
    turn.end("ok");
    running.close();
  }));

Deno.test("the newest are kept of each job and of the rest, and a job can have limits of its own", () =>
  inPlace(async (place) => {
    for (const job of ["a", "b", ""]) {
      for (const n of [1, 2, 3, 4]) {
        saved(place, `${job}${n}`, job === "" ? {} : { job });
        await age(place, { [`${job}${n}`]: n });
      }
    }
    const retention = { keep_days: 0, keep_count: 2 };
    const jobs = new Map([["b", { keep_days: 3, keep_count: 0 }]]);
    assert.deepEqual(
      await pruned(place, { retention, jobs }),
      ["3 count", "4 count", "a3 count", "a4 count", "b4 age"],
    );
  }));

Deno.test("sessions that name each other as parents are one tree", () =>
  inPlace(async (place) => {
    saved(place, "a", { parent_id: "b" });
    saved(place, "b", { parent_id: "a" });
    await age(place, { a: 9, b: 9 });
    const retention = { keep_days: 1, keep_count: 0 };
    assert.equal((await pruned(place, { retention })).length, 2);
    assert.deepEqual(place.store.list(), []);
  }));
