import { editHunks } from "../../commands/changes.ts";
import { diffRows } from "../../commands/diff.ts";
import type { TurnEvent, TurnResult } from "../../engine/events.ts";
import { oneLine, stripControl, visible } from "../../platform/terminal.ts";
import type { ToolArguments } from "../../plugins/api.ts";
import { amount } from "../../usage/ledger.ts";
import { asSlash } from "../commands/table.ts";
import type { Style } from "../../platform/style.ts";
import {
  count,
  duration,
  fit,
  plural,
  someLines,
  textWidth,
  tokensOf,
  wrapped,
} from "../../platform/text.ts";
import type { LiveCall, TurnRun } from "./turn_run.ts";
import type { ViewSettings } from "./turn_view.ts";

type Event<T extends TurnEvent["type"]> = Extract<TurnEvent, { type: T }>;

/** Calls shorter than this many seconds are shown without their duration. */
const LONG = 1;
const MAX_ERROR_LINES = 6;
const MAX_ECHO_LINES = 40;
/** Maximum width in cells of one line of a result. */
const MAX_LINE = 500;

/** The lines for a finished call, and all of it where they do not have all. */
export interface Outcome {
  lines: string[];
  whole?: () => string[];
}

/**
 * Lines for a finished call: its activity line, then the error (`show_errors`) or the note (`show_notes`), the last
 * lines of a program's output, the diff of an edit, and the result itself for tools that echo it.
 *
 * @param settings.brief leaves out a program's output
 */
export function outcomeLines(
  { name, output, is_error, note, echo, duration: took, details = {} }: Event<"tool_result">,
  call: LiveCall | undefined,
  style: Style,
  settings: Pick<ViewSettings, "show_errors" | "show_notes"> & { brief: boolean },
  columns: number,
): Outcome {
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
    if (settings.show_errors) add({ rows: errorLines(error).map(style.red) });
  } else {
    if (note !== "" && settings.show_notes) add({ rows: [style.dim(oneLine(note))] });
    if (call?.category === "edit") add(editPreview(call.arguments, style, width, line));
  }
  if (output_at !== undefined && !settings.brief) {
    add(lastLines(cleaned(output.slice(output_at)), style, width));
  } else if (echo && !is_error) add({ rows: bounded(output, MAX_ECHO_LINES) });
  return outcome;
}

function errorLines(output: string): string[] {
  const [first, ...others] = bounded(
    output.replace(/^\$ .*\n/, "").replace(/^Error: ?/, ""),
    MAX_ERROR_LINES,
  );
  return [`! Error: ${first}`, ...others];
}

