import { decodeEntities } from "../plain_text.ts";
import type { SearchEngine } from "./engine.ts";

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
