import type { ClientRequest, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { hostname, type Target } from "./address.ts";
import { WebError } from "./text.ts";

export interface Answer {
  status: number;
  headers: IncomingHttpHeaders;
  /** The body of a success, without its transfer coding; empty for any other status. */
  body: Uint8Array<ArrayBuffer>;
  /** Whether the body was longer than the limit. */
  cut: boolean;
}

interface GetOptions {
  headers: Record<string, string>;
  /** Bytes of the body that are read at most. */
  max_bytes: number;
  signal: AbortSignal;
  /** Authorities to trust instead of the default ones. */
  caCerts?: string[];
}

/** Bytes up to the end of the head, interim answers included. */
const MAX_HEAD = 64 * 1024;

/**
 * Sends one GET over a connection of its own. It connects to the addresses of the target only: the name
 * is not resolved again. The certificate and the `Host` header are those of the URL.
 *
 * @throws WebError when there is no valid answer; the signal's reason when it aborts.
 */
export async function get(target: Target, options: GetOptions): Promise<Answer> {
  const { max_bytes, signal } = options;
  const request = await open(target, options);
  const abort = () => request.destroy();
  signal.addEventListener("abort", abort, { once: true });
  let connected = false;
  try {
    signal.throwIfAborted();
    const response = await readHead(request, () => connected = true);
    const { statusCode: status = 0, headers } = response;
    const body = new Bytes();
    let cut = false;
    let pieces = 0;
    if (status >= 200 && status <= 299) {
      for await (const piece of response as AsyncIterable<Uint8Array>) {
        cut = piece.length > max_bytes - body.size;
        body.add(piece.subarray(0, max_bytes - body.size));
        if (cut) break;
        if (++pieces % 500 === 0) await pause();
      }
    }
    return { status, headers, body: body.all(), cut };
  } catch (error) {
    signal.throwIfAborted();
    throw error instanceof WebError ? error : new WebError(explain(error, target.url, connected));
  } finally {
    signal.removeEventListener("abort", abort);
    request.destroy();
  }
}

async function open({ url, addresses }: Target, options: GetOptions): Promise<ClientRequest> {
  const { request } = url.protocol === "https:"
    ? await import("node:https")
    : await import("node:http");
  const found = addresses.map((address) => ({ address, family: address.includes(":") ? 6 : 4 }));
  return request({
    host: hostname(url),
    port: url.port || undefined,
    path: url.pathname + url.search,
    headers: { host: url.host, ...options.headers },
    agent: false,
    // Asked for all addresses; they are tried in turn.
    lookup: (_name, _options, callback) => callback(null, found),
    maxHeaderSize: MAX_HEAD,
    // "" means the default certificates. With undefined, Deno asks for a permission when the variable
    // NODE_EXTRA_CA_CERTS is set.
    ca: options.caCerts ?? "",
  });
}

/** Sends the request and waits for the head of the answer. */
function readHead(request: ClientRequest, onConnect: () => void): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  let response: IncomingMessage | undefined;
  let size = 0;
  request.on("socket", (socket) => {
    socket.on("connect", onConnect);
    // `maxHeaderSize` bounds a single header only.
    socket.on("data", (bytes) => {
      size += bytes.length;
      if (response === undefined && size > MAX_HEAD) request.destroy(new WebError(LONG_HEAD));
    });
  });
  request.on("response", (message) => resolve(response = message));
  request.on("error", (error) => response === undefined ? reject(error) : response.destroy(error));
  request.end();
  return promise;
}

const LONG_HEAD = "the head of the answer is too long";

function explain(error: unknown, { host }: URL, connected: boolean): string {
  const { code = "", message } = error as Error & { code?: string };
  if (code === "HPE_HEADER_OVERFLOW") return LONG_HEAD;
  if (code.startsWith("HPE_")) return "the answer is no HTTP";
  if (code === "ECONNRESET" && connected) return "the answer was cut off";
  const reason = message.replace(/\s+/g, " ").slice(0, 200);
  return `${host} cannot be ${connected ? "read" : "reached"}: ${reason || code}`;
}

/** Collects pieces of bytes in one growing buffer, so that many small pieces stay cheap. */
export class Bytes {
  #all = new Uint8Array(64 * 1024);
  size = 0;

  add(piece: Uint8Array): void {
    if (this.size + piece.length > this.#all.length) {
      const larger = new Uint8Array(Math.max(this.#all.length * 2, this.size + piece.length));
      larger.set(this.#all.subarray(0, this.size));
      this.#all = larger;
    }
    this.#all.set(piece, this.size);
    this.size += piece.length;
  }

  /** The bytes so far. */
  all(): Uint8Array<ArrayBuffer> {
    return this.#all.subarray(0, this.size);
  }
}

/** Gives the event loop a turn during long synchronous work. */
export function pause(): Promise<void> {
  return new Promise((resolve) => void setTimeout(resolve, 0));
}
