import assert from "node:assert/strict";
import { AdmissionQueue } from "../../src/platform/admission_queue.ts";

const { signal } = new AbortController();

Deno.test("tasks beyond the limit wait in order, and further ones are rejected", async () => {
  const queue = new AdmissionQueue({ running: 1, waiting: 2 });
  const first = await queue.enter({}, signal);
  const order: string[] = [];
  const wait = async (name: string) => {
    const release = await queue.enter(name, signal);
    order.push(name);
    release!();
  };
  const waiting = [wait("b"), wait("c")];
  assert.equal(queue.enter({}, signal), undefined);
  assert.deepEqual([queue.running, queue.waiting], [1, 2]);
  first!();
  await Promise.all(waiting);
  assert.deepEqual(order, ["b", "c"]);
  await queue.idle();
});

Deno.test("tasks with the same key run one after another, others at once", async () => {
  const queue = new AdmissionQueue({ running: 2, waiting: 2 });
  const first = await queue.enter("a", signal);
  let began = false;
  const second = queue.enter("a", signal)!.then((release) => {
    began = true;
    release();
  });
  (await queue.enter("b", signal))!();
  assert.equal(began, false);
  first!();
  await second;
  assert.equal(began, true);
});

Deno.test("a task that is cancelled while it waits does not start, and the others do", async () => {
  const queue = new AdmissionQueue({ running: 1, waiting: 2 });
  const first = await queue.enter({}, signal);
  const cancelled = new AbortController();
  const gone = queue.enter({}, cancelled.signal)!;
  const stays = queue.enter({}, signal);
  cancelled.abort(new Error("left"));
  await assert.rejects(gone, { message: "left" });
  first!();
  (await stays)!();
  await queue.idle();
  await assert.rejects(queue.enter({}, cancelled.signal)!, { message: "left" });
});
