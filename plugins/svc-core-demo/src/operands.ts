/**
 * A request with its quoted parts replaced by marks such as `⟦0⟧`. Rules match the words around the marks,
 * and the quoted parts are used unchanged.
 */
export class Masked {
  readonly text: string;
  readonly #quotes: Quoted[] = [];

  constructor(request: string) {
    // A mark in the request itself would be ambiguous.
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

  /** The quoted text of a mark, without the quotes. */
  inner(mark: string): string {
    return this.#quotes[Number(MARK.exec(mark)?.[1])]?.text ?? "";
  }

  /** A part of the request as it was written, including quotes. */
  plain(text: string): string {
    return text.replace(MARKS, (mark) => this.#quotes[Number(MARK.exec(mark)![1])]!.whole);
  }

  /** The path of a word, without the `@` that file completion in the terminal session adds. */
  name(word: string): string {
    return this.isQuoted(word) ? this.inner(word).trim() : bare(word).replace(/^@(?=.)/, "");
  }

  /** The quoted text of a part that has one, else its words. */
  operand(text: string): string {
    return this.isQuoted(text) ? this.inner(text) : bare(text);
  }

  /** Text to write, without quotes or code fence when it is quoted as a whole. */
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

/** The texts between quotes or backticks, in order. An apostrophe inside a word is no quote. */
function quoted(text: string): Omit<Quoted, "whole">[] {
  const found = [];
  const unclosed = new Set<string>(); // quotes without a closing mark in the rest of the text
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

/** Stands for the file that the conversation mentioned last. */
export const IT = "\0it";

/** The files that a clause names, in its order. */
export function filesOf(clause: string, masked: Masked): string[] {
  const all = words(clause);
  const names = all.filter((word) => masked.isQuoted(word) || looksLikeFile(bare(word)))
    .map((word) => usualName(masked.name(word))).filter((name) => name !== "");
  if (names.length > 0) return [...new Set(names)];
  const after = /\b(?:the )?file (?:called |named )?(\S+)$/iu.exec(clause)?.[1] ??
    /(?:^|\s)(\S+) file$/iu.exec(clause)?.[1] ??
    /^(?:read|open|cat|view|show|print|display|wc -l)(?: me)? (\S+)$/iu.exec(clause)?.[1];
  if (after !== undefined && !FILLER.test(bare(after))) return [masked.name(after)];
  return /\b(?:it|that file|this file|the file|the same file|them)\b/iu.test(clause) ? [IT] : [];
}

const FILLER =
  /^(?:it|that|this|the|a|an|them|me|everything|all|some|any|my|your|which|what|does|is|have|has)$/iu;

/** The file name for words such as "the readme". */
function usualName(name: string): string {
  if (/^readme$/i.test(name)) return "README.md";
  return /^changelog$/i.test(name) ? "CHANGELOG.md" : name;
}

/** The path for a word that names one file. */
export function fileName(word: string, masked: Masked): string {
  const name = masked.name(word);
  return /^(?:it|that|this)$/iu.test(name) ? IT : name;
}

/** The folder or file to search; words such as "everywhere" mean the worktree. */
export function searchPath(where: string | undefined, masked: Masked): string {
  if (where === undefined) return ".";
  const name = masked.name(
    where.trim().replace(/^(?:(?:the|this|that|my|our|all|every|current|whole|entire)\s+)+/iu, "")
      .replace(/^(?:file|folder|directory|dir)s?\s+/iu, "")
      .replace(/\s+(?:file|folder|directory|dir|project|recursively)$/iu, ""),
  );
  if (/^(?:it|file)$/iu.test(name)) return IT;
  return EVERYWHERE.test(name) ? "." : name;
}

const EVERYWHERE =
  /^(?:|here|there|everywhere|anywhere|files?|folders?|director(?:y|ies)|contents?|everything|entries|project|repo|repository|worktree|workspace|codebase|code|source|tree|working directory|current directory|root)$/iu;

/** The words of a clause, without commas. */
export function words(clause: string): string[] {
  return clause.split(/[\s,]+/u).filter((word) => word !== "");
}

/** A word without quotes, brackets and final punctuation. */
export function bare(word: string): string {
  return word.replace(/^[\s"'`“”„«»‘’「」『』<([{]+/u, "").replace(END, "").replace(/['’]s$/u, "");
}

/** Dots only after a name: `.` and `src/..` are paths. */
const END = /(?:[\s"'`“”„«»‘’「」『』>)\]},;:!?。，、！？…]|(?<=[^./])\.+)+$/u;

/** Whether a word has the form of a file name. */
export function looksLikeFile(word: string): boolean {
  return !/:\/\/|[*\s]/.test(word) && FORMS.some((form) => form.test(word));
}

const FORMS = [
  // an extension that is no number: notes.txt, but not 3.14
  /[^/\s.][^/\s]*\.(?=[\p{L}\p{N}]*\p{L})[\p{L}\p{N}]{1,12}$/u,
  /^(?:.*\/)?\.[\p{L}\p{N}][^/\s]*$/u,
  /^(?:.*\/)?(?:readme|licen[sc]e|makefile|dockerfile|changelog|notice|authors)$/iu,
];
