import assert from "node:assert/strict";
import { filePostgres } from "../support/postgres.ts";
import { FULL, length, Random, SEED } from "../support/random.ts";
import { type Blow, faults, machines } from "./machines.ts";

const { needed, server } = await filePostgres();
const RUNS = length(2000, 24);

/** One of each that needs time to be seen, or many of all kinds. */
function blows(): { after: number; blow: Blow }[] {
  if (!FULL) {
    return [
      { after: 3000, blow: "stop worker" },
      { after: 500, blow: "kill worker" },
      { after: 500, blow: "kill" },
      { after: 1000, blow: "cut" },
    ];
  }
  const random = new Random(SEED);
  const kinds: Blow[] = [
    "kill worker",
    "kill worker",
    "stop worker",
    "kill scheduler",
    "kill server",
  ];
  kinds.push("cut", "cut", "fast", "immediate", "kill");
  return Array.from(
    { length: 40 },
    () => ({ after: 2000 + random.below(6000), blow: random.one(kinds) }),
  );
}

Deno.test({
  name: `${RUNS} runs on many machines, which are killed and cut off, happen once each`,
  ...needed,
  fn: async () => {
    const outcome = await machines(server, {
      seed: SEED,
      schedulers: length(3, 2),
      servers: length(2, 1),
      workers: length(6, 3),
      concurrency: 2,
      wrong: true,
      jobs: RUNS / 2,
      runs: RUNS / 2,
      span: length(240_000, 6000),
      blows: blows(),
      delay: 200,
      // deno-lint-ignore no-console
      tell: FULL ? (line) => console.log(line) : undefined,
    });
    assert.deepEqual(faults(outcome), []);
    assert.equal(outcome.attempts.size + outcome.runs.length, RUNS);
  },
});
