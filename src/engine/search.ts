import { errorMessage } from "../platform/error.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import type {
  ConfigView,
  Provider,
  SearchContext,
  SearchService,
  ToolDefinition,
} from "../plugins/api.ts";

/** What a search before a turn works with. */
interface SearchScope {
  config: ConfigView;
  provider: Provider;
  /** The service that is registered, if any is. */
  search: SearchService | undefined;
  /** Why the policy refuses a tool of the category `web`; empty when it may run unasked. */
  refusal: (probe: ToolDefinition, query: string) => string;
  key: SearchContext["key"];
  signal: AbortSignal;
}

/** Characters of a prompt that are taken for a query. */
const LONGEST_QUERY = 400;

/**
 * Search-then-answer (`web_search`): what the search service finds for a prompt, as the text of a `system`
 * part (specification 2.2, 4.9). Empty when there are no results. A search that fails does not fail the turn:
 * `tell` gets the reason.
 */
export async function searchFirst(
  prompt: string,
  scope: SearchScope,
  tell: (message: string) => void,
): Promise<string> {
  const { config, provider, search, signal, key } = scope;
  if (search === undefined) {
    tell(
      "Search-then-answer (setting web_search) is unavailable: no plugin offers a search service.",
    );
    return "";
  }
  const plain = oneLine(prompt).replace(/\s+/g, " ").trim().slice(0, LONGEST_QUERY).toWellFormed();
  const refusal = scope.refusal(PROBE, plain);
  if (refusal !== "") {
    tell(`Search-then-answer (setting web_search) is unavailable: ${refusal}.`);
    return "";
  }
  try {
    const query = config.get("query_refine")
      ? await refineQuery(plain, { provider, signal })
      : plain;
    const results = await search.search(query, config.get("search_results"), {
      config,
      signal,
      key,
    });
    return results.length === 0 ? "" : search.context(query, results);
  } catch (error) {
    signal.throwIfAborted();
    tell(`The web could not be searched, and the turn goes on without it: ${errorMessage(error)}`);
    return "";
  }
}

/** Represents the search to the policy: a denial of the tool `web_search` denies the search too. */
const PROBE: ToolDefinition = {
  name: "web_search",
  description: "",
  permission: "web",
  parameters: { type: "object", properties: {} },
  handler: () => "",
};

const LONGEST_REFINED_QUERY = 200;

/**
 * A query as the model rewrites it for a search engine (`query_refine`). The query is unchanged when the model
 * cannot be asked or does not answer with one.
 */
export async function refineQuery(
  query: string,
  { provider, signal }: { provider: Provider; signal: AbortSignal },
): Promise<string> {
  const content =
    "Write the query that finds on the web what the following text is after: a few words, on " +
    `one line, and nothing else.\n\n${query}`;
  try {
    const options = { signal, purpose: "search" };
    const answer = await provider.chat_nonstreaming([{ role: "user", content }], options);
    const line = stripControl(answer).trim().split("\n")[0]!.replace(/^["'`]+|["'`]+$/g, "").trim();
    return line === "" || line.length > LONGEST_REFINED_QUERY ? query : line;
  } catch {
    return query;
  }
}
