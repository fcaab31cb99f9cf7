import assert from "node:assert/strict";
import { EventQueue, type TurnEvent } from "../../src/engine/events.ts";

const event = (id: number): TurnEvent => ({ type: "ask", run: 1, id, question: "" });

Deno.test("events are yielded while the work runs, also those that arrive during a yield", async () => {
  const queue = new EventQueue();
  const work = Promise.withResolvers<string>();
  const stream = queue.during(work.promise);
  queue.push(event(1));
  assert.deepEqual((await stream.next()).value, event(1));
  queue.push(event(2));
  queue.push(event(3));
  assert.deepEqual((await stream.next()).value, event(2));
  assert.deepEqual((await stream.next()).value, event(3));
  const next = stream.next();
  queue.push(event(4));
  assert.deepEqual((await next).value, event(4));
  const last = stream.next();
  work.resolve("done");
  assert.deepEqual(await last, { done: true, value: "done" });
});

Deno.test("what arrived as the work ended is not lost, and its failure is passed on", async () => {
  const queue = new EventQueue();
  const work = Promise.withResolvers<string>();
  const stream = queue.during(work.promise);
  const first = stream.next();
  queue.push(event(1));
  work.reject(new Error("failed"));
  assert.deepEqual((await first).value, event(1));
  await assert.rejects(stream.next(), /failed/);
  queue.push(event(2));
  const later = queue.during(Promise.resolve("ok"));
  assert.deepEqual((await later.next()).value, event(2));
});
