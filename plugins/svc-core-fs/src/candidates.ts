import { lineAutomaton } from "./line_automaton.ts";
import type { QuickLook } from "./line_pattern.ts";

const WORKERS = 2;

interface Task {
  paths: string[];
  hits: PromiseWithResolvers<number[]>;
}

/**
 * Those of the files below a folder that may hold a match, in their order: two workers look through
 * them, so that this thread is free and two files are read at once.
 *
 * This only spares the search most of the files. What it opens is not checked against a swap of
 * folders for links, and nothing of it but a yes or no comes back: the caller opens each candidate
 * again, the safe way.
 */
export class Candidates implements Disposable {
  readonly #code: string;
  readonly #workers: Worker[] = [];
  /** Workers that have not failed. */
  #able = 0;
  #idle: Worker[] = [];
  readonly #busy = new Map<Worker, Task>();
  readonly #waiting: Task[] = [];
  readonly #signal: AbortSignal;

  /**
   * Starts the workers.
   *
   * @param folder absolute path that the paths of the files start from.
   */
  static async start(folder: string, look: QuickLook, signal: AbortSignal): Promise<Candidates> {
    const started = new Candidates(folder, look, signal);
    // Starting one keeps this thread for milliseconds, so others get their turn in between.
    for (let i = 0; i < WORKERS; i++) {
      await new Promise((resolve) => setTimeout(resolve, 0));
      if (!signal.aborted) started.#start();
    }
    return started;
  }

  private constructor(folder: string, look: QuickLook, signal: AbortSignal) {
    this.#signal = signal;
    const given = `${JSON.stringify(folder)}, ${JSON.stringify(look)}`;
    const code = `(${lookThrough})(self, ${given}, ${lineAutomaton})`;
    this.#code = URL.createObjectURL(new Blob([code], { type: "text/javascript" }));
  }

  /** @throws what the signal was aborted with. */
  async among(paths: string[]): Promise<string[]> {
    this.#signal.throwIfAborted();
    if (this.#able === 0) return paths;
    const hits = Promise.withResolvers<number[]>();
    const abort = () => hits.reject(this.#signal.reason);
    this.#signal.addEventListener("abort", abort, { once: true });
    this.#waiting.push({ paths, hits });
    this.#employ();
    try {
      return (await hits.promise).map((index) => paths[index]!);
    } finally {
      this.#signal.removeEventListener("abort", abort);
    }
  }

  [Symbol.dispose](): void {
    for (const worker of this.#workers) worker.terminate();
    URL.revokeObjectURL(this.#code);
  }

  #start(): void {
    let worker: Worker;
    try {
      worker = new Worker(this.#code, { type: "module" });
    } catch {
      return; // no thread or no memory to be had: it goes without
    }
    worker.onmessage = ({ data }) => this.#answered(worker, data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.#failed(worker);
    };
    this.#able++;
    this.#workers.push(worker);
    this.#idle.push(worker);
  }

  #employ(): void {
    while (this.#waiting.length > 0 && this.#idle.length > 0) {
      const worker = this.#idle.pop()!;
      const task = this.#waiting.shift()!;
      this.#busy.set(worker, task);
      worker.postMessage(task.paths.join("\0")); // one string is copied far quicker than many
    }
  }

  #answered(worker: Worker, hits: number[]): void {
    this.#busy.get(worker)?.hits.resolve(hits);
    this.#busy.delete(worker);
    this.#idle.push(worker);
    this.#employ();
  }

  /** A worker that failed has ended. Nothing is known of its files, so each is a candidate. */
  #failed(worker: Worker): void {
    const left = this.#busy.get(worker);
    this.#busy.delete(worker);
    this.#idle = this.#idle.filter((other) => other !== worker);
    const unknown = --this.#able === 0 ? this.#waiting.splice(0) : [];
    for (const task of left ? [left, ...unknown] : unknown) {
      task.hits.resolve([...task.paths.keys()]);
    }
  }
}

