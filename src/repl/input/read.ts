import type { Completer } from "./completion.ts";

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
