import type { SearchResult } from "../../../src/plugins/api.ts";
import type { Page } from "./page.ts";
import { WebError } from "./text.ts";

/** The tasks of a thread, with the type of their results. */
export interface Tasks {
  page: Page;
  duckduckgo: SearchResult[];
}

/** The only message to a page worker. */
export interface Question {
  task: keyof Tasks;
  html: string;
  /** The address of the HTML, for its links. */
  url: string;
}

/** The answer of a page worker: the result, or an error as a sentence. */
export type Answer = { done: Tasks[keyof Tasks] } | { wrong: string };

/** Options of the threads. */
interface ThreadOptions {
  /** Starts a thread that runs `page_worker.ts`; may throw. */
  start?: () => Worker;
  /** Milliseconds that a page may take; default 10,000. */
  limit?: number;
  /** Concurrent threads, of about ten megabytes each; default 4. */
  most?: number;
}

/**
 * Parses HTML in threads: a hostile page of ten kilobytes keeps the parsers busy for a second. Each page
 * has a thread of its own, which ends with it.
 */
export class PageThreads {
  readonly #options: Required<ThreadOptions>;
  #running = 0;
  readonly #waiting = new Set<() => void>();

  constructor({ start = startThread, limit = 10_000, most = 4 }: ThreadOptions = {}) {
    this.#options = { start, limit, most };
  }

  /** @throws WebError when it cannot be parsed or takes too long, and what the signal was aborted with. */
  async parse<Task extends keyof Tasks>(
    task: Task,
    html: string,
    url: URL,
    signal: AbortSignal,
  ): Promise<Tasks[Task]> {
    await this.#turn(signal);
    try {
      const answer = await this.#ask({ task, html, url: url.href }, signal);
      if ("wrong" in answer) throw new WebError(answer.wrong);
      return answer.done as Tasks[Task];
    } finally {
      this.#running--;
      for (const look of this.#waiting) look();
    }
  }

  /** Waits until another thread may start. */
  async #turn(signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    while (this.#running >= this.#options.most) {
      const { promise, resolve } = Promise.withResolvers<void>();
      const look = () => resolve();
      this.#waiting.add(look);
      signal.addEventListener("abort", look, { once: true });
      await promise;
      this.#waiting.delete(look);
      signal.removeEventListener("abort", look);
      signal.throwIfAborted();
    }
    this.#running++;
  }

  async #ask(question: Question, signal: AbortSignal): Promise<Answer> {
    const { start, limit } = this.#options;
    signal.throwIfAborted();
    let worker: Worker;
    try {
      worker = start();
    } catch {
      throw new WebError(NO_THREAD);
    }
    const outcome = Promise.withResolvers<Answer>();
    worker.onmessage = ({ data }: MessageEvent<Answer>) => outcome.resolve(data);
    worker.onerror = (event) => {
      event.preventDefault();
      outcome.reject(new WebError(NO_THREAD));
    };
    const abort = () => outcome.reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const timer = setTimeout(() => {
      outcome.reject(new WebError(`the page takes more than ${limit / 1000} s to be parsed`));
    }, limit);
    try {
      worker.postMessage(question);
      return await outcome.promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
      worker.terminate();
    }
  }
}

const NO_THREAD = "the thread that parses pages has failed";

/** The worker is a file next to this one; compile.sh puts its bundle next to the chunks of the program. */
function startThread(): Worker {
  const file = import.meta.url.endsWith(".ts") ? "page_worker.ts" : "page_worker.js";
  return new Worker(new URL(file, import.meta.url), { type: "module" });
}
