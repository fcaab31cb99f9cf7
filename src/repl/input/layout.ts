import { graphemes } from "./graphemes.ts";
import type { Widths } from "./width.ts";

/** What is to be seen: rows that fit the terminal, and where the cursor stands among them. */
export interface Frame {
  rows: Row[];
  cursor: { row: number; column: number };
  /** Rows that stay in sight below, however many there are above. */
  below?: Row[];
}

export interface Row {
  /** With its colours, which end with it. */
  text: string;
  /** In cells. */
  width: number;
}

export interface Laid {
  /** May hold colours (SGR sequences), which take no room, and line feeds. */
  prompt: string;
  /** Stands before every further line of the text. */
  continuation: string;
  text: string;
  cursor: number;
  columns: number;
  widths: Widths;
  /** What is shown for a character that stands for something else. */
  label?: (character: string) => string | undefined;
}

const RESET = "\x1b[0m";
const TAB = "    ";

/** Breaks prompt and text into rows at the right edge of the terminal. */
export function layOut(laid: Laid): Frame {
  const { text, cursor, label } = laid;
  const page = new Page(laid.columns, laid.widths);
  page.styled(laid.prompt);
  let at = 0;
  let place: Frame["cursor"] | undefined;
  for (const line of text.split("\n")) {
    if (at > 0) {
      page.newRow();
      page.styled(laid.continuation);
    }
    for (const character of graphemes(line)) {
      const shown = label?.(character) ?? (character === "\t" ? TAB : undefined);
      if (at === cursor) place = page.place(shown === undefined ? character : " ");
      if (shown === undefined) page.put(character);
      else page.styled(shown);
      at += character.length;
    }
    if (at === cursor) place = page.place();
    at++; // the line feed
  }
  return { rows: page.end(), cursor: place ?? page.place() };
}

/** Breaks a text with colours into rows. */
export function rowsOf(text: string, columns: number, widths: Widths): Row[] {
  const page = new Page(columns, widths);
  page.styled(text);
  return page.end();
}

/** Into how many rows a terminal of that width breaks a row, up to the cell in `column`. */
export function brokenRows(row: Row, column: number, columns: number, widths: Widths): number {
  let [rows, width, at] = [1, 0, 0];
  for (const character of graphemes(row.text.replace(CONTROLS, ""))) {
    const cells = widths.of(character);
    if (width + cells > columns) [rows, width] = [rows + 1, 0];
    if (at >= column && cells > 0) break;
    width += cells;
    at += cells;
  }
  return rows;
}

class Page {
  readonly #rows: Row[] = [];
  #text = "";
  #width = 0;
  /** The colours in effect; a row that begins opens them again. */
  #style = "";

  constructor(readonly columns: number, readonly widths: Widths) {}

  put(character: string): void {
    const width = Math.min(this.widths.of(character), this.columns);
    if (this.#width + width > this.columns) this.newRow();
    this.#text += character;
    this.#width += width;
  }

  /** Puts text with colours and line feeds; any other control sequence is left out. */
  styled(text: string): void {
    for (const piece of text.split(STYLED)) {
      if (SGR.test(piece)) this.#restyle(piece);
      else if (piece === "\n") this.newRow();
      else for (const character of graphemes(piece.replace(CONTROLS, ""))) this.put(character);
    }
  }

  newRow(): void {
    this.#rows.push({ text: this.#text + (this.#style && RESET), width: this.#width });
    this.#text = this.#style;
    this.#width = 0;
  }

  /** Where the next character will stand: never behind the last column. */
  place(next = " "): { row: number; column: number } {
    const width = Math.min(Math.max(1, this.widths.of(next)), this.columns);
    if (this.#width + width > this.columns) this.newRow();
    return { row: this.#rows.length, column: this.#width };
  }

  end(): Row[] {
    this.newRow();
    return this.#rows;
  }

  #restyle(sequence: string): void {
    this.#text += sequence;
    this.#style = RESETTING.test(sequence) ? "" : this.#style + sequence;
  }
}

// deno-lint-ignore no-control-regex
const STYLED = /(\x1b\[[\d;:]*m|\n)/;
// deno-lint-ignore no-control-regex
const SGR = /^\x1b\[[\d;:]*m$/;
// deno-lint-ignore no-control-regex
const RESETTING = /^\x1b\[0*m$/;
// deno-lint-ignore no-control-regex
const CONTROLS = /\x1b\[[0-?]*[ -/]*[@-~]|[\x00-\x1f\x7f-\x9f]/g;
