import type { Fixture } from "../../eval/fixture.ts";
import type { FixtureResult } from "../../eval/run_fixture.ts";
import { oneLine } from "../../platform/terminal.ts";

/** One backend's results. */
export interface Report {
  provider: string;
  model: string;
  /** Share of fixtures that passed, 0 to 1. */
  rate: number;
  results: FixtureResult[];
}

/** Fixtures by id, a line each. */
export function listing(fixtures: Fixture[]): string {
  const width = Math.max(0, ...fixtures.map(({ id }) => id.length));
  return fixtures
    .map(({ id, description }) => `${id.padEnd(width)}  ${oneLine(description)}`.trimEnd() + "\n")
    .join("");
}

/** What was measured, a section for each backend. */
export function table(reports: Report[]): string {
  return reports.map(section).join("\n");
}

function section({ provider, model, rate, results }: Report): string {
  const width = Math.max(7, ...results.map(({ id }) => id.length));
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
  const passed = results.filter(({ pass }) => pass).length;
  return [
    `${provider}/${model}`,
    `${head.join("  ")}  ${"tokens".padStart(7)}`,
    ...lines,
    `${passed} of ${results.length} passed (${percent(rate)} %)`,
  ].map((line) => `${oneLine(line)}\n`).join("");
}

/** Rounded down: 199 of 200 are not 100 %. */
function percent(share: number): number {
  return Math.floor(share * 100 + 1e-9);
}
