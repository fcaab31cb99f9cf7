import type { TurnEvent } from "../../engine/events.ts";
import { oneLine, stripControl } from "../../platform/terminal.ts";
import { editPreview } from "./edit_preview.ts";
import { duration, someLines } from "./facts.ts";
import type { Style } from "./style.ts";
import type { LiveCall } from "./turn_run.ts";
import type { ViewSettings } from "./view_settings.ts";
import { fit, textWidth } from "./width.ts";

/** Seconds from which on a call's duration is worth telling. */
const LONG = 1;
const MAX_ERROR_LINES = 6;
const MAX_ECHO_LINES = 40;
/** Cells of one line of a result. */
const MAX_LINE = 500;

/**
 * What is shown of a call that has ended: its activity line, then the error (`show_errors`), or the note
 * (`show_notes`), the change that an edit made, and the result itself where the tool wants it seen.
 */
export function outcomeLines(
  { name, output, is_error, note, echo, duration: took }: Extract<
    TurnEvent,
    { type: "tool_result" }
  >,
  call: LiveCall | undefined,
  style: Style,
  settings: Pick<ViewSettings, "show_errors" | "show_notes">,
  columns: number,
): string[] {
  const time = took >= LONG ? style.dim(` · ${duration(took)}`) : "";
  const room = Math.max(10, columns - 2 - textWidth(time));
  const sign = is_error ? style.red("✗") : style.green("✓");
  const lines = [`${sign} ${fit(oneLine(call?.status || name), room)}${time}`];
  const add = (more: string[]) => void lines.push(...more.map((line) => `  ${line}`));
  if (is_error) {
    if (settings.show_errors) add(errorLines(output).map(style.red));
    return lines;
  }
  if (note !== "" && settings.show_notes) add([style.dim(oneLine(note))]);
  if (call?.category === "edit") add(editPreview(call.arguments, style, columns - 2));
  if (echo) add(bounded(output, MAX_ECHO_LINES));
  return lines;
}

function errorLines(output: string): string[] {
  const [first, ...others] = bounded(
    output.replace(/^\$ .*\n/, "").replace(/^Error: ?/, ""),
    MAX_ERROR_LINES,
  );
  return [`! Error: ${first}`, ...others];
}

function bounded(text: string, lines: number): string[] {
  const clean = stripControl(text).replaceAll("\t", "    ");
  return someLines(clean, lines).map((line) => fit(line, MAX_LINE));
}
