import { stripControl } from "../../platform/terminal.ts";
import type { Part, Turn } from "../../sessions/schema.ts";
import { renderMarkdown } from "./markdown.ts";
import type { Style } from "./style.ts";
import { duration } from "./turn_index.ts";

export interface PrintOptions {
  /** The one to print; left out: all of them. */
  part?: number;
  /** Characters of a part; beyond it the text ends with a count of those that are left; 0: no cap. */
  most: number;
  style: Style;
  /** Cells of a line, where a person reads it: answers are rendered. Left out: they stay as they came. */
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
  ];
}

function capped(text: string, most: number): string {
  if (text === "") return "-";
  if (most === 0 || text.length <= most) return text;
  return `${text.slice(0, most).toWellFormed()}… (${text.length - most} more characters)`;
}
