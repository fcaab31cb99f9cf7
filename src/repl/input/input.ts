import type { Completer } from "./completion.ts";
import type { History } from "./history.ts";
import type { TerminalPort } from "./terminal.ts";

/** How a read ended: with a message, with Ctrl-C on an empty line (or its signal), at the end of input. */
export type InputResult = { type: "line"; text: string } | { type: "interrupted" } | {
  type: "end";
};

export interface ReadOptions {
  /** What stands before the line; may hold colours (SGR sequences), which take no room. */
  prompt: string;
  complete?: Completer;
  /** Whether the message becomes part of the history; default: true, never when hidden. */
  remember?: boolean;
  /** Shows nothing of what is typed. */
  hidden?: boolean;
  /** Text to begin with, the cursor behind it. */
  initial?: string;
  /** Leaves what was typed before the question was asked to the next read: for confirmations. */
  fresh?: boolean;
  /** Ends the read as interrupted. */
  signal?: AbortSignal;
}

/** Reads what a person types: one message at a time, with editing, history and completion. */
export class Input {
  constructor(_options: { port: TerminalPort; history?: History }) {
    throw new Error("Input is not built yet.");
  }

  /** One message: a line, a """ block or a paste. A second read waits for the first. */
  read(_options: ReadOptions): Promise<InputResult> {
    throw new Error("Input is not built yet.");
  }

  /**
   * While a turn runs: Ctrl-C calls `interrupt`; everything else that is typed is kept for the next
   * read. A read in between (a confirmation) has its keys to itself.
   */
  watch(_handlers: { interrupt(): void }): { stop(): void } {
    throw new Error("Input is not built yet.");
  }

  /** Shows a text above the line that is being edited. */
  announce(_text: string): void {
    throw new Error("Input is not built yet.");
  }

  /** Gives the terminal back as it was found; safe to call at any time and twice. */
  restore(): void {}

  /** Restores the terminal and ends every read. */
  close(): void {}
}
