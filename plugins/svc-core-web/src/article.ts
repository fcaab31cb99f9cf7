import { Readability } from "@mozilla/readability";
import type { HtmlDocument } from "./dom.ts";

/** Articles shorter than this are taken for a mistake of the search for one. */
const SHORTEST = 300;

/** The article of a page, as HTML; undefined when the page is none. */
export function findArticle(document: HtmlDocument): string | undefined {
  // Readability takes apart the document that it is given.
  const copy = document.cloneNode(true) as unknown;
  // deno-lint-ignore no-explicit-any
  const article = new Readability(copy as any, { charThreshold: SHORTEST }).parse();
  const long = (article?.textContent ?? "").trim().length >= SHORTEST;
  return long ? article?.content ?? undefined : undefined;
}
