/** What was typed behind a slash command's name. */
export interface Line {
  /** The words, quotes taken off. */
  readonly words: readonly string[];
  /** The text from a word on as it was typed; of a single quoted word, what the quotes hold. */
  rest(from: number): string;
}

interface Word {
  text: string;
  start: number;
  end: number;
}

/** Takes a line apart at blanks; '…' and "…" hold blanks together, and a backslash keeps a quote or itself. */
export function readLine(text: string): Line {
  const found = wordsOf(text);
  return {
    words: found.map((word) => word.text),
    rest(from) {
      const first = found[from];
      if (first === undefined) return "";
      const raw = text.slice(first.start).trimEnd();
      return from === found.length - 1 && /^["'].*["']$/s.test(raw) ? first.text : raw;
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

/** Takes an option and its value out of words. */
export function takeOption(
  words: readonly string[],
  name: string,
): { words: string[]; value: string | undefined } {
  const at = words.findIndex((word) => word === name || word.startsWith(`${name}=`));
  if (at < 0) return { words: [...words], value: undefined };
  const joined = words[at] !== name;
  const value = joined ? words[at]!.slice(name.length + 1) : words[at + 1] ?? "";
  return { words: words.toSpliced(at, joined ? 1 : 2), value };
}

/** Takes a flag out of words. */
export function takeFlag(
  words: readonly string[],
  ...names: string[]
): { words: string[]; set: boolean } {
  const left = words.filter((word) => !names.includes(word));
  return { words: left, set: left.length < words.length };
}
