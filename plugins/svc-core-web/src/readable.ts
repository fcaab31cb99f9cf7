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
 * would take long is not parsed; what is parsed has been measured before.
 *
 * @param url where the page is, for its links.
 */
export async function readable(page: string, url: URL): Promise<Page> {
  const simple = simplify(page);
  const title = decodeEntities(simple.title.slice(0, 1000));
  if (isBearable(simple)) {
    try {
      return { title, text: await parse(simple.html, url) };
    } catch {
      // A page that a parser does not bear has text all the same.
    }
  }
  return { title, text: plainText(simple.html) };
}

/** Parsers go over a page in time that grows with its size times its depth. */
export function isBearable(page: Simplified): boolean {
  const { html, tags, depth, attributes, allAttributes } = page;
  return html.length <= 1_500_000 && tags <= 24_000 && depth <= 150 && attributes <= 100 &&
    allAttributes <= 30_000 && html.length * depth <= 20_000_000;
}

async function parse(html: string, url: URL): Promise<string> {
  const [{ parseHtml }, { findArticle }, { toMarkdown }] = await Promise.all([
    import("./dom.ts"),
    import("./article.ts"),
    import("./markdown.ts"),
  ]);
  const document = parseHtml(html);
  for (const link of document.querySelectorAll("a[href]")) {
    const href = link.getAttribute("href") ?? "";
    if (URL.canParse(href, url.href)) link.setAttribute("href", new URL(href, url).href);
  }
  const article = findArticle(document);
  return toMarkdown(article === undefined ? document.body : parseHtml(article).body);
}
