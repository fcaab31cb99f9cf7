import { stripControl } from "../platform/terminal.ts";
import { amount } from "../usage/ledger.ts";
import {
  type Group,
  GROUPS,
  summarise,
  type UsageSum,
  type UsageSummary,
} from "../usage/summary.ts";
import { defineCommand, outputOption, pathOption } from "./command.ts";
import { listText, printLists } from "./format.ts";
import type { Io } from "./io.ts";
import { toJson } from "./io.ts";
import { duration } from "./turn.ts";
import { openWorkspace } from "./workspace.ts";
import { choice, command, option, withDefault } from "./options.ts";

const WEEK = 7 * 86_400;

/** `svc usage`: the tokens and the cost of the requests to models. */
export const usage = defineCommand({
  parser: command("usage", {
    since: withDefault(
      option("--since", duration, "How far back, such as 12h or 30d (default 7d)."),
      WEEK,
    ),
    by: withDefault(
      option(
        "--by",
        choice(GROUPS),
        "A line for each day (default), job, session, model, role or worker.",
      ),
      "day" as Group,
    ),
    output: outputOption,
    path: pathOption,
  }, "Show the tokens that requests to models have used, and their cost by the setting prices."),
  examples: ["svc usage", "svc usage --since 30d --by model", "svc usage --by job --output json"],
  async run({ since, by, output, path }, io) {
    const { spending: { ledger }, clock } = openWorkspace(path, io);
    await ledger.refresh();
    const summary = summarise(ledger, clock.now() - since * 1000, by);
    if (output === "json") {
      io.out(toJson(summary, 2) + "\n");
      return 0;
    }
    if (summary.groups.length === 0) {
      io.note("No requests to models are recorded in this time.");
      return 0;
    }
    printLists(io, usageTable(summary, io));
    const { total: { unpriced } } = summary;
    if (summary.total.cost !== null && unpriced > 0) {
      const which = unpriced === 1 ? "1 request has" : `${unpriced} requests have`;
      io.note(`The cost is incomplete: ${which} no price (setting prices).`);
    }
    return 0;
  },
});

function usageTable({ by, groups, total }: UsageSummary, io: Io): string {
  const rows = [...groups, ...groups.length > 1 ? [{ name: "total", ...total }] : []];
  const priced = total.cost !== null;
  const cells = (name: string, sum: UsageSum) => [
    stripControl(name) || `(no ${by})`,
    ...[sum.requests, sum.in, sum.cached, sum.out, sum.reasoning].map(String),
    ...priced ? [sum.cost === null ? "" : amount(sum.cost)] : [],
  ];
  const head = ["REQUESTS", "IN", "CACHED", "OUT", "REASONING", ...priced ? ["COST"] : []];
  const cellsOf = rows.map((row) => cells(row.name, row));
  return listText(io, [by.toUpperCase(), ...head], cellsOf, { always: true });
}
