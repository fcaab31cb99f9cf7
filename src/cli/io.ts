import { type Environment, processEnvironment } from "../platform/environment.ts";
import { writeAllSync } from "../platform/files.ts";
import { oneLine, readHidden, stripControl, visible } from "../platform/terminal.ts";
import type { Io } from "../commands/io.ts";

/** The streams of this process. */
export const processStreams: Pick<Io, "out" | "note" | "isTerminal" | "readInput"> = {
  out: (text) => write(Deno.stdout, text),
  note(line, styled = false) {
    try {
      write(Deno.stderr, (styled ? line : oneLine(line)) + "\n");
    } catch {
      // a full disk must not end the process that writes a log
    }
  },
  isTerminal: (stream) =>
    ({ in: Deno.stdin, out: Deno.stdout, error: Deno.stderr })[stream].isTerminal(),
  readInput: () => new Response(Deno.stdin.readable).text(),
};

/** The streams of this process, and its environment, read on first use: help needs no home. */
export function processIo(): Io {
  let environment: Environment | undefined;
  return {
    ...processStreams,
    program: "svc ",
    onInterrupt,
    readBytes: async (request) => (await import("./stdin.ts")).readBytes(request),
    readLine: (question) => Promise.resolve(answered(prompt(question))),
    readHidden: (question) => Promise.resolve(readHidden(question, processStreams.out)),
    confirm: (question) => Promise.resolve(confirm(oneLine(visible(question)))),
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
    if (!(error instanceof Deno.errors.BrokenPipe)) throw error; // the reader has closed the pipe
  }
}

/** The answer without control characters; undefined when the input ended. */
function answered(text: string | null): string | undefined {
  return text === null ? undefined : stripControl(text);
}

const { exit } = Deno;

/** Turns the first SIGINT or SIGTERM into an abort; the second one ends the process at once. */
export function onInterrupt(): { signal: AbortSignal; release(): void } {
  const controller = new AbortController();
  const interrupt = () => {
    if (controller.signal.aborted) exit(130);
    controller.abort(new DOMException("Interrupted.", "AbortError"));
  };
  const signals: Deno.Signal[] = ["SIGINT", "SIGTERM"];
  for (const signal of signals) Deno.addSignalListener(signal, interrupt);
  return {
    signal: controller.signal,
    release() {
      for (const signal of signals) Deno.removeSignalListener(signal, interrupt);
    },
  };
}
