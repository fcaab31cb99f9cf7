import { readBlock } from "./block.ts";
import { cleanInput } from "./clean.ts";
import type { InputResult } from "./read.ts";
import type { TerminalPort } from "./terminal.ts";

/** Messages from an input that is no terminal: a line each, or a block between `"""`. */
export class PlainLines {
  readonly #port: TerminalPort;
  readonly #utf8 = new TextDecoder();
  #text = "";
  #ended = false;
  #reading: Promise<void> | undefined;

  constructor(port: TerminalPort) {
    this.#port = port;
  }

  /** @param blocks whether `"""` has a meaning */
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

/** Whether the work was done before the signal came. */
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
