import { WebError } from "./web_error.ts";

/** What a page worker is asked, once. */
export interface Question {
  html: string;
  url: string;
}

/** What it says: that it has started, then what came of its page. */
export type Answer = { ready: true } | { text: string } | { failed: true };

/** What became of a page: its Markdown, that it cannot be parsed, or that there is no thread for it. */
export type Outcome = { text: string } | "failed" | "no thread";

export interface Threads {
  /** A thread that runs `page_worker.ts`; may throw. */
  start(): Worker;
  /** How long a page may take, in milliseconds. */
  limit: number;
}

/** Threads of this process. */
export const THREADS: Readonly<Threads> = { start, limit: 10_000 };

/**
 * Parses a page in a thread of its own, which ends with it.
 *
 * @throws WebError when the page takes too long, and what the signal was aborted with.
 */
export async function parseApart(
  question: Question,
  signal: AbortSignal,
  { start, limit }: Threads,
): Promise<Outcome> {
  signal.throwIfAborted();
  let worker: Worker;
  try {
    worker = start();
  } catch {
    return "no thread";
  }
  const outcome = Promise.withResolvers<Outcome>();
  let ready = false;
  worker.onmessage = ({ data }: MessageEvent<Answer>) => {
    if ("ready" in data) ready = true;
    else outcome.resolve("text" in data ? data : "failed");
  };
  worker.onerror = (event) => {
    event.preventDefault();
    outcome.resolve(ready ? "failed" : "no thread");
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

/** From source the worker is a file beside this one; compile.sh puts its bundle beside the program's chunks. */
function start(): Worker {
  const file = import.meta.url.endsWith(".ts") ? "page_worker.ts" : "page_worker.js";
  return new Worker(new URL(file, import.meta.url), { type: "module" });
}
