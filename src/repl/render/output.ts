import type { Style } from "./style.ts";
import { clusters, clusterWidth, fit, withoutStyle } from "./text.ts";

/** What is written to: the terminal, or a file or pipe in its place. */
export interface OutputPort {
  write(text: string): void;
  /** Cells of a line, asked anew each time. */
  columns(): number;
  /** False: nothing volatile is written. */
  readonly isTerminal: boolean;
}

/**
 * What stands below the last prompt: text that stays, and under it one volatile line that is lifted
 * while text is printed. Text comes without control characters, save for line feeds, tabs and `Style`.
 */
export class Output {
  readonly #port: OutputPort;
  readonly #style: Style;
  /** The cell behind what was printed last; as many as there are columns when the line is full. */
  #column = 0;
  /** The cursor stands below a line that is full: the line feed that is to end it has happened. */
  #wrapped = false;
  #status = "";
  /** What waits to be printed while somebody types below. */
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

  /** Prints text that stays: whole lines or pieces of one. */
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

  /** Prints text on lines of its own: what was printed last and the text itself are ended. */
  line(text: string): void {
    this.fresh();
    this.print(text.endsWith("\n") ? text : `${text}\n`);
  }

  /** Ends a line that was begun. */
  fresh(): void {
    const begun = this.#held ? !this.#held.endsWith("\n") : this.#column > 0;
    if (begun) this.print("\n");
    this.#wrapped = false;
  }

  /** Leaves the terminal to somebody else, a question for one: what is printed waits for `release`. */
  hold(): void {
    this.status(undefined);
    this.fresh();
    this.#held ??= "";
  }

  /** Takes the terminal back, at the beginning of a line. */
  release(): void {
    const held = this.#held ?? "";
    this.#held = undefined;
    this.print(held);
  }

  /** Shows one volatile line at the bottom, cut to the width; undefined takes it away. */
  status(text: string | undefined): void {
    if (!this.#port.isTerminal || this.#held !== undefined) return;
    const line = (text ?? "").replace(/\s+/g, " ");
    const status = ownSequencesOnly(fit(withoutStyle(line), this.columns() - 1));
    if (status === this.#status) return;
    const lifted = this.#lift();
    this.#status = status;
    this.#port.write(lifted + this.#draw());
  }

  /** The sequence that takes the volatile line off and goes back to behind the text that stays. */
  #lift(): string {
    if (this.#status === "") return "";
    const clear = "\r\x1b[K";
    if (this.#column === 0) return clear;
    if (this.#column < this.columns()) return `${clear}\x1b[A\x1b[${this.#column + 1}G`;
    // The line above is full: what comes next stands here anyway.
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

/** The second wall behind `stripControl`: no sequence but colours gets through. */
function ownSequencesOnly(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.replace(/(\x1b\[[\d;]*m)|[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "$1");
}
