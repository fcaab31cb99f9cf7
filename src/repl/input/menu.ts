import { cleanInput } from "./clean.ts";
import type { Candidate } from "./completion.ts";
import { graphemes } from "./graphemes.ts";
import { type Row, rowsOf } from "./layout.ts";
import type { Widths } from "./width.ts";

const DIM = "\x1b[2m";
const CHOSEN = "\x1b[7m";
const RESET = "\x1b[0m";
const GAP = 2;

/**
 * The candidates as they are listed below the line: with descriptions one a row, else in columns.
 *
 * @param chosen the one that stands in the line; kept in sight where there are more than fit
 */
export function menuRows(
  candidates: Candidate[],
  chosen: number | undefined,
  columns: number,
  height: number,
  widths: Widths,
): Row[] {
  if (height < 1) return [];
  const widest = Math.max(...candidates.map(({ text }) => widthOf(text, widths)));
  const described = candidates.some(({ description }) => description);
  const cell = Math.min(columns, widest + GAP);
  const across = described ? 1 : Math.max(1, Math.floor(columns / cell));
  const needed = Math.ceil(candidates.length / across);
  const shown = needed > height ? Math.max(1, height - 1) : needed;
  // Down the columns, as `ls` lists; of more than fit, the page that holds the chosen one.
  const first = Math.floor((chosen ?? 0) / (shown * across)) * shown * across;
  const page = candidates.slice(first, first + shown * across);
  const high = Math.min(shown, Math.ceil(page.length / across));
  const rows: Row[] = [];
  for (let row = 0; row < high; row++) {
    let text = "";
    for (let column = 0; column * high + row < page.length; column++) {
      const index = column * high + row;
      const candidate = page[index]!;
      const name = fit(candidate.text, Math.min(columns, widest), widths);
      text += first + index === chosen ? CHOSEN + name.trimEnd() + RESET : name.trimEnd();
      text += " ".repeat(name.length - name.trimEnd().length);
      if (described) text += describe(candidate, columns - cell, widths);
      else if ((column + 1) * high + row < page.length) text += " ".repeat(GAP);
    }
    rows.push(rowsOf(text, columns, widths)[0]!);
  }
  const hidden = candidates.length - page.length;
  if (hidden > 0 && height > 1) {
    rows.push(rowsOf(`${DIM}… ${hidden} more${RESET}`, columns, widths)[0]!);
  }
  return rows;
}

function describe({ description }: Candidate, room: number, widths: Widths): string {
  if (!description || room < 8) return "";
  const line = cleanInput(description).replace(/\s+/g, " ");
  return " ".repeat(GAP) + DIM + fit(line, room - 1, widths).trimEnd() + RESET;
}

/** Exactly as wide: cut with an ellipsis, or filled with blanks. */
function fit(text: string, room: number, widths: Widths): string {
  let width = 0;
  let cut = "";
  let whole = "";
  for (const character of graphemes(text)) {
    width += widths.of(character);
    whole += character;
    if (width < room) cut = whole;
    if (width > room) return cut + "…" + " ".repeat(Math.max(0, room - widthOf(cut, widths) - 1));
  }
  return whole + " ".repeat(room - width);
}

function widthOf(text: string, widths: Widths): number {
  return graphemes(text).reduce((sum, character) => sum + widths.of(character), 0);
}
