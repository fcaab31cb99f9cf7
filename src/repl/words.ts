/** The text that follows the name of a slash command. */
export interface Line {
  /** The words, without their quotes. */
  readonly words: readonly string[];
  /**
   * The text from one word up to another (default: the end) as it was typed; of a single quoted word, the
   * text between the quotes.
   */
  rest(from: number, until?: number): string;
}

interface Word {
  text: string;
  start: number;
  end: number;
}

/** Splits a line at blanks; '…' and "…" hold blanks together, and a backslash keeps a quote or itself. */
export function readLine(text: string): Line {
  const found = wordsOf(text);
  return {
    words: found.map((word) => word.text),
    rest(from, until = found.length) {
      const first = found[from];
      if (first === undefined) return "";
      const raw = text.slice(first.start, found[until]?.start).trimEnd();
      return from === until - 1 && /^["'].*["']$/s.test(raw) ? first.text : raw;
    },
  };
}

function wordsOf(text: string): Word[] {
  const words: Word[] = [];
  let word: Word | undefined;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    const character = text[at]!;
    if (quote === "" && /\s/.test(character)) {
      word = undefined;
      continue;
    }
    if (word === undefined) words.push(word = { text: "", start: at, end: at });
    word.end = at + 1;
    const next = text[at + 1];
    if (character === "\\" && quote !== "'" && (next === '"' || next === "'" || next === "\\")) {
      word.text += next;
      word.end = ++at + 1;
    } else if (character === quote) quote = "";
    else if (quote === "" && (character === '"' || character === "'")) quote = character;
    else word.text += character;
  }
  return words;
}
