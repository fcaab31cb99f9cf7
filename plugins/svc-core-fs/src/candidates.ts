import type { QuickLook } from "./line_pattern.ts";

const WORKERS = 2;

interface Task {
  paths: string[];
  hits: PromiseWithResolvers<number[]>;
}

/**
 * Those of the files (absolute paths) that may hold a match, in their order: two workers look through
 * them, so that this thread is free and two files are read at once.
 *
 * This only spares the search most of the files. What it opens is not checked against a swap of
 * folders for links, and nothing of it but a yes or no comes back: the caller opens each candidate
 * again, the safe way.
 */
export class Candidates implements Disposable {
  readonly #look: QuickLook;
  readonly #workers: Worker[];
  /** Workers that have not failed. */
  #able = WORKERS;
  #idle: Worker[] = [];
  readonly #busy = new Map<Worker, Task>();
  readonly #waiting: Task[] = [];
  readonly #signal: AbortSignal;

  constructor(look: QuickLook, signal: AbortSignal) {
    this.#look = look;
    this.#signal = signal;
    const code = new Blob([`(${lookThrough})(self)`], { type: "text/javascript" });
    const url = URL.createObjectURL(code);
    this.#workers = Array.from({ length: WORKERS }, () => new Worker(url, { type: "module" }));
    for (const worker of this.#workers) {
      worker.onmessage = ({ data }) => this.#answered(worker, data);
      worker.onerror = (event) => {
        event.preventDefault();
        this.#failed(worker);
      };
    }
    this.#idle.push(...this.#workers);
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
  }

  #employ(): void {
    while (this.#waiting.length > 0 && this.#idle.length > 0) {
      const worker = this.#idle.pop()!;
      const task = this.#waiting.shift()!;
      this.#busy.set(worker, task);
      worker.postMessage({ paths: task.paths, look: this.#look });
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
function lookThrough(scope: {
  onmessage: (event: { data: { paths: string[]; look: QuickLook } }) => void;
  postMessage(hits: number[]): void;
}): void {
  const WHOLE = 256 * 1024;
  const BINARY = 8192;
  const MAX_LINE = 4000;
  const buffer = new Uint8Array(WHOLE);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const mayMatch = (path: string, regex: RegExp, by_line: boolean): boolean => {
    const file = Deno.openSync(path);
    let length = 0;
    try {
      length = file.readSync(buffer) ?? 0;
    } finally {
      file.close();
    }
    if (length === WHOLE) return true; // there may be more
    const text = decoder.decode(buffer.subarray(0, length));
    const found = by_line
      ? text.replace(/^\ufeff/, "").split("\n")
        .some((line) => regex.test(line.slice(0, MAX_LINE).replace(/\r$/, "")))
      : regex.test(text);
    return found && !buffer.subarray(0, Math.min(length, BINARY)).includes(0);
  };
  scope.onmessage = ({ data: { paths, look } }) => {
    const regex = new RegExp(look.source, look.flags);
    const hits: number[] = [];
    for (const [index, path] of paths.entries()) {
      try {
        if (mayMatch(path, regex, look.by_line)) hits.push(index);
      } catch {
        // gone, or closed to us
      }
    }
    scope.postMessage(hits);
  };
}
