import type { TerminalPort } from "./terminal.ts";
import { graphemes, type Widths } from "./text.ts";

/** Where a read is drawn. */
export interface Surface {
  draw(frame: Frame): void;
  /** Prints a text above what is drawn. */
  above(text: string): void;
  /** Clears the screen. */
  clear(): void;
  /** Leaves what is drawn on the screen, with the cursor below it. */
  leave(): void;
  /** The terminal's width has changed. */
  resized(): void;
  /** Another program has used the terminal. */
  resumed(): void;
}

/** The rows below the last output of a terminal. */
export function terminalSurface(port: TerminalPort, widths: Widths): Surface {
  const view = new View(widths);
  return {
    draw: (frame) => port.write(view.draw(frame, port.size().rows)),
    above: (text) => port.write(view.erase() + text),
    clear: () => port.write(view.erase() + "\x1b[H\x1b[2J"),
    leave: () => port.write(view.leave()),
    resized: () => port.write(view.eraseResized(port.size().columns)),
    resumed: () => view.forget(),
  };
}

/**
 * Tracks what the terminal shows of the line being edited. Each method returns the text to write. The
 * cursor moves only within the line's own rows, so output above is never overwritten.
 */
export class View {
  readonly #widths: Widths;
  #shown: Frame | undefined;
  /** First visible row of a frame that is higher than the terminal. */
  #top = 0;

  constructor(widths: Widths) {
    this.#widths = widths;
  }

  /** Draws the frame, writing only what changed. */
  draw(whole: Frame, height: number): string {
    const frame = this.#window(whole, Math.max(1, height));
    const shown = this.#shown;
    this.#shown = frame;
    return shown === undefined ? drawAll(frame) : drawChanges(shown, frame);
  }

  /** Erases the frame. */
  erase(): string {
    const shown = this.#shown;
    this.forget();
    return shown === undefined ? "" : up(shown.cursor.row) + "\r\x1b[J";
  }

  /** Keeps the frame on the screen and moves the cursor to a new row below it. */
  leave(): string {
    const shown = this.#shown;
    this.forget();
    return shown === undefined ? "" : down(shown.rows.length - 1 - shown.cursor.row) + "\r\n";
  }

  /**
   * Erases the frame after the terminal's width changed. Terminals wrap rows that became too long, so the
   * first row has moved up.
   */
  eraseResized(columns: number): string {
    const shown = this.#shown;
    this.forget();
    if (shown === undefined) return "";
    const { rows, cursor } = shown;
    const broken = rows.slice(0, cursor.row + 1).map((row, index) =>
      brokenRows(row, index < cursor.row ? row.width : cursor.column, columns, this.#widths)
    );
    return up(broken.reduce((sum, count) => sum + count) - 1) + "\r\x1b[J";
  }

  /** Discards the tracked state. */
  forget(): void {
    this.#shown = undefined;
    this.#top = 0;
  }

  /** The part of a frame that fits the terminal and contains the cursor. */
  #window({ rows, cursor, below = [] }: Frame, whole: number): Frame {
    const height = Math.max(1, whole - below.length);
    const lowest = Math.min(this.#top, cursor.row, Math.max(0, rows.length - height));
    const top = this.#top = Math.max(lowest, cursor.row - height + 1);
    return {
      rows: [...rows.slice(top, top + height), ...below].slice(0, whole),
      cursor: { row: cursor.row - top, column: cursor.column },
    };
  }
}

function drawAll({ rows, cursor }: Frame): string {
  const text = rows.map((row) => row.text).join("\r\n");
  return "\r\x1b[J" + text + place(rows.length - 1, cursor);
}

function drawChanges(old: Frame, next: Frame): string {
  const appended = appendedTo(old, next);
  if (appended !== undefined) return appended;
  let at = old.cursor.row;
  let output = "";
  const go = (row: number) => {
    output += vertical(row - at) + "\r";
    at = row;
  };
  for (const [index, row] of next.rows.entries()) {
    const before = old.rows[index];
    if (before?.text === row.text) continue;
    if (before === undefined) {
      go(index - 1);
      output += "\n"; // scrolls at the bottom of the screen
      at = index;
    } else go(index);
    output += "\x1b[K" + row.text;
  }
  if (old.rows.length > next.rows.length) {
    go(next.rows.length);
    output += "\x1b[J";
  }
  const moved = place(at, next.cursor);
  return output === "" ? moved : `\x1b[?25l${output}${moved}\x1b[?25h`;
}

/** The common case: only a character typed at the end is written. */
function appendedTo(old: Frame, next: Frame): string | undefined {
  const { row, column } = old.cursor;
  const [before, now] = [old.rows[row]!, next.rows[row]];
  const plain = old.rows.length === next.rows.length && next.cursor.row === row &&
    column === before.width && now !== undefined && next.cursor.column === now.width &&
    now.text.startsWith(before.text);
  if (!plain || !old.rows.every((one, at) => at === row || same(one, next.rows[at]!))) {
    return undefined;
  }
  const added = now.text.slice(before.text.length);
  return /^[\x20-\x7e]*$/.test(added) ? added : undefined; // other characters may combine with the existing text
}

function same(one: Row, other: Row): boolean {
  return one.text === other.text;
}

/** Moves from row `from` to the cursor's position. */
function place(from: number, cursor: Frame["cursor"]): string {
  return vertical(cursor.row - from) + "\r" + (cursor.column > 0 ? `\x1b[${cursor.column}C` : "");
}

function vertical(rows: number): string {
  return rows < 0 ? up(-rows) : down(rows);
}

function up(rows: number): string {
  return rows > 0 ? `\x1b[${rows}A` : "";
}

function down(rows: number): string {
  return rows > 0 ? `\x1b[${rows}B` : "";
}

/** The rows to show and the cursor's position in them. */
export interface Frame {
  rows: Row[];
  cursor: { row: number; column: number };
  /** Rows below that always stay visible. */
  below?: Row[];
}

export interface Row {
  /** Includes SGR sequences, reset at the end of the row. */
  text: string;
  /** In cells. */
  width: number;
}

export interface Laid {
  /** May contain SGR sequences, which have no width, and line feeds. */
  prompt: string;
  /** Shown before every further line of the text. */
  continuation: string;
  text: string;
  cursor: number;
  columns: number;
  widths: Widths;
  /** The label of a placeholder character. */
  label?: (character: string) => string | undefined;
  /** Shown after the text, with SGR sequences; the cursor stays before it. Default: nothing */
  hint?: string;
}

const RESET = "\x1b[0m";
const TAB = "    ";

/** Wraps prompt and text into rows of the terminal's width. */
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
  place ??= page.place();
  if (laid.hint !== undefined) page.styled(laid.hint);
  return { rows: page.end(), cursor: place };
}

/** Wraps a text with colours into rows. */
export function rowsOf(text: string, columns: number, widths: Widths): Row[] {
  const page = new Page(columns, widths);
  page.styled(text);
  return page.end();
}

/** Number of rows into which a terminal of that width wraps a row, up to the cell in `column`. */
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
  /** The SGR sequences in effect, repeated at the start of each row. */
  #style = "";

  constructor(readonly columns: number, readonly widths: Widths) {}

  put(character: string): void {
    const width = Math.min(this.widths.of(character), this.columns);
    if (this.#width + width > this.columns) this.newRow();
    this.#text += character;
    this.#width += width;
  }

  /** Adds text with SGR sequences and line feeds; other control sequences are removed. */
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

  /** Position of the next character, never behind the last column. */
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
