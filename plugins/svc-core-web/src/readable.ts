import { parseApart, THREADS, type Threads } from "./page_thread.ts";
import { decodeEntities, plainText } from "./plain_text.ts";
import { type Simplified, simplify } from "./simplify.ts";

/** A page as a reader wants it. */
export interface Page {
  title: string;
  /** Markdown, or text without any markup where the page is too large or too odd to be parsed. */
  text: string;
}

/** What is smaller in both is parsed sooner than a thread starts, or not much later. */
const LARGE = { characters: 200_000, tags: 3000 };

/**
 * The readable part of an HTML page: the article that Readability finds, else the whole body. A page that
 * would take long is not parsed; what is parsed has been measured before, and a large page does not
 * hold up this thread, as far as others are to be had.
 *
 * @param url where the page is, for its links.
 * @throws WebError when a large page takes too long, and what the signal was aborted with.
 */
export async function readable(
  page: string,
  url: URL,
  signal: AbortSignal,
  threads: Threads = THREADS,
): Promise<Page> {
  const simple = simplify(page);
  const title = decodeEntities(simple.title.slice(0, 1000));
  const text = isBearable(simple) ? await parse(simple, url.href, signal, threads) : undefined;
  return { title, text: text ?? plainText(simple.html) };
}

/** Parsers go over a page in time that grows with its size times its depth. */
export function isBearable(page: Simplified): boolean {
  const { html, tags, depth, attributes, allAttributes } = page;
  return html.length <= 1_500_000 && tags <= 24_000 && depth <= 150 && attributes <= 100 &&
    allAttributes <= 30_000 && html.length * depth <= 20_000_000;
}

/** Markdown; undefined for a page that a parser does not bear, which has text all the same. */
async function parse(
  { html, tags }: Simplified,
  url: string,
  signal: AbortSignal,
  threads: Threads,
): Promise<string | undefined> {
  if (html.length >= LARGE.characters || tags >= LARGE.tags) {
    const outcome = await parseApart({ html, url }, signal, threads);
    if (outcome === "failed") return undefined;
    if (outcome !== "no thread") return outcome.text;
  }
  const { parsePage } = await import("./parse_page.ts");
  try {
    return parsePage(html, url);
  } catch {
    return undefined;
  }
}
