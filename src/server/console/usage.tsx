import type { JSX } from "hono/jsx/jsx-runtime";
import { stripControl } from "../../platform/terminal.ts";
import { amount, dayOf } from "../../usage/ledger.ts";
import {
  DailyUsage,
  groupCells,
  sumOf,
  type UsageCell,
  type UsageSum,
  type UsageSummary,
} from "../../usage/summary.ts";
import type { ConsoleContext } from "../console.ts";
import { Figure, Figures, Periods, Stacks, sum } from "./charts.tsx";
import { type Column, Count, Empty, Money, Section, Table } from "./components.tsx";
import type { ConsolePart } from "./page.ts";

const DAY = 86_400_000;
/** Days that the page can show; the second is shown first. */
const PERIODS = [7, 30, 90];
/** Models with a colour of their own; the others have one together. */
const SERIES = 5;
/** Rows of a table. */
const ROWS = 100;

/** What the requests to models have used. */
export function usagePart(
  { workspace: { spending: { ledger }, clock } }: ConsoleContext,
): ConsolePart {
  const usage = new DailyUsage(ledger);
  return {
    pages: [{
      path: "/console/usage",
      nav: "Usage",
      async show({ query }) {
        await ledger.refresh();
        const given = Number(query.get("days"));
        const days = PERIODS.includes(given) ? given : PERIODS[1]!;
        const now = clock.now();
        const dates = Array.from({ length: days }, (_, n) => dayOf(now - (days - 1 - n) * DAY));
        const cells = usage.since(dates[0]!);
        return { title: "Usage", body: <Usage cells={cells} dates={dates} /> };
      },
    }],
  };
}

function Usage({ cells, dates }: { cells: UsageCell[]; dates: string[] }): JSX.Element {
  const options = PERIODS.map((days) => ({
    href: `/console/usage?days=${days}`,
    text: `${days} days`,
    current: days === dates.length,
  }));
  const [days, jobs, models] = (["day", "job", "model"] as const)
    .map((by) => groupCells(cells, by)) as [Groups, Groups, Groups];
  const total = sumOf(cells);
  return (
    <>
      <Periods options={options} />
      {cells.length === 0 ? <Empty>No requests to models are recorded in this time.</Empty> : (
        <>
          <Total total={total} />
          <Charts cells={cells} dates={dates} models={models} />
          <details>
            <summary>The days as a table</summary>
            <UsageTable by="day" groups={days.toReversed()} total={total} />
          </details>
          <Section id="models" title="By model" count={models.length}>
            <UsageTable by="model" groups={models} total={total} />
          </Section>
          <Section id="jobs" title="By job" count={jobs.length}>
            <UsageTable by="job" groups={jobs} total={total} />
          </Section>
        </>
      )}
    </>
  );
}

type Groups = UsageSummary["groups"];

function Total({ total }: { total: UsageSum }): JSX.Element {
  const { requests, cached, cost, unpriced } = total;
  return (
    <>
      <Figures
        figures={[
          ["Cost", <Money cost={cost} />],
          [
            "Tokens in",
            <>
              <Count of={total.in} />{" "}
              <small>{Math.round(100 * cached / (total.in || 1))} % cached</small>
            </>,
          ],
          ["Tokens out", <Count of={total.out} />],
          ["Requests", <Count of={requests} />],
        ]}
      />
      {cost !== null && unpriced > 0 && (
        <p class="quiet">
          The cost is incomplete: <Count of={unpriced} /> of the requests have no price (setting
          {" "}
          <code>prices</code>).
        </p>
      )}
    </>
  );
}

function Charts({ cells, dates, models }: {
  cells: UsageCell[];
  dates: string[];
  models: Groups;
}): JSX.Element {
  const own = models.slice(0, SERIES).map(({ name }) => name);
  const names = models.length > SERIES ? [...own, "other models"] : own;
  const byDay = Map.groupBy(cells, ({ day }) => day);
  const parts = (day: string, value: (cell: UsageCell) => number) => {
    const sums = names.map(() => 0);
    for (const cell of byDay.get(day) ?? []) {
      const series = own.indexOf(cell.model);
      sums[series < 0 ? SERIES : series]! += value(cell);
    }
    return sums;
  };
  const tokens = dates.map((day) => parts(day, (cell) => cell.in + cell.out));
  const costs = dates.map((day) => parts(day, ({ cost }) => cost ?? 0));
  const priced = cells.some(({ cost }) => cost !== null);
  const ends = { from: dates[0]!, to: dates.at(-1)! };
  const chart = (title: string, all: number[][], text: (value: number) => string) => (
    <Figure
      title={title}
      note={`max ${text(Math.max(...all.map(sum)))}`}
      {...ends}
    >
      <Stacks
        label={`${title} by model, from ${ends.from} to ${ends.to}. The tables have the numbers.`}
        stacks={all.map((parts, index) => ({
          parts,
          label: `${dates[index]}: ${text(sum(parts))}`,
        }))}
      />
    </Figure>
  );
  return (
    <>
      <div class="charts">
        {chart("Tokens a day", tokens, (value) => value.toLocaleString("en"))}
        {priced && chart("Cost a day", costs, amount)}
      </div>
      <ul class="legend">
        {names.map((name, series) => <li class={`series-${series}`}>{stripControl(name)}</li>)}
      </ul>
    </>
  );
}

function UsageTable({ by, groups, total }: {
  by: "day" | "job" | "model";
  groups: Groups;
  total: UsageSum;
}): JSX.Element {
  const priced = total.cost !== null;
  const columns: Column[] = [
    { head: by.replace(/^./, (letter) => letter.toUpperCase()) },
    { head: "Requests", number: true, wide: true },
    { head: "Tokens in", number: true },
    { head: "Cached", number: true, wide: true },
    { head: "Tokens out", number: true, wide: true },
    ...priced ? [{ head: "Cost", number: true }] : [],
  ];
  const rest = groups.slice(ROWS);
  const rows = rest.length === 0
    ? groups
    : [...groups.slice(0, ROWS), { name: `${rest.length} more`, ...sumOf(rest) }];
  return (
    <div class="sums">
      <Table
        caption={`Usage by ${by}`}
        columns={columns}
        empty="None."
        rows={rows.map((sum) => [
          sum.name === "" ? <span class="quiet">no {by}</span> : stripControl(sum.name),
          <Count of={sum.requests} />,
          <Count of={sum.in} />,
          <Count of={sum.cached} />,
          <Count of={sum.out} />,
          ...priced ? [<Money cost={sum.cost} />] : [],
        ])}
      />
    </div>
  );
}