/** What a worker runs. It is handed over as text, so nothing outside of it may be used. */
function lookThrough(
  scope: {
    onmessage: (event: { data: string }) => void;
    postMessage(hits: number[]): void;
  },
  folder: string,
  look: QuickLook,
  automatonFor: typeof lineAutomaton,
): void {
  const WHOLE = 256 * 1024;
  const BINARY = 8192;
  const NEWLINE = 10;
  const MAX_LINE = 4000;
  const buffer = new Uint8Array(WHOLE);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  /** Whether a line of the text, given by its bounds, passes. */
  const someLine = (text: string, passes: (from: number, to: number) => boolean): boolean => {
    for (let from = text.startsWith("\ufeff") ? 1 : 0; from <= text.length;) {
      const newline = text.indexOf("\n", from);
      const end = newline === -1 ? text.length : newline;
      const cut = Math.min(end, from + MAX_LINE);
      if (passes(from, cut > from && text[cut - 1] === "\r" ? cut - 1 : cut)) return true;
      from = end + 1;
    }
    return false;
  };
  const textLook = (source: string, flags: string) => {
    const regex = new RegExp(source, flags);
    return (text: string) => regex.test(text);
  };
  const linearLook = (program: Parameters<typeof lineAutomaton>[0]) => {
    const automaton = automatonFor(program);
    return (text: string) =>
      someLine(text, (from, to) => {
        automaton.begin(text, from, to);
        return automaton.advance(Infinity) !== -1;
      });
  };
  const linesLook = (source: string, flags: string, reach: { whole: number; start: number }) => {
    const regex = new RegExp(source, flags);
    const here = new RegExp(source, `${flags}y`);
    // Start by start, since a worker can be ended between two tests, but not within one.
    const found = (line: string): boolean => {
      for (here.lastIndex = 0; here.lastIndex <= line.length;) {
        const at = here.lastIndex;
        if (here.test(line)) return true;
        here.lastIndex = at + 1;
      }
      return false;
    };
    return (text: string) =>
      someLine(text, (from, to) => {
        const line = text.slice(from, to);
        return line.length <= reach.whole ? regex.test(line) : found(line.slice(0, reach.start));
      });
  };
  const matches = look.kind === "text"
    ? textLook(look.source, look.flags)
    : look.kind === "linear"
    ? linearLook(look.program)
    : linesLook(look.source, look.flags, look.reach);
  /** The bytes of a file put into the buffer from `at` on; undefined when they may be more than fit. */
  const read = (path: string, at: number): number | undefined => {
    const file = Deno.openSync(path);
    try {
      const length = file.readSync(buffer.subarray(at)) ?? 0;
      return length === buffer.length - at ? undefined : length;
    } finally {
      file.close();
    }
  };
  const isBinary = (from: number, to: number) =>
    buffer.subarray(from, Math.min(to, from + BINARY)).includes(0);
  const holds = (from: number, to: number) => matches(decoder.decode(buffer.subarray(from, to)));
  scope.onmessage = ({ data: paths }) => {
    const hits: number[] = [];
    /** Files in the buffer, one behind the other: to look at them at once is quicker than one by one. */
    let together: { index: number; from: number; to: number }[] = [];
    let end = 0;
    const flush = () => {
      if (together.length > 1 && look.kind === "text" && !holds(0, end)) together = [];
      for (const { index, from, to } of together) {
        if (!isBinary(from, to) && holds(from, to)) hits.push(index);
      }
      together = [];
      end = 0;
    };
    for (const [index, path] of paths.split("\0").entries()) {
      try {
        let length = read(`${folder}/${path}`, end);
        if (length === undefined && end > 0) {
          flush();
          length = read(`${folder}/${path}`, 0);
        }
        if (length === undefined) hits.push(index); // there may be more
        else {
          together.push({ index, from: end, to: end + length });
          end += length;
          buffer[end++] = NEWLINE;
        }
        if (look.kind !== "text") flush();
      } catch {
        // gone, or closed to us
      }
    }
    flush();
    scope.postMessage(hits);
  };
}
