/** A text after a replacement. */
export interface Replacement {
  text: string;
  /** Occurrences that were replaced, and that there were. */
  replaced: number;
  total: number;
  /** Lines that the new and the old text took. */
  added: number;
  removed: number;
  /** Lines, counted in the new text, of the occurrences that were left. */
  left: number[];
}

/** Characters of the largest result: a few bytes of `new` times a few million places fill any memory. */
const MAX_RESULT = 64 * 1024 * 1024;

/**
 * Replaces the first `count` occurrences of `old` (0: all), taking both texts literally. Where the
 * file's line ends differ from those of `old`, `old` and `new` are read with the file's: a model sees
 * lines, not how they end. Undefined when `old` does not occur.
 *
 * @throws Error a sentence, for a result that is too large.
 */
export function replaceText(
  text: string,
  old: string,
  replacement: string,
  count: number,
): Replacement | undefined {
  for (const ends of spellings(text)) {
    const [from, to] = [ends(old), ends(replacement)];
    const places = occurrences(text, from);
    if (places.length === 0) continue;
    const chosen = count === 0 ? places : places.slice(0, count);
    if (text.length + chosen.length * (to.length - from.length) > MAX_RESULT) {
      throw new Error(`the result would have more than ${MAX_RESULT} characters`);
    }
    return {
      text: splice(text, chosen, from.length, to),
      replaced: chosen.length,
      total: places.length,
      added: chosen.length * lineCount(to),
      removed: chosen.length * lineCount(from),
      left: lineNumbers(text, places.slice(chosen.length), chosen.length * growth(from, to)),
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
  const places: number[] = [];
  for (let at = text.indexOf(part); at !== -1; at = text.indexOf(part, at + part.length)) {
    places.push(at);
  }
  return places;
}

function splice(text: string, places: number[], length: number, replacement: string): string {
  const pieces: string[] = [];
  let from = 0;
  for (const place of places) {
    pieces.push(text.slice(from, place), replacement);
    from = place + length;
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

function lineNumbers(text: string, places: number[], shift: number): number[] {
  const numbers: number[] = [];
  let line = 1 + shift;
  let from = 0;
  for (const place of places) {
    for (
      let at = text.indexOf("\n", from);
      at !== -1 && at < place;
      at = text.indexOf("\n", at + 1)
    ) {
      line++;
    }
    from = place;
    numbers.push(line);
  }
  return numbers;
}
