import stringWidth from "string-width";

interface Row {
  /** One text per cell; a wide character is followed by an empty one. */
  cells: string[];
  /** Whether the terminal itself broke the line behind this row. */
  wrapped: boolean;
}

const BLANK = " ";
const SEGMENTER = new Intl.Segmenter();
const SEQUENCE =
  // deno-lint-ignore no-control-regex
  /^\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/;
// deno-lint-ignore no-control-regex
const PRINTABLE = /^[^\x00-\x1f\x7f]+/;
// deno-lint-ignore no-control-regex
const PRIVATE_MODE = /^\x1b\[\?[\d;]+[hl]$/;
// deno-lint-ignore no-control-regex
const COMMAND = /^\x1b\[[\d;]*[A-Za-z@]$/;

/**
 * A small terminal: what a person would see of the text that a program wrote. It knows cursor
 * movement, erasing, wide characters, wrapping at the right edge, scrolling and resizing with reflow
 * (as most terminals do); colours are ignored.
 */
export class Screen {
  /** Lines that have scrolled off the top. */
  readonly scrollback: string[] = [];
  /** Private modes that are on: 25 cursor visible, 2004 bracketed paste, 1049 alternate screen. */
  readonly modes: Set<number> = new Set([25]);
  /** Sequences that this terminal does not know; a test may expect none. */
  readonly unknown: string[] = [];
  bells = 0;
  #rows: Row[];
  #row = 0;
  #column = 0;
  /** The cursor stands behind the last column: the next character goes to the next row. */
  #pending = false;
  #saved = { row: 0, column: 0 };
  #rest = "";

  constructor(public columns = 80, public height = 24) {
    this.#rows = Array.from({ length: height }, emptyRow);
  }

  get cursor(): { row: number; column: number } {
    return { row: this.#row, column: this.#column };
  }

  /** The rows as text, without blanks at their ends. */
  lines(): string[] {
    return this.#rows.map(textOf);
  }

  /** All rows down to the last that is not empty, joined. */
  text(): string {
    return this.lines().join("\n").trimEnd();
  }

  /** Everything there ever was: what scrolled off, then the screen. */
  all(): string {
    return [...this.scrollback, ...this.lines()].join("\n").trimEnd();
  }

  /** Takes what a program wrote; a sequence may come in pieces. */
  write(text: string): void {
    text = this.#rest + text;
    this.#rest = "";
    let at = 0;
    while (at < text.length) {
      const code = text.charCodeAt(at);
      if (code === 0x1b) {
        const sequence = SEQUENCE.exec(text.slice(at, at + 4096))?.[0];
        if (sequence === undefined) {
          this.#rest = text.slice(at);
          return;
        }
        this.#escape(sequence);
        at += sequence.length;
      } else if (code < 0x20 || code === 0x7f) {
        this.#control(text[at]!);
        at++;
      } else {
        const run = PRINTABLE.exec(text.slice(at))![0];
        for (const { segment } of SEGMENTER.segment(run)) this.#put(segment);
        at += run.length;
      }
    }
  }

  /** Changes the size; lines that the terminal broke itself are joined and broken anew. */
  resize(columns: number, height: number): void {
    const lines: { cells: string[]; cursor?: number }[] = [];
    let open = false;
    for (const [index, row] of this.#rows.entries()) {
      if (!open) lines.push({ cells: [] });
      const line = lines.at(-1)!;
      if (index === this.#row) line.cursor = line.cells.length + this.#column;
      line.cells.push(...row.cells);
      open = row.wrapped;
    }
    while (
      lines.length > 1 && lines.at(-1)!.cells.length === 0 && lines.at(-1)!.cursor === undefined
    ) {
      lines.pop();
    }
    this.columns = columns;
    this.height = height;
    this.#pending = false;
    this.#rows = [];
    for (const { cells, cursor } of lines) this.#breakAnew(cells, cursor);
    while (this.#rows.length > height) this.#scrollOff();
    while (this.#rows.length < height) this.#rows.push(emptyRow());
    this.#row = Math.max(0, this.#row);
  }

  #breakAnew(cells: string[], cursor: number | undefined): void {
    let row = emptyRow();
    let start = 0;
    for (let at = 0; at < cells.length;) {
      const width = cells[at + 1] === "" ? 2 : 1;
      if (row.cells.length + width > this.columns) {
        row.wrapped = true;
        this.#rows.push(row);
        row = emptyRow();
        start = at;
      }
      if (cursor === at) this.#place(this.#rows.length, at - start);
      row.cells.push(...cells.slice(at, at + width));
      at += width;
    }
    if (cursor !== undefined && cursor >= cells.length) {
      this.#place(this.#rows.length, Math.min(cursor - start, this.columns - 1));
    }
    this.#rows.push(row);
  }

  #place(row: number, column: number): void {
    this.#row = row;
    this.#column = column;
  }

  #scrollOff(): void {
    this.scrollback.push(textOf(this.#rows.shift()!));
    this.#row--;
  }

  #put(cluster: string): void {
    const width = stringWidth(cluster);
    if (width === 0) return this.#attach(cluster);
    if (this.#pending || this.#column + width > this.columns) {
      this.#rows[this.#row]!.wrapped = true;
      this.#column = 0;
      this.#lineFeed();
    }
    const { cells } = this.#rows[this.#row]!;
    while (cells.length < this.#column) cells.push(BLANK);
    // Half of a wide character that is written over is gone as a whole.
    if (cells[this.#column] === "") cells[this.#column - 1] = BLANK;
    if (cells[this.#column + width] === "") cells[this.#column + width] = BLANK;
    cells[this.#column] = cluster;
    if (width === 2) cells[this.#column + 1] = "";
    this.#column += width;
    this.#pending = this.#column >= this.columns;
    if (this.#pending) this.#column = this.columns - 1;
  }

  #attach(mark: string): void {
    const { cells } = this.#rows[this.#row]!;
    let at = this.#pending ? this.#column : this.#column - 1;
    if (cells[at] === "") at--;
    if (at >= 0 && cells[at] !== undefined) cells[at] += mark;
  }

  #lineFeed(): void {
    this.#pending = false;
    if (this.#row < this.height - 1) this.#row++;
    else {
      this.#scrollOff();
      this.#row++;
      this.#rows.push(emptyRow());
    }
  }

  #control(character: string): void {
    if (character === "\n") this.#lineFeed();
    else if (character === "\r") this.#to(this.#row, 0);
    else if (character === "\b") this.#to(this.#row, this.#column - 1);
    else if (character === "\t") this.#to(this.#row, (this.#column | 7) + 1);
    else if (character === "\x07") this.bells++;
    else this.unknown.push(character);
  }

  #to(row: number, column: number): void {
    this.#row = Math.max(0, Math.min(this.height - 1, row));
    this.#column = Math.max(0, Math.min(this.columns - 1, column));
    this.#pending = false;
  }

  #escape(sequence: string): void {
    if (sequence === "\x1b7") this.#saved = this.cursor;
    else if (sequence === "\x1b8") this.#to(this.#saved.row, this.#saved.column);
    else if (sequence.startsWith("\x1b]")) return;
    else if (PRIVATE_MODE.test(sequence)) this.#mode(sequence);
    else if (!COMMAND.test(sequence)) this.unknown.push(sequence);
    else {
      const [first, second] = sequence.slice(2, -1).split(";").map(Number);
      this.#command(sequence.at(-1)!, first ?? 0, second ?? 0, sequence);
    }
  }

  #mode(sequence: string): void {
    for (const mode of sequence.slice(3, -1).split(";").map(Number)) {
      if (sequence.endsWith("h")) this.modes.add(mode);
      else this.modes.delete(mode);
    }
  }

  #command(letter: string, first: number, second: number, sequence: string): void {
    const count = first || 1;
    const [row, column] = [this.#row, this.#column];
    const { cells } = this.#rows[row]!;
    switch (letter) {
      case "A":
        return this.#to(row - count, column);
      case "B":
        return this.#to(row + count, column);
      case "C":
        return this.#to(row, column + count);
      case "D":
        return this.#to(row, column - count);
      case "E":
        return this.#to(row + count, 0);
      case "F":
        return this.#to(row - count, 0);
      case "G":
        return this.#to(row, count - 1);
      case "d":
        return this.#to(count - 1, column);
      case "H":
      case "f":
        return this.#to(count - 1, (second || 1) - 1);
      case "J":
        return this.#eraseScreen(first);
      case "K":
        return this.#eraseRow(first);
      case "X":
        for (let at = column; at < Math.min(column + count, cells.length); at++) cells[at] = BLANK;
        return;
      case "P":
        cells.splice(column, count);
        return;
      case "@":
        cells.splice(column, 0, ...Array<string>(count).fill(BLANK));
        cells.length = Math.min(cells.length, this.columns);
        return;
      case "L":
        for (let n = 0; n < count; n++) this.#rows.splice(row, 0, emptyRow());
        this.#rows.length = this.height;
        return;
      case "M":
        for (let n = 0; n < count; n++) {
          this.#rows.splice(row, 1);
          this.#rows.push(emptyRow());
        }
        return;
      case "s":
        this.#saved = this.cursor;
        return;
      case "u":
        return this.#to(this.#saved.row, this.#saved.column);
      case "m":
        return;
      default:
        this.unknown.push(sequence);
    }
  }

  #eraseScreen(which: number): void {
    this.#eraseRow(which);
    const from = which === 0 ? this.#row + 1 : 0;
    const to = which === 1 ? this.#row : this.height;
    if (which !== 3) {
      for (let at = from; at < to; at++) this.#rows[at] = emptyRow();
    } else this.scrollback.length = 0;
  }

  #eraseRow(which: number): void {
    const row = this.#rows[this.#row]!;
    // As real terminals do: at the right edge the last character goes too.
    if (which === 0) row.cells.length = Math.min(row.cells.length, this.#column);
    else if (which === 1) {
      for (let at = 0; at <= this.#column && at < row.cells.length; at++) row.cells[at] = BLANK;
    } else if (which === 2) row.cells = [];
    if (which !== 1) row.wrapped = false;
    if (row.cells.at(-1) !== undefined && row.cells.length === this.#column && which === 0) {
      const last = row.cells.at(-1)!;
      if (last !== "" && stringWidth(last) === 2) row.cells[row.cells.length - 1] = BLANK;
    }
  }
}

function emptyRow(): Row {
  return { cells: [], wrapped: false };
}

function textOf(row: Row): string {
  return row.cells.join("").trimEnd();
}
