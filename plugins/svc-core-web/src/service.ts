import type { SearchService } from "../../../src/plugins/api.ts";
import { untrusted } from "./clean.ts";
import type { Web } from "./download.ts";
import { search } from "./search.ts";
import { listed } from "./web_search.ts";

/** The service `search` (specification 4.9). */
export function searchService(web: Web): SearchService {
  return {
    search: (query, num, context) => search(query, num, context, web),
    display: (query, results) =>
      results.length === 0 ? `Nothing found for "${query}".` : listed(results, 1),
    context: (query, results) =>
      results.length === 0
        ? ""
        : `The web was searched for ${JSON.stringify(query)} beforehand. ${
          untrusted("what was found", listed(results, 1))
        }\nUse what helps, name the addresses you rely on, and read a page before you trust an excerpt of it.`,
  };
}
