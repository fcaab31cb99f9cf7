import { argument, command, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { multiple, optional, withDefault } from "@optique/core/modifiers";
import { choice, integer, string } from "@optique/core/valueparser";
import { join } from "node:path";
import type { Workspace } from "../engine/workspace.ts";
import type { Fixture } from "../eval/fixture.ts";
import { type FixtureResult, runFixture } from "../eval/run_fixture.ts";
import { loadFixtures } from "../eval/sources.ts";
import { usageError } from "../platform/error.ts";
import { nearest } from "../platform/nearest.ts";
import { stripControl } from "../platform/terminal.ts";
import { approveModels } from "../providers/approvals.ts";
import { defineCommand, says } from "./command.ts";
import { type Io, toJson } from "./io.ts";
import { pathOption } from "./options.ts";
import { openWorkspace } from "./workspace.ts";

/** One backend's results. */
interface Report {
  provider: string;
  model: string;
  /** Share of fixtures that passed, 0 to 1. */
  rate: number;
  results: FixtureResult[];
}

/** `svc eval` (specification 4.4): how well a model uses tools, measured over fixtures. */
export const evaluate = defineCommand({
  parser: command(
    "eval",
    object({
      ids: multiple(argument(string({ metavar: "FIXTURE" }), {
        description: says("Only these fixtures."),
      })),
      fixtures: multiple(option("--fixture", string({ metavar: "ID" }), {
        description: says("Only this fixture; may be repeated."),
      })),
      provider: optional(option("--provider", string({ metavar: "NAME" }), {
        description: says("The provider to measure."),
      })),
      model: optional(option("--model", string({ metavar: "REF" }), {
        description: says("The model to measure."),
      })),
      base_url: optional(option("--base-url", string({ metavar: "URL" }), {
        description: says("The backend's address."),
      })),
      compare: optional(option("--compare", string({ metavar: "P1,P2" }), {
        description: says("Measure several: providers, or <provider>/<model>, by commas."),
      })),
      min_rate: withDefault(
        option("--min-rate", integer({ metavar: "PERCENT", min: 0, max: 100 }), {
          description: says("Exit with 0 when at least this share passes (default 100)."),
        }),
        100,
      ),
      timeout: withDefault(
        option("--timeout", integer({ metavar: "SECONDS", min: 1, max: 86_400 }), {
          description: says("What a fixture may take before it is ended and fails (default 300)."),
        }),
        300,
      ),
      list: option("--list", { description: says("List the fixtures and run none.") }),
      output: withDefault(
        option("--output", choice(["table", "json"]), {
          description: says("table (default) or json."),
        }),
        "table",
      ),
      path: pathOption,
    }),
    {
      description: says(
        "Have a model do small tasks with tools and judge which it calls: the bundled fixtures, " +
          "those of plugins, of ~/.config/svc/eval/*.json and of .svc/eval/*.json.",
      ),
    },
  ),
  examples: [
    "svc eval --provider demo",
    "svc eval read-file-lines --model groq/llama-3.3-70b-versatile",
    "svc eval --compare demo,ollama/llama3.2 --output json",
    "svc eval --min-rate 80",
  ],
  async run(values, io) {
    const workspace = openWorkspace(values.path, io);
    const contributions = await workspace.load({ providers: "all", fixtures: "all" });
    const { state, user } = workspace.paths;
    const all = loadFixtures({
      plugins: contributions.fixtures,
      folders: [join(user, "eval"), join(state, "eval")],
      warn: workspace.warn,
    });
    const chosen = choose(all, [...values.ids, ...values.fixtures]);
    if (values.list) {
      io.out(values.output === "json" ? toJson(chosen, 2) + "\n" : listing(chosen));
      return 0;
    }
    const interrupt = io.onInterrupt();
    try {
      const reports: Report[] = [];
      const limits = { timeout: values.timeout, signal: interrupt.signal };
      for (const request of backends(values)) {
        reports.push(await measure(chosen, request, workspace, limits, io));
        if (interrupt.signal.aborted) return 130;
      }
      const json = values.compare === undefined ? reports[0] : reports;
      io.out(values.output === "json" ? toJson(json, 2) + "\n" : table(reports));
      return reports.every(({ rate }) => rate * 100 >= values.min_rate) ? 0 : 1;
    } finally {
      interrupt.release();
    }
  },
});

/** What each measurement sets: one of the flags, or one a word of `--compare`. */
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
  return ids.map((id) => {
    const found = all.find((fixture) => fixture.id === id);
    if (found !== undefined) return found;
    const guess = nearest(id, all.map((fixture) => fixture.id));
    throw usageError(
      "unknown_fixture",
      `There is no fixture ${JSON.stringify(id)}.`,
      guess === undefined ? "See them with: svc eval --list" : `Did you mean "${guess}"?`,
    );
  });
}

