import { type Clock, NO_REASON } from "../platform/clock.ts";
import { BackendError, harmless, networkFailure, type Peer } from "./failure.ts";

/** One request to a backend. */
export interface HttpRequest {
  method: "GET" | "POST";
  headers: Record<string, string>;
  body?: string | Blob;
  signal?: AbortSignal;
  /** Milliseconds without a byte after which the request fails; 0: no limit. */
  idle_ms: number;
  /** Milliseconds without content after which the answer fails, whatever else arrives; 0: no limit. */
  content_ms?: number;
  clock: Clock;
  peer: Peer;
}

/** An answer with a streamed body. The caller must call `close` in every case. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  /** The next bytes of the body, valid until the next read; undefined at the end. */
  read(): Promise<Uint8Array | undefined>;
  /** Tells that what was read is content, which restarts the time of `content_ms`. */
  noteContent(): void;
  /** Sets the idle limit of later reads, in milliseconds. They need not bring content. */
  setIdleLimit(idle_ms: number): void;
  /** Closes the connection unless the body was read to its end. */
  close(): void;
}

/**
 * Sends a request and follows redirects: at most five, with method and body kept, credentials
 * dropped where the origin changes, never from https to http.
 *
 * @throws BackendError when no answer arrives; the signal's reason when it aborts.
 */
export async function sendRequest(request: HttpRequest): Promise<HttpAnswer> {
  let { peer: { url }, headers } = request;
  for (let redirects = 0;; redirects++) {
    const answer = await exchange(request, url, headers);
    const location = answer.headers.get("location");
    if (!REDIRECTS.has(answer.status) || location === null) return answer;
    answer.close();
    const next = redirectTarget(location, url, request.peer);
    if (redirects === MAX_REDIRECTS) {
      throw new BackendError(
        answer.status,
        `${request.peer.name} redirects more than ${MAX_REDIRECTS} times.`,
        "",
        { kind: "permanent" },
      );
    }
    if (next.origin !== new URL(url).origin) headers = anonymous(headers);
    url = next.href;
  }
}

/** Whether the status is 2xx. */
export function isOk({ status }: HttpAnswer): boolean {
  return status >= 200 && status < 300;
}

/** The text of a body; reading stops after `limit` bytes. */
export async function readText(answer: HttpAnswer, limit: number): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  while (size < limit) {
    const bytes = await answer.read();
    if (bytes === undefined) break;
    size += bytes.length;
    text += decoder.decode(bytes, { stream: true });
  }
  return text + decoder.decode();
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);
const MAX_REDIRECTS = 5;

