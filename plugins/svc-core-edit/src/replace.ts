/** The result of a replacement. */
export interface Replacement {
  text: string;
  /** Number of occurrences that were replaced. */
  replaced: number;
  /** Number of occurrences in the old text. */
  total: number;
  /** Number of lines that the replacements added. */
  added: number;
  /** Number of lines that the replacements removed. */
  removed: number;
  /** Line number of the first occurrence. */
  line: number;
  /** Line numbers, in the new text, of the occurrences that were not replaced. */
  left: number[];
}

/** Characters of the largest result. A short replacement of millions of occurrences could fill the memory. */
const MAX_RESULT = 64 * 1024 * 1024;

/**
 * Replaces the first `count` occurrences of `old` (0: all). Both texts are taken literally, except that their line
 * ends are converted to those of the file: a model does not see line ends. Undefined when `old` does not occur.
 *
 * @throws Error for a result that is too large.
 */
export function replaceText(
  text: string,
  old: string,
  replacement: string,
  count: number,
): Replacement | undefined {
  for (const ends of spellings(text)) {
    const [from, to] = [ends(old), ends(replacement)];
    const positions = occurrences(text, from);
    if (positions.length === 0) continue;
    const chosen = count === 0 ? positions : positions.slice(0, count);
    if (text.length + chosen.length * (to.length - from.length) > MAX_RESULT) {
      throw new Error(`the result would have more than ${MAX_RESULT} characters`);
    }
    return {
      text: splice(text, chosen, from.length, to),
      replaced: chosen.length,
      total: positions.length,
      added: chosen.length * lineCount(to),
      removed: chosen.length * lineCount(from),
      line: lineNumbers(text, chosen.slice(0, 1), 0)[0]!,
      left: lineNumbers(text, positions.slice(chosen.length), chosen.length * growth(from, to)),
    };
  }
  return undefined;
}

type Spelling = (text: string) => string;

const asGiven: Spelling = (text) => text;
const unix: Spelling = (text) => text.replaceAll("\r\n", "\n");
const windows: Spelling = (text) => unix(text).replaceAll("\n", "\r\n");

function spellings(text: string): Spelling[] {
  if (!text.includes("\r\n")) return [asGiven, unix];
  const mixed = /(?<!\r)\n/.test(text);
  return mixed ? [asGiven, windows, unix] : [windows];
}

function occurrences(text: string, part: string): number[] {
  const positions: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) {
    positions.push(at);
  }
  return positions;
}

function splice(text: string, positions: number[], length: number, replacement: string): string {
  const pieces: string[] = [];
  let from = 0;
  for (const position of positions) {
    pieces.push(text.slice(from, position), replacement);
    from = position + length;
  }
  pieces.push(text.slice(from));
  return pieces.join("");
}

function growth(from: string, to: string): number {
  return to.split("\n").length - from.split("\n").length;
}

function lineCount(text: string): number {
  return text === "" ? 0 : text.split("\n").length - (text.endsWith("\n") ? 1 : 0);
}

function lineNumbers(text: string, positions: number[], shift: number): number[] {
  const numbers: number[] = [];
  let line = 1 + shift;
  let from = 0;
  for (const position of positions) {
    for (
      let at = text.indexOf("\n", from);
      at !== -1 && at < position;
      at = text.indexOf("\n", at + 1)
    ) {
      line++;
    }
    from = position;
    numbers.push(line);
  }
  return numbers;
}

const NUMBERED = /^\s*\d+\|/;
/** Lines, and characters of each line, that the search for the closest line compares. */
const MAX_LINES = 20_000;
const MAX_LINE = 200;
/** Line comparisons after which the search ends, for a text whose lines all begin alike. */
const MAX_COMPARISONS = 5_000_000;

/** Explains why `old` does not occur in a file, and quotes the closest part of the file. */
export function notFound(
  path: string,
  text: string,
  old: string,
  what = `old does not occur in ${path}`,
): string {
  const wanted = lines(old);
  if (wanted.every((line) => NUMBERED.test(line))) {
    return `${what}: it carries line numbers of file_read; leave out "<n>|"`;
  }
  const have = lines(text);
  const spaced = differsInSpace(have, wanted);
  if (spaced !== -1) {
    const found = have.slice(spaced, spaced + wanted.length).join("\n");
    if (found === wanted.join("\n")) {
      const range = `${spaced + 1}-${spaced + wanted.length}`;
      return `${what}: lines ${range} are the same but end differently, some with CR LF and some ` +
        "with LF; edit them one by one";
    }
    return `${what}: line ${spaced + 1} differs in white space only. It reads:\n${found}`;
  }
  const folded = text.toLowerCase().indexOf(old.toLowerCase());
  if (folded !== -1) {
    const line = lines(text.slice(0, folded)).length;
    return `${what}: line ${line} differs in upper and lower case only. It reads:\n` +
      have.slice(line - 1, line - 1 + wanted.length).join("\n");
  }
  const near = closest(have, wanted);
  return near === -1
    ? `${what}, nor anything like it; read the file again`
    : `${what}. The closest is line ${near + 1}:\n${have[near]!.slice(0, 2 * MAX_LINE)}`;
}

function lines(text: string): string[] {
  return text.split(/\r?\n/);
}

/** Index of the first line from which the text differs only in white space, or -1. */
function differsInSpace(have: string[], wanted: string[]): number {
  const fold = (line: string) => line.replace(/\s+/g, " ").trim();
  const sought = wanted.map(fold);
  while (sought.length > 1 && sought.at(-1) === "") sought.pop();
  if (sought.every((line) => line === "")) return -1;
  const folded = have.map(fold);
  let left = MAX_COMPARISONS;
  for (let start = folded.indexOf(sought[0]!); start !== -1 && left > 0;) {
    if (sought.every((line, index) => left-- > 0 && folded[start + index] === line)) return start;
    start = folded.indexOf(sought[0]!, start + 1);
  }
  return -1;
}

/** Index of the line most similar to the longest line of `wanted`, or -1 when none is similar. */
function closest(have: string[], wanted: string[]): number {
  const longest = wanted.reduce(
    (best, line) => line.trim().length > best.length ? line.trim() : best,
    "",
  );
  const sought = pairs(longest);
  let best = -1;
  let most = 0.4;
  for (const [index, line] of have.slice(0, MAX_LINES).entries()) {
    const similarity = overlap(sought, pairs(line.trim()));
    if (similarity > most) [best, most] = [index, similarity];
  }
  return best;
}

/** The pairs of neighbouring characters in a line. */
function pairs(line: string): Set<string> {
  const result = new Set<string>();
  const end = Math.min(line.length, MAX_LINE) - 1;
  for (let i = 0; i < end; i++) result.add(line.slice(i, i + 2));
  return result;
}

/** Share of pairs that two lines have in common, 0 to 1 (Dice's coefficient). */
function overlap(a: Set<string>, b: Set<string>): number {
  return a.size + b.size === 0 ? 0 : 2 * a.intersection(b).size / (a.size + b.size);
}
