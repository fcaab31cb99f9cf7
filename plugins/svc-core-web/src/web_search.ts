import type { SearchResult, ToolDefinition } from "../../../src/plugins/api.ts";
import { clean, cleanLine, untrusted } from "./clean.ts";
import type { Web } from "./download.ts";
import type { Findings } from "./findings.ts";
import { engineTitle, search } from "./search.ts";
import { WebError } from "./web_error.ts";

/** The tool web_search (specification 4.8). */
export function webSearch(web: Web, findings: Findings): ToolDefinition {
  return {
    name: "web_search",
    description:
      "Searches the web and returns numbered results with title, address and an excerpt. web_fetch " +
      "reads one by its number or address.",
    permission: "web",
    parameters: {
      type: "object",
      properties: {
        query: { type: "string", description: "What to search for, in a few words." },
        num: { type: "integer", description: "How many results, 20 at most." },
      },
      required: ["query"],
    },
    aliases: ["search"],
    refine: "query",
    status: ({ query }) => `Searching for ${cleanLine(String(query), 200)}`,
    async handler({ query, num }, context) {
      try {
        const results = await search(String(query), num, context, web);
        const engine = engineTitle(context.config.get("web.search_engine"));
        if (results.length === 0) return NOTHING;
        const first = findings.add(context.session, results.map(({ url }) => url));
        return untrusted(`what ${engine} found`, listed(results, first));
      } catch (error) {
        if (error instanceof WebError) return `Error: web_search: ${clean(error.message)}.`;
        throw error;
      }
    },
    note: (result) => result === NOTHING ? "no results" : "",
  };
}

/** Results as numbered entries. */
export function listed(results: SearchResult[], first: number): string {
  return results.map(({ title, url, snippet }, n) =>
    [`[${first + n}] ${title}`, url, snippet].filter(Boolean).join("\n    ")
  ).join("\n");
}

const NOTHING = "(no results)";
