import type { Style } from "./style.ts";
import { clusters, clusterWidth, fit, withoutStyle } from "./text.ts";

/** The output: a terminal, or a file or pipe. */
export interface OutputPort {
  write(text: string): void;
  /** Width in cells, read on every use. */
  columns(): number;
  /** When false, no status line is written. */
  readonly isTerminal: boolean;
}

/**
 * Output below the last prompt: permanent text, and below it one status line that is removed while text
 * is printed. Text must contain no control characters except line feeds, tabs and the sequences of `Style`.
 */
export class Output {
  readonly #port: OutputPort;
  readonly #style: Style;
  /** The column after the last printed text; equal to the width when the line is full. */
  #column = 0;
  /** The cursor is already below a full line, so the pending line feed must be skipped. */
  #wrapped = false;
  #status = "";
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

  /** Holds output back until `release`, for example while a question is open. */
  hold(): void {
    this.status(undefined);
    this.fresh();
    this.#held ??= "";
  }

  /** Prints held output, starting at the beginning of a line. */
  release(): void {
    const held = this.#held ?? "";
    this.#held = undefined;
    this.print(held);
  }

  /** Shows the status line, cut to the width; undefined removes it. */
  status(text: string | undefined): void {
    if (!this.#port.isTerminal || this.#held !== undefined) return;
    const line = (text ?? "").replace(/\s+/g, " ");
    const status = ownSequencesOnly(fit(withoutStyle(line), this.columns() - 1));
    if (status === this.#status) return;
    const lifted = this.#lift();
    this.#status = status;
    this.#port.write(lifted + this.#draw());
  }

  /** The sequence that removes the status line and returns to the end of the permanent text. */
  #lift(): string {
    if (this.#status === "") return "";
    const clear = "\r\x1b[K";
    if (this.#column === 0) return clear;
    if (this.#column < this.columns()) return `${clear}\x1b[A\x1b[${this.#column + 1}G`;
    // The line above is full, so the next text starts here.
    this.#column = 0;
    this.#wrapped = true;
    return clear;
  }

  #draw(): string {
    if (this.#status === "") return "";
    return (this.#column > 0 ? "\n" : "") + this.#style.dim(this.#status);
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
