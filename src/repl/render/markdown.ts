import { highlighter } from "../../platform/highlight.ts";
import { ControlFilter } from "../../platform/text.ts";
import { BlockWriter } from "./markdown/blocks.ts";
import { type Line, readLine } from "./markdown/lines.ts";
import { type Alignment, tableAlignments, tableCells } from "./markdown/table.ts";
import type { Style } from "../../platform/style.ts";

/** Renders a whole text; the result ends with a line feed unless it is empty. */
export function renderMarkdown(text: string, style: Style, columns: number): string {
  const stream = new MarkdownStream(style, () => columns);
  return stream.write(text) + stream.end();
}

/** The open leaf block; it ends at the first line that does not continue it. */
type Leaf =
  | { type: "none" | "paragraph" }
  | { type: "fence"; block: CodeBlock }
  | { type: "table"; rows: string[][]; alignments: Alignment[]; size: number };

/** Characters of a table that are buffered; the rest of a longer table is shown as text. */
const MAX_TABLE = 65_536;
/** Characters after which a line's kind is decided at its end only. */
const MAX_HEAD = 256;

/**
 * Markdown for a terminal, rendered as it arrives: paragraphs word by word, code line by line, tables
 * when they are complete. The text is read character by character, so chunk boundaries make no difference.
 * Text that is not Markdown is shown unchanged. Line breaks are kept. Styles stand for the marks of headings and code
 * blocks; without styles the marks stay.
 */
export class MarkdownStream {
  readonly #style: Style;
  readonly #whole: boolean;
  readonly #filter = new ControlFilter();
  readonly #page: BlockWriter;
  #leaf: Leaf = { type: "none" };
  /** A line that may be a table header. */
  #head: string | undefined;
  /** The line while its kind is unknown; undefined while its text is passed on. */
  #line: string | undefined = "";

  /** @param options.blocks return whole blocks only (`word_streaming` off) */
  constructor(style: Style, columns: () => number, options: { blocks?: boolean } = {}) {
    this.#style = style;
    this.#whole = options.blocks === true;
    this.#page = new BlockWriter(style, columns);
  }

