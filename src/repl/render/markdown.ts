import { ControlFilter } from "./control_filter.ts";
import { painter } from "./markdown/painter.ts";
import { CodeBlock } from "./markdown/code_block.ts";
import { type Chunk, MARK } from "./markdown/inline.ts";
import { InlineStream } from "./markdown/inline_stream.ts";
import { type Container, type Line, readLine } from "./markdown/lines.ts";
import { prefixOf } from "./markdown/prefix.ts";
import { type Alignment, renderTable, tableAlignments, tableCells } from "./markdown/table.ts";
import { Wrapper } from "./markdown/wrapper.ts";
import type { Style } from "./style.ts";
import { textWidth } from "./width.ts";

/** A whole text as a terminal shows it; ends with a line feed unless there is nothing to show. */
export function renderMarkdown(text: string, style: Style, columns: number): string {
  const stream = new MarkdownStream(style, () => columns);
  return stream.write(text) + stream.end();
}

/** What is being read: it ends with the lines that do not belong to it. */
type Leaf =
  | { type: "none" | "paragraph" }
  | { type: "fence"; block: CodeBlock }
  | { type: "table"; rows: string[][]; alignments: Alignment[]; size: number };

/** Characters of a table that are held back; the rest of a longer one is text. */
const MAX_TABLE = 65_536;
/** Characters within which a line's kind shows, or else at its end. */
const MAX_HEAD = 256;

/**
 * Markdown for a terminal, rendered as it arrives: paragraphs word by word, code line by line, tables
 * when they are complete. The text is read character by character, so that how it was cut into pieces
 * makes no difference; what cannot be read as Markdown is shown as it is. Line breaks are kept.
 */
export class MarkdownStream {
  readonly #style: Style;
  readonly #paint: (chunk: Chunk) => string;
  readonly #columns: () => number;
  readonly #whole: boolean;
  readonly #filter = new ControlFilter();
  readonly #wrapper: Wrapper;
  readonly #inline: InlineStream;
  #out = "";
  /** As much of `#out` as belongs to blocks that have ended. */
  #settled = 0;
  #containers: Container[] = [];
  #leaf: Leaf = { type: "none" };
  /** A line that may be a table's head. */
  #head: string | undefined;
  /** The line as far as its kind is not known; undefined while its text is handed on. */
  #line: string | undefined = "";
  #started = false;
  #gap = false;

  /** @param options.blocks hands out whole blocks only (`word_streaming` off) */
  constructor(style: Style, columns: () => number, options: { blocks?: boolean } = {}) {
    this.#style = style;
    this.#columns = columns;
    this.#whole = options.blocks === true;
    const paint = this.#paint = painter(style);
    this.#wrapper = new Wrapper((text) => void (this.#out += text), paint, columns);
    this.#inline = new InlineStream((text, marks) => this.#wrapper.text({ text, marks }));
  }

