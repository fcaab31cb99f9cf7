import type { FileSearchFigures } from "./file_search.ts";
import type { FleetFigures } from "./fleet.ts";
import type { FirstPrompt } from "./first_prompt.ts";
import type { RequestFigures } from "./requests.ts";
import type { Outcome } from "./scenarios.ts";
import type { SchedulerFigures } from "./scheduler.ts";
import type { ServerFigures } from "./server.ts";

/** Median and range of one figure over the runs. */
export interface Spread {
  median: number;
  min: number;
  max: number;
}

/** A contestant's figures in one scenario. `ratio` is its median time by the floor's. */
export type Figures =
  | { name: string; runs: number; ms: Spread; mb: Spread; ratio: number }
  | { name: string; did_not_run: string };

export interface ScenarioFigures {
  id: string;
  title: string;
  results: Figures[];
}

/** What `session_log.ts` found; the ratios are what the requirements are about. */
export interface SessionLogFigures {
  turn_10_ms: number;
  turn_10000_ms: number;
  turn_ratio: number;
  megabytes: number;
  parse_ms: number;
  open_ms: number;
  open_ratio: number;
}

/** Something the service has to reach. `measured` is missing when it was not measured. */
export interface Requirement {
  text: string;
  limit: number;
  unit: string;
  measured?: number;
  met: boolean;
}

/** Everything that one run of the benchmarks found. */
export interface Results {
  machine: string[];
  versions: Record<string, string>;
  scenarios: ScenarioFigures[];
  /** Of the contestants that did both turns. */
  requests?: RequestFigures[];
  /** Missing when svc did not take part. */
  first_prompt?: FirstPrompt;
  session_log: SessionLogFigures;
  /** Missing where ripgrep could not be had. */
  file_search?: FileSearchFigures;
  /** This, the fleet's and the server's: left out when svc did not take part. */
  scheduler?: SchedulerFigures;
  fleet?: FleetFigures;
  server?: ServerFigures;
  requirements: Requirement[];
}

export function scenarioFigures(id: string, title: string, outcomes: Outcome[]): ScenarioFigures {
  const floor = outcomes.find((outcome) => outcome.name === "floor");
  const base = floor && "runs" in floor ? spread(floor.runs.map((run) => run.ms)).median : NaN;
  const results = outcomes.map((outcome): Figures => {
    if ("did_not_run" in outcome) return outcome;
    const ms = spread(outcome.runs.map((run) => run.ms));
    const mb = spread(outcome.runs.map((run) => run.mb));
    return { name: outcome.name, runs: outcome.runs.length, ms, mb, ratio: ms.median / base };
  });
  return { id, title, results };
}

function spread(values: number[]): Spread {
  const sorted = values.toSorted((a, b) => a - b);
  return { median: sorted[sorted.length >> 1]!, min: sorted[0]!, max: sorted.at(-1)! };
}