async function measure(
  fixtures: Fixture[],
  asked: Record<string, string>,
  workspace: Workspace,
  { timeout, signal }: { timeout: number; signal: AbortSignal },
  io: Io,
): Promise<Report> {
  const { config } = workspace;
  const keys = ["provider", "model", "base_url"] as const;
  for (const key of keys) config.release(key);
  for (const [key, value] of Object.entries(asked)) config.override(key, value);
  const { provider, model, base_url } = workspace.backend();
  const { ref } = workspace.backendRequest();
  const granted = asked.model !== undefined;
  await approveModels(ref === undefined ? [] : [ref], workspace.models, { granted });
  const request = {
    environment: workspace.environment,
    // The list of the worktree that asks: its own plugins bring the tools of their fixtures.
    backend: { provider, model, base_url, plugins: config.get("plugins") },
    plugins: join(workspace.paths.state, "plugins"),
    warn: () => {}, // what there is to say of plugins has been said when they were first loaded
    timeout,
    signal,
  };
  const results = [];
  for (const fixture of fixtures) {
    if (signal.aborted) break;
    const result = await runFixture(fixture, request);
    if (io.isTerminal("error")) io.note(`${result.pass ? "pass" : "FAIL"}  ${result.id}`);
    results.push(result);
  }
  const passed = results.filter(({ pass }) => pass).length;
  return { provider, model, rate: results.length === 0 ? 1 : passed / results.length, results };
}

function listing(fixtures: Fixture[]): string {
  const width = Math.max(0, ...fixtures.map(({ id }) => id.length));
  return stripControl(
    fixtures.map(({ id, description }) => `${id.padEnd(width)}  ${description}\n`).join(""),
  );
}

function table(reports: Report[]): string {
  return stripControl(reports.map(section).join("\n"));
}

function section({ provider, model, rate, results }: Report): string {
  const width = Math.max(7, ...results.map(({ id }) => id.length));
  const head = ["fixture".padEnd(width), "result", "accuracy", "calls", "redundant", "errors"];
  const lines = results.map((result) => {
    const { id, pass, accuracy, calls, redundant, errors, tokens, reasons } = result;
    const cells = [
      id.padEnd(width),
      (pass ? "pass" : "FAIL").padEnd(6),
      `${Math.round(accuracy * 100)} %`.padStart(8),
      String(calls).padStart(5),
      String(redundant).padStart(9),
      String(errors).padStart(6),
      String(tokens).padStart(7),
    ];
    return `${cells.join("  ")}${reasons.length === 0 ? "" : `  ${reasons.join("; ")}`}`;
  });
  const passed = results.filter(({ pass }) => pass).length;
  return [
    `${provider}/${model}`,
    `${head.join("  ")}  ${"tokens".padStart(7)}`,
    ...lines,
    `${passed} of ${results.length} passed (${Math.round(rate * 100)} %)`,
  ].map((line) => `${line}\n`).join("");
}
