import { parsePage } from "./parse_page.ts";
import { decodeEntities, plainText } from "./plain_text.ts";
import { type Simplified, simplify } from "./simplify.ts";

/** A page as a reader wants it. */
export interface Page {
  title: string;
  /** Markdown, or text without any markup where the page is too large or too odd to be parsed. */
  text: string;
}

/**
 * The readable part of an HTML page: the article that Readability finds, else the whole body. A page that
 * would take very long is not parsed; what is parsed has been measured before. It takes its time all the
 * same, and belongs into a thread (`page_thread.ts`).
 *
 * @param url where the page is, for its links.
 */
export function readable(page: string, url: string): Page {
  const simple = simplify(page);
  const title = decodeEntities(simple.title.slice(0, 1000));
  return { title, text: parsed(simple, url) ?? plainText(simple.html) };
}

/** Parsers go over a page in time that grows with its size times its depth. */
export function isBearable(page: Simplified): boolean {
  const { html, tags, depth, attributes, allAttributes, entities } = page;
  return html.length <= 1_500_000 && tags <= 24_000 && depth <= 150 && attributes <= 100 &&
    allAttributes <= 30_000 && entities <= 30_000 && html.length * depth <= 20_000_000;
}

/** Markdown; undefined for a page that a parser does not bear, which has text all the same. */
function parsed(page: Simplified, url: string): string | undefined {
  if (!isBearable(page)) return undefined;
  try {
    return parsePage(page.html, url);
  } catch {
    return undefined;
  }
}
