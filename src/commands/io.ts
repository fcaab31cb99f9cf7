import type { Workspace } from "../engine/workspace.ts";
import type { Environment } from "../platform/environment.ts";
import type { Operator } from "../policy/operator.ts";

/** What a command may use of the outside world; each front end brings its own, and so do tests. */
export interface Io {
  readonly environment: Environment;
  /** What stands before a command's name where it is typed: `svc ` or `/`. */
  readonly program: string;
  /** The worktree that is open already, where one is. */
  readonly live?: Workspace;
  /** The session that is focused, where one is open. */
  session?(): string | undefined;
  /** Who approves calls and models and answers questions; left out: nobody is there. */
  readonly operator?: Operator;
  /** Output for programs and answers, as given. */
  out(text: string): void;
  /** One diagnostic line, made harmless to a terminal. */
  note(line: string): void;
  /** Whether standard input, output or error is a terminal. */
  isTerminal(stream: "in" | "out" | "error"): boolean;
  /** All of standard input. */
  readInput(): Promise<string>;
  /** One line that a human types; undefined when they leave without one. */
  readLine(question: string): Promise<string | undefined>;
  /** The same for a line that is not to be seen. */
  readHidden(question: string): Promise<string | undefined>;
  /** A human's yes or no. */
  confirm(question: string): Promise<boolean>;
  /** Has an interrupt abort the signal, until it is released. */
  onInterrupt(): { signal: AbortSignal; release(): void };
}

/** JSON that a terminal shows as it is: what JSON itself leaves unescaped is escaped too. */
export function toJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(
    /[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
