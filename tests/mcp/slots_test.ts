import assert from "node:assert/strict";
import { Slots } from "../../src/mcp/tools.ts";

const { signal } = new AbortController();

Deno.test("so many have room, so many wait in turn, and further ones are turned away", async () => {
  const slots = new Slots({ most: 1, queue: 2 });
  const first = await slots.take(signal);
  const order: string[] = [];
  const wait = async (name: string) => {
    const release = await slots.take(signal);
    order.push(name);
    release!();
  };
  const waiting = [wait("b"), wait("c")];
  assert.equal(await slots.take(signal), undefined);
  first!();
  await Promise.all(waiting);
  assert.deepEqual(order, ["b", "c"]);
  await slots.idle();
});

Deno.test("who leaves while waiting gives up the place, and nobody else's", async () => {
  const slots = new Slots({ most: 1, queue: 2 });
  const first = await slots.take(signal);
  const leaving = new AbortController();
  const gone = slots.take(leaving.signal);
  const stays = slots.take(signal);
  leaving.abort(new Error("left"));
  await assert.rejects(gone, { message: "left" });
  first!();
  (await stays)!();
  await slots.idle();
  await assert.rejects(slots.take(leaving.signal), { message: "left" });
});
