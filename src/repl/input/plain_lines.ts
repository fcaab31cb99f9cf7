import type { InputResult } from "./line_editor.ts";
import type { TerminalPort } from "./terminal.ts";
import { cleanInput } from "./text.ts";

/** Reads messages from input that is not a terminal: one per line, or a block between `"""`. */
export class PlainLines {
  readonly #port: TerminalPort;
  readonly #utf8 = new TextDecoder();
  #text = "";
  #ended = false;
  #reading: Promise<void> | undefined;

  constructor(port: TerminalPort) {
    this.#port = port;
  }

  /** @param blocks whether `"""` opens a block */
  async read(blocks: boolean, signal?: AbortSignal): Promise<InputResult> {
    let message: string | undefined;
    while (true) {
      const line = await this.#line(signal);
      if (line === "interrupted") return { type: "interrupted" };
      if (line === undefined) {
        return message === undefined ? { type: "end" } : { type: "line", text: message };
      }
      message = message === undefined ? line : `${message}\n${line}`;
      const block = blocks ? readBlock(message) : { open: false as const, message };
      if (!block.open) return { type: "line", text: block.message };
    }
  }

  /** The next line; undefined at the end of the input. */
  async #line(signal?: AbortSignal): Promise<string | "interrupted" | undefined> {
    while (!this.#text.includes("\n") && !this.#ended) {
      const more = this.#reading ??= this.#more().finally(() => this.#reading = undefined);
      if (!await unlessAborted(more, signal)) return "interrupted";
    }
    const end = this.#text.indexOf("\n");
    if (end < 0 && this.#text === "") return undefined;
    const line = end < 0 ? this.#text : this.#text.slice(0, end);
    this.#text = end < 0 ? "" : this.#text.slice(end + 1);
    return cleanInput(line.replace(/\r$/, ""));
  }

  async #more(): Promise<void> {
    const bytes = await this.#port.read().catch(() => null);
    this.#ended = bytes === null;
    this.#text += bytes === null ? this.#utf8.decode() : this.#utf8.decode(bytes, { stream: true });
  }
}

/** Resolves to true when the work finished before the signal aborted. */
async function unlessAborted(work: Promise<void>, signal?: AbortSignal): Promise<boolean> {
  if (signal === undefined) return work.then(() => true);
  if (signal.aborted) return false;
  const aborted = Promise.withResolvers<boolean>();
  const abort = () => aborted.resolve(false);
  signal.addEventListener("abort", abort);
  try {
    return await Promise.race([work.then(() => true), aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

const QUOTES = '"""';

/**
 * Parses a message of several lines between `"""`. The block opens when the message begins with the
 * quotes or its first line ends with them, and closes with the quotes alone on a line or at a line's end.
 *
 * @returns `open` while the closing quotes are missing; else the message, without the quotes.
 */
export function readBlock(text: string): { open: true } | { open: false; message: string } {
  const first = text.split("\n", 1)[0]!;
  const opening = openingOf(first);
  if (opening === undefined) return { open: false, message: text };
  const before = text.slice(0, opening);
  const inside = text.slice(opening + QUOTES.length);
  const lines = inside.trimEnd().split("\n");
  const last = lines.at(-1)!;
  const even = (text.split(QUOTES).length - 1) % 2 === 0;
  const openedAlone = lines[0]!.trim() === "" && inside.includes("\n");
  const closed = last.endsWith(QUOTES) && (even || (lines.length > 1 && last.trim() === QUOTES));
  if (!closed) {
    // Quotes that close before the end belong to the text.
    return even && !openedAlone ? { open: false, message: text } : { open: true };
  }
  if (!openedAlone && text.split(QUOTES).length > 3) return { open: false, message: text };
  const content = inside.trimEnd().slice(0, -QUOTES.length).replace(/^[ \t]*\n/, "")
    .replace(/\n[ \t]*$/, "");
  const joint = before.trim() === "" ? "" : before.trimEnd() + (openedAlone ? "\n" : " ");
  return { open: false, message: joint + content };
}

/** Index at which quotes open a block in the first line. */
function openingOf(line: string): number | undefined {
  if (line.trimStart().startsWith(QUOTES)) return line.indexOf(QUOTES);
  const trimmed = line.trimEnd();
  const alone = trimmed.split(QUOTES).length === 2;
  return alone && trimmed.endsWith(QUOTES) ? trimmed.length - QUOTES.length : undefined;
}
