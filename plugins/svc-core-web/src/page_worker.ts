// The main module of a thread that parses one page; `page_thread.ts` starts it, and compile.sh bundles it.
import type { Answer, Question } from "./page_thread.ts";
import { parsePage } from "./parse_page.ts";

const scope = globalThis as unknown as {
  onmessage: (event: { data: Question }) => void;
  postMessage(answer: Answer): void;
};

scope.onmessage = ({ data: { html, url } }) => {
  try {
    scope.postMessage({ text: parsePage(html, url) });
  } catch {
    scope.postMessage({ failed: true });
  }
};
scope.postMessage({ ready: true });
