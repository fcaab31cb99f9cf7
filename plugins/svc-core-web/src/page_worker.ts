// The main module of a thread that parses one page; `page_threads.ts` starts it, and compile.sh bundles it.
import { readable, readResults } from "./page.ts";
import type { Answer, Question, Tasks } from "./page_threads.ts";
import { WebError } from "./text.ts";

const TASKS: { [Task in keyof Tasks]: (html: string, url: string) => Tasks[Task] } = {
  page: readable,
  duckduckgo: readResults,
};

const scope = globalThis as unknown as {
  onmessage: (event: { data: Question }) => void;
  postMessage(answer: Answer): void;
};

scope.onmessage = ({ data: { task, html, url } }) => {
  try {
    scope.postMessage({ done: TASKS[task](html, url) });
  } catch (error) {
    const wrong = error instanceof WebError ? error.message : "the page cannot be parsed";
    scope.postMessage({ wrong });
  }
};
