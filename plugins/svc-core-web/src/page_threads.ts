import type { SearchResult } from "../../../src/plugins/api.ts";
import type { Page } from "./page.ts";
import { WebError } from "./text.ts";

/** What a thread can be asked to make of HTML, and what it answers. */
export interface Tasks {
  page: Page;
  duckduckgo: SearchResult[];
}

/** What a page worker is asked, once. */
export interface Question {
  task: keyof Tasks;
  html: string;
  /** Where the HTML is, for its links. */
  url: string;
}

/** What it says: what came of its HTML, or a sentence about what is wrong with it. */
export type Answer = { done: Tasks[keyof Tasks] } | { wrong: string };

/** How pages are parsed; the defaults are those of this process. */
interface ThreadOptions {
  /** A thread that runs `page_worker.ts`; may throw. */
  start?: () => Worker;
  /** How long a page may take, in milliseconds. */
  limit?: number;
  /** Threads at once; each takes some ten megabytes. */
  most?: number;
}

/**
 * Parses HTML in threads, since a page decides how long that takes: a hostile one of ten kilobytes keeps
 * the parsers busy for a second. Each page has a thread of its own, which ends with it.
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

  /** Waits until a thread may be had. */
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

/** From source the worker is a file beside this one; compile.sh puts its bundle beside the program's chunks. */
function startThread(): Worker {
  const file = import.meta.url.endsWith(".ts") ? "page_worker.ts" : "page_worker.js";
  return new Worker(new URL(file, import.meta.url), { type: "module" });
}
