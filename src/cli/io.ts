import type { Environment } from "../platform/environment.ts";
import { processEnvironment } from "../platform/environment.ts";
import { writeAllSync } from "../platform/files.ts";
import { stripControl } from "../platform/terminal.ts";

/** What a command may use of the outside world; tests hand in their own. */
export interface Io {
  readonly environment: Environment;
  /** Output for programs and answers, as given. */
  out(text: string): void;
  /** One diagnostic line on standard error, made harmless to a terminal. */
  note(line: string): void;
  /** Whether standard input, output or error is a terminal. */
  isTerminal(stream: "in" | "out" | "error"): boolean;
  /** All of standard input. */
  readInput(): Promise<string>;
}

/** The streams of this process. */
export const processStreams: Omit<Io, "environment"> = {
  out: (text) => write(Deno.stdout, text),
  note: (line) => write(Deno.stderr, oneLine(line) + "\n"),
  isTerminal: (stream) =>
    ({ in: Deno.stdin, out: Deno.stdout, error: Deno.stderr })[stream].isTerminal(),
  readInput: () => new Response(Deno.stdin.readable).text(),
};

/** The streams of this process, and its environment once a command wants it: help needs no home. */
export function processIo(): Io {
  let environment: Environment | undefined;
  return {
    ...processStreams,
    /** @throws SvcError `no_home` (exit 2) */
    get environment() {
      return environment ??= processEnvironment();
    },
  };
}

/** JSON that a terminal shows as it is: what JSON itself leaves unescaped is escaped too. */
export function toJson(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(
    /[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}

/** What a file, a model or a server put into a message starts no line that looks like ours. */
function oneLine(text: string): string {
  return stripControl(text).replace(/[ \t]*[\n\u2028\u2029]\s*/g, " ");
}

function write(stream: typeof Deno.stdout, text: string): void {
  try {
    writeAllSync(stream, new TextEncoder().encode(text));
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error; // the reader has seen enough
  }
}
