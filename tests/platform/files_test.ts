import assert from "node:assert/strict";
import { join } from "node:path";
import fc from "fast-check";
import { jsonPieces, tryHold } from "../../src/platform/files.ts";
import { project } from "../support/project.ts";

Deno.test("property: the pieces of a JSON text are those of the whole, and no piece is large", () => {
  const text = fc.tuple(fc.string({ unit: "grapheme" }), fc.nat(4), fc.nat(60_000)).map((
    [unit, more, size],
  ) => "x".repeat(more) + unit.repeat(Math.ceil(size / (unit.length || 1))));
  const value = fc.record({ type: fc.string(), text, name: text, nested: fc.jsonValue() });
  fc.assert(
    fc.property(value, fc.constantFrom(undefined, 2), (value, indent) => {
      const pieces = [...jsonPieces(value, indent)];
      assert.equal(pieces.join(""), JSON.stringify(value, null, indent));
      assert.ok(pieces.every(({ length }) => length < 6 * 40_000 + 4000));
    }),
    { numRuns: 30 },
  );
});

/** Starts programs until it has started a hundred. */
const STARTS = `data:application/javascript,
  for (let i = 0; i < 100; i++) await new Deno.Command("true").output();
  self.postMessage("started");`;

Deno.test("a released lock is free, also while another thread starts programs", async () => {
  await using place = await project();
  const path = join(place.path, "lock");
  const worker = new Worker(STARTS, { type: "module" });
  let started = false;
  worker.onmessage = () => started = true;
  let refused = 0;
  while (!started) {
    for (let i = 0; i < 100; i++) {
      const lock = tryHold(path);
      if (lock === undefined) refused++;
      else lock.release();
    }
    await new Promise((resolve) => setTimeout(resolve, 0));
  }
  worker.terminate();
  assert.equal(refused, 0);
});
