import { attribution } from "./attribution.ts";
import type { Output } from "./output.ts";
import type { Style } from "./style.ts";
import type { TurnRun } from "./turn_run.ts";
import type { ViewSettings } from "./view_settings.ts";
import { textWidth } from "./width.ts";

/** What was shown last: an empty line stands between different kinds. */
export type Kind = "nothing" | "text" | "thinking" | "activity" | "footer";

/** Where the lines of a turn go: what a sub-agent says and does stands behind its name. */
export class TurnPage {
  #kind: Kind = "nothing";

  /** @param verbosity how much of what sub-agents do is shown (`subrun_verbosity`) */
  constructor(
    readonly output: Output,
    readonly style: Style,
    readonly root: number,
    readonly verbosity: () => ViewSettings["subrun_verbosity"],
  ) {}

  /** Cells that a line of a run has. */
  columns(run: TurnRun): number {
    return Math.max(1, this.output.columns() - textWidth(this.#margin(run)));
  }

  /** Begins something of a kind. */
  kind(kind: Kind): void {
    if (this.#kind === kind) return;
    this.output.fresh();
    if (this.#kind !== "nothing") this.output.print("\n");
    this.#kind = kind;
  }

  /** Rendered text of a run: the root's in pieces, a sub-agent's in whole lines. */
  text(rendered: string, run: TurnRun): void {
    if (rendered === "") return;
    this.kind(run.id === this.root ? "text" : "activity");
    if (run.id === this.root) return this.output.print(rendered);
    const name = this.#margin(run);
    const lines = rendered.replace(/\n$/, "").split("\n");
    this.output.line(lines.map((line) => `${name}${line}`.trimEnd()).join("\n"));
  }

  /** A line about what a run does: of a sub-agent's only what `subrun_verbosity` lets through. */
  detail(run: TurnRun, line: string): void {
    if (run.id !== this.root && this.verbosity() === "quiet") return;
    this.line(run, line);
  }

  /** A line of a run. */
  line(run: TurnRun, line: string): void {
    this.whole(this.#margin(run) + line);
  }

  /** A line that belongs to no run. */
  whole(line: string): void {
    this.kind("activity");
    this.output.line(line);
  }

  #margin(run: TurnRun): string {
    return run.id === this.root ? "" : attribution(run, this.style);
  }
}
