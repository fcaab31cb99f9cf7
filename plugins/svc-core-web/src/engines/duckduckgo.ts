import type { SearchEngine } from "./engine.ts";

/** DuckDuckGo's page for browsers without scripts; it needs no key and answers a few searches a minute. */
export const duckduckgo: SearchEngine = {
  title: "DuckDuckGo",
  url: "https://html.duckduckgo.com/html/",
  request(base, query) {
    const url = new URL(base);
    url.searchParams.set("q", query);
    return { url, accept: "text/html" };
  },
  read: ({ text, url }, { threads, signal }) => threads.parse("duckduckgo", text, url, signal),
};
