import type { Provider, Usage } from "../plugins/api.ts";
import { stripControl } from "../platform/terminal.ts";

const LONGEST_QUERY = 200;

/**
 * A query as the model would put it to a search engine (`query_refine`). The query as it is when the model
 * cannot be asked or does not answer with one: a better query is never worth failing a turn.
 */
export async function refineQuery(
  query: string,
  { provider, signal, spend }: {
    provider: Provider;
    signal: AbortSignal;
    spend?: (usage: Usage) => void;
  },
): Promise<string> {
  const content =
    "Write the query that finds on the web what the following text is after: a few words, on " +
    `one line, and nothing else.\n\n${query}`;
  try {
    const answer = await provider.chat_nonstreaming([{ role: "user", content }], { signal, spend });
    const line = stripControl(answer).trim().split("\n")[0]!.replace(/^["'`]+|["'`]+$/g, "").trim();
    return line === "" || line.length > LONGEST_QUERY ? query : line;
  } catch {
    return query;
  }
}
