import { stripControl } from "../../platform/terminal.ts";

/**
 * Splits a text into grapheme clusters: combining marks, emoji sequences and syllables stay together.
 * The first Intl.Segmenter of a process takes 10 ms, so plain text, such as the prompt, does not use it.
 */
export function graphemes(text: string): string[] {
  return isPlain(text)
    ? text.split("")
    : Array.from(new Intl.Segmenter().segment(text), ({ segment }) => segment);
}

/** Index of the next grapheme boundary after `at`. */
export function after(text: string, at: number): number {
  if (at >= text.length) return text.length;
  if (isPlain(text.slice(at, at + 2))) return at + 1;
  return at + graphemeAt(text.slice(at, lineEnd(text, at + 1)), 0).segment.length;
}

/** Index of the previous grapheme boundary before `at`. */
export function before(text: string, at: number): number {
  if (at <= 1 || isPlain(text.slice(at - 2, at))) return Math.max(0, at - 1);
  return boundary(text, at - 1);
}

/** Index of the nearest grapheme boundary at or before `at`. */
export function boundary(text: string, at: number): number {
  if (at <= 0 || at >= text.length) return Math.max(0, Math.min(text.length, at));
  if (isPlain(text.slice(at - 1, at + 1))) return at;
  const start = lineStart(text, at);
  if (start === at || text[at] === "\n") return at;
  return start + graphemeAt(text.slice(start, lineEnd(text, at)), at - start).index;
}

function graphemeAt(line: string, at: number): Intl.SegmentData {
  return new Intl.Segmenter().segment(line).containing(at)!;
}

/** Whether no character can combine with another: ASCII, Latin letters, dashes and quotation marks. */
function isPlain(text: string): boolean {
  // deno-lint-ignore no-control-regex
  return /^[\x00-\x7f\xa1-\xac\xae-\u02ff\u2010-\u2027\u2030-\u203b]*$/.test(text);
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

/** The start of the whitespace-delimited word at or before `at`. */
export function blankBefore(text: string, at: number): number {
  while (at > 0 && /\s/.test(text[at - 1]!)) at--;
  while (at > 0 && !/\s/.test(text[at - 1]!)) at--;
  return at;
}

function isWord(text: string, at: number): boolean {
  return /[\p{L}\p{N}\p{M}_]/u.test(String.fromCodePoint(text.codePointAt(at)!));
}

/**
 * Display width of characters in cells. The tables for wide and combining characters take 20 ms to load,
 * so they are loaded with the first character that needs them.
 */
export class Widths {
  readonly #known = new Map<string, number>();
  #measure: ((text: string) => number) | undefined;

  /** Loads the tables when the text needs them. */
  ready(text: string): Promise<void> | undefined {
    return this.#measure !== undefined || !UNUSUAL.test(text) ? undefined : this.#load();
  }

  /** Width of one grapheme cluster in cells. Call `ready` with its text first. */
  of(character: string): number {
    if (!UNUSUAL.test(character)) return character.length;
    let width = this.#known.get(character);
    if (width === undefined) {
      if (this.#known.size > KNOWN_KEPT) this.#known.clear();
      width = this.#measure?.(character) ?? 1;
      this.#known.set(character, width);
    }
    return width;
  }

  async #load(): Promise<void> {
    this.#measure = (await import("string-width")).default;
  }
}

const KNOWN_KEPT = 5000;

/**
 * Everything except Latin, Greek, Cyrillic, common punctuation and box drawing (one cell each), and
 * control characters.
 */
const UNUSUAL =
  // deno-lint-ignore no-control-regex
  /[^\x00-\x7e\xa1-\xac\xae-\u02ff\u0391-\u03a9\u03b1-\u03c9\u0400-\u0482\u2010-\u2027\u2030-\u205e\u2500-\u259f\u276f]/;

/**
 * Cleans typed or pasted text for a message: line ends become line feeds; control characters, escape
 * sequences, bidirectional marks and the placeholders of folded pastes (editor.ts) are removed.
 */
export function cleanInput(text: string): string {
  return stripControl(text.replace(/\r\n?/g, "\n")).replace(/[\ufdd0-\ufdef]/g, "");
}
