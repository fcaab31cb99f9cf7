import { type Definition, optionsOf, subcommands } from "./command.ts";

/**
 * The arguments of a line, the command's name first. A text that is the last argument is taken as it was
 * typed; options may stand before it and at the end of the line.
 */
export function argumentsOf(command: Definition, name: string, line: Line): string[] {
  const { words } = line;
  const first = words.findIndex((word) => !word.startsWith("-"));
  const named = subcommands(command).includes(words[first] ?? "");
  const before = command.textAfter?.[named ? words[first]! : ""];
  if (before === undefined || words.includes("--")) return [name, ...words];
  const options = optionsOf(command, named ? [name, words[first]!] : [name]);
  /** How many words the option at an index takes; 0 where there is none. */
  const taken = (at: number) => {
    const [option = "", value] = /^(--?[\w-]+)(=.*)?$/s.exec(words[at]!)?.slice(1) ?? [];
    if (option === "--help" || option === "-h") return 1;
    const valued = options.get(option);
    return valued === undefined ? 0 : valued && value === undefined ? 2 : 1;
  };
  let start = named ? first + 1 : 0;
  for (let passed = 0; start < words.length; start++) {
    const size = taken(start);
    if (size > 0) start += size - 1;
    else if (passed++ === before) break;
  }
  if (start >= words.length) return [name, ...words];
  let end = words.length;
  while (end > start + 1) {
    if (taken(end - 1) === 1) end -= 1;
    else if (end > start + 2 && taken(end - 2) === 2) end -= 2;
    else break;
  }
  return [name, ...words.slice(0, start), ...words.slice(end), "--", line.rest(start, end)];
}

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

/** Whether a command appends to the log of the session by itself. */
export function isLogged(name: string, values: { action?: string }): boolean {
  return ["compact", "redo", "tool", "undo"].includes(name) ||
    (name === "teams" && values.action === "run");
}
