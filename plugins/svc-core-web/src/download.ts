import { locate, parseTarget, type Resolve } from "./address.ts";
import { type Answer, Bytes, get, pause } from "./http.ts";
import type { PageThreads } from "./page_threads.ts";
import { WebError } from "./text.ts";

/** The network of the plugin; tests pass their own. */
export interface Network {
  resolve: Resolve;
  /** Authorities to trust instead of the default ones. */
  caCerts?: string[];
}

/** The dependencies of the tools and the service. */
export interface Web {
  network: Network;
  threads: PageThreads;
}

interface DownloadRequest {
  url: string;
  accept: string;
  /** Sent to the origin of `url` only. */
  headers?: Record<string, string>;
  /** Hosts that may have private addresses. */
  allow_private: string[];
  /** Seconds for the whole download, redirects included. */
  timeout: number;
  max_bytes: number;
  signal: AbortSignal;
}

/** A text from the web. */
export interface Document {
  /** Its address after all redirects. */
  url: URL;
  /** The media type without parameters, in lower case; empty when there is none. */
  type: string;
  text: string;
  /** Whether the text was longer than the limit. */
  cut: boolean;
}

const MAX_REDIRECTS = 5;
/** The longest delay of a timer in milliseconds; a longer one would end at once. */
const MAX_TIMER = 2 ** 31 - 1;
const REDIRECTS = [301, 302, 303, 307, 308];
const AGENT = "Mozilla/5.0 (compatible; svc-core-web/0.1)";

/**
 * Fetches a text. Each address, redirects included, is checked and then connected to as it was checked.
 *
 * @throws WebError when there is no text; the signal's reason when it aborts.
 */
export async function download(request: DownloadRequest, network: Network): Promise<Document> {
  const late = new AbortController();
  const sentence = `it took longer than ${request.timeout} seconds`;
  const limit = Math.min(request.timeout * 1000, MAX_TIMER);
  const timer = setTimeout(() => late.abort(new WebError(sentence)), limit);
  try {
    const signal = AbortSignal.any([request.signal, late.signal]);
    const { url, answer } = await follow({ ...request, signal }, network);
    return await read(url, answer, request.max_bytes);
  } finally {
    clearTimeout(timer);
  }
}

async function follow(
  request: DownloadRequest,
  { resolve, caCerts }: Network,
): Promise<{ url: URL; answer: Answer }> {
  const { signal, allow_private, max_bytes } = request;
  let url = parseTarget(request.url);
  const { origin } = url;
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
    const target = await orAbort(locate(url, allow_private, resolve), signal);
    const headers = {
      "user-agent": AGENT,
      accept: request.accept,
      "accept-encoding": "gzip, deflate",
      "accept-language": "en, *;q=0.5",
      ...(url.origin === origin ? request.headers : {}),
    };
    const answer = await get(target, { headers, max_bytes, signal, caCerts });
    const { location } = answer.headers;
    if (!REDIRECTS.includes(answer.status) || location === undefined) return { url, answer };
    // A header consists of bytes; an address in it that is not ASCII is UTF-8.
    const bytes = Uint8Array.from(location, (character) => character.charCodeAt(0));
    url = parseTarget(new TextDecoder().decode(bytes), url);
  }
  throw new WebError(`the address redirects more than ${MAX_REDIRECTS} times`);
}

async function read(url: URL, answer: Answer, max_bytes: number): Promise<Document> {
  const { status, headers } = answer;
  if (status < 200 || status > 299) throw new WebError(`${url.host} answers with status ${status}`);
  const contentType = headers["content-type"] ?? "";
  const type = contentType.split(";")[0]!.trim().toLowerCase();
  if (!isText(type)) {
    const kind = type === "application/pdf" ? "a PDF" : `of the type ${type.slice(0, 80)}`;
    throw new WebError(`the document is ${kind}, and only texts can be read`);
  }
  const coding = headers["content-encoding"] ?? "";
  const { body, cut } = await unpack(answer.body, coding, { max_bytes, cut: answer.cut });
  const text = await decodeText(body, contentType);
  if (text.slice(0, 4096).includes("\0") || text.startsWith("%PDF-")) {
    throw new WebError("the document is no text, whatever its type says");
  }
  return { url, type, text, cut };
}

