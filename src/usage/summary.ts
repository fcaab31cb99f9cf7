import type { Usage } from "../plugins/api.ts";
import { type Ledger, type RequestLine, rounded } from "./ledger.ts";

/** What requests can be grouped by. */
export const GROUPS = ["day", "job", "session", "model", "role"] as const;
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
  const size = (sum: UsageSum) => sum.in + sum.out;
  rows.sort((one, other) =>
    (by === "day" ? 0 : size(other) - size(one)) || (one.name < other.name ? -1 : 1)
  );
  return { since: from, by, groups: rows, total };
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

function add(sum: UsageSum, line: RequestLine): void {
  sum.requests++;
  for (const key of ["in", "cached", "out", "reasoning"] as const) sum[key] += line[key] ?? 0;
  if (line.cost === null || line.cost === undefined) sum.unpriced++;
  else sum.cost = rounded((sum.cost ?? 0) + line.cost);
}
