import assert from "node:assert/strict";
import { joinSignals } from "../../src/platform/joined_signal.ts";
import { watchedSignal } from "../support/watched_signal.ts";

Deno.test("a joined signal aborts with the first of its signals, and for its reason", () => {
  const [one, other] = [new AbortController(), new AbortController()];
  using joined = joinSignals(one.signal, other.signal);
  assert.equal(joined.signal.aborted, false);
  other.abort("because");
  one.abort("later");
  assert.deepEqual([joined.signal.aborted, joined.signal.reason], [true, "because"]);
});

Deno.test("one of an aborted signal is aborted at once", () => {
  using joined = joinSignals(new AbortController().signal, AbortSignal.abort("before"));
  assert.equal(joined.signal.reason, "before");
});

Deno.test("nothing is left with a signal that lasts, and what was joined does not follow it any more", () => {
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
