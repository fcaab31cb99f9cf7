import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";

const MONTH = 30 * 86_400_000;

Deno.test("a sleep longer than a timer can be set is as long as it was asked for", async () => {
  const stop = new AbortController();
  const sleeps = [MONTH, 12 * MONTH, 2 ** 31 - 1].map((ms) => systemClock.sleep(ms, stop.signal));
  const first = await Promise.race([
    ...sleeps.map((sleep) => sleep.then(() => "woken", () => "stopped")),
    systemClock.sleep(20).then(() => "asleep"),
  ]);
  assert.equal(first, "asleep");
  stop.abort(new Error("enough"));
  for (const sleep of sleeps) await assert.rejects(sleep, /^Error: enough$/);
});
