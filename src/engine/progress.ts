import { type Clock, NO_REASON } from "../platform/clock.ts";
import { stripControl } from "../platform/terminal.ts";

/** Milliseconds between two pieces of one call. */
const INTERVAL = 100;
/** Characters of a piece. */
const PIECE = 2000;
/** Characters that wait for the next piece. */
const WAITING = 64 * 1024;

/** A piece of what a call shows while it runs. */
export interface ProgressPiece {
  /** Whole lines, without control characters and secrets. */
  content: string;
  /** Lines before these that were left out. */
  skipped: number;
}

interface ProgressOptions {
  clock: Clock;
  /** Replaces secrets. */
  mask(text: string): string;
  emit(piece: ProgressPiece): void;
}

/**
 * What a call shows while it runs: at most ten pieces a second. Of more text than fits in a piece, the last lines are
 * shown.
 */
export class Progress {
  readonly #options: ProgressOptions;
  readonly #ended = new AbortController();
  #waiting = "";
  #skipped = 0;
  #due = false;

  constructor(options: ProgressOptions) {
    this.#options = options;
  }

  /** Takes a piece of text of any length. */
  write(text: string): void {
    if (this.#ended.signal.aborted) return;
    this.#waiting += text;
    if (this.#waiting.length > WAITING) this.#waiting = this.#cut(this.#waiting, WAITING / 2);
    if (this.#due) return;
    this.#due = true;
    this.#options.clock.sleep(INTERVAL, this.#ended.signal).then(() => {
      this.#due = false;
      this.#flush();
    }, () => {});
  }

  /** Ends it. The last lines are not shown, because the result has them. */
  end(): void {
    this.#ended.abort(NO_REASON);
  }

  #flush(): void {
    const end = this.#waiting.length - unfinished(this.#waiting);
    if (end === 0) return;
    // Masked before it is cut: half a secret is not recognised.
    const lines = this.#options.mask(this.#waiting.slice(0, end)).replace(/\r+\n?/g, "\n");
    this.#waiting = this.#waiting.slice(end);
    const content = this.#cut(stripControl(lines).toWellFormed(), PIECE);
    const skipped = this.#skipped;
    this.#skipped = 0;
    if (content !== "" || skipped > 0) this.#options.emit({ content, skipped });
  }

  /** The last whole lines of a text. */
  #cut(text: string, most: number): string {
    if (text.length <= most) return text;
    const from = text.indexOf("\n", text.length - most) + 1;
    const kept = from === 0 ? "" : text.slice(from);
    this.#skipped += text.slice(0, text.length - kept.length).split("\n").length - 1;
    return kept;
  }
}

/**
 * Characters at the end of a text that wait: a line without its end, and lines before it that may belong to a secret
 * which an encoding has broken into lines.
 */
export function unfinished(text: string): number {
  let start = lineStart(text, text.endsWith("\r") ? text.length - 1 : text.length);
  while (start > 0) {
    const before = lineStart(text, text.startsWith("\r\n", start - 2) ? start - 2 : start - 1);
    if (!ENCODED.test(text.slice(before, start))) break;
    start = before;
  }
  return text.length - start;
}

/** A line of an encoding. */
const ENCODED = /^[\w+/=-]{40,}\r?\n$/;

/** Where the line begins that has the characters before `end`. */
function lineStart(text: string, end: number): number {
  let start = end;
  while (start > 0 && text[start - 1] !== "\n" && text[start - 1] !== "\r") start--;
  return start;
}
