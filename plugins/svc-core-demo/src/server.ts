import { ChatRequest, completionDocument, completionEvents } from "./completion.ts";
import { type Content, deliver, pause } from "./delivery.ts";
import { respond } from "./rules.ts";
import { type Echo, type Reply, type Script, ScriptPlayer } from "./script.ts";

/** A received request. */
export interface RecordedRequest {
  method: string;
  /** With the query. */
  path: string;
  headers: Record<string, string>;
  /** The parsed JSON, or the text when it is not JSON. */
  // deno-lint-ignore no-explicit-any
  body: any;
  /**
   * Resolves when the client disconnects, or the server closes, before a reply that hangs or is sent in
   * steps is complete.
   */
  gone: Promise<void>;
}

export interface DemoServerOptions {
  /** 0: a free one. */
  port?: number;
  /** The scenario to play; default: the rules answer. */
  script?: Script;
  /** Number of the latest requests to keep in `requests`; true: 10,000. Default: none. */
  record?: boolean | number;
  /** Called with each request; the answer waits for the returned promise. */
  onRequest?: (request: RecordedRequest) => unknown;
}

export interface DemoServer {
  /** `http://127.0.0.1:<port>/v1` */
  readonly url: string;
  readonly port: number;
  /** The requests that `record` keeps, in order. */
  readonly requests: RecordedRequest[];
  /** Lets the process end while the server still listens. */
  unref(): void;
  /** Closes open connections and stops listening. */
  close(): Promise<void>;
}

/**
 * Serves the chat-completions protocol on a loopback port: `POST .../chat/completions`, streamed or not,
 * and `GET .../models`, under any path prefix.
 *
 * @throws ScriptError for a script that is not valid, Deno's error when the port is not free.
 */
export function startDemoServer(options: DemoServerOptions = {}): DemoServer {
  const backend = new Backend(options);
  const server = Deno.serve({
    port: options.port ?? 0,
    hostname: "127.0.0.1",
    signal: backend.closing.signal,
    onListen: () => {},
    onError: () => new Response(null, { status: 500 }), // also called for each scripted cut
  }, (request) => backend.answer(request));
  const { port } = server.addr;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    port,
    requests: backend.requests,
    unref: () => server.unref(),
    close() {
      server.ref(); // `finished` of an unreferenced server does not keep the process alive
      backend.closing.abort();
      return server.finished;
    },
  };
}

class Backend {
  readonly requests: RecordedRequest[] = [];
  readonly closing = new AbortController();
  readonly #player: ScriptPlayer | undefined;
  readonly #kept: number;
  readonly #onRequest: DemoServerOptions["onRequest"];
  #completions = 0;

  constructor({ script, record, onRequest }: DemoServerOptions) {
    this.#player = script && new ScriptPlayer(script);
    this.#kept = record === true ? 10_000 : Number(record ?? 0);
    this.#onRequest = onRequest;
  }

  async answer(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const text = await request.text();
    let gone = () => {};
    if (this.#kept > 0 || this.#onRequest) {
      const left = Promise.withResolvers<void>();
      gone = left.resolve;
      const recorded = {
        method: request.method,
        path: pathname + search,
        headers: Object.fromEntries(request.headers),
        body: jsonOr(text),
        gone: left.promise,
      };
      if (this.#kept > 0) this.requests.push(recorded);
      if (this.requests.length > this.#kept) this.requests.shift();
      await this.#onRequest?.(recorded);
    }
    if (request.method === "POST" && pathname.endsWith("/chat/completions")) {
      return await this.#complete(request, text, gone);
    }
    if (request.method === "GET" && pathname.endsWith("/models")) {
      return await this.#models(request, gone);
    }
    return failure(404, "not_found", `not found: ${request.method} ${pathname}`);
  }

  async #complete(request: Request, text: string, gone: () => void): Promise<Response> {
    let chat: ChatRequest;
    try {
      chat = new ChatRequest(text);
    } catch (error) {
      return failure(400, "invalid_request", (error as Error).message);
    }
    const number = ++this.#completions;
    const head = { id: `chatcmpl-${number}`, model: chat.model };
    let reply = this.#player ? this.#player.next(chat) : ruleReply(chat);
    if (reply === undefined) {
      return failure(500, "script_exhausted", `script exhausted: none left for request ${number}`);
    }
    if (reply.echo) reply = { ...reply, text: echoed(reply.echo, chat, request) };
    return await this.#send(request, reply, gone, () => completion(reply, chat, head));
  }

  async #models(request: Request, gone: () => void): Promise<Response> {
    const models = this.#player?.script.models ?? ["demo"];
    const reply = Array.isArray(models) ? {} : models;
    const ids = Array.isArray(models) ? models : [];
    const data = ids.map((id) => ({ id, object: "model", created: 0, owned_by: "svc" }));
    return await this.#send(request, reply, gone, () => json({ object: "list", data }));
  }

