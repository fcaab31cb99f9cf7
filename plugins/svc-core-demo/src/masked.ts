import { bare } from "./names.ts";

/**
 * A request whose quoted stretches are replaced by marks such as `⟦0⟧`, so that rules see plain words
 * and what is quoted is taken exactly as it was written.
 */
export class Masked {
  readonly text: string;
  readonly #quotes: Quoted[] = [];

  constructor(request: string) {
    // Marks of the request itself would be taken for ours.
    const source = request.replace(/[⟦⟧]/g, " ");
    let text = "";
    let from = 0;
    for (const quote of quoted(source)) {
      text += `${source.slice(from, quote.start)}⟦${this.#quotes.length}⟧`;
      from = quote.end;
      this.#quotes.push({ ...quote, whole: source.slice(quote.start, quote.end) });
    }
    this.text = text + source.slice(from);
  }

  isQuoted(word: string): boolean {
    return MARK.test(word);
  }

  /** What is quoted at a mark, without the quotes. */
  inner(mark: string): string {
    return this.#quotes[Number(MARK.exec(mark)?.[1])]?.text ?? "";
  }

  /** A stretch as the request had it, quotes included. */
  plain(text: string): string {
    return text.replace(MARKS, (mark) => this.#quotes[Number(MARK.exec(mark)![1])]!.whole);
  }

  /** The path that a word stands for; an `@` before it is how the terminal session completes files. */
  name(word: string): string {
    return this.isQuoted(word) ? this.inner(word).trim() : bare(word).replace(/^@(?=.)/, "");
  }

  /** What a stretch stands for: the quoted part if there is one, else its words. */
  operand(text: string): string {
    return this.isQuoted(text) ? this.inner(text) : bare(text);
  }

  /** Text to be written: what is quoted when all of it is, without the fence of a code block. */
  content(text: string): string {
    const trimmed = text.trim();
    if (!WHOLLY_QUOTED.test(trimmed)) return this.plain(trimmed);
    const inner = this.inner(trimmed);
    const { whole } = this.#quotes[Number(MARK.exec(trimmed)![1])]!;
    return whole.startsWith("```") ? inner.replace(/^\w*\n/, "") : inner;
  }
}

const MARK = /⟦(\d+)⟧/;
const MARKS = /⟦\d+⟧/g;
const WHOLLY_QUOTED = /^⟦\d+⟧[.!?]?$/;

interface Quoted {
  text: string;
  /** With the quotes. */
  whole: string;
  start: number;
  end: number;
}

const QUOTES: readonly (readonly [string, string])[] = [
  ["```", "```"],
  ["`", "`"],
  ['"', '"'],
  ["“", "”"],
  ["„", "“"],
  ["«", "»"],
  ["‘", "’"],
  ["「", "」"],
  ["『", "』"],
  ["'", "'"],
];

/** What stands between quotes or backticks, in order. An apostrophe inside a word is no quote. */
function quoted(text: string): Omit<Quoted, "whole">[] {
  const found = [];
  const unclosed = new Set<string>(); // what is not closed here is not closed further on
  for (let start = 0; start < text.length; start++) {
    const pair = QUOTES.find(([open]) => text.startsWith(open, start));
    if (pair === undefined || unclosed.has(pair[1])) continue;
    if (pair[0] === "'" && start > 0 && IN_WORD.test(text.slice(start - 1, start))) continue;
    const from = start + pair[0].length;
    const end = closing(text, pair[1], from);
    if (end < 0) {
      unclosed.add(pair[1]);
      continue;
    }
    found.push({ text: text.slice(from, end), start, end: end + pair[1].length });
    start = end + pair[1].length - 1;
  }
  return found;
}

const IN_WORD = /[\p{L}\p{N}]/u;

function closing(text: string, mark: string, from: number): number {
  for (let at = text.indexOf(mark, from); at >= 0; at = text.indexOf(mark, at + 1)) {
    if (mark !== "'" && mark !== "’") return at;
    if (!IN_WORD.test(text.slice(at + 1, at + 2))) return at;
  }
  return -1;
}
