import { brokenRows, type Frame, type Row } from "./layout.ts";
import type { Widths } from "./width.ts";

/**
 * What this terminal shows of the line being edited, and how to change it: each method returns what to
 * write. It only ever moves the cursor within its own rows, so what stands above is never touched.
 */
export class View {
  readonly #widths: Widths;
  #shown: Frame | undefined;
  /** The first row of a frame that is higher than the terminal. */
  #top = 0;

  constructor(widths: Widths) {
    this.#widths = widths;
  }

  /** Brings the terminal from what it shows to the frame, by as little as needed. */
  draw(whole: Frame, height: number): string {
    const frame = this.#window(whole, Math.max(1, height));
    const shown = this.#shown;
    this.#shown = frame;
    return shown === undefined ? drawAll(frame) : drawChanges(shown, frame);
  }

  /** Takes all of it away, for something else to be written there. */
  erase(): string {
    const shown = this.#shown;
    this.forget();
    return shown === undefined ? "" : up(shown.cursor.row) + "\r\x1b[J";
  }

  /** Leaves it standing, and the cursor on a row of its own below. */
  leave(): string {
    const shown = this.#shown;
    this.forget();
    return shown === undefined ? "" : down(shown.rows.length - 1 - shown.cursor.row) + "\r\n";
  }

  /**
   * Takes it away after the terminal got another width. Terminals break rows that have become too long
   * in two, so the first row is further up by that.
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

  /** Knows nothing of what the terminal shows from here on. */
  forget(): void {
    this.#shown = undefined;
    this.#top = 0;
  }

  /** The part of a frame that the terminal has room for, with the cursor in it. */
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
      output += "\n"; // makes room where the screen ends
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

/** The common case, a character typed at the end: it is all that is written. */
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
  return /^[\x20-\x7e]*$/.test(added) ? added : undefined; // anything else may join with what is there
}

function same(one: Row, other: Row): boolean {
  return one.text === other.text;
}

/** From anywhere in row `from` to the cursor's place. */
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
