import type { Style } from "../../../platform/style.ts";
import { textWidth } from "../../../platform/text.ts";
import { type Chunk, InlineStream, MARK } from "./inline.ts";
import type { Container } from "./lines.ts";
import { type Alignment, renderTable } from "./table.ts";
import { Wrapper } from "./wrapper.ts";

/** Writes blocks for a terminal; each line starts with the prefix of its containers. */
export class BlockWriter {
  /** The open containers. */
  containers: Container[] = [];
  readonly #style: Style;
  readonly #paint: (chunk: Chunk) => string;
  readonly #columns: () => number;
  readonly #wrapper: Wrapper;
  readonly #inline: InlineStream;
  #out = "";
  /** Length of the part of `#out` that belongs to finished blocks. */
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

  /** Takes the output written so far: finished blocks only, or all of it. */
  taken(settled: boolean): string {
    const end = settled ? this.#settled : this.#out.length;
    const shown = this.#out.slice(0, end);
    this.#out = this.#out.slice(end);
    this.#settled = 0;
    return shown;
  }

  /** Resets the writer for another text. */
  reset(): void {
    this.containers = [];
    this.#started = this.#gap = false;
  }

  /** Records an empty line, shown before the next block. */
  gap(): void {
    this.#gap = true;
  }

  /** Starts a block in the first `matched` open containers and in new ones. */
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

  /** Adds text to the paragraph; line feeds are kept. */
  feed(text: string): void {
    for (const character of text) this.#inline.feed(character);
  }

  /** Ends a line of the paragraph; the next line may continue it. */
  endLine(): void {
    this.#inline.boundary();
    this.#wrapper.flush();
  }

  endParagraph(): void {
    this.#inline.end();
    this.#wrapper.newline();
  }

  /** Ends the block. */
  settle(): void {
    this.#settled = this.#out.length;
  }

  heading(text: string): void {
    const [, signs, title] = /^(#+)[ \t]*(.*?)(?:[ \t]+#+)?[ \t]*$/.exec(text)!;
    const marks = [MARK.bold | MARK.title, MARK.bold][signs!.length - 1] ?? MARK.italic;
    this.beginParagraph();
    const inline = new InlineStream((text, own) =>
      this.#wrapper.text({ text, marks: own | marks })
    );
    for (const character of this.#style.enabled ? title! : `${signs} ${title}`) {
      inline.feed(character);
    }
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

  /** Writes one line unchanged. */
  print(text: string): void {
    this.#out += `${this.#prefix()}${text}`.trimEnd() + "\n";
  }

  /** The prefix of a line; list markers appear once. */
  #prefix(first = true): string {
    return prefixOf(this.containers, first, this.#style);
  }
}

/** The prefix of a line inside containers; list markers appear once, when `first` is set. */
export function prefixOf(containers: Container[], first: boolean, style: Style): string {
  return containers.map((container) => {
    if (container.type === "quote") return `${style.dim("│")} `;
    const { marker, width } = container;
    if (!first || marker === "") return " ".repeat(width);
    container.marker = "";
    return marker;
  }).join("");
}

/** Styles chunks of text by their marks. */
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
