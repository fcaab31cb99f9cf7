import type { Clock } from "../../src/platform/clock.ts";
import type {
  ChatMessage,
  ChatOptions,
  ProviderClass,
  ProviderOptions,
  StreamEvent,
} from "../../src/plugins/api.ts";

/** A received request. */
export interface WireRequest {
  method: string;
  path: string;
  headers: Headers;
  body: string;
}

/** A connection of a client, which the test answers with exact bytes. */
export interface Wire {
  /** Number of the request on this server, from 1. */
  readonly number: number;
  send(...pieces: (string | Uint8Array)[]): Promise<void>;
  /** Resolves when the client has closed the connection. */
  gone(): Promise<void>;
}

/** A TCP server: one request for each connection, which is closed when `answer` returns. */
export class WireServer implements AsyncDisposable {
  readonly requests: WireRequest[] = [];
  /** Resolves with the first request. */
  readonly asked: Promise<void>;
  readonly #asked = Promise.withResolvers<void>();
  readonly #listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  readonly #work: Promise<void>;
  readonly #open = new Set<Promise<void>>();

  constructor(answer: (wire: Wire, request: WireRequest) => Promise<void> | void) {
    this.asked = this.#asked.promise;
    this.#work = this.#accept(answer);
  }

  get port(): number {
    return (this.#listener.addr as Deno.NetAddr).port;
  }

  /** `http://127.0.0.1:<port>` */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  async #accept(answer: (wire: Wire, request: WireRequest) => Promise<void> | void) {
    for await (const conn of this.#listener) {
      const work = this.#serve(conn, answer).finally(() => this.#open.delete(work));
      this.#open.add(work);
    }
  }

  async #serve(
    conn: Deno.Conn,
    answer: (wire: Wire, request: WireRequest) => Promise<void> | void,
  ): Promise<void> {
    try {
      const request = await readRequest(conn);
      if (request === undefined) return;
      this.requests.push(request);
      this.#asked.resolve();
      await answer({
        number: this.requests.length,
        async send(...pieces) {
          for (const piece of pieces) await writeAll(conn, bytes(piece));
        },
        async gone() {
          const rest = new Uint8Array(64);
          while (await conn.read(rest).catch(() => null) !== null);
        },
      }, request);
    } catch (error) {
      if (!(error instanceof Deno.errors.BrokenPipe || isReset(error))) throw error;
    } finally {
      conn.close();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listener.close();
    await this.#work;
    await Promise.all(this.#open);
  }
}

function isReset(error: unknown): boolean {
  return error instanceof Deno.errors.ConnectionReset;
}

async function readRequest(conn: Deno.Conn): Promise<WireRequest | undefined> {
  const buffer = new Uint8Array(64 * 1024);
  let raw = new Uint8Array(0);
  const decoder = new TextDecoder("latin1");
  let end = -1;
  const more = async () => {
    const n = await conn.read(buffer);
    if (n === null) return false;
    raw = new Uint8Array([...raw, ...buffer.subarray(0, n)]);
    return true;
  };
  while (end < 0) {
    if (!await more()) return undefined;
    end = decoder.decode(raw).indexOf("\r\n\r\n");
  }
  const [first = "", ...lines] = decoder.decode(raw.subarray(0, end)).split("\r\n");
  const [method = "", path = ""] = first.split(" ");
  const headers = new Headers(lines.map((line) => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon), line.slice(colon + 1).trim()] as [string, string];
  }));
  const length = Number(headers.get("content-length") ?? 0);
  while (raw.length < end + 4 + length) {
    if (!await more()) return undefined;
  }
  const body = new TextDecoder().decode(raw.subarray(end + 4, end + 4 + length));
  return { method, path, headers, body };
}

/** The head of an answer. Its body ends with the connection, unless the headers contain a length. */
export function head(status = 200, headers: Record<string, string> = {}): string {
  const all = { "content-type": "text/event-stream", "connection": "close", ...headers };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} Status\r\n${lines.join("")}\r\n`;
}

/** A whole answer with a JSON body. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}): string {
  const body = JSON.stringify(value);
  const length = String(bytes(body).length);
  return head(status, {
    "content-type": "application/json",
    "content-length": length,
    ...headers,
  }) +
    body;
}

/** Data events, the text of each given or made from a value. */
export function data(...values: unknown[]): string {
  return values.map((value) =>
    `data: ${typeof value === "string" ? value : JSON.stringify(value)}\n\n`
  ).join("");
}

/** A chunk whose first choice has this delta. */
export function chunk(
  delta: Record<string, unknown>,
  finish_reason: string | null = null,
): unknown {
  return { object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] };
}

/** A chunk that carries tool call deltas. */
export function calls(...deltas: Record<string, unknown>[]): unknown {
  return chunk({ tool_calls: deltas });
}

export const DONE = "[DONE]";

/** A small answer that succeeds. */
export const HELLO: string = head() + data(chunk({ content: "hello" }), chunk({}, "stop"), DONE);

/** A clock that stands still. A sleep ends with `expire`, or at once when `instant` returns true. */
export class TestClock implements Clock {
  time: number = Date.UTC(2026, 0, 2, 3, 4, 5);
  readonly #sleepers = new Set<{ ms: number; until: number; wake: () => void }>();
  readonly #instant: (ms: number) => boolean;
  #changed = Promise.withResolvers<void>();

  constructor(instant: (ms: number) => boolean = () => false) {
    this.#instant = instant;
  }

  now(): number {
    return this.time;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    if (this.#instant(ms)) {
      this.time += ms;
      return Promise.resolve();
    }
    return new Promise((wake, reject) => {
      const sleeper = { ms, until: this.time + ms, wake };
      this.#sleepers.add(sleeper);
      this.#changed.resolve();
      this.#changed = Promise.withResolvers();
      signal?.addEventListener("abort", () => {
        this.#sleepers.delete(sleeper);
        reject(signal.reason);
      }, { once: true });
    });
  }

  /** Ends a sleep of exactly `ms` milliseconds; waits until there is one. */
  async expire(ms: number): Promise<void> {
    while (true) {
      for (const sleeper of this.#sleepers) {
        if (sleeper.ms !== ms) continue;
        this.#sleepers.delete(sleeper);
        this.time = Math.max(this.time, sleeper.until);
        return sleeper.wake();
      }
      await this.#changed.promise;
    }
  }
}

/** Provider options with the given changes. */
export function providerOptions(options: Partial<ProviderOptions> = {}): ProviderOptions {
  return {
    name: "acme",
    base_url: "http://127.0.0.1:1",
    api_key: "sk-very-secret-key",
    model: "m1",
    session_id: "ses_1",
    user_agent: "svc/9.9.9",
    temperature: 0.5,
    max_tokens: 100,
    reasoning: "auto",
    idle_timeout: 60,
    content_timeout: 300,
    retry_budget: 30,
    ...options,
  };
}

/** All events of one completion. */
export async function eventsOf(
  provider: InstanceType<ProviderClass>,
  options: ChatOptions = {},
  messages: ChatMessage[] = [{ role: "user", content: "hi" }],
): Promise<StreamEvent[]> {
  return await Array.fromAsync(provider.chat(messages, options));
}

/** The text as UTF-8. */
export function bytes(text: string | Uint8Array): Uint8Array {
  return typeof text === "string" ? new TextEncoder().encode(text) : text;
}

async function writeAll(conn: Deno.Conn, data: Uint8Array): Promise<void> {
  for (let written = 0; written < data.length;) written += await conn.write(data.subarray(written));
}
