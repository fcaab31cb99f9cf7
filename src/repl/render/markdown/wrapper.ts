import { clusters, clusterWidth, textWidth } from "../../../platform/text.ts";
import { type Chunk, CJK } from "./inline.ts";

/** Wraps words into lines of a given width, each with a prefix; a word is written when complete. */
export class Wrapper {
  readonly #write: (text: string) => void;
  readonly #paint: (chunk: Chunk) => string;
  readonly #columns: () => number;
  /** The prefix of the next line. */
  #prefix = "";
  #otherPrefix = "";
  #column = 0;
  /** Whether the current line has text. */
  #begun = false;
  #space: Chunk | undefined;
  #last = 0;
  #word: Chunk[] = [];
  #wordLength = 0;

  constructor(
    write: (text: string) => void,
    paint: (chunk: Chunk) => string,
    columns: () => number,
  ) {
    this.#write = write;
    this.#paint = paint;
    this.#columns = columns;
  }

  /** Starts a block: `first` is the prefix of its first line, `other` of the rest. */
  begin(first: string, other: string): void {
    this.#prefix = first;
    this.#otherPrefix = other;
    this.#begun = false;
    this.#space = undefined;
  }

  text({ text, marks }: Chunk): void {
    for (const piece of text.match(/\n|[ \t\f\u2028\u2029]+|[^ \t\f\n\u2028\u2029]+/g) ?? []) {
      if (piece === "\n") this.newline();
      else if (/^[ \t\f\u2028\u2029]/.test(piece)) {
        this.flush();
        this.#space ??= { text: " ", marks };
      } else this.#add(piece, marks);
    }
  }

  /** Ends the line. */
  newline(): void {
    this.flush();
    if (!this.#begun) this.#write(this.#prefix.trimEnd());
    this.#write("\n");
    this.#prefix = this.#otherPrefix;
    this.#begun = false;
    this.#space = undefined;
  }

  /** Writes the pending word, complete or not. */
  flush(): void {
    const word = this.#word;
    if (word.length === 0) return;
    this.#word = [];
    this.#wordLength = 0;
    const width = word.reduce((sum, { text }) => sum + textWidth(text), 0);
    const space = this.#begun && this.#space !== undefined ? 1 : 0;
    if (this.#begun && this.#column + space + width > this.#columns()) this.#wrap();
    if (!this.#begun) this.#startLine();
    else if (space > 0) {
      const same = this.#last === word[0]!.marks && this.#space!.marks === this.#last;
      this.#write(same ? this.#paint(this.#space!) : " ");
      this.#column++;
    }
    this.#space = undefined;
    for (const chunk of word) {
      if (this.#column + textWidth(chunk.text) > this.#columns()) this.#split(chunk);
      else {
        this.#write(this.#paint(chunk));
        this.#column += textWidth(chunk.text);
      }
    }
    this.#last = word.at(-1)!.marks;
  }

  #add(piece: string, marks: number): void {
    if (!WIDE.test(piece)) return this.#append(piece, marks);
    for (const character of piece) {
      const last = [...this.#word.at(-1)?.text.slice(-2) ?? ""].at(-1) ?? "";
      const between = CJK.test(character)
        ? !NO_BREAK_BEFORE.test(character) && !OPENING.test(last)
        : CJK.test(last) && /^[\p{L}\p{N}]/u.test(character);
      if (last !== "" && between) this.flush();
      this.#append(character, marks);
    }
  }

  #append(text: string, marks: number): void {
    const last = this.#word.at(-1);
    if (last?.marks === marks) last.text += text;
    else this.#word.push({ text, marks });
    this.#wordLength += text.length;
    if (this.#wordLength > MAX_WORD) this.flush();
  }

  #wrap(): void {
    this.#write("\n");
    this.#prefix = this.#otherPrefix;
    this.#begun = false;
  }

  #startLine(): void {
    this.#write(this.#prefix);
    this.#column = textWidth(this.#prefix);
    this.#begun = true;
  }

  /** Breaks a word that is longer than a line. */
  #split({ text, marks }: Chunk): void {
    let row = "";
    let column = this.#column;
    const indent = textWidth(this.#otherPrefix);
    for (const cluster of clusters(text)) {
      const width = clusterWidth(cluster);
      if (column + width > this.#columns() && column > indent) {
        this.#write(this.#paint({ text: row, marks }));
        this.#wrap();
        this.#startLine();
        row = "";
        column = this.#column;
      }
      row += cluster;
      column += width;
    }
    this.#write(this.#paint({ text: row, marks }));
    this.#column = column;
  }
}

/** Length at which an incomplete word is written. */
const MAX_WORD = 4000;
const WIDE = /[\u2e80-\uffff]/;
const NO_BREAK_BEFORE =
  /^[\u3001\u3002\uff0c\uff1a\u30fc\u3041\u3043\u3045\u3047\u3049\u3063\u3083\u3085\u3087]/;
const OPENING = /^[\p{Ps}\p{Pi}]/u;
