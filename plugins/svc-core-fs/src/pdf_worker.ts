// The main module of a thread that reads one PDF; `pdf.ts` starts it, and compile.sh bundles it.
import { getDocumentProxy } from "unpdf";
import type { PdfAnswer, PdfQuestion } from "./pdf.ts";

const scope = globalThis as unknown as {
  onmessage: (event: { data: PdfQuestion }) => void;
  postMessage(answer: PdfAnswer): void;
};
/** Bytes of one array: the library unpacks a stream into arrays that it doubles, and a bomb would fill the memory. */
const MAX_ARRAY = 64 * 1024 * 1024;
const Unbounded = Uint8Array;
globalThis.Uint8Array = class extends Unbounded {
  // deno-lint-ignore no-explicit-any
  constructor(...given: any[]) {
    if (given[0] > MAX_ARRAY) throw new RangeError("too large");
    super(...given as []);
  }
} as typeof Uint8Array;

// The library reports what is wrong with a file there.
globalThis.console = { ...console, log() {}, warn() {}, info() {}, error() {} };

scope.onmessage = async ({ data: { bytes, first, count, chars, ms } }) => {
  const until = performance.now() + ms;
  try {
    const pdf = await getDocumentProxy(bytes, { disableFontFace: true, verbosity: 0 });
    scope.postMessage({ pages: pdf.numPages });
    const last = Math.min(pdf.numPages, first + count - 1);
    for (let number = first, left = chars; number <= last && left > 0; number++) {
      const page = await pdf.getPage(number);
      const { items } = await page.getTextContent();
      const text = items.map((item) => "str" in item ? item.str + (item.hasEOL ? "\n" : "") : "")
        .join("");
      scope.postMessage({ text });
      left -= text.length;
      page.cleanup();
      if (performance.now() > until) break; // the call has given up
    }
    scope.postMessage({ end: "" });
  } catch (error) {
    const { name } = error as Error;
    scope.postMessage({
      end: name === "PasswordException" ? "it has a password" : "it is damaged",
    });
  }
};
