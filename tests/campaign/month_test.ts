import assert from "node:assert/strict";
import { length, SEED } from "../support/random.ts";
import { gates, table } from "./figures.ts";
import { month } from "./month.ts";

const DAYS = length(30, 2);

Deno.test(`lanes of work that are left alone for ${DAYS} days`, async () => {
  const kills = length(46, 2);
  const window = length(64_000, 24_000);
  const made = await month({ days: DAYS, kills, seed: SEED, data: 2000, window });
  assert.deepEqual(gates(made).filter(({ met }) => !met), [], table(made));
});
