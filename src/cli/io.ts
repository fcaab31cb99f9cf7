import type { Io } from "../commands/io.ts";
import type { Environment } from "../platform/environment.ts";
import { processEnvironment } from "../platform/environment.ts";
import { writeAllSync } from "../platform/files.ts";
import { oneLine, readHidden, stripControl } from "../platform/terminal.ts";
import { onInterrupt } from "./interrupt.ts";

/** The streams of this process. */
export const processStreams: Pick<Io, "out" | "note" | "isTerminal" | "readInput"> = {
  out: (text) => write(Deno.stdout, text),
  note(line) {
    try {
      write(Deno.stderr, oneLine(line) + "\n");
    } catch {
      // a full disk behind a log must not end whoever writes it
    }
  },
  isTerminal: (stream) =>
    ({ in: Deno.stdin, out: Deno.stdout, error: Deno.stderr })[stream].isTerminal(),
  readInput: () => new Response(Deno.stdin.readable).text(),
};

/** The streams of this process, and its environment once a command wants it: help needs no home. */
export function processIo(): Io {
  let environment: Environment | undefined;
  return {
    ...processStreams,
    program: "svc ",
    onInterrupt,
    readLine: (question) => Promise.resolve(answered(prompt(question))),
    readHidden: (question) => Promise.resolve(readHidden(question, processStreams.out)),
    confirm: (question) => Promise.resolve(confirm(question)),
    /** @throws SvcError `no_home` (exit 2) */
    get environment() {
      return environment ??= processEnvironment();
    },
  };
}

function write(stream: typeof Deno.stdout, text: string): void {
  try {
    writeAllSync(stream, new TextEncoder().encode(text));
  } catch (error) {
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error; // the reader has seen enough
  }
}

/** What was typed, harmless; undefined when the input ended. */
function answered(text: string | null): string | undefined {
  return text === null ? undefined : stripControl(text);
}
