import type { SearchResult } from "../../../../src/plugins/api.ts";
import type { Document } from "../download.ts";
import type { PageThreads } from "../page_thread.ts";

/** How one search engine is asked, and how its answer is read. */
export interface SearchEngine {
  /** As it is named to people. */
  title: string;
  /** Where it is when no `web.search_url` is set; empty: nowhere. */
  url: string;
  /** The request for a query. */
  request(base: URL, query: string, num: number): { url: URL; accept: string };
  /** The header that carries a key, for an engine that wants one. */
  key?: string;
  /** What was found, as it was written; throws when the answer is not understood. */
  read(document: Document, aid: Aid): Iterable<SearchResult> | Promise<Iterable<SearchResult>>;
}

/** What an engine may use to read its answer. */
export interface Aid {
  threads: PageThreads;
  signal: AbortSignal;
}
