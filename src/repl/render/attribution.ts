import { oneLine } from "../../platform/terminal.ts";
import type { Style } from "./style.ts";
import type { TurnRun } from "./turn_run.ts";
import { fit } from "./width.ts";

/** Levels that are shown as such. */
const DEEPEST = 8;
/** Cells of a role's name in front of each line of its run. */
const ROLE = 20;

/** What stands before a line of a sub-agent, so that it is told from the others. */
export function attribution(run: TurnRun, style: Style): string {
  return indent(run) + style.dim(`#${run.id} ${fit(oneLine(run.role), ROLE)} │ `);
}

/** A sub-agent's name where it starts and ends: a level further out than its lines. */
export function heading(run: TurnRun, style: Style): string {
  return indent(run, 1) + style.bold(`#${run.id} ${oneLine(run.role)}`);
}

function indent({ depth }: TurnRun, less = 0): string {
  return "  ".repeat(Math.min(DEEPEST, Math.max(0, depth - less)));
}
