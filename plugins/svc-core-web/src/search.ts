import type { SearchContext, SearchResult } from "../../../src/plugins/api.ts";
import { cleanLine } from "./clean.ts";
import { type Document, download, type Web } from "./download.ts";
import { brave } from "./engines/brave.ts";
import { duckduckgo } from "./engines/duckduckgo.ts";
import type { Aid, SearchEngine } from "./engines/engine.ts";
import { searxng } from "./engines/searxng.ts";
import { parseTarget } from "./target.ts";
import { WebError } from "./web_error.ts";

const ENGINES: Record<string, SearchEngine> = { brave, duckduckgo, searxng };
const MOST_RESULTS = 20;
const LONGEST_QUERY = 400;
/** Bytes of an answer, some ten times what engines send; parsing more JSON would hold up everybody else. */
const LARGEST_ANSWER = 1024 * 1024;

/**
 * Asks the configured search engine (`web.search_engine`, `web.search_url`).
 *
 * @throws WebError when it cannot be asked or does not answer.
 */
export async function search(
  query: string,
  num: number | undefined,
  { config, signal, key }: SearchContext,
  { network, threads }: Web,
): Promise<SearchResult[]> {
  const asked = cleanLine(query, LONGEST_QUERY).replace(/…$/, "");
  if (asked === "") throw new WebError("the query is empty");
  const name: string = config.get("web.search_engine");
  const engine = ENGINES[name]!;
  const address: string = config.get("web.search_url") || engine.url;
  if (address === "") {
    throw new WebError(
      `${engine.title} has no address of its own; set web.search_url to that of your instance`,
    );
  }
  const base = parseTarget(address);
  const count = Math.max(1, Math.min(MOST_RESULTS, num || config.get("search_results") || 5));
  const secret = engine.key === undefined ? "" : key(name, base.origin);
  if (engine.key !== undefined && secret === "") {
    throw new WebError(
      `${engine.title} wants a key, and none is stored for ${base.origin}; store one with ` +
        `svc connect --key-only ${base.origin} ${name}`,
    );
  }
  const { url, accept } = engine.request(base, asked, count);
  const document = await download({
    url: url.href,
    accept,
    headers: engine.key === undefined ? {} : { [engine.key]: secret },
    // Whoever configured the address wants it reached, wherever it is; what it redirects to is another matter.
    allow_private: [...config.get("web.allow_private"), own(base)],
    timeout: config.get("web.timeout"),
    max_bytes: Math.min(config.get("web.max_bytes"), LARGEST_ANSWER),
    signal,
  }, network);
  if (document.cut) throw new WebError(`the answer of ${engine.title} is larger than 1 MiB`);
  return await understood(engine, document, { count, threads, signal });
}

/** How the engine is named to people. */
export function engineTitle(name: string): string {
  return ENGINES[name]?.title ?? name;
}

async function understood(
  engine: SearchEngine,
  document: Document,
  { count, ...aid }: Aid & { count: number },
): Promise<SearchResult[]> {
  try {
    const found: SearchResult[] = [];
    for (const each of await engine.read(document, aid)) {
      const result = tidy(each);
      if (/^https?:/.test(result.url)) found.push(result);
      if (found.length === count) break;
    }
    return found;
  } catch (error) {
    aid.signal.throwIfAborted();
    if (error instanceof WebError) throw error;
    throw new WebError(`the answer of ${engine.title} is not understood`);
  }
}

function own({ protocol, hostname, port }: URL): string {
  return `${hostname.replace(/\.$/, "")}:${port || (protocol === "https:" ? "443" : "80")}`;
}

function tidy({ title, url, snippet }: SearchResult): SearchResult {
  const address = String(url).trim();
  const href = address.length < 2000 && URL.canParse(address) ? new URL(address).href : "";
  return {
    title: cleanLine(String(title ?? ""), 200) || href,
    url: href,
    snippet: cleanLine(String(snippet ?? ""), 500),
  };
}
