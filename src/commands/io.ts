import type { Workspace } from "../engine/workspace.ts";
import type { Environment } from "../platform/environment.ts";
import { jsonPieces } from "../platform/files.ts";
import type { Operator } from "../policy/operator.ts";

/** Access of a command to its terminal and environment; each front end and the tests provide one. */
export interface Io {
  readonly environment: Environment;
  /** The text before a command's name on its command line: `svc ` or `/`. */
  readonly program: string;
  /** The open worktree of a terminal session. */
  readonly live?: Workspace;
  /** The focused session of a terminal session. */
  session?(): string | undefined;
  /** The sessions that a terminal session works in, the active one first. */
  inUse?(): string[];
  /** What the operator allowed the focused run until the session ends, in words. */
  approvals?(): string[];
  /** Approves calls and models and answers questions; left out: the command runs unattended. */
  readonly operator?: Operator;
  /** Output for programs and answers, as given. */
  out(text: string): void;
  /**
   * One diagnostic line; control characters are removed.
   *
   * @param styled the line has none but the sequences of `Style`, which stay
   */
  note(line: string, styled?: boolean): void;
  /** The width of the terminal of a session; help pages fit into it. */
  columns?(): number;
  /** Whether standard input, output or error is a terminal. */
  isTerminal(stream: "in" | "out" | "error"): boolean;
  /** All of standard input. */
  readInput(): Promise<string>;
  /**
   * The bytes of standard input, one more than `most` when there are more; `silent` for a pipe in which nothing
   * has come in time. Left out: standard input has other uses.
   */
  readBytes?(request: InputRequest): Promise<Uint8Array | "silent">;
  /** One line that the operator types; undefined when the input ends. */
  readLine(question: string): Promise<string | undefined>;
  /** The same without echo, for keys. */
  readHidden(question: string): Promise<string | undefined>;
  /** The operator's yes or no. */
  confirm(question: string): Promise<boolean>;
  /** An interrupt aborts the signal until it is released. */
  onInterrupt(): { signal: AbortSignal; release(): void };
}

/** How standard input is read. */
export interface InputRequest {
  most: number;
  /**
   * Milliseconds to wait for the first byte of a pipe; a terminal is not read then. Default: read whatever it is, to
   * its end.
   */
  patience?: number;
  /** Called when the end has not come for some seconds. */
  slow(): void;
}

/** JSON in which the control characters that JSON permits are escaped too, for terminals. */
export function toJson(value: unknown, indent?: number): string {
  return escaped(JSON.stringify(value, null, indent));
}

/** The same in pieces, for objects with large texts. */
export function* toJsonPieces(value: object, indent?: number): Generator<string> {
  for (const piece of jsonPieces(value, indent)) yield escaped(piece);
}

function escaped(json: string): string {
  return json.replace(
    /(?![ \n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
    (character) =>
      character.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
        .join(""),
  );
}
