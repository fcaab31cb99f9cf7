// The main module of a thread that reads one PDF; `pdf.ts` starts it, and compile.sh bundles it.
import { getDocumentProxy } from "unpdf";
import type { PdfAnswer, PdfQuestion } from "./pdf.ts";

const scope = globalThis as unknown as {
  onmessage: (event: { data: PdfQuestion }) => void;
  postMessage(answer: PdfAnswer): void;
};
// The library reports what is wrong with a file there.
globalThis.console = { ...console, log() {}, warn() {}, info() {}, error() {} };

scope.onmessage = async ({ data: { bytes, first, count, chars } }) => {
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
    }
    scope.postMessage({ end: "" });
  } catch (error) {
    const { name } = error as Error;
    scope.postMessage({
      end: name === "PasswordException" ? "it has a password" : "it is damaged",
    });
  }
};
