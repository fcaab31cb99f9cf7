import { Bytes } from "./bytes.ts";
import { pause } from "./pause.ts";
import type { Target } from "./target.ts";
import { WebError } from "./web_error.ts";

/** One answer: its head, and as much of its body as the limit allows. */
export interface Answer {
  status: number;
  headers: Headers;
  /** As it came over the wire, transfer coding removed. */
  body: Uint8Array<ArrayBuffer>;
  /** The body was longer. */
  cut: boolean;
}

export interface Exchange {
  headers: Record<string, string>;
  /** Bytes of the body that are read at most. */
  max_bytes: number;
  signal: AbortSignal;
  /** Certificates that are trusted beside the usual ones. */
  caCerts?: string[];
}

const MAX_HEAD = 64 * 1024;

/**
 * Sends one GET over a connection of its own to an address of the target, and to no other: `fetch` and
 * `node:http` would resolve the name again, and so reach a place that nobody checked. The certificate and
 * the `Host` are those of the URL.
 *
 * @throws WebError when no answer comes; the signal's reason when it aborts.
 */
export async function get(target: Target, options: Exchange): Promise<Answer> {
  const { url } = target;
  const { signal } = options;
  using connection = await dial(target, signal);
  const stop = () => connection.close();
  signal.addEventListener("abort", stop, { once: true });
  try {
    const stream = url.protocol === "https:"
      ? connection.use(
        await Deno.startTls(connection.raw, {
          hostname: url.hostname.replace(/^\[|\]$|\.$/g, ""),
          caCerts: options.caCerts,
          alpnProtocols: ["http/1.1"],
        }),
      )
      : connection.raw;
    await send(stream, url, options.headers);
    const reader = new Reader(stream);
    let head = await readHead(reader);
    // Interim answers come before the real one.
    for (let n = 0; head.status < 200 && n < 5; n++) head = await readHead(reader);
    return { ...head, ...await readBody(head, reader, options.max_bytes) };
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof WebError) throw error;
    throw new WebError(`${url.host} cannot be read: ${reason(error)}`);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** A connection that is closed once, whatever it has become by then. */
class Connection implements Disposable {
  #open: Deno.Conn;
  #closed = false;

  constructor(readonly raw: Deno.TcpConn) {
    this.#open = raw;
  }

  use<T extends Deno.Conn>(upgraded: T): T {
    this.#open = upgraded;
    return upgraded;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#open.close();
    } catch {
      // the other side was faster
    }
  }

  [Symbol.dispose](): void {
    this.close();
  }
}

async function dial({ url, addresses }: Target, signal: AbortSignal): Promise<Connection> {
  const port = Number(url.port || (url.protocol === "https:" ? 443 : 80));
  let failure: unknown;
  for (const hostname of addresses) {
    signal.throwIfAborted();
    try {
      return new Connection(await abortable(Deno.connect({ hostname, port }), signal));
    } catch (error) {
      signal.throwIfAborted();
      failure = error;
    }
  }
  throw new WebError(`${url.host} cannot be reached: ${reason(failure)}`);
}