  async #send(
    request: Request,
    reply: Reply,
    gone: () => void,
    usual: () => Content,
  ): Promise<Response> {
    if (reply.delay_ms) await pause(reply.delay_ms, this.closing.signal);
    if (reply.redirect) {
      const { status = 307, location } = reply.redirect;
      return new Response(null, { status, headers: { ...reply.headers, location } });
    }
    if (reply.hang && CONTENT.every((key) => reply[key] === undefined)) {
      // Only without an answer: Deno also aborts the signal after one, and warns of the listener.
      request.signal.addEventListener("abort", gone);
      return await new Promise<never>(() => {});
    }
    const content = reply.raw !== undefined
      ? rawContent(reply.raw)
      : reply.status !== undefined
      ? bodyContent(reply.body)
      : usual();
    return deliver(content, reply, reply.status ?? 200, gone);
  }
}

const CONTENT = ["text", "thinking", "tool_calls", "raw", "status"] as const;

/** The answer of the rules, with token counts of about a quarter of the characters. */
function ruleReply(chat: ChatRequest): Reply {
  const { text, calls } = respond(chat.messages, chat.body.tools);
  const prompt_tokens = Math.ceil(chat.size / 4);
  const completion_tokens = Math.ceil((text + JSON.stringify(calls)).length / 4);
  const usage = {
    prompt_tokens,
    completion_tokens,
    total_tokens: prompt_tokens + completion_tokens,
  };
  return calls.length > 0 ? { tool_calls: calls, usage } : { text, usage };
}

function completion(
  reply: Reply,
  chat: ChatRequest,
  head: { id: string; model: string },
): Content {
  if (!chat.stream) return halves(completionDocument(reply, head), "application/json");
  const { content: body, end } = completionEvents(reply, head);
  const stepwise = Array.isArray(reply.text) || Array.isArray(reply.thinking);
  return { type: EVENTS, body, end, stepwise };
}

function rawContent(raw: NonNullable<Reply["raw"]>): Content {
  if (Array.isArray(raw)) return { type: EVENTS, body: raw, end: [], stepwise: true };
  const body = typeof raw === "string"
    ? raw
    : Uint8Array.from(atob(raw.base64), (char) => char.charCodeAt(0));
  return { type: EVENTS, body: [body], end: [], stepwise: false };
}

function bodyContent(body: unknown): Content {
  if (body !== undefined && typeof body !== "string") return json(body);
  return halves(body ?? "", "text/plain; charset=utf-8");
}

function json(value: unknown): Content {
  return halves(JSON.stringify(value), "application/json");
}

/** A document in two halves, so that `cut` and `hang` stop in its middle. */
function halves(text: string, type: string): Content {
  const middle = Math.floor(text.length / 2);
  return { type, body: [text.slice(0, middle)], end: [text.slice(middle)], stepwise: false };
}

function echoed(echo: Echo, chat: ChatRequest, request: Request): string {
  switch (echo) {
    case "last_user":
      return chat.lastUser();
    case "system":
      return chat.system();
    case "headers":
      return JSON.stringify(Object.fromEntries(request.headers));
    case "body":
      return JSON.stringify(chat.body);
    default:
      return JSON.stringify(chat.body[echo] ?? null);
  }
}

function failure(status: number, type: string, message: string): Response {
  // A client that respects Retry-After does not ask an exhausted script again.
  const headers = { "retry-after": "86400" };
  return Response.json(
    { error: { message, type } },
    status === 500 ? { status, headers } : { status },
  );
}

function jsonOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

const EVENTS = "text/event-stream";
