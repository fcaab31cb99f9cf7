import assert from "node:assert/strict";
import { join } from "node:path";
import { tryHold } from "../../src/platform/files.ts";
import { project } from "../support/project.ts";

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
