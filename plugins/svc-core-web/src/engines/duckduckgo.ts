import type { SearchEngine } from "../search.ts";
import { isBearable } from "../readable.ts";
import { simplify } from "../simplify.ts";
import { WebError } from "../web_error.ts";

/** DuckDuckGo's page for browsers without scripts; it needs no key and answers a few searches a minute. */
export const duckduckgo: SearchEngine = {
  title: "DuckDuckGo",
  url: "https://html.duckduckgo.com/html/",
  request(base, query) {
    const url = new URL(base);
    url.searchParams.set("q", query);
    return { url, accept: "text/html" };
  },
  async read({ text, url }) {
    const page = simplify(text);
    if (!isBearable(page)) throw new WebError("the answer of DuckDuckGo is too large");
    const { parseHtml } = await import("../dom.ts");
    const document = parseHtml(page.html);
    const links = [...document.querySelectorAll("a.result__a")];
    if (links.length === 0 && document.querySelector(".no-results") === null) {
      throw new WebError("DuckDuckGo answers without results; it may want to see a person");
    }
    return links.map((link) => ({
      title: link.textContent ?? "",
      url: target(link.getAttribute("href") ?? "", url),
      snippet: link.closest(".result")?.querySelector(".result__snippet")?.textContent ?? "",
    }));
  },
};

/** Links lead over a page that counts them. Advertisements lead elsewhere, and are left out. */
function target(href: string, base: URL): string {
  if (!URL.canParse(href, base.href)) return "";
  const url = new URL(href, base);
  if (url.pathname === "/y.js") return "";
  return url.searchParams.get("uddg") ?? url.href;
}
