import type {
  SearchContext,
  SearchResult,
  SearchService,
  ToolDefinition,
} from "../../../src/plugins/api.ts";
import type { Document, Web } from "./download.ts";
import { type Aid, brave, duckduckgo, type SearchEngine, searxng } from "./search_engines.ts";
import { clean, cleanLine, untrusted, WebError } from "./text.ts";

/** The tool web_search (specification 4.8). */
export function webSearch(web: Web, findings: Findings): ToolDefinition {
  return {
    name: "web_search",
    description: "Search the web: numbered results with title, address and excerpt, for web_fetch.",
    permission: "web",
    parameters: {
      type: "object",
      properties: {
        query: { type: "string" },
        num: { type: "integer", description: "Results, at most 20." },
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
function listed(results: SearchResult[], first: number): string {
  return results.map(({ title, url, snippet }, n) =>
    [`[${first + n}] ${title}`, url, snippet].filter(Boolean).join("\n    ")
  ).join("\n");
}

const NOTHING = "(no results)";

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

const ENGINES: Record<string, SearchEngine> = { brave, duckduckgo, searxng };
const MOST_RESULTS = 20;
const LONGEST_QUERY = 400;
/** Bytes of an answer, about ten times what engines send; parsing more JSON would block the process. */
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
  const [{ parseTarget }, { download }] = await Promise.all([
    import("./address.ts"),
    import("./download.ts"),
  ]);
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
    // The configured address may be private; the addresses that it redirects to may not.
    allow_private: [...config.get("web.allow_private"), own(base)],
    timeout: config.get("web.timeout"),
    max_bytes: Math.min(config.get("web.max_bytes"), LARGEST_ANSWER),
    signal,
  }, network);
  if (document.cut) throw new WebError(`the answer of ${engine.title} is larger than 1 MiB`);
  return await understood(engine, document, { count, threads, signal });
}

/** The display name of an engine. */
function engineTitle(name: string): string {
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

/** Addresses that are kept for one session; older numbers are forgotten. */
const PER_SESSION = 500;
const SESSIONS = 200;

/** The search results of each session, by the number that the model was shown. */
export class Findings {
  readonly #sessions = new Map<string, { first: number; addresses: string[] }>();

  /** Adds results and returns the number of the first one. */
  add(session: string, addresses: string[]): number {
    const found = this.#sessions.get(session) ?? { first: 1, addresses: [] };
    this.#sessions.delete(session); // makes it the newest entry
    this.#sessions.set(session, found);
    for (const oldest of this.#sessions.keys()) {
      if (this.#sessions.size <= SESSIONS) break;
      this.#sessions.delete(oldest);
    }
    const number = found.first + found.addresses.length;
    found.addresses.push(...addresses);
    const surplus = Math.max(0, found.addresses.length - PER_SESSION);
    found.addresses.splice(0, surplus);
    found.first += surplus;
    return number;
  }

  /** The address of a result number: `3`, `#3` or `[3]`. Undefined for any other text. */
  address(session: string, id: string): string | undefined {
    const number = /^\[?#?(\d{1,9})\]?$/.exec(id)?.[1];
    const found = this.#sessions.get(session);
    if (number === undefined || found === undefined) return undefined;
    return found.addresses[Number(number) - found.first];
  }
}
