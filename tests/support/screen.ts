import { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
import xterm from "@xterm/headless";

/** A character on the screen. Colours are numbers of the 256-colour palette. */
export interface Cell {
  text: string;
  /** In columns. */
  width: number;
  color?: number;
  background?: number;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
  inverse: boolean;
}

/** A terminal of a fixed size: what a person sees of the text that a program wrote. */
export class Screen {
  /** Private modes that are on: 25 cursor visible, 2004 bracketed paste, 1049 alternate screen. */
  readonly modes: Set<number> = new Set([25]);
  /** Sequences that the terminal does not know; a test may expect none. */
  readonly unknown: string[] = [];
  bells = 0;
  readonly #terminal: xterm.Terminal;

  constructor(columns = 80, rows = 24) {
    this.#terminal = new xterm.Terminal({
      cols: columns,
      rows,
      scrollback: 100_000,
      reflowCursorLine: true,
      allowProposedApi: true,
      logLevel: "debug",
      logger: {
        trace() {},
        debug: (message, ...details) => {
          if (message.startsWith("Unknown")) {
            this.unknown.push(`${message}${JSON.stringify(details)}`);
          }
        },
        info() {},
        warn() {},
        error: (error) => {
          throw error;
        },
      },
    });
    this.#terminal.loadAddon(new UnicodeGraphemesAddon() as never);
    this.#terminal.onBell(() => void this.bells++);
    for (const [final, act] of [["h", "add"], ["l", "delete"]] as const) {
      this.#terminal.parser.registerCsiHandler({ prefix: "?", final }, (modes) => {
        for (const mode of modes) this.modes[act](mode as number);
        return false;
      });
    }
  }

  get columns(): number {
    return this.#terminal.cols;
  }

  get height(): number {
    return this.#terminal.rows;
  }

  /** A cursor behind the last column stands on it until the next character comes. */
  get cursor(): { row: number; column: number } {
    const { cursorX, cursorY } = this.#terminal.buffer.active;
    return { row: cursorY, column: Math.min(cursorX, this.columns - 1) };
  }

  /** Lines that have scrolled off the top. */
  get scrollback(): string[] {
    return this.#lines(0, this.#terminal.buffer.active.baseY);
  }

  /** The rows as text, without blanks at their ends. */
  lines(): string[] {
    const { baseY } = this.#terminal.buffer.active;
    return this.#lines(baseY, baseY + this.height);
  }

  /** The characters of each row with their styles; a wide one is followed by no other. */
  cells(): Cell[][] {
    const { active } = this.#terminal.buffer;
    return Array.from({ length: this.height }, (_, row) => {
      const line = active.getLine(active.baseY + row)!;
      return Array.from({ length: this.columns }, (_, column) => line.getCell(column)!)
        .filter((cell) => cell.getWidth() > 0)
        .map((cell) => ({
          text: cell.getChars() || " ",
          width: cell.getWidth(),
          color: cell.isFgDefault() ? undefined : cell.getFgColor(),
          background: cell.isBgDefault() ? undefined : cell.getBgColor(),
          bold: cell.isBold() > 0,
          dim: cell.isDim() > 0,
          italic: cell.isItalic() > 0,
          underline: cell.isUnderline() > 0,
          inverse: cell.isInverse() > 0,
        }));
    });
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
    // The public `write` parses later, in a timer.
    // deno-lint-ignore no-explicit-any
    (this.#terminal as any)._core.writeSync(text);
  }

  /**
   * Changes the size; lines that the terminal broke itself are joined and broken anew. xterm.js moves the
   * cursor down for each row that breaks below it; here it stays on its character, as in VTE and kitty.
   */
  resize(columns: number, rows: number): void {
    const { baseY, cursorX, cursorY } = this.#terminal.buffer.active;
    let row = baseY + cursorY;
    let offset = cursorX;
    while (this.#isWrapped(row)) offset += this.#cells(--row);
    let line = 0;
    for (let each = 0; each <= row; each++) if (!this.#isWrapped(each)) line++;
    this.#terminal.resize(columns, rows);
    for (row = -1; line > 0;) if (!this.#isWrapped(++row)) line--;
    while (this.#isWrapped(row + 1) && offset >= this.#cells(row)) offset -= this.#cells(row++);
    const { baseY: top } = this.#terminal.buffer.active;
    this.write(`\x1b[${row - top + 1};${Math.min(offset, columns - 1) + 1}H`);
  }

  /** Whether the terminal itself broke the line before this row. */
  #isWrapped(row: number): boolean {
    return this.#terminal.buffer.active.getLine(row)?.isWrapped ?? false;
  }

  /** The used cells of a row that the terminal broke: a wide character may not have fitted its last one. */
  #cells(row: number): number {
    const last = this.#terminal.buffer.active.getLine(row)!.getCell(this.columns - 1)!;
    return this.columns - (last.getCode() === 0 && last.getWidth() === 1 ? 1 : 0);
  }

  #lines(from: number, to: number): string[] {
    const { active } = this.#terminal.buffer;
    return Array.from(
      { length: to - from },
      (_, index) => active.getLine(from + index)!.translateToString(true).trimEnd(),
    );
  }
}
