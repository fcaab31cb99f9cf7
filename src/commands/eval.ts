import { join } from "node:path";
import type { Workspace } from "../engine/workspace.ts";
import { type Fixture, fixtureOpening, loadFixtures } from "../eval/fixture.ts";
import { type EvalRequest, type FixtureResult, runFixture } from "../eval/run_fixture.ts";
import { TemporaryWorktrees } from "../eval/worktrees.ts";
import { nearest, usageError } from "../platform/error.ts";
import { oneLine } from "../platform/terminal.ts";
import { approveModels } from "../providers/model_approval.ts";
import { amount, rounded } from "../usage/ledger.ts";
import { defineCommand, pathOption, textOption } from "./command.ts";
import { listText, printLists } from "./format.ts";
import { type Io, toJson } from "./io.ts";
import { nameOf } from "./names.ts";
import { openWorkspace } from "./workspace.ts";
import {
  argument,
  choice,
  command,
  integer,
  multiple,
  option,
  string,
  withDefault,
} from "./options.ts";

/** `svc eval` (specification 4.4): how well a model uses tools, measured over fixtures. */
export const evaluate = defineCommand({
  parser: command(
    "eval",
    {
      ids: multiple(
        argument(string("FIXTURE"), "Only these fixtures; with * at the end, all that begin so."),
      ),
      fixtures: multiple(option("--fixture", string("ID"), "Only this fixture; may be repeated.")),
      provider: textOption("--provider", nameOf("providers"), "The provider to measure."),
      model: textOption("--model", nameOf("models", "REF"), "The model to measure."),
      base_url: textOption("--base-url", "URL", "The backend's address."),
      compare: textOption(
        "--compare",
        "P1,P2",
        "Measure several: providers, or <provider>/<model>, by commas.",
      ),
      min_rate: withDefault(
        option(
          "--min-rate",
          integer("PERCENT", 0, 100),
          "Exit with 0 when at least this share passes (default 100).",
        ),
        100,
      ),
      repeat: withDefault(
        option(
          "--repeat",
          integer("N", 1, 1000),
          "Run each fixture so many times, and show the spread (default 1).",
        ),
        1,
      ),
      timeout: withDefault(
        option(
          "--timeout",
          integer("SECONDS", 1, 86_400),
          "Seconds after which a fixture is ended and fails (default 300).",
        ),
        300,
      ),
      list: option("--list", "List the fixtures and run none."),
      output: withDefault(
        option("--output", choice(["table", "json"]), "table (default) or json."),
        "table",
      ),
      path: pathOption,
    },
    "Have a model do small tasks with tools and judge which it calls: the bundled fixtures, " +
      "those of plugins, of ~/.config/svc/eval/*.json and of .svc/eval/*.json.",
  ),
  examples: [
    "svc eval --provider demo",
    "svc eval read-file-lines --model groq/llama-3.3-70b-versatile",
    "svc eval --compare demo,ollama/llama3.2 --output json",
    "svc eval --min-rate 80",
    "svc eval 'work-*' --repeat 5 --model groq/llama-3.3-70b-versatile",
  ],
  async run(values, io) {
    const workspace = openWorkspace(values.path, io);
    // Tools too: warnings about plugins are then printed once, and not for every fixture.
    const needs = { tools: "all", providers: "all", fixtures: "all" } as const;
    const contributions = await workspace.load(needs);
    const { state, user } = workspace.paths;
    const all = loadFixtures({
      plugins: contributions.fixtures,
      folders: [join(user, "eval"), join(state, "eval")],
      accepts: (fixture) => {
        const opening = fixtureOpening(workspace.config, fixture);
        return opening === undefined || workspace.trust.accepts(opening);
      },
      warn: workspace.warn,
    });
    const chosen = choose(all, [...values.ids, ...values.fixtures]);
    if (values.list) {
      if (values.output === "json") io.out(toJson(chosen, 2) + "\n");
      else {
        const rows = chosen.map(({ id, description }) => [id, oneLine(description)]);
        printLists(io, listText(io, ["FIXTURE", "MEASURES"], rows));
      }
      return 0;
    }
    if (chosen.length === 0) {
      throw usageError(
        "no_fixtures",
        "There are no fixtures.",
        "Those that come with svc are the plugin's svc-core-eval; see the setting plugins.",
      );
    }
    const measured: Backend[] = [];
    // All are resolved first, so that a wrong name fails before anything is measured.
    for (const asked of backends(values)) measured.push(await resolved(asked, workspace));
    const worktrees = new TemporaryWorktrees();
    const interrupt = io.onInterrupt();
    const { signal } = interrupt;
    try {
      const { timeout, repeat } = values;
      const run = { workspace, worktrees, timeout, repeat, signal };
      const reports: Report[] = [];
      for (const backend of measured) {
        if (signal.aborted) break;
        reports.push(await measure(chosen, backend, run, io));
      }
      const begun = reports.filter(({ results }) => results.length > 0);
      if (begun.length > 0) {
        const json = values.compare === undefined ? begun[0] : begun;
        io.out(values.output === "json" ? toJson(json, 2) + "\n" : table(begun));
      }
      if (signal.aborted) return 130;
      return reports.every(({ results }) => suffices(results, values.min_rate)) ? 0 : 1;
    } finally {
      interrupt.release();
      worktrees.close();
    }
  },
});

