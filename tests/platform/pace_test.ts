import assert from "node:assert/strict";
import { Pace } from "../../src/platform/pace.ts";

Deno.test("one piece of work is let through in each turn of the event loop, in order", async () => {
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
