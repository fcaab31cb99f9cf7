import type { SearchAnswer, SearchPattern, SearchQuestion } from "./search_worker.ts";

/** Threads of one search; each takes some megabytes. */
const THREADS = 2;
/** Characters of a pattern. */
const MAX_PATTERN = 1000;

/** The error of a search that cannot continue, as a sentence for the model. */
export class SearchError extends Error {}

/** Sends a question to a thread. */
type Ask = <Answer extends SearchAnswer>(question: SearchQuestion) => Promise<Answer>;

/**
 * The threads that match the pattern of one search. JavaScript's regular expressions can backtrack for
 * ever on a line, and only a thread can be ended meanwhile.
 */
export class SearchThreads {
  readonly #pattern: SearchPattern;
  readonly #ms: number;
  readonly #end = new AbortController();
  readonly #signal: AbortSignal;
  readonly #workers: Worker[] = [];
  readonly #idle: Worker[] = [];
  readonly #waiting: ((worker: Worker) => void)[] = [];

  /**
   * @param ms how long an answer may take, in milliseconds.
   * @throws SearchError for an invalid pattern.
   */
  constructor(pattern: string, ms: number, signal: AbortSignal) {
    this.#pattern = searchPattern(pattern);
    this.#ms = ms;
    this.#signal = AbortSignal.any([signal, this.#end.signal]);
  }

  /**
   * Has a thread for as long as `work` takes. The thread is started when it is first needed.
   *
   * @param urgent whether it is served before the calls that already wait.
   * @throws SearchError when the thread fails or takes too long, and what the signal was aborted with.
   */
  async use<T>(work: (ask: Ask) => Promise<T>, urgent = false): Promise<T> {
    const worker = await this.#take(urgent);
    try {
      return await work((question) => this.#ask(worker, question));
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#idle.push(worker);
      else next(worker);
    }
  }

  /** Ends the threads and rejects what is still asked of them. */
  end(): void {
    this.#end.abort();
    for (const worker of this.#workers) worker.terminate();
  }

  #take(urgent: boolean): Worker | Promise<Worker> {
    this.#signal.throwIfAborted();
    const idle = this.#idle.pop();
    if (idle !== undefined) return idle;
    if (this.#workers.length < THREADS) return this.#start();
    return new Promise((resolve) => {
      if (urgent) this.#waiting.unshift(resolve);
      else this.#waiting.push(resolve);
    });
  }

  #start(): Worker {
    try {
      // compile.sh puts the bundle of the worker next to the chunks of the program.
      const file = import.meta.url.endsWith(".ts") ? "search_worker.ts" : "search_worker.js";
      const worker = new Worker(new URL(file, import.meta.url), { type: "module" });
      worker.onerror = (event) => {
        event.preventDefault();
        this.#end.abort(new SearchError(NO_THREAD));
      };
      this.#workers.push(worker);
      worker.postMessage(this.#pattern);
      return worker;
    } catch {
      throw new SearchError(NO_THREAD);
    }
  }

  async #ask<Answer>(worker: Worker, question: SearchQuestion): Promise<Answer> {
    const signal = this.#signal;
    signal.throwIfAborted();
    const { promise, resolve, reject } = Promise.withResolvers<SearchAnswer>();
    worker.onmessage = ({ data }) => resolve(data);
    const abort = () => reject(signal.reason);
    signal.addEventListener("abort", abort, { once: true });
    const timer = setTimeout(() => reject(new SearchError(tooLong(this.#ms))), this.#ms);
    try {
      worker.postMessage(question);
      return await promise as Answer;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", abort);
    }
  }
}

const NO_THREAD = "the thread that searches files has failed";

function tooLong(ms: number): string {
  return `the pattern takes more than ${ms / 1000} seconds on a few files; repeat less in it, or ` +
    "search fewer files";
}

/**
 * Reads a pattern of JavaScript's syntax. A leading `(?i)`, which other languages know, ignores case.
 *
 * @throws SearchError for an invalid one.
 */
export function searchPattern(pattern: string): SearchPattern {
  const ignoreCase = pattern.startsWith("(?i)");
  const source = ignoreCase ? pattern.slice(4) : pattern;
  const flags = ignoreCase ? "i" : "";
  if (source.length > MAX_PATTERN) {
    throw new SearchError(`the pattern has more than ${MAX_PATTERN} characters`);
  }
  try {
    new RegExp(source, flags);
  } catch (error) {
    throw new SearchError(`invalid pattern: ${(error as Error).message}`);
  }
  const required = requiredText(source).replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
  return { source, flags, required };
}

const TOKEN =
  /\\(?:x[\da-f]{2}|u[\da-f]{4}|c[a-z]|k<[^>]*>|\d+|[^])|\[(?:\\[^]|[^\]\\])*\]|[*+?]|\{\d+(?:,\d*)?\}|[^]/gi;

/** The longest run of plain characters outside of groups; empty when there are alternatives to it. */
function requiredText(source: string): string {
  const runs = [""];
  let depth = 0;
  for (const [token] of source.matchAll(TOKEN)) {
    if (token === "(") depth++;
    else if (token === ")") depth--;
    else if (depth > 0) continue;
    if (token === "|") return "";
    if (/^[*?{]/.test(token)) runs[0] = runs[0]!.slice(0, -1); // what it repeats may be left out
    if (/^(?:[^\\^$.*+?()[\]{}|]|\\[^\w])$/.test(token)) runs[0] += token.at(-1)!;
    else runs.unshift("");
  }
  return runs.reduce((longest, run) => run.length > longest.length ? run : longest);
}