function isText(type: string): boolean {
  return type === "" || type.startsWith("text/") ||
    /^application\/(.*\+)?(json|xml|yaml|x-yaml|toml|javascript|x-javascript|ecmascript|x-sh|sql|ndjson|x-ndjson|jsonl|graphql|x-httpd-php)$/
      .test(type);
}

/** Awaits work that cannot be cancelled, until the signal aborts. */
async function orAbort<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Bytes that are unpacked at once: they may expand a thousandfold, and block the process meanwhile. */
const PACKED_PIECE = 4 * 1024;
/** Bytes that are decoded at once. */
const TEXT_PIECE = 512 * 1024;

/**
 * Decodes the content coding of a body, up to a number of bytes: a small body may expand without end.
 *
 * @throws WebError for an unsupported coding or an invalid body.
 */
async function unpack(
  body: Uint8Array<ArrayBuffer>,
  coding: string,
  limits: { max_bytes: number; cut: boolean },
): Promise<{ body: Uint8Array<ArrayBuffer>; cut: boolean }> {
  const name = coding.trim().toLowerCase().replace(/^x-/, "");
  if (name === "" || name === "identity") return { body, cut: limits.cut };
  if (name !== "gzip" && name !== "deflate") {
    throw new WebError(
      `the answer is packed in a way that is not supported (${name.slice(0, 40)})`,
    );
  }
  const all = new Bytes();
  const reader = ReadableStream.from(pieces(body, PACKED_PIECE))
    .pipeThrough(new DecompressionStream(name)).getReader();
  try {
    while (all.size <= limits.max_bytes) {
      const { done, value } = await reader.read();
      if (done) return { body: all.all(), cut: limits.cut };
      all.add(value);
    }
    return { body: all.all().subarray(0, limits.max_bytes), cut: true };
  } catch {
    // A body that was cut off at the limit ends in the middle of its coding.
    if (limits.cut && all.size > 0) return { body: all.all(), cut: true };
    throw new WebError(`the answer says that it is packed with ${name}, and is not`);
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** The text of a body: in the charset of its header, its byte order mark, or its `meta`; else UTF-8. */
async function decodeText(
  body: Uint8Array<ArrayBuffer>,
  contentType: string,
): Promise<string> {
  const beginning = new TextDecoder("latin1").decode(body.subarray(0, 2048));
  const mark = beginning.startsWith("\xfe\xff")
    ? "utf-16be"
    : beginning.startsWith("\xff\xfe")
    ? "utf-16le"
    : "";
  const named = /charset\s*=\s*["']?\s*([\w:.-]{1,40})/i;
  const header = named.exec(contentType)?.[1];
  const meta = /<(?:meta|\?xml)[^>]{0,400}?(?:charset|encoding)\s*=\s*["']?\s*([\w:.-]{1,40})/i
    .exec(beginning)?.[1];
  // A page whose `meta` could be read as ASCII is not in UTF-16, even if it says so.
  const inside = meta !== undefined && !/^utf-?16/i.test(meta) ? meta : undefined;
  const reader = decoder(mark || header || inside || "utf-8");
  const texts: string[] = [];
  for (const piece of pieces(body, TEXT_PIECE)) {
    if (texts.length > 0) await pause();
    texts.push(reader.decode(piece, { stream: true }));
  }
  return texts.join("") + reader.decode();
}

function* pieces(bytes: Uint8Array<ArrayBuffer>, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

function decoder(label: string): TextDecoder {
  try {
    return new TextDecoder(label);
  } catch {
    return new TextDecoder();
  }
}
