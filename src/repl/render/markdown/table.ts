import { textWidth } from "../../../platform/text.ts";
import { type Chunk, InlineStream } from "./inline.ts";
import { Wrapper } from "./wrapper.ts";

/** Alignment of a column. */
export type Alignment = "left" | "center" | "right";

const SEPARATOR = 3;
const NARROWEST = 3;

/** Splits a table row into cells. */
export function tableCells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/(^|[^\\])\|$/, "$1");
  const cells = [""];
  for (const [token] of inner.matchAll(/\\[^]|`[^`]*`|\||[^\\`|]+|[\\`]/g)) {
    if (token === "|") cells.push("");
    else cells[cells.length - 1] += token === "\\|" ? "|" : token;
  }
  return cells.map((cell) => cell.trim());
}

/** Parses the delimiter row of a table; undefined for any other line. */
export function tableAlignments(line: string): Alignment[] | undefined {
  if (!/^[ \t]*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*$/.test(line)) return undefined;
  return tableCells(line).map((cell) =>
    /^:-+:$/.test(cell) ? "center" : cell.endsWith(":") ? "right" : "left"
  );
}

/** Renders a table: columns aligned, cells wrapped when the table is too wide. */
export function renderTable(
  rows: string[][],
  alignments: Alignment[],
  { columns, paint, rule }: {
    columns: number;
    paint: (chunk: Chunk) => string;
    rule: (text: string) => string;
  },
): string[] {
  rows = rows.map((row) => [
    ...row.slice(0, alignments.length - 1),
    row.slice(alignments.length - 1).join(" | "), // extra cells are joined into the last one
  ]);
  const natural = alignments.map((_, at) => Math.max(...rows.map((row) => widest(row[at] ?? ""))));
  const room = columns - SEPARATOR * (alignments.length - 1);
  const widths = shrink(natural.map((width) => Math.max(width, 1)), room);
  if (widths === undefined) return asList(rows, columns, paint);
  const [head, ...body] = rows.map((row) => {
    const cells = widths.map((width, at) => wrapCell(row[at] ?? "", width, paint));
    const height = Math.max(...cells.map((lines) => lines.length));
    return Array.from(
      { length: height },
      (_, line) =>
        cells.map((lines, at) => pad(lines[line] ?? "", widths[at]!, alignments[at]!))
          .join(rule(" │ ")).trimEnd(),
    );
  });
  const under = rule(widths.map((width) => "─".repeat(width)).join("─┼─"));
  return [...head!, under, ...body.flat()];
}

/** Shrinks the widest columns first; undefined when there are too many columns for the width. */
function shrink(widths: number[], room: number): number[] | undefined {
  if (room < widths.length * NARROWEST) return undefined;
  const total = widths.reduce((sum, width) => sum + width, 0);
  if (total <= room) return widths;
  // The largest cap under which all columns fit.
  let [low, high] = [1, room];
  while (low < high) {
    const cap = Math.ceil((low + high) / 2);
    if (widths.reduce((sum, width) => sum + Math.min(width, cap), 0) <= room) low = cap;
    else high = cap - 1;
  }
  return widths.map((width) => Math.min(width, low));
}

/** Renders a table that does not fit as a list of cells per row. */
function asList(rows: string[][], columns: number, paint: (chunk: Chunk) => string): string[] {
  const [head = [], ...body] = rows;
  if (body.length === 0) return head.flatMap((cell) => wrapCell(cell, columns, paint));
  return body.flatMap((row, index) => [
    ...(index === 0 ? [] : [""]),
    ...head.flatMap((name, at) => wrapCell(`${name}: ${row[at] ?? ""}`, columns, paint)),
  ]);
}

function wrapCell(text: string, width: number, paint: (chunk: Chunk) => string): string[] {
  let lines = "";
  const wrapper = new Wrapper((text) => void (lines += text), paint, () => width);
  const inline = new InlineStream((text, marks) => wrapper.text({ text, marks }));
  for (const character of text.replace(/<br ?\/?>/gi, "\n")) inline.feed(character);
  inline.end();
  wrapper.flush();
  return lines.split("\n");
}

function widest(text: string): number {
  const lines = wrapCell(text, Infinity, ({ text }) => text);
  return Math.max(...lines.map(textWidth));
}

function pad(text: string, width: number, alignment: Alignment): string {
  const space = Math.max(0, width - textWidth(text));
  const left = alignment === "right" ? space : alignment === "center" ? Math.floor(space / 2) : 0;
  return " ".repeat(left) + text + " ".repeat(space - left);
}