/** Connecting cannot be cancelled: a connection that comes too late is closed. */
async function abortable(dialling: Promise<Deno.TcpConn>, signal: AbortSignal) {
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([dialling, aborted.promise]);
  } catch (error) {
    if (signal.aborted) dialling.then((connection) => connection.close(), () => {});
    throw error;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

async function send(stream: Deno.Conn, url: URL, headers: Record<string, string>): Promise<void> {
  const lines = Object.entries({ host: url.host, ...headers, connection: "close" })
    .map(([name, value]) => `${name}: ${value.replace(/[\r\n\0]/g, " ")}\r\n`);
  const head = `GET ${url.pathname}${url.search} HTTP/1.1\r\n${lines.join("")}\r\n`;
  const bytes = new TextEncoder().encode(head);
  for (let sent = 0; sent < bytes.length;) sent += await stream.write(bytes.subarray(sent));
}

async function readHead(reader: Reader): Promise<{ status: number; headers: Headers }> {
  let left = MAX_HEAD;
  const line = async () => {
    const text = await reader.line(left);
    left -= text.length;
    return text;
  };
  const status = /^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(await line())?.[1];
  if (status === undefined) throw new WebError("the answer is no HTTP");
  const headers = new Headers();
  for (let text = await line(); text !== ""; text = await line()) {
    const colon = text.indexOf(":");
    try {
      headers.append(text.slice(0, colon), text.slice(colon + 1).trim());
    } catch {
      throw new WebError("the answer has a header that is none");
    }
  }
  return { status: Number(status), headers };
}

async function readBody(
  { status, headers }: { status: number; headers: Headers },
  reader: Reader,
  limit: number,
): Promise<{ body: Uint8Array<ArrayBuffer>; cut: boolean }> {
  if (status === 204 || status === 304) return { body: new Uint8Array(), cut: false };
  if (/\bchunked\s*$/i.test(headers.get("transfer-encoding") ?? "")) {
    return await readChunks(reader, limit);
  }
  const length = headers.get("content-length");
  if (length !== null && !/^\d+$/.test(length)) throw new WebError("the answer has a wrong length");
  const wanted = length === null ? Infinity : Number(length);
  const body = new Bytes();
  await reader.bytes(Math.min(wanted, limit), length === null, body);
  const cut = wanted > limit && (length !== null || !await reader.ended());
  return { body: body.all(), cut };
}

async function readChunks(reader: Reader, limit: number) {
  const body = new Bytes();
  // Every chunk has a byte at least, so the limit on bytes bounds the number of chunks too.
  for (let size = 0, chunks = 1;; chunks++) {
    if (chunks % 2000 === 0) await pause();
    const digits = /^\s*([\da-f]{1,8})\s*(?:;|$)/i.exec(await reader.line(1024))?.[1];
    if (digits === undefined) throw new WebError("the answer is cut into wrong pieces");
    const length = parseInt(digits, 16);
    if (length === 0) return { body: body.all(), cut: false };
    await reader.bytes(Math.min(length, limit - size), false, body);
    size += length;
    if (size > limit) return { body: body.all(), cut: true };
    await reader.line(2);
  }
}

/** Reads lines and bytes from a connection. */
class Reader {
  readonly #buffer = new Uint8Array(64 * 1024);
  #rest = this.#buffer.subarray(0, 0);

  constructor(readonly stream: Deno.Conn) {}

  async #fill(): Promise<boolean> {
    if (this.#rest.length > 0) return true;
    const count = await this.stream.read(this.#buffer);
    if (count === null) return false;
    this.#rest = this.#buffer.subarray(0, count);
    return true;
  }

  async ended(): Promise<boolean> {
    return !await this.#fill();
  }

  /** A line without its end; every byte is a character. */
  async line(limit: number): Promise<string> {
    let text = "";
    while (await this.#fill()) {
      const end = this.#rest.indexOf(10);
      const piece = this.#rest.subarray(0, end < 0 ? this.#rest.length : end);
      text += Array.from(piece, (byte) => String.fromCharCode(byte)).join("");
      if (text.length > limit) throw new WebError("the head of the answer is too long");
      this.#rest = this.#rest.subarray(piece.length + (end < 0 ? 0 : 1));
      if (end >= 0) return text.replace(/\r$/, "");
    }
    throw new WebError("the answer was cut off");
  }

  /** As many bytes; fewer only when the stream ends and `open` says that this is no mistake. */
  async bytes(count: number, open: boolean, into: Bytes): Promise<void> {
    let left = count;
    while (left > 0 && await this.#fill()) {
      const piece = this.#rest.subarray(0, left);
      into.add(piece);
      this.#rest = this.#rest.subarray(piece.length);
      left -= piece.length;
    }
    if (left > 0 && !open) throw new WebError("the answer was cut off");
  }
}

function reason(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.replace(/\s+/g, " ").slice(0, 200);
}
