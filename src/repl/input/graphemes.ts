const SEGMENTER = new Intl.Segmenter();
const WORD = /[\p{L}\p{N}\p{M}_]/u;

/** What a person sees as single characters: accents, emoji sequences and syllables stay together. */
export function graphemes(text: string): string[] {
  // deno-lint-ignore no-control-regex
  if (/^[\x00-\x7f]*$/.test(text) && !text.includes("\r\n")) return [...text];
  return Array.from(SEGMENTER.segment(text), ({ segment }) => segment);
}

/** The place one character after `at`. */
export function after(text: string, at: number): number {
  if (at >= text.length) return text.length;
  if (text[at] === "\n") return at + 1;
  const line = text.slice(at, lineEnd(text, at));
  for (const { segment } of SEGMENTER.segment(line)) return at + segment.length;
  return at;
}

/** The place one character before `at`. */
export function before(text: string, at: number): number {
  if (at <= 0) return 0;
  if (text[at - 1] === "\n") return at - 1;
  const start = lineStart(text, at);
  return start + (SEGMENTER.segment(text.slice(start, lineEnd(text, at))).containing(
    at - start - 1,
  )?.index ?? 0);
}

/** The nearest place at or before `at` that lies between two characters. */
export function boundary(text: string, at: number): number {
  if (at <= 0 || at >= text.length) return Math.max(0, Math.min(text.length, at));
  if (text[at] === "\n" || text[at - 1] === "\n") return at;
  const start = lineStart(text, at);
  const segments = SEGMENTER.segment(text.slice(start, lineEnd(text, at)));
  return start + (segments.containing(at - start)?.index ?? at - start);
}

export function lineStart(text: string, at: number): number {
  return at === 0 ? 0 : text.lastIndexOf("\n", at - 1) + 1;
}

export function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

/** The end of the word at or after `at`. */
export function wordAfter(text: string, at: number): number {
  while (at < text.length && !isWord(text, at)) at = after(text, at);
  while (at < text.length && isWord(text, at)) at = after(text, at);
  return at;
}

/** The start of the word at or before `at`. */
export function wordBefore(text: string, at: number): number {
  const inWord = () => isWord(text, before(text, at));
  while (at > 0 && !inWord()) at = before(text, at);
  while (at > 0 && inWord()) at = before(text, at);
  return at;
}

/** The start of what stands between blanks at or before `at`. */
export function blankBefore(text: string, at: number): number {
  while (at > 0 && /\s/.test(text[at - 1]!)) at--;
  while (at > 0 && !/\s/.test(text[at - 1]!)) at--;
  return at;
}

function isWord(text: string, at: number): boolean {
  return WORD.test(String.fromCodePoint(text.codePointAt(at)!));
}
