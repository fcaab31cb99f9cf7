import type { Style } from "../style.ts";
import { textWidth } from "../text.ts";
import { type Chunk, InlineStream, MARK } from "./inline.ts";
import type { Container } from "./lines.ts";
import { type Alignment, renderTable } from "./table.ts";
import { Wrapper } from "./wrapper.ts";

/** Blocks as a terminal shows them, each line behind what the containers around it put there. */
export class BlockWriter {
  /** What is open around the next line. */
  containers: Container[] = [];
  readonly #style: Style;
  readonly #paint: (chunk: Chunk) => string;
  readonly #columns: () => number;
  readonly #wrapper: Wrapper;
  readonly #inline: InlineStream;
  #out = "";
  /** As much of `#out` as belongs to blocks that have ended. */
  #settled = 0;
  #started = false;
  #gap = false;

  constructor(style: Style, columns: () => number) {
    this.#style = style;
    this.#columns = columns;
    const paint = this.#paint = painter(style);
    this.#wrapper = new Wrapper((text) => void (this.#out += text), paint, columns);
    this.#inline = new InlineStream((text, marks) => this.#wrapper.text({ text, marks }));
  }

  /** What has been written since; of blocks that have ended only, or all of it. */
  taken(settled: boolean): string {
    const end = settled ? this.#settled : this.#out.length;
    const shown = this.#out.slice(0, end);
    this.#out = this.#out.slice(end);
    this.#settled = 0;
    return shown;
  }

  /** The text is over; another may follow. */
  reset(): void {
    this.containers = [];
    this.#started = this.#gap = false;
  }

  /** An empty line of the text: it stands in front of the next block. */
  gap(): void {
    this.#gap = true;
  }

  /** Begins a block in the first `matched` of the containers that are open, and in new ones. */
  open(matched: number, opened: Container[]): void {
    this.containers.length = matched;
    if (this.#gap && this.#started) this.#out += `${this.#prefix(false)}`.trimEnd() + "\n";
    this.#gap = false;
    this.#started = true;
    this.containers.push(...opened);
  }

  beginParagraph(): void {
    const first = this.#prefix();
    this.#wrapper.begin(first, this.#prefix());
  }

  /** Text of the paragraph; a line feed is one of the text's. */
  feed(text: string): void {
    for (const character of text) this.#inline.feed(character);
  }

  /** The paragraph's line ends; what follows may belong to it or not. */
  endLine(): void {
    this.#inline.boundary();
    this.#wrapper.flush();
  }

  endParagraph(): void {
    this.#inline.end();
    this.#wrapper.newline();
  }

  /** The block is whole. */
  settle(): void {
    this.#settled = this.#out.length;
  }

  heading(text: string): void {
    const [, signs, title] = /^(#+)[ \t]*(.*?)(?:[ \t]+#+)?[ \t]*$/.exec(text)!;
    const marks = signs!.length === 1 ? MARK.bold | MARK.title : MARK.bold;
    this.beginParagraph();
    const inline = new InlineStream((text, own) =>
      this.#wrapper.text({ text, marks: own | marks })
    );
    for (const character of `${signs} ${title}`) inline.feed(character);
    inline.end();
    this.#wrapper.newline();
    this.settle();
  }

  rule(sign: string): void {
    const prefix = this.#prefix();
    const width = Math.max(3, this.#columns() - textWidth(prefix));
    this.#out += `${prefix}${this.#style.dim(sign.repeat(width))}\n`;
    this.settle();
  }

  table(rows: string[][], alignments: Alignment[]): void {
    const [first, other] = [this.#prefix(), this.#prefix()];
    const lines = renderTable(rows, alignments, {
      columns: this.#columns() - textWidth(other),
      paint: this.#paint,
      rule: this.#style.dim,
    });
    this.#out += lines.map((line, at) => `${(at === 0 ? first : other)}${line}`.trimEnd() + "\n")
      .join("");
  }

  /** One line as it is. */
  print(text: string): void {
    this.#out += `${this.#prefix()}${text}`.trimEnd() + "\n";
  }

  /** What stands before a line; the markers of list items only once. */
  #prefix(first = true): string {
    return prefixOf(this.containers, first, this.#style);
  }
}

/** What stands before a line inside containers; the markers of list items only once, and when `first`. */
export function prefixOf(containers: Container[], first: boolean, style: Style): string {
  return containers.map((container) => {
    if (container.type === "quote") return `${style.dim("│")} `;
    const { marker, width } = container;
    if (!first || marker === "") return " ".repeat(width);
    container.marker = "";
    return marker;
  }).join("");
}

/** Sets pieces of text as their marks say. */
export function painter(style: Style): (chunk: Chunk) => string {
  return ({ text, marks }) => {
    let shown = text;
    if (marks & MARK.code) shown = style.cyan(shown);
    if (marks & MARK.italic) shown = style.italic(shown);
    if (marks & (MARK.link | MARK.title)) shown = style.underline(shown);
    if (marks & MARK.strike) shown = style.strike(shown);
    if (marks & MARK.address) shown = style.dim(shown);
    return marks & MARK.bold ? style.bold(shown) : shown;
  };
}
