/** A stretch of a request between quotes or backticks. */
export interface Quoted {
  text: string;
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
export function quoted(text: string): Quoted[] {
  const found: Quoted[] = [];
  for (let start = 0; start < text.length; start++) {
    const pair = QUOTES.find(([open]) => text.startsWith(open, start));
    if (pair === undefined || IN_WORD.test(text.slice(start - 1, start))) continue;
    const from = start + pair[0].length;
    const end = closing(text, pair[1], from);
    if (end <= from) continue;
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

/** The path that a word of a request stands for, without quotes, brackets and final punctuation. */
export function bare(word: string): string {
  let text = word.replace(/^[\s"'`“”„«»‘’「」『』<(\[{]+/u, "");
  text = text.replace(/[\s"'`“”„«»‘’「」『』>)\]},;:!?。，、！？…]+$/u, "");
  text = text.replace(/['’]s$/u, "");
  return /^\.+$|\/\.+$/.test(text) ? text : text.replace(/[.]+$/u, "").replace(/["'`”»’)]+$/u, "");
}

/** True when a word looks like the name of a file, judged by its form alone. */
export function looksLikeFile(word: string): boolean {
  if (word.includes("://") || /[*\s]/.test(word)) return false;
  return /^(.*\/)?(readme|license|licence|makefile|dockerfile|changelog|notice|authors|todo)$/iu
        .test(word) && !/^todo$/i.test(word) ||
    /^.*[^/\s.][^/\s]*\.(?=[\p{L}\p{N}]*\p{L})[\p{L}\p{N}]{1,12}$/u.test(word) ||
    /^(.*\/)?\.[\p{L}\p{N}][^/\s]*$/u.test(word);
}
