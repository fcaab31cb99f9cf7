import { Widths } from "../input/text.ts";
import { type Frame, View } from "../input/view.ts";
import type { Style } from "../../platform/style.ts";
import { clusters, clusterWidth, fit, textWidth, withoutStyle } from "../../platform/text.ts";

/** The output: a terminal, or a file or pipe. */
export interface OutputPort {
  write(text: string): void;
  /** Width in cells, read on every use. */
  columns(): number;
  /** Height in cells. Default: 24. */
  rows?(): number;
  /** When false, nothing is written below the text. */
  readonly isTerminal: boolean;
}

/**
 * Output below the last prompt: permanent text, and below it the status lines and the message that is
 * being edited. These are removed while text is printed. Text must contain no control characters except
 * line feeds, tabs and the sequences of `Style`.
 */
export class Output {
  readonly #port: OutputPort;
  readonly #style: Style;
  /** The column after the last printed text; equal to the width when the line is full. */
  #column = 0;
  /** The cursor is already below a full line, so the pending line feed must be skipped. */
  #wrapped = false;
  #status: readonly string[] = [];
  #edited: Frame | undefined;
  /** The width for which the edited message is laid out; with another one it is not drawn. */
  #laidOut = 0;
  /** What is below the text: the status lines, then the edited message. */
  readonly #below = new View(new Widths());
  /** The width for which that was drawn; 0 when it is not drawn. */
  #drawn = 0;
  /** The arguments of calls that a confirmation has shown. */
  readonly shown = new WeakSet<object>();
  /** The lines of what was folded last. */
  folded: (() => string[]) | undefined;
  /** Text held back while a question is open. */
  #held: string | undefined;

  constructor(port: OutputPort, style: Style) {
    this.#port = port;
    this.#style = style;
  }

  get isTerminal(): boolean {
    return this.#port.isTerminal;
  }

  columns(): number {
    return Math.max(1, this.#port.columns());
  }

  /** Prints permanent text: whole lines or parts of one. */
  print(text: string): void {
    if (text === "") return;
    if (this.#held !== undefined) {
      this.#held += text;
      return;
    }
    const safe = ownSequencesOnly(text);
    const lifted = this.#lift();
    const shown = this.#wrapped ? safe.replace(/^\n/, "") : safe;
    this.#wrapped = false;
    this.#advance(withoutStyle(shown));
    this.#port.write(lifted + shown + this.#draw());
  }

  /** Prints text on separate lines: ends the current line first and the text with a line feed. */
  line(text: string): void {
    this.fresh();
    this.print(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** Ends the current line if it has text. */
  fresh(): void {
    const begun = this.#held ? !this.#held.endsWith("\n") : this.#column > 0;
    if (begun) this.print("\n");
    this.#wrapped = false;
  }

  /** Holds output back until `release`, for example while a question is open. Nothing is below the text then. */
  hold(): void {
    this.#status = [];
    this.#refresh();
    this.fresh();
    this.#held ??= "";
    this.#refresh();
  }

  /** Prints held output, starting at the beginning of a line. */
  release(): void {
    const held = this.#held ?? "";
    this.#held = undefined;
    this.print(held);
    this.#refresh();
  }

  /** Shows the status lines, each cut to the width; undefined removes them. */
  status(text: string | readonly string[] | undefined): void {
    if (this.#held !== undefined) return;
    this.#status = [text ?? []].flat()
      .map((line) => ownSequencesOnly(withoutStyle(line.replace(/\s/g, " "))));
    this.#refresh();
  }

  /** Shows a message that is being edited below the status lines; undefined removes it. */
  edited(frame: Frame | undefined): void {
    this.#edited = frame;
    this.#laidOut = this.columns();
    this.#refresh();
  }

  /** Removes what is below the text after the terminal's width changed; the next change of it draws it anew. */
  resized(): void {
    this.#port.write(this.#lift());
  }

  /** Clears the screen; what is below the text stays. */
  clear(): void {
    const lifted = this.#lift();
    this.#column = 0;
    this.#wrapped = false;
    this.#port.write(lifted + "\x1b[H\x1b[2J" + this.#draw());
  }

  /** Removes what is below the text, and ends the current line, while another program has the terminal. */
  leave(): void {
    this.#port.write(this.#lift() + (this.#column > 0 ? "\n" : ""));
    this.#column = 0;
    this.#wrapped = false;
  }

  #refresh(): void {
    const change = this.#frame() === undefined ? this.#lift() : this.#draw();
    if (change !== "") this.#port.write(change);
  }

  #frame(): Frame | undefined {
    if (!this.#port.isTerminal || this.#held !== undefined) return undefined;
    const status = this.#status.map((each) => {
      const line = fit(each, this.columns() - 1);
      return { text: this.#style.dim(line), width: textWidth(line) };
    });
    const last = status.at(-1);
    if (this.#edited === undefined || this.#laidOut !== this.columns()) {
      const cursor = { row: status.length - 1, column: last?.width ?? 0 };
      return last === undefined ? undefined : { rows: status, cursor };
    }
    const { rows, cursor, below } = this.#edited;
    return {
      rows: [...status, ...rows],
      cursor: { ...cursor, row: cursor.row + status.length },
      below,
    };
  }

  /** The sequence that removes what is below the text and returns to its end. */
  #lift(): string {
    if (this.#drawn === 0) return "";
    const columns = this.columns();
    const erased = this.#drawn === columns
      ? this.#below.erase()
      : this.#below.eraseResized(columns);
    this.#drawn = 0;
    if (this.#column > columns) this.#column = (this.#column - 1) % columns + 1;
    return erased + this.#back();
  }

  /** From the row below the text to the end of the text. */
  #back(): string {
    if (this.#column === 0) return "";
    if (this.#column < this.columns()) return `\x1b[A\x1b[${this.#column + 1}G`;
    // The line above is full, so the next text starts here.
    this.#column = 0;
    this.#wrapped = true;
    return "";
  }

  #draw(): string {
    const frame = this.#frame();
    if (frame === undefined) return "";
    const columns = this.columns();
    const lifted = this.#drawn === columns ? "" : this.#lift();
    const start = this.#drawn === 0 && this.#column > 0 ? "\n" : "";
    this.#drawn = columns;
    return lifted + start + this.#below.draw(frame, Math.max(1, (this.#port.rows?.() ?? 24) - 1));
  }

  #advance(text: string): void {
    const columns = this.columns();
    const newline = text.lastIndexOf("\n");
    if (newline >= 0) this.#column = 0;
    for (const cluster of clusters(text.slice(newline + 1))) {
      if (cluster === "\t") {
        this.#column = Math.min((this.#column | 7) + 1, columns - 1);
        continue;
      }
      const width = clusterWidth(cluster);
      this.#column = this.#column + width > columns ? width : this.#column + width;
    }
  }
}

/** Second check after `stripControl`: only colour sequences pass. */
function ownSequencesOnly(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/(\x1b\[[\d;]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "$1");
}