  /** Adds a piece of text and returns what can be shown. */
  write(piece: string): string {
    for (const character of this.#filter.write(piece)) this.#take(character);
    return this.#page.taken(this.#whole);
  }

  /** Ends the text and returns the rest. */
  end(): string {
    if (this.#line === undefined) this.#endText();
    else if (this.#line !== "") this.#consider(this.#line, true);
    this.#closeLeaf();
    this.#filter.end();
    this.#page.reset();
    this.#line = "";
    return this.#page.taken(false);
  }

  #take(character: string): void {
    if (this.#line === undefined) {
      if (character === "\n") this.#endText();
      else this.#page.feed(character);
    } else if (character === "\n") {
      const line = this.#line;
      this.#consider(line, true);
      if (this.#line === undefined) this.#endText();
      this.#line = "";
    } else {
      this.#line += character;
      const waits = this.#leaf.type === "fence" || this.#line.length > MAX_HEAD;
      if (!waits) this.#consider(this.#line, false);
    }
  }

  #endText(): void {
    this.#page.endLine();
    this.#line = "";
  }

  #consider(text: string, ended: boolean): void {
    const leaf = this.#leaf;
    const line = readLine(text, ended, {
      containers: this.#page.containers,
      paragraph: leaf.type === "paragraph",
      code: leaf.type === "fence" ? leaf.block.depth : undefined,
      table: leaf.type === "table" || this.#head !== undefined,
    });
    if (line === undefined) return;
    if (line.kind === "inside") return this.#code(line.rest);
    const here = line.matched === this.#page.containers.length && line.opened.length === 0;
    if (this.#head !== undefined) {
      const cells = tableCells(this.#head);
      const alignments = here ? tableAlignments(line.rest) : undefined;
      if (alignments?.length === cells.length && line.kind !== "blank") {
        this.#head = undefined;
        this.#leaf = { type: "table", rows: [cells], alignments, size: 0 };
      } else {
        this.#headIsText();
        this.#consider(text, ended);
      }
      return;
    }
    if (leaf.type === "table") {
      if (here && line.kind === "row" && leaf.size < MAX_TABLE) {
        leaf.rows.push(tableCells(line.rest));
        leaf.size += line.rest.length;
        return;
      }
      this.#closeLeaf();
      return this.#consider(text, ended);
    }
    if (leaf.type === "paragraph" && line.kind === "text" && line.opened.length === 0) {
      this.#page.feed("\n");
      return this.#text(line.rest);
    }
    this.#closeLeaf();
    this.#block(line);
  }

  /** Starts the block that the line opens. */
  #block({ kind, matched, opened, rest }: Line): void {
    const page = this.#page;
    if (kind === "blank" && opened.length === 0) {
      const { containers } = page;
      const quote = containers.findIndex(({ type }, at) => at >= matched && type === "quote");
      if (quote >= 0) containers.length = quote;
      return page.gap();
    }
    if (kind === "fence" && this.#style.enabled) page.gap();
    page.open(matched, opened);
    switch (kind) {
      case "blank":
        if (opened.some(({ type }) => type === "item")) page.print("");
        else page.gap();
        return;
      case "text":
        page.beginParagraph();
        return this.#text(rest);
      case "heading":
        return page.heading(rest);
      case "rule":
      case "underline":
        return page.rule(kind === "rule" ? "─" : "═");
      case "fence": {
        const block = new CodeBlock(rest, page.containers.length, this.#style);
        if (!this.#style.enabled) page.print(block.head);
        this.#leaf = { type: "fence", block };
        return;
      }
      case "row":
        this.#head = rest;
        return;
      case "code":
        return page.print(`    ${this.#style.cyan(rest)}`);
    }
  }

  #text(text: string): void {
    this.#leaf = { type: "paragraph" };
    this.#page.feed(text);
    this.#line = undefined;
  }

  #headIsText(): void {
    const text = this.#head!;
    this.#head = undefined;
    this.#page.beginParagraph();
    this.#text(text);
    this.#endText();
  }

  #code(line: string): void {
    const { block } = this.#leaf as Leaf & { type: "fence" };
    if (!block.endsWith(line)) return this.#page.print(block.line(line));
    if (this.#style.enabled) this.#page.gap();
    else this.#page.print(line.trim());
    this.#leaf = { type: "none" };
    this.#page.settle();
  }

  #closeLeaf(): void {
    if (this.#head !== undefined) this.#headIsText();
    const leaf = this.#leaf;
    this.#leaf = { type: "none" };
    if (leaf.type === "paragraph") this.#page.endParagraph();
    else if (leaf.type === "table") this.#page.table(leaf.rows, leaf.alignments);
    this.#page.settle();
  }
}

/** A fenced code block: opened by its first line, highlighted by its language. */
class CodeBlock {
  /** The opening line. */
  readonly head: string;
  readonly #end: RegExp;
  readonly #indent: RegExp;
  readonly #paint: (line: string) => string;

  /** @param depth number of enclosing containers */
  constructor(opening: string, readonly depth: number, style: Style) {
    const [, space, signs, name] = /^( *)(`+|~+)[ \t]*([^ \t{,:]*)/.exec(opening)!;
    this.head = opening.trim();
    this.#indent = new RegExp(`^ {0,${space!.length}}`);
    this.#end = new RegExp(`^ {0,3}[${signs![0]}]{${signs!.length},}[ \\t]*$`);
    this.#paint = highlighter(name!, style, style.cyan);
  }

  /** Whether the line closes the block. */
  endsWith(line: string): boolean {
    return this.#end.test(line);
  }

  /** Renders a line of code. */
  line(line: string): string {
    return this.#paint(line.replace(this.#indent, ""));
  }
}
