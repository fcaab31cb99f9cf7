import {
  after,
  before,
  blankBefore,
  boundary,
  graphemes,
  lineEnd,
  lineStart,
  wordAfter,
  wordBefore,
} from "./text.ts";

/** The text being edited. Immutable: every edit returns a new value. */
export interface Edited {
  readonly text: string;
  /** Index into the text, always between two characters. */
  readonly cursor: number;
  /** Cut texts, newest first. */
  readonly killed: readonly string[];
  /** The last action, when the next key can continue it (repeated cuts, yank after yank). */
  readonly last?: "kill" | { yankedFrom: number; ring: number };
}

const KILLS_KEPT = 20;

/** An empty text, or `initial` with the cursor at its end. */
export function begin(initial = "", killed: readonly string[] = []): Edited {
  return { text: initial, cursor: initial.length, killed };
}

/** Replaces the text and moves the cursor to its end. */
export function replaced(state: Edited, text: string): Edited {
  return { text, cursor: text.length, killed: state.killed };
}

/** Inserts text at the cursor. */
export function insert(state: Edited, text: string): Edited {
  return splice(state, state.cursor, state.cursor, text);
}

/** Replaces the range from `from` to `to` and moves the cursor behind it. */
export function splice(state: Edited, from: number, to: number, text: string): Edited {
  const whole = state.text.slice(0, from) + text + state.text.slice(to);
  // An inserted combining mark may join the next character; the cursor stays on a grapheme boundary.
  const cursor = from + text.length;
  const settled = boundary(whole, cursor) === cursor
    ? cursor
    : after(whole, boundary(whole, cursor));
  return { text: whole, cursor: settled, killed: state.killed };
}

/** Cuts the whole text; Ctrl-Y restores it. */
export function clear(state: Edited): Edited {
  return kill(state, 0, state.text.length, "before");
}

/** Applies an editing key; undefined for a key that does not edit. */
export function press(state: Edited, key: string): Edited | undefined {
  const { text, cursor } = state;
  switch (key) {
    case "left":
    case "ctrl-b":
      return move(state, before(text, cursor));
    case "right":
    case "ctrl-f":
      return move(state, after(text, cursor));
    case "home":
    case "ctrl-a":
      return move(state, lineStart(text, cursor));
    case "end":
    case "ctrl-e":
      return move(state, lineEnd(text, cursor));
    case "alt-left":
    case "ctrl-left":
    case "alt-b":
      return move(state, wordBefore(text, cursor));
    case "alt-right":
    case "ctrl-right":
    case "alt-f":
      return move(state, wordAfter(text, cursor));
    case "backspace":
      return splice(state, before(text, cursor), cursor, "");
    case "delete":
    case "ctrl-d":
      return splice(state, cursor, after(text, cursor), "");
    case "ctrl-w":
      return kill(state, blankBefore(text, cursor), cursor, "before");
    case "alt-backspace":
      return kill(state, wordBefore(text, cursor), cursor, "before");
    case "alt-d":
      return kill(state, cursor, wordAfter(text, cursor), "after");
    case "ctrl-u":
      return kill(state, lineStart(text, cursor), cursor, "before");
    case "ctrl-k":
      return kill(state, cursor, Math.max(lineEnd(text, cursor), after(text, cursor)), "after");
    case "ctrl-y":
      return yank(state);
    case "alt-y":
      return yankOlder(state);
    case "ctrl-t":
      return transpose(state);
    case "alt-enter":
    case "shift-enter":
    case "ctrl-enter":
      return insert(state, "\n");
    default:
      return undefined;
  }
}

/** Moves the cursor one line up or down; undefined at the first or last line. */
export function moveLine(state: Edited, by: -1 | 1): Edited | undefined {
  const { text, cursor } = state;
  const start = lineStart(text, cursor);
  const end = lineEnd(text, cursor);
  if (by < 0 ? start === 0 : end === text.length) return undefined;
  const column = graphemes(text.slice(start, cursor)).length;
  const from = by < 0 ? lineStart(text, start - 1) : end + 1;
  const line = graphemes(text.slice(from, lineEnd(text, from)));
  return move(state, from + line.slice(0, column).join("").length);
}

function move({ text, killed }: Edited, cursor: number): Edited {
  return { text, cursor, killed };
}

/** Cuts a range; consecutive cuts are joined. */
function kill(state: Edited, from: number, to: number, side: "before" | "after"): Edited {
  if (from === to) return { ...state, last: state.last === "kill" ? "kill" : undefined };
  const cut = state.text.slice(from, to);
  const [newest = "", ...older] = state.last === "kill" ? state.killed : ["", ...state.killed];
  const joined = side === "before" ? cut + newest : newest + cut;
  const killed = [joined, ...older].slice(0, KILLS_KEPT);
  return { ...splice(state, from, to, ""), killed, last: "kill" };
}

function yank(state: Edited): Edited {
  if (state.killed.length === 0) return state;
  return { ...insert(state, state.killed[0]!), last: { yankedFrom: state.cursor, ring: 0 } };
}

/** After a yank: replaces the yanked text with the previous cut. */
function yankOlder(state: Edited): Edited {
  if (typeof state.last !== "object") return state;
  const { yankedFrom, ring } = state.last;
  const next = (ring + 1) % state.killed.length;
  const changed = splice(state, yankedFrom, state.cursor, state.killed[next]!);
  return { ...changed, last: { yankedFrom, ring: next } };
}

/** Swaps the characters around the cursor, or the last two at the end of a line. */
function transpose(state: Edited): Edited {
  const { text, cursor } = state;
  const start = lineStart(text, cursor);
  const middle = cursor === lineEnd(text, cursor) ? before(text, cursor) : cursor;
  if (middle <= start) return move(state, cursor);
  const [from, to] = [before(text, middle), after(text, middle)];
  return splice(state, from, to, text.slice(middle, to) + text.slice(from, middle));
}

/** Unicode noncharacters, which cannot be typed: each represents one folded paste. */
const FIRST = 0xfdd0;
const COUNT = 32;
const FOLD = /[\ufdd0-\ufdef]/;
const FOLDS = /[\ufdd0-\ufdef]/g;

const LINES_SHOWN = 10;
const CHARACTERS_SHOWN = 1500;

/** Long pastes of one read: each is a single placeholder character, shown as a label. */
export class Folds {
  readonly #texts: string[] = [];

  /** The text to insert for a paste: the paste itself, or its placeholder. */
  fold(paste: string): string {
    const long = paste.length > CHARACTERS_SHOWN || lineCount(paste) > LINES_SHOWN;
    if (!long || this.#texts.length === COUNT) return paste;
    this.#texts.push(paste);
    return String.fromCharCode(FIRST + this.#texts.length - 1);
  }

  /** Replaces placeholders with the pasted texts. */
  unfold(text: string): string {
    return text.replace(FOLDS, (character) => this.#of(character) ?? "");
  }

  /** The label of a placeholder; undefined for other characters. */
  label(character: string): string | undefined {
    if (!FOLD.test(character[0] ?? "")) return undefined;
    const paste = this.#of(character[0]!);
    if (paste === undefined) return undefined;
    const lines = lineCount(paste);
    return lines > 1 ? `[pasted ${lines} lines]` : `[pasted ${paste.length} characters]`;
  }

  #of(character: string): string | undefined {
    return this.#texts[character.charCodeAt(0) - FIRST];
  }
}

function lineCount(text: string): number {
  return text.replace(/\n$/, "").split("\n").length;
}