function cleaned(text: string): string {
  return stripControl(text.replace(/\r+\n?/g, "\n")).replaceAll("\t", "    ");
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

/** The last lines of a text, dimmed, and how many there are before. */
function lastLines(text: string, style: Style, columns: number): Folded {
  const lines = text.trimEnd().split("\n");
  if (lines.join("") === "") return { rows: [] };
  const hidden = lines.length > TAIL + 1 ? lines.length - TAIL : 0;
  const rows = lines.slice(hidden).map((line) => style.dim(fit(line, columns)));
  if (hidden > 0) rows.unshift(more(hidden, style));
  const cut = hidden > 0 || lines.some((line) => textWidth(line) > columns);
  return cut ? { rows, whole: () => lines } : { rows };
}

function more(lines: number, style: Style): string {
  return style.dim(`… ${plural(lines, "more line")} (Ctrl-O)`);
}

/** Rows of a diff that are shown. */
const MAX_ROWS = 12;

/** The diff of an edit; empty for calls without old and new text. */
function editPreview(args: ToolArguments, style: Style, columns: number, line?: number): Folded {
  const path = typeof args.path === "string" ? args.path : "";
  const rows = diffRows(editHunks(args, line), { style, columns, path });
  if (rows.length <= MAX_ROWS + 1) return { rows };
  const shown = [...rows.slice(0, MAX_ROWS), more(rows.length - MAX_ROWS, style)];
  return { rows: shown, whole: () => rows };
}

/**
 * The footer of a turn, in one line: status unless ok, model, tokens, context and its share of the window, cost, calls,
 * duration, work in the background. A narrow terminal gets the facts that matter most.
 */
export function turnFooter(
  result: TurnResult,
  { context, window }: Pick<TurnRun, "context" | "window">,
  style: Style,
  { columns, background }: { columns: number; background: string[] },
): string {
  const { usage, cost, tool_calls, model, provider, status } = result;
  const share = window === undefined ? "" : `${Math.round(100 * context / window)} %`;
  const counted = usage.prompt_tokens !== undefined || usage.completion_tokens !== undefined;
  const facts = {
    model: oneLine(provider === "" ? model : `${provider}/${model}`),
    tokens: counted
      ? `${count(usage.prompt_tokens ?? 0)} in, ${count(usage.completion_tokens ?? 0)} out`
      : "",
    context: context === 0
      ? ""
      : `context ${count(context)}${share && ` of ${count(window!)} (${share})`}`,
    cost: cost === null ? "" : `cost ${amount(cost)}`,
    calls: tool_calls.length > 0 ? plural(tool_calls.length, "tool call") : "",
    time: duration(result.duration),
    background: background.map(oneLine).join(", "),
  };
  const shown = () => Object.values(facts).filter((fact) => fact !== "").join(" · ");
  const before = status === "ok" ? "" : `${oneLine(status)} `;
  const fits = () => textWidth(before + shown()) <= columns;
  const shorter: Partial<typeof facts>[] = [
    { calls: "" },
    { context: share === "" ? facts.context : `context ${share}` },
    { model: "" },
    { time: "" },
    { tokens: "" },
  ];
  while (!fits() && shorter.length > 0) Object.assign(facts, shorter.shift());
  const line = style.dim(fit(shown(), Math.max(1, columns - before.length)));
  return before === "" ? line : `${statusText(status, style)} ${line}`;
}

/** The footer of a sub-agent's run. */
export function runFooter(
  { status, result, toolCalls }: { status: string; result?: TurnResult; toolCalls: number },
  style: Style,
): string {
  const tokens = result === undefined ? 0 : tokensOf(result.usage);
  const facts = [
    ...(result === undefined ? [] : [duration(result.duration)]),
    ...(tokens > 0 ? [`${count(tokens)} tokens`] : []),
    ...(toolCalls > 0 ? [plural(toolCalls, "tool call")] : []),
  ];
  return [statusText(status, style), ...facts.map(style.dim)].join(style.dim(" · "));
}

/** Colours the status of a turn or run. */
function statusText(status: string, style: Style): string {
  const text = oneLine(status);
  if (status === "ok") return style.green(text);
  if (status === "running") return style.cyan(text);
  return status === "error" ? style.red(text) : style.yellow(text);
}

const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const FRAME = 100;

/** The status line: time, the running tools of every run, tokens so far (sub-agents included). */
export function statusLine(runs: TurnRun[], root: number, since: number, now: number): string {
  const frame = FRAMES[Math.floor(now / FRAME) % FRAMES.length]!;
  const tokens = runs.reduce((sum, run) => sum + run.tokens, 0);
  const about = runs.some(({ guessed }) => guessed) ? "~" : "";
  const active = runs.filter((run) => run.result === undefined);
  const deepest = active.filter((run) => run.id !== root);
  const shown = deepest.length > 0 ? deepest : active;
  return [
    `${frame} ${elapsed(now - since)}`,
    ...(tokens === 0 ? [] : [`${about}${count(tokens)} tokens`]),
    ...shown.map((run) =>
      (run.id === root ? "" : `#${run.id} ${oneLine(run.role)}: `) + doing(run, now)
    ),
  ].join(" · ");
}

function doing(run: TurnRun, now: number): string {
  const [call, ...others] = run.calls.values();
  if (call !== undefined) {
    return oneLine(call.status || call.name) + (others.length > 0 ? ` (+${others.length})` : "");
  }
  const wait = (run.retryAt ?? 0) - now;
  if (wait > 0) return `retrying in ${Math.ceil(wait / 1000)} s`;
  if (run.thinkingSince !== undefined) return "thinking";
  if (!run.begun) return "waiting for the session";
  return run.guessed ? "answering" : "waiting for the model";
}

function elapsed(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  return seconds < 60 ? `${seconds} s` : `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

/** A notice in the colour of its level; errors as `! Error:` (specification 7.3). */
export function noticeLines(
  { level, message }: Event<"notice">,
  style: Style,
  columns: number,
): string[] {
  const text = asSlash(oneLine(message));
  const said = level === "error" ? `! Error: ${text.replace(/^Error: /, "")}` : text;
  const paint = style[({ info: "dim", warning: "yellow", error: "red" } as const)[level]];
  return wrapped(said, columns).split("\n").map(paint);
}

/** A parked ask and how to answer it. */
export function askLines({ id, question }: Event<"ask">, style: Style): string[] {
  return [
    style.yellow(`Ask #${id} waits: ${oneLine(visible(question))}`),
    style.dim(`Answer it with: /asks answer ${id} <text>`),
  ];
}

/** A call denied by the policy or declined by the operator. */
export function refusalLine(
  { decision, reason }: Event<"permission">,
  call: LiveCall,
  style: Style,
): string {
  const why = reason === "" ? "" : `: ${oneLine(visible(reason))}`;
  return `${style.red("✗")} ${oneLine(visible(call.status || call.name))} ${
    style.yellow(decision + why)
  }`;
}