/** The settings that name a backend. */
type Backend = Record<"provider" | "model" | "base_url", string>;

/** Computed in integers: 0.29 times 100 is less than 29. */
function suffices(results: Report["results"], percent: number): boolean {
  return results.filter(({ pass }) => pass).length * 100 >= results.length * percent;
}

/** The backend of each measurement: that of the options, or one for each word of `--compare`. */
function backends(
  { compare, provider, model, base_url }: {
    compare?: string;
    provider?: string;
    model?: string;
    base_url?: string;
  },
): Record<string, string>[] {
  const given = { provider, model, base_url };
  const set = Object.fromEntries(
    Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  if (compare === undefined) return [set];
  if (Object.keys(set).length > 0) {
    throw usageError(
      "usage",
      "--compare names the backends itself.",
      "Leave out --provider, --model and --base-url.",
    );
  }
  const words = compare.split(",").map((word) => word.trim()).filter(Boolean);
  if (words.length < 2) {
    throw usageError("usage", "--compare needs two backends.", "Pass them as: --compare P1,P2");
  }
  return words.map((word) => ({ [word.includes("/") ? "model" : "provider"]: word }));
}

function choose(all: Fixture[], ids: string[]): Fixture[] {
  if (ids.length === 0) return all;
  const found = new Set(ids.flatMap((id) => {
    const begin = id.endsWith("*") ? id.slice(0, -1) : undefined;
    const fits = all.filter((each) =>
      begin === undefined ? each.id === id : each.id.startsWith(begin)
    );
    if (fits.length > 0) return fits;
    const guess = nearest(id, all.map((fixture) => fixture.id));
    throw usageError(
      "unknown_fixture",
      `There is no fixture ${JSON.stringify(id)}.`,
      guess === undefined ? "See them with: svc eval --list" : `Did you mean "${guess}"?`,
    );
  }));
  return [...found];
}

/** Resolves a backend; a model that is named is approved (specification 5.2). */
async function resolved(asked: Record<string, string>, workspace: Workspace): Promise<Backend> {
  const { provider, model, base_url, ref } = workspace.backend(asked);
  const granted = asked.model !== undefined;
  await approveModels(ref === undefined ? [] : [ref], workspace.models, { granted });
  return { provider, model, base_url };
}

async function measure(
  fixtures: Fixture[],
  backend: Backend,
  { workspace, repeat, ...run }: Pick<EvalRequest, "worktrees" | "timeout" | "signal"> & {
    workspace: Workspace;
    repeat: number;
  },
  io: Io,
): Promise<Report> {
  const { environment, config } = workspace;
  const request = {
    ...run,
    environment,
    // The plugins of this worktree register the tools of their fixtures.
    backend: { ...backend, plugins: config.get("plugins") },
    denied: config.get("tools.deny"),
    pluginsOf: workspace,
    warn: workspace.warn,
  };
  const results: FixtureResult[] = [];
  for (const fixture of fixtures.flatMap((each) => Array<Fixture>(repeat).fill(each))) {
    const result = await runFixture(fixture, request);
    if (run.signal.aborted) break; // the result is incomplete
    if (io.isTerminal("error")) io.note(`${result.pass ? "pass" : "FAIL"}  ${result.id}`);
    results.push(result);
  }
  const passed = results.filter(({ pass }) => pass).length;
  const { provider, model } = backend;
  const ids = [...new Set(results.map(({ id }) => id))];
  const spread = ids.map((id) => spreadOf(id, results.filter((each) => each.id === id)));
  return {
    provider,
    model,
    rate: passed / (results.length || 1),
    ...costsOf(results),
    ...repeat > 1 && { spread },
    results,
  };
}

/** One backend's results. */
export interface Report extends Costs {
  provider: string;
  model: string;
  /** Share of runs that passed, 0 to 1. */
  rate: number;
  /** By fixture, of several runs each. */
  spread?: Spread[];
  results: FixtureResult[];
}

interface Costs {
  /** Of all runs; null where a model has no price. */
  cost: number | null;
  /** The same, divided by the runs that passed; null when none did. */
  cost_per_pass: number | null;
}

/** What the runs of one fixture have used. */
interface Spread extends Costs {
  id: string;
  runs: number;
  passes: number;
  rounds: Range;
  tokens: Range;
  seconds: Range;
}

interface Range {
  min: number;
  median: number;
  max: number;
}

function spreadOf(id: string, results: FixtureResult[]): Spread {
  return {
    id,
    runs: results.length,
    passes: results.filter(({ pass }) => pass).length,
    rounds: rangeOf(results.map(({ rounds }) => rounds)),
    tokens: rangeOf(results.map(({ tokens }) => tokens)),
    seconds: rangeOf(results.map(({ seconds }) => seconds)),
    ...costsOf(results),
  };
}

function costsOf(results: FixtureResult[]): Costs {
  const passes = results.filter(({ pass }) => pass).length;
  const known = results.every(({ cost, rounds }) => cost !== null || rounds === 0);
  const cost = known && results.some((each) => each.cost !== null)
    ? rounded(results.reduce((sum, each) => sum + (each.cost ?? 0), 0))
    : null;
  return { cost, cost_per_pass: cost === null || passes === 0 ? null : rounded(cost / passes) };
}

function rangeOf(values: number[]): Range {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length / 2;
  const median = (sorted[Math.ceil(half) - 1]! + sorted[Math.floor(half)]!) / 2;
  return { min: sorted[0]!, median, max: sorted.at(-1)! };
}

/** The results, a section for each backend. */
export function table(reports: Report[]): string {
  return reports.map(section).join("\n");
}

function section({ provider, model, rate, results, spread, ...costs }: Report): string {
  const passed = results.filter(({ pass }) => pass).length;
  const { cost, cost_per_pass } = costs;
  const price = cost === null ? "" : `, cost ${amount(cost)}` +
    (cost_per_pass === null ? "" : `, ${amount(cost_per_pass)} a pass`);
  return [
    `${provider}/${model}`,
    ...spread === undefined ? runRows(results) : spreadRows(spread),
    `${passed} of ${results.length} passed (${percent(rate)} %)${price}`,
  ].map((line) => `${oneLine(line)}\n`).join("");
}

function runRows(results: FixtureResult[]): string[] {
  const width = widthOf(results);
  const head = ["fixture".padEnd(width), "result", "accuracy", "calls", "redundant", "errors"];
  const lines = results.map((result) => {
    const { id, pass, accuracy, calls, redundant, errors, tokens, reasons } = result;
    const cells = [
      id.padEnd(width),
      (pass ? "pass" : "FAIL").padEnd(6),
      `${percent(accuracy)} %`.padStart(8),
      String(calls).padStart(5),
      String(redundant).padStart(9),
      String(errors).padStart(6),
      String(tokens).padStart(7),
    ];
    return `${cells.join("  ")}${reasons.length === 0 ? "" : `  ${reasons.join("; ")}`}`;
  });
  return [`${head.join("  ")}  ${"tokens".padStart(7)}`, ...lines];
}

/** Ranges are printed as minimum, median, maximum. */
function spreadRows(spread: Spread[]): string[] {
  const width = widthOf(spread);
  const range = ({ min, median, max }: Range) =>
    [min, median, max].map((each) => Number(each.toFixed(1))).join("/");
  const rows = spread.map(({ id, runs, passes, rounds, tokens, seconds, cost_per_pass }) => [
    id.padEnd(width),
    `${passes} of ${runs}`.padStart(10),
    range(rounds).padStart(10),
    range(tokens).padStart(22),
    range(seconds).padStart(18),
    cost_per_pass === null ? "" : amount(cost_per_pass).padStart(12),
  ]);
  const head = [
    "fixture".padEnd(width),
    "passes".padStart(10),
    "rounds".padStart(10),
    "tokens".padStart(22),
    "seconds".padStart(18),
    rows.some((row) => row.at(-1) !== "") ? "cost a pass".padStart(12) : "",
  ];
  return [head, ...rows].map((cells) => cells.join("  ").trimEnd());
}

function widthOf(rows: { id: string }[]): number {
  return Math.max(7, ...rows.map(({ id }) => id.length));
}

/** Rounded down: 199 of 200 are not 100 %. */
function percent(share: number): number {
  return Math.floor(share * 100 + 1e-9);
}