  /** What can be shown now that this piece has come. */
  write(piece: string): string {
    for (const character of this.#filter.write(piece)) this.#take(character);
    const end = this.#whole ? this.#settled : this.#out.length;
    const shown = this.#out.slice(0, end);
    this.#out = this.#out.slice(end);
    this.#settled = 0;
    return shown;
  }

  /** The rest; the text ends here, and the next one may begin. */
  end(): string {
    if (this.#line === undefined) this.#endText();
    else if (this.#line !== "") this.#consider(this.#line, true);
    this.#closeLeaf();
    this.#filter.end();
    const shown = this.#out;
    this.#out = "";
    this.#settled = 0;
    this.#containers = [];
    this.#line = "";
    this.#started = this.#gap = false;
    return shown;
  }

  #take(character: string): void {
    if (this.#line === undefined) {
      if (character === "\n") this.#endText();
      else this.#inline.feed(character);
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
    this.#inline.boundary();
    this.#wrapper.flush();
    this.#line = "";
  }

  #consider(text: string, ended: boolean): void {
    const leaf = this.#leaf;
    const line = readLine(text, ended, {
      containers: this.#containers,
      paragraph: leaf.type === "paragraph",
      code: leaf.type === "fence" ? leaf.block.depth : undefined,
      table: leaf.type === "table" || this.#head !== undefined,
    });
    if (line === undefined) return;
    if (line.kind === "inside") return this.#code(line.rest);
    const here = line.matched === this.#containers.length && line.opened.length === 0;
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
      this.#inline.feed("\n");
      return this.#text(line.rest);
    }
    this.#closeLeaf();
    this.#block(line);
  }

  /** Begins what the line begins. */
  #block(line: Line): void {
    const { kind, matched, opened, rest } = line;
    if (kind === "blank" && opened.length === 0) {
      const quote = this.#containers.findIndex(({ type }, at) => at >= matched && type === "quote");
      if (quote >= 0) this.#containers.length = quote;
      this.#gap = true;
      return;
    }
    this.#containers.length = matched;
    this.#space();
    this.#containers.push(...opened);
    switch (kind) {
      case "blank":
        if (opened.some(({ type }) => type === "item")) this.#print("");
        else this.#gap = this.#started;
        return;
      case "text":
        this.#begin();
        return this.#text(rest);
      case "heading":
        return this.#heading(rest);
      case "rule":
      case "underline":
        return this.#rule(kind === "rule" ? "─" : "═");
      case "fence": {
        const block = new CodeBlock(rest, this.#containers.length, this.#style);
        this.#print(block.head);
        this.#leaf = { type: "fence", block };
        return;
      }
      case "row":
        this.#head = rest;
        return;
      case "code":
        return this.#print(`    ${this.#style.cyan(rest)}`);
    }
  }

  #text(text: string): void {
    this.#leaf = { type: "paragraph" };
    for (const character of text) this.#inline.feed(character);
    this.#line = undefined;
  }

  #headIsText(): void {
    const text = this.#head!;
    this.#head = undefined;
    this.#begin();
    this.#text(text);
    this.#endText();
  }

  #heading(text: string): void {
    const [, signs, title] = /^(#+)[ \t]*(.*?)(?:[ \t]+#+)?[ \t]*$/.exec(text)!;
    const marks = signs!.length === 1 ? MARK.bold | MARK.title : MARK.bold;
    const [first, other] = [this.#prefix(), this.#prefix()];
    this.#wrapper.begin(first, other);
    const inline = new InlineStream((text, own) =>
      this.#wrapper.text({ text, marks: own | marks })
    );
    for (const character of `${signs} ${title}`) inline.feed(character);
    inline.end();
    this.#wrapper.newline();
    this.#settle();
  }

  #rule(sign: string): void {
    const prefix = this.#prefix();
    const width = Math.max(3, this.#columns() - textWidth(prefix));
    this.#out += `${prefix}${this.#style.dim(sign.repeat(width))}\n`;
    this.#settle();
  }

  #code(line: string): void {
    const { block } = this.#leaf as Leaf & { type: "fence" };
    if (block.endsWith(line)) {
      this.#print(this.#style.dim(line.trim()));
      this.#leaf = { type: "none" };
      this.#settle();
    } else this.#print(block.line(line));
  }

  #closeLeaf(): void {
    if (this.#head !== undefined) this.#headIsText();
    const leaf = this.#leaf;
    this.#leaf = { type: "none" };
    if (leaf.type === "paragraph") {
      this.#inline.end();
      this.#wrapper.newline();
    } else if (leaf.type === "table") {
      const [first, other] = [this.#prefix(), this.#prefix()];
      const lines = renderTable(leaf.rows, leaf.alignments, {
        columns: this.#columns() - textWidth(other),
        paint: this.#paint,
        rule: this.#style.dim,
      });
      this.#out += lines.map((line, at) => `${(at === 0 ? first : other)}${line}`.trimEnd() + "\n")
        .join("");
    }
    this.#settle();
  }

  #begin(): void {
    const first = this.#prefix();
    this.#wrapper.begin(first, this.#prefix());
  }

  /** One line as it is. */
  #print(text: string): void {
    this.#out += `${this.#prefix()}${text}`.trimEnd() + "\n";
  }

  /** The empty line in front of a block that the text has there. */
  #space(): void {
    if (this.#gap && this.#started) this.#out += `${this.#prefix(false)}`.trimEnd() + "\n";
    this.#gap = false;
    this.#started = true;
  }

  /** What stands before a line; the markers of list items only once. */
  #prefix(first = true): string {
    return prefixOf(this.#containers, first, this.#style);
  }

  #settle(): void {
    this.#settled = this.#out.length;
  }
}
