import type { SearchPattern } from "./search_pattern.ts";

/** The only message to a search worker, which answers with the files that may hold a match. */
export interface Batch {
  paths: string[];
  pattern: SearchPattern;
}

/** The second thread of a workspace, which one search has at a time. */
export interface Thread {
  taken: boolean;
}

/** Batches after which a search counts as long: starting a thread takes as long as searching them. */
const SHORT = 4;
/** Batches that the thread has at most: enough to keep it busy until the event loop of this one turns. */
const MOST = 4;

/** A second thread for a long search: most of its time goes into opening and reading files. */
export class SearchHelper implements Disposable {
  readonly #search: { pattern: SearchPattern; thread: Thread };
  readonly #signal: AbortSignal;
  readonly #waiting: ((found: string[] | undefined) => void)[] = [];
  readonly #stop = () => this.#end();
  #seen = 0;
  #worker: Worker | undefined;

  constructor(search: { pattern: SearchPattern; thread: Thread }, signal: AbortSignal) {
    this.#search = search;
    this.#signal = signal;
    signal.addEventListener("abort", this.#stop);
  }

  /**
   * Hands a batch of files to the thread.
   *
   * @returns the files that may hold a match, or undefined when the thread ends before; undefined when it takes no batch
   */
  search(paths: string[]): Promise<string[] | undefined> | undefined {
    const { pattern, thread } = this.#search;
    if (++this.#seen === SHORT && !thread.taken) this.#worker = this.#start();
    if (this.#worker === undefined || this.#waiting.length === MOST) return undefined;
    this.#worker.postMessage({ paths, pattern } satisfies Batch);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  [Symbol.dispose](): void {
    this.#signal.removeEventListener("abort", this.#stop);
    this.#end();
  }

  #end(): void {
    if (this.#worker === undefined) return;
    this.#worker.terminate();
    this.#worker = undefined;
    this.#search.thread.taken = false;
    for (const resolve of this.#waiting.splice(0)) resolve(undefined);
  }

  /** The worker is a file next to this one; compile.sh puts its bundle next to the chunks of the program. */
  #start(): Worker {
    const file = import.meta.url.endsWith(".ts") ? "search_worker.ts" : "search_worker.js";
    const worker = new Worker(new URL(file, import.meta.url), { type: "module" });
    worker.onmessage = ({ data }: MessageEvent<string[]>) => this.#waiting.shift()?.(data);
    worker.onerror = (event) => {
      event.preventDefault();
      this.#end();
    };
    this.#search.thread.taken = true;
    return worker;
  }
}
