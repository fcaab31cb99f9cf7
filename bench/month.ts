// deno-lint-ignore-file no-console
/**
 * `deno task month [--days 30] [--kills 46] [--seed 1] [--verbose]`: a month of lanes of work that are left
 * alone, on a fast clock. Prints the figures; exit 1 when a gate fails. `tests/campaign/` runs a sample.
 */
import { parseArgs } from "node:util";
import { gates, table } from "../tests/campaign/figures.ts";
import { month } from "../tests/campaign/month.ts";

const { values } = parseArgs({
  options: {
    days: { type: "string", default: "30" },
    kills: { type: "string", default: "46" },
    seed: { type: "string", default: "1" },
    data: { type: "string", default: "2000" },
    verbose: { type: "boolean", default: false },
  },
});
const made = await month({
  days: Number(values.days),
  kills: Number(values.kills),
  seed: Number(values.seed),
  data: Number(values.data),
  window: 64_000,
  tell: (line) => values.verbose || !line.startsWith(" ") ? console.error(line) : undefined,
});
console.log(table(made));
if (values.verbose) {
  console.log([...made.notes].map(([note, count]) => `${count} x ${note}`).join("\n"));
}
Deno.exit(gates(made).every(({ met }) => met) ? 0 : 1);
