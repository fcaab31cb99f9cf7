import { ROOT_RUN } from "../../engine/events.ts";
import type { Run } from "../../engine/runs.ts";
import { oneLine, stripControl } from "../../platform/terminal.ts";
import type { Part, Turn } from "../../sessions/schema.ts";
import { renderMarkdown } from "./markdown.ts";
import type { Style } from "../../platform/style.ts";
import { firstParagraph, fit, textWidth } from "../../platform/text.ts";

/** Minimum cells for a prompt and an excerpt on a narrow terminal. */
const LEAST = 20;

/**
 * The turn index (specification 4.7 `/history`), one line each: `#<index> [<status>] <duration> <tool count>
 * <prompt>`; `thoughts` adds the first line of the reasoning, or all of it.
 */
export function historyLines(
  turns: readonly Turn[],
  thoughts: "none" | "first" | "all",
  style: Style,
  columns: number,
): string[] {
  return turns.flatMap((turn) => [
    line(turn, style, columns),
    ...reasoning(turn, thoughts, style, columns),
  ]);
}

/** How long a turn took; empty while it runs. */
export function duration({ started_at, ended_at }: Turn): string {
  const seconds = (Date.parse(ended_at) - Date.parse(started_at)) / 1000;
  if (Number.isNaN(seconds)) return "";
  if (seconds < 59.95) return `${seconds.toFixed(1)}s`;
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}m${String(whole % 60).padStart(2, "0")}s`;
}

function line(turn: Turn, style: Style, columns: number): string {
  const { index, status, parts } = turn;
  const tools = parts.filter(({ type }) => type === "tool").length;
  const said = parts.find(({ type }) => type === "user") ??
    parts.find(({ type }) => type === "command");
  const paint = status === "ok" ? style.green : status === "running" ? style.cyan : style.yellow;
  const count = tools === 1 ? "1 tool" : `${tools} tools`;
  const facts = `#${index} ${paint(`[${status}]`)} ${duration(turn) || "-"} ${count} `;
  const room = Math.max(LEAST, columns - textWidth(facts));
  return facts + (said !== undefined && "text" in said ? fit(firstLine(said.text), room) : "");
}

function reasoning(
  { parts }: Turn,
  thoughts: "none" | "first" | "all",
  style: Style,
  columns: number,
): string[] {
  if (thoughts === "none") return [];
  return parts.flatMap((part) => {
    if (part.type !== "thinking") return [];
    const lines = thoughts === "all"
      ? stripControl(part.text).split("\n")
      : [fit(firstLine(part.text), Math.max(LEAST, columns - 4))];
    return lines.map((each) => style.dim(`    ${each}`));
  });
}

function firstLine(text: string): string {
  return oneLine(text.trim().split("\n", 1)[0]!);
}

export interface PrintOptions {
  /** Number of the part to print; omitted: all parts. */
  part?: number;
  /** Maximum characters of a part; longer text ends with the number of remaining characters; 0: no limit. */
  most: number;
  style: Style;
  /** Width in cells for rendered answers; omitted: answers are printed unchanged. */
  columns?: number;
}

/** A turn, or one part of it, with its metadata (specification 4.7 `/print`). Empty fields are `-`. */
export function turnLines(turn: Turn, options: PrintOptions): string[] {
  const { part, style } = options;
  const parts = part === undefined ? turn.parts : [turn.parts[part - 1]!];
  const from = part ?? 1;
  return [
    ...metadata(turn).map(([name, value]) => style.dim(`${name}: ${stripControl(value) || "-"}`)),
    ...parts.flatMap((each, offset) => partLines(each, `${turn.index}.${from + offset}`, options)),
  ];
}

function metadata(turn: Turn): [string, string][] {
  return [
    ["turn", String(turn.index)],
    ["status", turn.status],
    ["started", turn.started_at],
    ["ended", turn.ended_at],
    ["duration", duration(turn)],
    ["model", turn.model],
    ["provider", turn.provider],
    ["mode", turn.mode],
    ["reasoning", String(turn.reasoning)],
  ];
}

function partLines(part: Part, place: string, options: PrintOptions): string[] {
  const { most, style, columns } = options;
  const head = part.type === "tool"
    ? `${place} tool ${part.name}${part.is_error ? " (error)" : ""}`
    : `${place} ${part.type}`;
  const shown = part.type === "tool"
    ? [JSON.stringify(part.input), ...part.analysis ? [part.analysis] : [], part.output]
    : [part.text];
  return [
    "",
    style.bold(stripControl(head)) + style.dim(`  ${part.timestamp}`),
    ...shown.flatMap((text) => {
      const cut = capped(stripControl(text), most);
      const answers = part.type === "text" && columns !== undefined && text !== "";
      const read = answers ? renderMarkdown(cut, style, columns).replace(/\n$/, "") : cut;
      return read.split("\n");
    }),
    ...(part.type === "user" ? part.attachments ?? [] : []).map(({ name, bytes }) =>
      style.dim(`attached: ${oneLine(name)}, ${bytes} bytes`)
    ),
  ];
}

function capped(text: string, most: number): string {
  if (text === "") return "-";
  if (most === 0 || text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()}… (${text.length - most} more characters)`;
}

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
