import type { TurnEvent } from "../engine/events.ts";
import type { Style } from "../platform/style.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import { duration, fit, plural, someLines, textWidth, wrapped } from "../platform/text.ts";
import { editHunks } from "./changes.ts";
import { diffRows, foldedRows, previewRows } from "./diff.ts";

/** The lines for a finished call, and all of it where they do not have all. */
export interface Outcome {
  lines: string[];
  whole?: () => string[];
}

/** Calls shorter than this many seconds are shown without their duration. */
const LONG = 1;
const MAX_ERROR_LINES = 6;
const MAX_ECHO_LINES = 40;
/** Maximum width in cells of one line of a result. */
const MAX_LINE = 500;

type ToolCall = Extract<TurnEvent, { type: "tool_call" }>;
type ToolResult = Extract<TurnEvent, { type: "tool_result" }>;

/** What a result is shown with: the settings, the width in cells, and the key that opens what is folded. */
export interface OutcomeView {
  style: Style;
  columns: number;
  show_errors: boolean;
  show_notes: boolean;
  /** Leaves out a program's output. */
  brief: boolean;
  /** Leaves out the diff of an edit, which a confirmation has shown. */
  seen?: boolean;
  key?: string;
}

/**
 * Lines for a finished call: its activity line, then the error (`show_errors`) or the note (`show_notes`), the last
 * lines of a program's output, the diff of an edit, and the result itself for tools that echo it.
 */
export function outcomeLines(
  { name, output, is_error, note, echo, duration: took, details = {} }: ToolResult,
  call: Pick<ToolCall, "arguments" | "category" | "status"> & { preview?: string } | undefined,
  view: OutcomeView,
): Outcome {
  const { style, columns } = view;
  const { exit_code, output_at, line } = details;
  const failed = is_error || (exit_code ?? 0) !== 0;
  const facts = [
    ...exit_code === undefined || exit_code === 0 ? [] : [style.red(`exit ${exit_code}`)],
    ...took >= LONG || exit_code !== undefined ? [style.dim(duration(took))] : [],
  ].map((fact) => `${style.dim(" · ")}${fact}`).join("");
  const room = Math.max(10, columns - 2 - textWidth(facts));
  const sign = failed ? style.red("✗") : style.green("✓");
  const head = `${sign} ${fit(oneLine(call?.status || name), room)}${facts}`;
  const outcome: Outcome = { lines: [head] };
  const add = ({ rows, whole }: Folded) => {
    outcome.lines.push(...rows.map((row) => `  ${row}`));
    if (whole !== undefined) {
      outcome.whole = () => [`  ${oneLine(call?.status || name)}`, ...whole()];
    }
  };
  const width = columns - 2;
  if (is_error) {
    const error = output_at === undefined ? output : output.slice(0, output.indexOf("\n"));
    if (view.show_errors) add({ rows: errorLines(error).map(style.red) });
  } else {
    if (note !== "" && view.show_notes) add({ rows: [style.dim(oneLine(note))] });
    if (call?.category === "edit" && !view.seen) {
      add(editPreview(call, { ...view, columns: width }, line));
    }
  }
  if (echo && !is_error) {
    const rows = bounded(output.slice(output_at), MAX_ECHO_LINES);
    add({
      rows: rows.flatMap((row) => wrapped(row, width - 4).replaceAll("\n", "\n    ").split("\n")),
    });
  } else if (output_at !== undefined && !echo && !view.brief) {
    add(lastLines(cleaned(output.slice(output_at)), { ...view, columns: width }));
  }
  return outcome;
}

function errorLines(output: string): string[] {
  const [first, ...others] = bounded(
    output.replace(/^\$ .*\n/, "").replace(/^Error: ?/, ""),
    MAX_ERROR_LINES,
  );
  return [`! Error: ${first}`, ...others];
}

/** A text without control characters; of a line that a program wrote several times, the last. */
function cleaned(text: string): string {
  const lines = text.replace(/\r+\n/g, "\n").replace(/^.*\r(?=.)/gm, "");
  return stripControl(lines).replaceAll("\t", "    ");
}

function bounded(text: string, lines: number): string[] {
  return someLines(cleaned(text), lines).map((line) => fit(line, MAX_LINE));
}

/** Rows of which some may be left out; `whole` has all then. */
interface Folded {
  rows: string[];
  whole?: () => string[];
}

/** Lines of a program's output that are shown while it runs, and when it has ended. */
export const TAIL = 5;

/** A line in place of what a result leaves out: of a program that wrote a lot, or for the limit of results. */
const CUT = /^\.\.\. \(\d.* (?:dropped|left out)\b.*\) \.\.\.$/;

/** The last lines of a text, dimmed, and how many there are before: at least, where some of these were left out. */
function lastLines(text: string, view: OutcomeView): Folded {
  const { style, columns } = view;
  const lines = text.trimEnd().split("\n");
  if (lines.join("") === "") return { rows: [] };
  const hidden = lines.length > TAIL + 1 ? lines.length - TAIL : 0;
  const rows = lines.slice(hidden).map((line) => style.dim(fit(line, columns)));
  const left = lines.slice(0, hidden).filter((line) => CUT.test(line)).length;
  // What is left out may begin and end in the same line.
  const more = `${left > 0 ? "at least " : ""}${plural(hidden - 2 * left, "more line")}`;
  const fold = `… ${more}${view.key ? ` (${view.key})` : ""}`;
  if (hidden > 0) rows.unshift(style.dim(fold));
  const cut = hidden > 0 || lines.some((line) => textWidth(line) > columns);
  return cut ? { rows, whole: () => lines } : { rows };
}

/** Unchanged lines around a change. */
const CONTEXT = 2;
/** Rows of a diff that are shown. */
const MAX_ROWS = 12;

/** The diff of an edit, by its preview or its arguments; empty for calls without old and new text. */
function editPreview(
  { arguments: args, preview = "" }: Pick<ToolCall, "arguments"> & { preview?: string },
  view: OutcomeView,
  line?: number,
): Folded {
  const path = typeof args.path === "string" ? args.path : "";
  // The first row of a preview names the file, as the activity line does.
  const rows = preview === ""
    ? diffRows(editHunks(args, line), { ...view, path })
    : previewRows(stripControl(preview), { ...view, context: CONTEXT }).slice(1);
  const key = view.key ? ` (${view.key})` : "";
  const shown = foldedRows(rows, MAX_ROWS, (more) => view.style.dim(more + key));
  return shown.length < rows.length ? { rows: shown, whole: () => rows } : { rows };
}
