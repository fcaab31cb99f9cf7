import { findArticle } from "./article.ts";
import { parseHtml } from "./dom.ts";
import { toMarkdown } from "./markdown.ts";
import { tame } from "./tame.ts";

/** What a page says, as Markdown: its article, else all of it. The page has been measured before. */
export function parsePage(html: string, url: string): string {
  const document = parseHtml(html);
  tame(document.body);
  for (const link of document.querySelectorAll("a[href]")) {
    const href = link.getAttribute("href") ?? "";
    if (URL.canParse(href, url)) link.setAttribute("href", new URL(href, url).href);
  }
  const article = findArticle(document);
  return toMarkdown(article === undefined ? document.body : parseHtml(article).body);
}
