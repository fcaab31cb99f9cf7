import { ROOT_RUN } from "../../engine/events.ts";
import type { Run } from "../../engine/agents/runs.ts";
import { oneLine } from "../../platform/terminal.ts";
import { firstParagraph } from "./facts.ts";
import { fit } from "./width.ts";
import type { Style } from "./style.ts";

/** The runs as a tree, the focused one marked (specification 4.7 `/focus`). */
export function runTreeLines(
  runs: readonly Run[],
  focused: number,
  style: Style,
  columns: number,
): string[] {
  const lines: string[] = [];
  const visit = (id: number, depth: number) => {
    const run = runs[id - 1];
    if (run === undefined) return;
    const who = run.role || (id === ROOT_RUN ? "root" : "agent");
    const whole = `${id === focused ? "*" : " "} ${"  ".repeat(depth)}#${id} ${oneLine(who)} ` +
      `[${run.status}] ${run.session_id === "" ? run.session : `#${run.session_id}`} ` +
      firstParagraph(run.task);
    const line = fit(whole.trimEnd(), columns);
    lines.push(id === focused ? style.bold(line) : line);
    for (const child of run.children) visit(child, depth + 1);
  };
  visit(ROOT_RUN, 0);
  return lines;
}