async function exchange(
  request: HttpRequest,
  url: string,
  headers: HttpRequest["headers"],
): Promise<HttpAnswer> {
  const { signal, clock, peer } = request;
  signal?.throwIfAborted();
  const connection = new AbortController();
  let cancelBody = () => {};
  // Deno 2.9.6 can lose an abort between two chunks of a body: the pending read never settles and the
  // connection stays open. So the abort rejects the pending read itself and cancels the body.
  let giveUp = (_reason: unknown) => {};
  const abort = (reason: unknown) => {
    connection.abort(reason);
    giveUp(reason);
    cancelBody();
  };
  const cancel = () => abort(signal?.reason);
  signal?.addEventListener("abort", cancel, { once: true });
  let { idle_ms, content_ms = 0 } = request;
  let content_at = clock.now();
  let stalled = "";
  /** When the pending wait fails, for want of content or of any byte, and when that is checked next. */
  let [due, for_content, check_at] = [Infinity, false, Infinity];
  const over = new AbortController();

  /** One timer serves all waits until a shorter limit is set: when it ends, it waits for what is left. */
  const check = async (at: number): Promise<void> => {
    check_at = at;
    await clock.sleep(Math.max(at - clock.now(), 1), over.signal);
    if (check_at !== at) return; // another one ended earlier
    check_at = Infinity;
    if (due > clock.now()) return due < Infinity ? check(due) : undefined;
    stalled = for_content
      ? `kept the connection open, but sent no content for ${content_ms / 1000} seconds`
      : `sent nothing for ${idle_ms / 1000} seconds`;
    abort(NO_REASON);
  };

  /** Waits for the network, up to the time limits. Network errors become a `BackendError`. */
  const network = async <T>(work: Promise<T>): Promise<T> => {
    const now = clock.now();
    const idle_due = idle_ms > 0 ? now + idle_ms : Infinity;
    const content_due = content_ms > 0 ? content_at + content_ms : Infinity;
    for_content = content_due < idle_due;
    due = Math.max(Math.min(idle_due, content_due), now + 1);
    if (due < check_at) check(due).catch(() => {});
    try {
      return await new Promise<T>((resolve, reject) => {
        giveUp = reject;
        work.then(resolve, reject);
        if (connection.signal.aborted) reject(connection.signal.reason);
      });
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (stalled === "") throw networkFailure(error, peer);
      throw new BackendError(0, `${peer.name} ${stalled}.`, "", { kind: "stalled" });
    } finally {
      due = Infinity;
    }
  };
  const end = () => {
    signal?.removeEventListener("abort", cancel);
    over.abort(NO_REASON);
  };

  let response: Response;
  try {
    response = await network(fetch(url, {
      method: request.method,
      headers,
      body: request.body,
      redirect: "manual",
      signal: connection.signal,
    }));
  } catch (error) {
    end();
    assertSendable(headers, peer);
    throw error;
  }
  // One buffer for all reads: Deno's default reader allocates 64 KB for each chunk.
  const reader = response.body?.getReader({ mode: "byob" });
  cancelBody = () => void reader?.cancel().catch(() => {}); // one that has failed is closed already
  let buffer = new Uint8Array(READ_BYTES);
  let open = reader !== undefined;
  let since_yield = 0;
  return {
    status: response.status,
    headers: response.headers,
    async read() {
      if (!open) return undefined;
      const { value, done } = await network(reader!.read(buffer));
      if (done) {
        open = false;
        return undefined;
      }
      buffer = new Uint8Array(value.buffer);
      since_yield += value.length;
      if (since_yield >= YIELD_BYTES) {
        // Reads of buffered data do not yield to the event loop; other tasks would have to wait.
        await new Promise((resume) => setImmediate(resume));
        since_yield = 0;
      }
      return value;
    },
    noteContent() {
      content_at = clock.now();
    },
    setIdleLimit(ms) {
      idle_ms = ms;
      content_ms = 0;
    },
    close() {
      end();
      if (open) abort(NO_REASON);
      open = false;
    },
  };
}

const READ_BYTES = 16 * 1024;
/** Bytes after which a read yields to the event loop. */
const YIELD_BYTES = 64 * 1024;

function redirectTarget(location: string, from: string, peer: Peer): URL {
  const say = (what: string) =>
    new BackendError(0, `${peer.name} redirects ${what}.`, "", { kind: "permanent" });
  if (!URL.canParse(location, from)) throw say("to something that is no address");
  const target = new URL(location, from);
  if (target.protocol === "http:" && from.startsWith("https:")) {
    throw say(`from https to http (${harmless(target.host, "")}), which is not followed`);
  }
  if (!/^https?:$/.test(target.protocol)) {
    throw say(`to ${harmless(target.protocol, "")}, which is not followed`);
  }
  return target;
}

/** Headers without credentials. Vendors use many names for these, so only known headers are kept. */
function anonymous(headers: HttpRequest["headers"]): HttpRequest["headers"] {
  const kept = Object.entries(headers).filter(([name]) => SAFE_HEADERS.has(name.toLowerCase()));
  return Object.fromEntries(kept);
}

const SAFE_HEADERS = new Set(["accept", "content-type", "user-agent"]);

/** Throws for a key that no header can carry. The message of `fetch` repeats the value, which may be the key. */
function assertSendable(headers: HttpRequest["headers"], peer: Peer): void {
  try {
    new Headers(headers);
  } catch {
    throw new BackendError(
      0,
      `The key stored for ${peer.name} holds characters that cannot be sent.`,
      `Store it again with \`svc connect ${peer.connect}\`.`,
      { kind: "permanent" },
    );
  }
}
