import assert from "node:assert/strict";
import { joinSignals, Pace, systemClock } from "../../src/platform/clock.ts";
import { watchedSignal } from "../support/watched_signal.ts";

const MONTH = 30 * 86_400_000;

Deno.test("a sleep may be longer than the longest timer", async () => {
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

Deno.test("a sleep ends when its time is over, and a stopped one at once, on either of its timers", async () => {
  await systemClock.sleep(150);
  const stop = new AbortController();
  const sleeps = [20, 60_000].map((ms) => systemClock.sleep(ms, stop.signal));
  await sleeps[0];
  const long = assert.rejects(systemClock.sleep(60_000, stop.signal), /^Error: enough$/);
  stop.abort(new Error("enough"));
  await Promise.all([long, assert.rejects(sleeps[1]!, /^Error: enough$/)]);
});

Deno.test("a joined signal aborts with the first of its signals and its reason", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  using joined = joinSignals(one.signal, other.signal);
  assert.equal(joined.signal.aborted, false);
  other.abort("because");
  one.abort("later");
  assert.deepEqual([joined.signal.aborted, joined.signal.reason], [true, "because"]);
});

Deno.test("a joined signal of an aborted one is aborted at once", () => {
  using joined = joinSignals(new AbortController().signal, AbortSignal.abort("before"));
  assert.equal(joined.signal.reason, "before");
});

Deno.test("a disposed joined signal leaves no listener and no longer follows its signals", () => {
  using lasting = watchedSignal();
  const joined = joinSignals(lasting.signal, new AbortController().signal);
  assert.equal(lasting.held(), 1);
  joined[Symbol.dispose]();
  assert.equal(lasting.held(), 0);
  const controller = new AbortController();
  const { signal, [Symbol.dispose]: dispose } = joinSignals(controller.signal);
  dispose();
  controller.abort();
  assert.equal(signal.aborted, false);
});

Deno.test("one piece of work is admitted in each turn of the event loop, in order", async () => {
  const pace = new Pace();
  let loops = 0;
  let counting = true;
  const count = () => {
    loops++;
    if (counting) setImmediate(count);
  };
  setImmediate(count);
  const seen: [piece: number, loop: number][] = [];
  await Promise.all(Array.from({ length: 5 }, async (_, piece) => {
    await pace.turn();
    seen.push([piece, loops]);
  }));
  counting = false;
  assert.deepEqual(seen.map(([piece]) => piece), [0, 1, 2, 3, 4]);
  assert.equal(new Set(seen.map(([, loop]) => loop)).size, 5);
  assert.equal(seen[0]![1], 0, "the first waits for nobody");
});
