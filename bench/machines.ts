// deno-lint-ignore-file no-console
/**
 * `deno task machines [--runs 2000] [--blows 40] [--seconds 240] [--seed 1]`: jobs and runs on 3 schedulers, 2 servers
 * and 6 workers that share PostgreSQL, while they are killed and stopped, connections are cut and PostgreSQL restarts.
 * Prints what is not as it has to be; exit 1 then. `tests/campaign/machines_test.ts` is its short form.
 */
import { parseArgs } from "node:util";
import { faults, machines, manyBlows } from "../tests/campaign/machines.ts";
import { startPostgres } from "../tests/support/postgres.ts";
import { Random } from "../tests/support/random.ts";

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "2000" },
    blows: { type: "string", default: "40" },
    seconds: { type: "string", default: "240" },
    seed: { type: "string", default: "1" },
  },
});
const [runs, blows, seconds, seed] = [values.runs, values.blows, values.seconds, values.seed]
  .map(Number) as [number, number, number, number];
await using server = await startPostgres();
const outcome = await machines(server, {
  seed,
  schedulers: 3,
  servers: 2,
  workers: 6,
  concurrency: 2,
  wrong: true,
  jobs: Math.floor(runs / 2),
  recurring: 6,
  runs: Math.ceil(runs / 2),
  span: seconds * 1000,
  blows: manyBlows(blows, new Random(seed)),
  delay: 200,
  tell: (line) => console.error(`${new Date().toISOString().slice(11, 19)} ${line}`),
});
const found = faults(outcome);
const due = outcome.begun.values().reduce((sum, times) => sum + times.length, 0);
const taken = outcome.takeovers.map(({ seconds }) => seconds);
console.log(
  `${runs} runs and ${due} of recurring jobs in ${Math.round(outcome.seconds)} s, ` +
    `${outcome.asked.length} requests to the model, ${taken.length} taken over ` +
    `within ${Math.max(0, ...taken).toFixed(1)} s`,
);
for (const fault of found) console.log(fault);
Deno.exitCode = found.length === 0 ? 0 : 1;
