import { type Edited, splice } from "./editor.ts";
import { type Row, rowsOf } from "./view.ts";
import { cleanInput, graphemes, type Widths } from "./text.ts";

/** The candidates listed below the line. */
export interface Menu {
  readonly candidates: Candidate[];
  readonly from: number;
  /** The text before a candidate was put into it. */
  readonly base: Edited;
  /** Index of the candidate inserted in the line. */
  readonly chosen?: number;
}

export interface Tabbed {
  edited: Edited;
  menu?: Menu;
}

/** Tab: inserts the common prefix of the candidates, or lists them when there is none. */
export async function tab(edited: Edited, complete: Completer): Promise<Tabbed> {
  const menu = await listFor(edited, complete);
  if (menu === undefined) return { edited };
  const more = moreInCommon(menu);
  if (more !== undefined) return { edited: more };
  return menu.candidates.length > 1 ? { edited, menu } : { edited };
}

/** Tab or Shift-Tab (-1) while candidates are listed: inserts the common prefix, or selects the next candidate. */
export function tabAgain(menu: Menu, by: -1 | 1): Tabbed {
  const more = menu.chosen === undefined ? moreInCommon(menu) : undefined;
  return more === undefined ? cycle(menu, by) : { edited: more };
}

function moreInCommon({ base, from, candidates }: Menu): Edited | undefined {
  const text = completed(candidates, base.text.slice(from, base.cursor));
  return text === undefined ? undefined : splice(base, from, base.cursor, text);
}

/** The candidates for the current text; undefined when there are none. */
export async function listFor(edited: Edited, complete: Completer): Promise<Menu | undefined> {
  const { from, candidates } = await complete(edited.text, edited.cursor);
  // File names may contain control characters; names that cannot be typed are not offered.
  const usable = candidates.filter(({ text }) => text !== "" && cleanInput(text) === text);
  const known = from >= 0 && from <= edited.cursor;
  return usable.length > 0 && known ? { candidates: usable, from, base: edited } : undefined;
}

/** Inserts the next (1) or previous (-1) candidate into the line. */
function cycle(menu: Menu, by: -1 | 1): Tabbed {
  const { candidates, from, base, chosen } = menu;
  const count = candidates.length;
  const next = chosen === undefined ? (by > 0 ? 0 : count - 1) : (chosen + by + count) % count;
  const edited = splice(base, from, base.cursor, candidates[next]!.text);
  return { edited, menu: { ...menu, chosen: next } };
}

/** Candidates at the cursor: each replaces `line[from..cursor]`. */
export interface Completion {
  from: number;
  candidates: Candidate[];
}

/** A text that ends with a space, `/`, `:` or `=` is a prefix that can be completed further. */
export interface Candidate {
  text: string;
  /** Shown to the right of the text. */
  description?: string;
}

export type Completer = (line: string, cursor: number) => Promise<Completion> | Completion;

/**
 * The text that Tab inserts for `typed`: the only candidate, or the common prefix of all of them.
 * Undefined when that adds nothing.
 */
export function completed(candidates: Candidate[], typed: string): string | undefined {
  const [first, ...others] = candidates.map(({ text }) => text);
  if (first === undefined) return undefined;
  if (others.length === 0) {
    const whole = /[\s/:=]$/.test(first) ? first : first + " ";
    return whole === typed ? undefined : whole;
  }
  const common = others.reduce(commonStart, first);
  const longer = common.length > typed.length &&
    common.toLowerCase().startsWith(typed.toLowerCase());
  return longer ? common : undefined;
}

function commonStart(one: string, other: string): string {
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  if (/[\ud800-\udbff]$/.test(one.slice(0, length))) length--;
  return one.slice(0, length);
}

const DIM = "\x1b[2m";
const CHOSEN = "\x1b[7m";
const RESET = "\x1b[0m";
const GAP = 2;

/**
 * Lays out the candidates below the line: one per row with descriptions, otherwise in columns.
 *
 * @param chosen index of the selected candidate, which stays visible when not all candidates fit
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
  // Column by column, as `ls` does; when they do not fit, the page with the selected candidate.
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

/** Fits the text to exactly this width: cut with an ellipsis or padded with spaces. */
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
