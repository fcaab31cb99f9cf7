import type { Usage } from "../plugins/api.ts";
import { type Ledger, type RequestLine, rounded } from "./ledger.ts";

/** What requests can be grouped by. */
export const GROUPS = ["day", "job", "session", "model", "role", "worker"] as const;
export type Group = typeof GROUPS[number];

/** The usage of some requests. */
export interface UsageSum {
  requests: number;
  /** Tokens of the requests, of which `cached` came from the backends' caches. */
  in: number;
  cached: number;
  /** Tokens of the replies, of which `reasoning` were reasoning. */
  out: number;
  reasoning: number;
  /** Of the requests that had a price; null when none had one. */
  cost: number | null;
  /** Requests without a price. */
  unpriced: number;
}

/** The usage of a time, in groups. */
export interface UsageSummary {
  /** ISO 8601 in UTC. */
  since: string;
  by: Group;
  /** Days in their order, other groups by their tokens, the most first. The name is empty for requests without one. */
  groups: (UsageSum & { name: string })[];
  total: UsageSum;
}

/** Sums up the requests since a time in milliseconds. */
export function summarise(ledger: Ledger, since: number, by: Group): UsageSummary {
  const from = new Date(since).toISOString();
  const groups = new Map<string, UsageSum>();
  const total = none();
  for (const line of requests(ledger, from)) {
    const name = nameOf(line, by);
    let sum = groups.get(name);
    if (sum === undefined) groups.set(name, sum = none());
    add(sum, line);
    add(total, line);
  }
  const rows = Array.from(groups, ([name, sum]) => ({ name, ...sum }));
  return { since: from, by, groups: inOrder(rows, by), total };
}

/** The usage of sessions by their names, of all machines. */
export async function usageBySession(
  ledger: Ledger,
  sessions: { created_at: string }[],
): Promise<Map<string, UsageSum>> {
  await ledger.refresh();
  // The ledger has no lines of them from before the oldest.
  const since = Math.min(...sessions.map(({ created_at }) => Date.parse(created_at) || Infinity));
  const groups = since === Infinity ? [] : summarise(ledger, since, "session").groups;
  return new Map(groups.map((group) => [group.name, group]));
}

/**
 * The usage and the cost of one run of a job; null when a request had no price, or there was none.
 *
 * @param run when the run began, ISO 8601
 */
export function runUsage(
  ledger: Ledger,
  job: string,
  run: string,
): { usage: Usage; cost: number | null } {
  const sum = none();
  for (const line of requests(ledger, run.slice(0, 10))) {
    if (line.job === job && line.run === run) add(sum, line);
  }
  const counts = {
    prompt_tokens: sum.in,
    completion_tokens: sum.out,
    total_tokens: sum.in + sum.out,
    cached_tokens: sum.cached,
    reasoning_tokens: sum.reasoning,
  };
  const usage = Object.fromEntries(Object.entries(counts).filter(([, count]) => count > 0));
  return { usage, cost: sum.unpriced > 0 ? null : sum.cost };
}

/** The usage of a job, with a model, on a day; the names are empty for requests without one. */
export interface UsageCell extends UsageSum {
  /** In UTC. */
  day: string;
  job: string;
  /** `<provider>/<model>` */
  model: string;
}

/** The usage of whole days. A file of the ledger is read once, and later what was appended to it. */
export class DailyUsage {
  readonly #ledger: Ledger;
  readonly #days = new Map<string, { cells: Map<string, UsageCell>; offset: number }>();

  constructor(ledger: Ledger) {
    this.#ledger = ledger;
  }

  /** The cells since a UTC day, in the order of the days. */
  since(first: string): UsageCell[] {
    return this.#ledger.days().filter((day) => day >= first).flatMap((day) => {
      let known = this.#days.get(day);
      if (known === undefined) this.#days.set(day, known = { cells: new Map(), offset: 0 });
      const { lines, offset } = this.#ledger.readFrom(day, known.offset);
      known.offset = offset;
      for (const line of lines) {
        if ("reserves" in line) continue;
        const [job, model] = [nameOf(line, "job"), nameOf(line, "model")];
        const key = JSON.stringify([job, model]);
        let cell = known.cells.get(key);
        if (cell === undefined) known.cells.set(key, cell = { day, job, model, ...none() });
        add(cell, line);
      }
      return [...known.cells.values()];
    });
  }
}

/** Sums up cells by one of their names, in the order of `summarise`. */
export function groupCells(
  cells: UsageCell[],
  by: "day" | "job" | "model",
): UsageSummary["groups"] {
  const groups = Map.groupBy(cells, (cell) => cell[by]);
  return inOrder(Array.from(groups, ([name, some]) => ({ name, ...sumOf(some) })), by);
}

/** The sum of some usage. */
export function sumOf(some: UsageSum[]): UsageSum {
  const total = none();
  for (const each of some) {
    for (const key of [...COUNTS, "requests", "unpriced"] as const) total[key] += each[key];
    if (each.cost !== null) total.cost = rounded((total.cost ?? 0) + each.cost);
  }
  return total;
}

function inOrder(groups: UsageSummary["groups"], by: Group): UsageSummary["groups"] {
  const size = (sum: UsageSum) => sum.in + sum.out;
  return groups.sort((one, other) =>
    (by === "day" ? 0 : size(other) - size(one)) || (one.name < other.name ? -1 : 1)
  );
}

/** The requests since a time, ISO 8601 or only its day. */
function* requests(ledger: Ledger, since: string): Generator<RequestLine> {
  for (const day of ledger.days().filter((day) => day >= since.slice(0, 10))) {
    for (const line of ledger.read(day)) {
      if (!("reserves" in line) && line.time >= since) yield line;
    }
  }
}

function nameOf(line: RequestLine, by: Group): string {
  if (by === "day") return line.time.slice(0, 10);
  return by === "model" ? `${line.provider}/${line.model}` : line[by] ?? "";
}

function none(): UsageSum {
  return { requests: 0, in: 0, cached: 0, out: 0, reasoning: 0, cost: null, unpriced: 0 };
}

const COUNTS = ["in", "cached", "out", "reasoning"] as const;

function add(sum: UsageSum, line: RequestLine): void {
  sum.requests++;
  for (const key of COUNTS) sum[key] += line[key] ?? 0;
  if (line.cost === null || line.cost === undefined) sum.unpriced++;
  else sum.cost = rounded((sum.cost ?? 0) + line.cost);
}
