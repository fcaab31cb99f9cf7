import assert from "node:assert/strict";
import { filePostgres } from "../support/postgres.ts";
import { SEED } from "../support/random.ts";
import { faults, machines } from "./machines.ts";

const { needed, server } = await filePostgres();

Deno.test({
  name: "what is due on many machines, which are killed and cut off, happens once",
  ...needed,
  fn: async () => {
    const outcome = await machines(server, {
      seed: SEED,
      schedulers: 2,
      servers: 1,
      workers: 3,
      concurrency: 2,
      wrong: true,
      jobs: 12,
      recurring: 2,
      runs: 12,
      span: 6000,
      // One of each that needs time to be seen.
      blows: [
        { after: 3000, blow: "stop worker" },
        { after: 500, blow: "kill worker" },
        { after: 500, blow: "kill" },
        { after: 1000, blow: "cut" },
      ],
      delay: 200,
    });
    assert.deepEqual(faults(outcome), []);
    assert.equal(outcome.attempts.size + outcome.runs.length, 26);
  },
});
