import type { SearchResult } from "../../../src/plugins/api.ts";
import type { Document } from "./download.ts";
import type { PageThreads } from "./page_threads.ts";
import { decodeEntities, WebError } from "./text.ts";

/** Builds the request to a search engine and reads its answer. */
export interface SearchEngine {
  /** Display name. */
  title: string;
  /** Default address when `web.search_url` is not set; may be empty. */
  url: string;
  /** The request for a query. */
  request(base: URL, query: string, num: number): { url: URL; accept: string };
  /** The header of the key, for an engine that requires one. */
  key?: string;
  /** The results, unsanitised; throws when the answer cannot be read. */
  read(document: Document, aid: Aid): Iterable<SearchResult> | Promise<Iterable<SearchResult>>;
}

/** What an engine needs to read its answer. */
export interface Aid {
  threads: PageThreads;
  signal: AbortSignal;
}

/** The Brave Search API. Its key is stored like a provider's, and sent to the address it was stored for. */
export const brave: SearchEngine = {
  title: "Brave Search",
  url: "https://api.search.brave.com/res/v1/web/search",
  key: "x-subscription-token",
  request(base, query, num) {
    const url = new URL(base);
    url.searchParams.set("q", query);
    url.searchParams.set("count", String(num));
    return { url, accept: "application/json" };
  },
  read({ text }) {
    const results = JSON.parse(text).web?.results ?? [];
    // deno-lint-ignore no-explicit-any
    return results.map(({ title, url, description }: any) => ({
      title: unmarked(title),
      url,
      snippet: unmarked(description),
    }));
  },
};

/** Matches are marked with `<strong>`. */
function unmarked(text: unknown): string {
  return decodeEntities(String(text ?? "").replace(/<[^<>]{0,100}>/g, ""));
}

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

/** An instance of SearXNG, which must have its format `json` enabled. */
export const searxng: SearchEngine = {
  title: "SearXNG",
  url: "",
  request(base, query) {
    const url = new URL(`${base.href.replace(/\/?(search\/?)?([?#].*)?$/, "")}/search`);
    url.searchParams.set("q", query);
    url.searchParams.set("format", "json");
    return { url, accept: "application/json" };
  },
  read({ text }) {
    let answer: { results?: unknown };
    try {
      answer = JSON.parse(text);
    } catch {
      throw new WebError(
        "SearXNG does not answer with JSON; enable the format json in its settings",
      );
    }
    if (!Array.isArray(answer?.results)) throw new WebError("SearXNG answers without results");
    return answer.results.map(({ title, url, content }) => ({ title, url, snippet: content }));
  },
};
