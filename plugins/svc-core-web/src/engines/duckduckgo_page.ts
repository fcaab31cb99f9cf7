import type { SearchResult } from "../../../../src/plugins/api.ts";
import { parseHtml } from "../dom.ts";
import { isBearable } from "../readable.ts";
import { simplify } from "../simplify.ts";
import { WebError } from "../web_error.ts";

/** More than a page of DuckDuckGo's ever holds. */
const MOST_LINKS = 100;

/** The results on a page of DuckDuckGo's; takes its time, and belongs into a thread (`page_thread.ts`). */
export function readResults(html: string, url: string): SearchResult[] {
  const page = simplify(html);
  if (!isBearable(page)) throw new WebError("the answer of DuckDuckGo is too large");
  const document = parseHtml(page.html);
  const links = [...document.querySelectorAll("a.result__a")].slice(0, MOST_LINKS);
  if (links.length === 0 && document.querySelector(".no-results") === null) {
    throw new WebError("DuckDuckGo answers without results; it may want to see a person");
  }
  return links.map((link) => ({
    title: link.textContent ?? "",
    url: target(link.getAttribute("href") ?? "", url),
    snippet: link.closest(".result")?.querySelector(".result__snippet")?.textContent ?? "",
  }));
}

/** Links lead over a page that counts them. Advertisements lead elsewhere, and are left out. */
function target(href: string, base: string): string {
  if (!URL.canParse(href, base)) return "";
  const url = new URL(href, base);
  if (url.pathname === "/y.js") return "";
  return url.searchParams.get("uddg") ?? url.href;
}
