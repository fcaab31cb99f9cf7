import { CONTROL, oneLine, stripControl } from "./terminal.ts";
import type { Usage } from "../plugins/api.ts";
import { eastAsianWidth } from "get-east-asian-width";

/** Width in cells of a text without control characters. SGR sequences have no width. */
export function textWidth(text: string): number {
  if (ASCII.test(text)) return text.length;
  let width = 0;
  for (const cluster of clusters(withoutStyle(text))) width += clusterWidth(cluster);
  return width;
}

/**
 * Splits a text into units that a terminal draws as one character: a base with its marks, an emoji
 * sequence, a flag. Intl.Segmenter would double the start-up time of a session.
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

/** Cuts a text to `width` cells, with an ellipsis when something was cut. */
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

/** Facts in as few lines as they need, each cut to `columns` cells. */
export function factLines(facts: string[], columns: number): string[] {
  const lines: string[] = [];
  for (const fact of facts.filter((each) => each !== "")) {
    const longer = `${lines.at(-1)} · ${fact}`;
    if (lines.length > 0 && textWidth(longer) <= columns) lines[lines.length - 1] = longer;
    else lines.push(fit(fact, columns));
  }
  return lines;
}

/** Wraps a text at word boundaries; the terminal wraps words longer than a line. */
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

/** Breaks a text, which may have colours, into rows of at most `columns` cells. */
export function hardWrapped(text: string, columns: number): string[] {
  if (textWidth(text) <= columns) return [text];
  const rows: string[] = [];
  let [row, used] = ["", 0];
  /** The sequences that hold, with the code that ends each. */
  let open: { sequence: string; end: number }[] = [];
  for (const piece of text.split(SGR)) {
    if (piece.startsWith("\x1b")) {
      row += piece;
      const code = Number.parseInt(piece.slice(2)) || 0;
      const end = endOf(code);
      open = code === 0 ? [] : open.filter((each) => each.end !== code);
      if (end !== undefined) open.push({ sequence: piece, end });
      continue;
    }
    for (const cluster of clusters(piece)) {
      const width = clusterWidth(cluster);
      if (used + width > columns && used > 0) {
        rows.push(open.length === 0 ? row : `${row}\x1b[0m`);
        [row, used] = [open.map(({ sequence }) => sequence).join(""), 0];
      }
      row += cluster;
      used += width;
    }
  }
  return [...rows, row];
}

/** The SGR code that ends what another one begins; undefined for one that ends something. */
function endOf(code: number): number | undefined {
  if (code === 1 || code === 2) return 22;
  if (code >= 3 && code <= 9) return 20 + code;
  if (code >= 30 && code <= 38) return 39;
  return code >= 40 && code <= 48 ? 49 : undefined;
}

/** A sequence of SGR codes, such as `Style` adds. */
// deno-lint-ignore no-control-regex
export const SGR = /(\x1b\[[\d;]*m)/;

/** Removes the sequences that `Style` adds. */
export function withoutStyle(text: string): string {
  // deno-lint-ignore no-control-regex
  return text.includes("\x1b") ? text.replace(/\x1b\[[\d;]*m/g, "") : text;
}

/** Width in cells of one of `clusters`. */
export function clusterWidth(cluster: string): number {
  const code = cluster.codePointAt(0)!;
  if (code >= 0x20 && code < 0x7f) return cluster.includes("\ufe0f") ? 2 : 1;
  if (INVISIBLE.test(cluster)) return 0;
  if (code >= REGIONAL && code <= REGIONAL_END) return 2;
  if (cluster.includes("\ufe0f") && isPictograph(cluster)) return 2;
  return eastAsianWidth(code);
}

const ASCII = /^[\x20-\x7e]*$/;
const INVISIBLE = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}\ufe00-\ufe0f]/u;
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
  if (
    /^[\p{Mn}\p{Me}\p{Emoji_Modifier}\u200c\u200d\ufe00-\ufe0f\u{e0020}-\u{e007f}]/u.test(character)
  ) return true;
  return last.endsWith("\u200d") && isPictograph(last) && isPictograph(character);
}

function isPictograph(text: string): boolean {
  return /^\p{Extended_Pictographic}/u.test(text);
}

/** Formats a duration in seconds. */
export function duration(seconds: number): string {
  if (seconds < 59.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours} h ${minutes} min` : `${minutes} min ${whole % 60} s`;
}

/** Formats a number of tokens: `950`, `1.2k`, `3.4M`. */
export function count(tokens: number): string {
  if (tokens < 1000) return String(tokens);
  return tokens < 999_950 ? `${(tokens / 1000).toFixed(1)}k` : `${(tokens / 1e6).toFixed(1)}M`;
}

/** `1 tool call`, `2 tool calls`. */
export function plural(many: number, noun: string): string {
  return `${many} ${noun}${many === 1 ? "" : "s"}`;
}

/** All tokens that a usage counts. */
export function tokensOf(usage: Usage): number {
  return usage.total_tokens ?? (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0);
}

/** The first `limit` lines of a text, followed by the number of remaining lines. */
export function someLines(text: string, limit: number): string[] {
  const lines = text.replace(/\n$/, "").split("\n");
  if (lines.length <= limit + 1) return lines;
  return [...lines.slice(0, limit), `... ${plural(lines.length - limit, "more line")}`];
}

/** The first paragraph of a task; the brief after it may fill a screen. */
export function firstParagraph(text: string): string {
  return oneLine(text.trim().split(/\n\s*\n/, 1)[0]!);
}

/**
 * `stripControl` for text that arrives in chunks: sequences split across chunks are removed, and chunk
 * boundaries make no difference. A control string ends with its line, so an unclosed one cannot hide the
 * following text.
 */
export class ControlFilter {
  #state: State = "text";
  /** The first half of a surrogate pair. */
  #half = "";

  write(piece: string): string {
    piece = this.#half + piece;
    this.#half = /[\ud800-\udbff]$/.exec(piece)?.[0] ?? "";
    if (this.#half !== "") piece = piece.slice(0, -1);
    if (this.#state === "text" && !CONTROL.test(piece)) return piece.toWellFormed();
    let kept = "";
    for (const character of piece) {
      this.#state = next(this.#state, character);
      if (this.#state !== "text" && this.#state !== "ended") continue;
      if (this.#state === "ended") this.#state = "text";
      else kept += stripControl(character);
    }
    return kept.toWellFormed();
  }

  /** Ends the text and discards an incomplete sequence. */
  end(): void {
    this.#state = "text";
    this.#half = "";
  }
}

/** `ended`: the character is the last of a sequence. */
type State = "text" | "escape" | "csi" | "string" | "string escape" | "ended";

function next(state: State, character: string): State {
  const code = character.codePointAt(0)!;
  switch (state) {
    case "escape":
      if (character === "[") return "csi";
      if ("]PX^_".includes(character)) return "string";
      if (code >= 0x20 && code < 0x30) return "escape";
      return code >= 0x30 && code < 0x7f ? "ended" : next("text", character);
    case "csi":
      if (code >= 0x20 && code < 0x40) return "csi";
      return code >= 0x40 && code < 0x7f ? "ended" : next("text", character);
    case "string":
      if (character === "\n") return "text";
      if (character === "\x1b") return "string escape";
      return character === "\x07" || character === "\x9c" ? "ended" : "string";
    case "string escape":
      return character === "\\" ? "ended" : next("escape", character);
    default:
      if (character === "\x1b") return "escape";
      if (character === "\x9b") return "csi";
      return /[\x90\x98\x9d-\x9f]/.test(character) ? "string" : "text";
  }
}
