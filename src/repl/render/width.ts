import { eastAsianWidth } from "get-east-asian-width";

/** Cells that a text without control characters takes on a terminal. SGR sequences take none. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const cluster of clusters(withoutStyle(text))) width += clusterWidth(cluster);
  return width;
}

/**
 * The text in pieces that a terminal draws as one character each: a base with its marks, an emoji
 * sequence, a flag. Intl.Segmenter does the same and costs a session half of its start.
 */
export function clusters(text: string): string[] {
  const result: string[] = [];
  for (const character of text) {
    const last = result.at(-1);
    if (last !== undefined && joins(last, character)) result[result.length - 1] = last + character;
    else result.push(character);
  }
  return result;
}

/** As much of a text as fits into `width` cells; what is cut off is said by an ellipsis. */
export function fit(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  let [kept, used] = ["", 0];
  for (const cluster of clusters(text)) {
    used += clusterWidth(cluster);
    if (used > width - 1) break;
    kept += cluster;
  }
  return width < 1 ? "" : `${kept}…`;
}

/** A text in lines of whole words; a word that is longer than a line is left to the terminal. */
export function wrapped(text: string, columns: number): string {
  let [lines, used] = ["", 0];
  for (const word of text.split(" ")) {
    const width = textWidth(word);
    const fits = used === 0 || used + 1 + width <= columns;
    lines += used === 0 ? word : fits ? ` ${word}` : `\n${word}`;
    used = fits && used > 0 ? used + 1 + width : width;
  }
  return lines;
}

/** A text without the sequences that `Style` adds. */
export function withoutStyle(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.includes("\x1b") ? text.replace(/\x1b\[[\d;]*m/g, "") : text;
}

/** Cells of one of `clusters`. */
export function clusterWidth(cluster: string): number {
  const code = cluster.codePointAt(0)!;
  if (code >= 0x20 && code < 0x7f) return cluster.includes("\ufe0f") ? 2 : 1;
  if (INVISIBLE.test(cluster)) return 0;
  if (code >= REGIONAL && code <= REGIONAL_END) return 2;
  if (cluster.includes("\ufe0f") && PICTOGRAPH.test(cluster)) return 2;
  return eastAsianWidth(code);
}

const ASCII = /^[\x20-\x7e]*$/;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}\ufe00-\ufe0f]/u;
const EXTENDS = /^[\p{Mn}\p{Me}\p{Emoji_Modifier}\u200c\u200d\ufe00-\ufe0f\u{e0020}-\u{e007f}]/u;
const PICTOGRAPH = /^\p{Extended_Pictographic}/u;
const REGIONAL = 0x1f1e6;
const REGIONAL_END = 0x1f1ff;

function joins(last: string, character: string): boolean {
  const code = character.codePointAt(0)!;
  if (code < 0x300) return false;
  if (code >= REGIONAL && code <= REGIONAL_END) {
    const before = last.codePointAt(0)!;
    return last.length === 2 && before >= REGIONAL && before <= REGIONAL_END;
  }
  if (last === "\n" || last === "\t") return false;
  if (EXTENDS.test(character)) return true;
  return last.endsWith("\u200d") && PICTOGRAPH.test(last) && PICTOGRAPH.test(character);
}
