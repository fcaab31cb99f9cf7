import { type Clock, joinSignals, systemClock } from "../platform/clock.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { stripControl } from "../platform/terminal.ts";
import type {
  ChatMessage,
  ChatOptions,
  EventTranslator,
  Provider,
  ProviderClass,
  ProviderOptions,
  Reasoning,
  ReplyPiece,
  StreamEvent,
} from "../plugins/api.ts";
import { Assembler, replyPieces } from "./deltas.ts";
import { answerEvents, answerFailure, requestBody } from "./exchange.ts";
import { BackendError, opening, type Peer, RefusedRequest } from "./failure.ts";
import { type HttpAnswer, isOk, readText, sendRequest } from "./http.ts";
import type { PlainNames } from "./plain_names.ts";
import {
  cacheKey,
  RefusedParameters,
  StrictMessages,
  wireMessages,
  withoutBlocks,
  withoutReasoning,
} from "./quirks.ts";
import { backoff } from "./retry.ts";
import { canonicalBase, COMPLETIONS, endpointUrl, isDeployment, originOf } from "./url.ts";

type MaybePromise<T> = T | Promise<T>;

/** The name of this class in the registry, for any backend of the protocol. */
export const GENERIC_PROVIDER = "generic-compatible";

/**
 * A provider for the chat-completions protocol (specification 4.10). Vendor providers extend it and
 * override `headers`, `payload`, `reasoningParameters` or `endpoint`. One that speaks another protocol overrides
 * `replyPath`, `payload` and `translator`.
 *
 * A request that the backend rejects is sent again without the rejected parameter (`quirks.ts`). A backend that is
 * busy, fails or cannot be reached is asked again within `retry_budget`, and never before the time that it announces.
 */
export class OpenAICompatibleProvider implements Provider {
  static readonly DEFAULT_BASE_URL: string = "";
  static readonly DEFAULT_MODEL: string = "";
  static readonly HOST_PATTERNS: readonly string[] = [];
  static readonly ECHO_REASONING: boolean = false;

  readonly name: string;
  readonly model: string;
  readonly base_url: string;
  session_id: string;
  protected readonly options: ProviderOptions;
  protected readonly clock: Clock;
  readonly #refused = new RefusedParameters();
  readonly #strict = new StrictMessages();
  readonly #endpoints: Record<string, string> = {};
  /** The receiver of the last request. */
  #receiver: Peer | undefined;
  /** The JSON of messages and tools that were sent. */
  readonly #made = new WeakMap<object, string>();
  #plain_names: boolean;
  /** Whether the backend has refused tools, and is told of them in text. */
  #text_tools = false;
  /** The last time that the backend has announced, in milliseconds since 1970. */
  #opens_at = 0;

  constructor(options: ProviderOptions, clock: Clock = options.clock ?? systemClock) {
    const { DEFAULT_BASE_URL, DEFAULT_MODEL, PLAIN_TOOL_NAMES } = this.constructor as ProviderClass;
    this.name = options.name;
    this.model = options.model || DEFAULT_MODEL;
    this.base_url = options.base_url || DEFAULT_BASE_URL;
    this.#plain_names = PLAIN_TOOL_NAMES ?? false;
    this.session_id = options.session_id;
    this.options = options;
    this.clock = clock;
  }

  /** The class attribute, until a backend shows that it wants the opposite. */
  get echo_reasoning(): boolean {
    return this.#strict.reasoning ?? (this.constructor as ProviderClass).ECHO_REASONING;
  }

  async *chat(messages: ChatMessage[], options: ChatOptions = {}): AsyncGenerator<StreamEvent> {
    let budget = this.options.retry_budget;
    for (let attempt = 0;;) {
      options.signal?.throwIfAborted();
      let failure = this.#closed();
      let at = failure?.facts.retry_at ?? 0;
      if (failure === undefined) {
        failure = yield* this.#attempt(messages, options);
        if (failure === undefined) return;
        const { kind, retry_at = 0 } = failure.facts;
        const delay = backoff(attempt++, () => this.jitter()) * 1000;
        at = Math.ceil(Math.max(retry_at, this.clock.now() + delay));
        if (kind === "announced") await this.#close(at);
      }
      const announced = failure.kind === "announced";
      const { quota_wait = { seconds: 0 }, signal } = options;
      const seconds = (at - this.clock.now()) / 1000;
      const within = seconds <= budget;
      if (within) budget -= seconds;
      else if (announced && seconds <= quota_wait.seconds) quota_wait.seconds -= seconds;
      else if (!announced && budget >= SHORTEST) {
        at = Math.ceil(this.clock.now() + budget * 1000);
        budget = 0;
      } else return yield { ...errorEvent(failure), ...(announced && { retry_at: at }) };
      yield* this.#pause(at, failure, { long: !within && announced, signal });
    }
  }

  async chat_nonstreaming(messages: ChatMessage[], options: ChatOptions = {}): Promise<string> {
    let content = "";
    let reason = "eof";
    for await (const event of this.chat(messages, { ...options, stream: false })) {
      if (event.type === "token") content += event.content;
      if (event.type === "error") {
        const { code, message, kind, retry_at, window } = event;
        throw new BackendError(code, `${message}.`, "", { kind, retry_at, window });
      }
      if (event.type !== "done") continue;
      reason = event.reason;
      options.spend?.(event.usage);
    }
    if (reason === "eof") throw new BackendError(0, `${this.#label} sent no complete answer.`);
    return content;
  }

  async list_models(signal?: AbortSignal): Promise<string[]> {
    const answer = await this.#send("GET", "/models", { signal });
    try {
      const { readModelList } = await import("./model_list.ts");
      return await readModelList(answer, this.#peer("/models"));
    } finally {
      answer.close();
    }
  }

  async check_connection(signal?: AbortSignal): Promise<{ ok: boolean; message: string }> {
    try {
      const { length } = await this.list_models(signal);
      return { ok: true, message: `${length} ${length === 1 ? "model" : "models"} on offer` };
    } catch (error) {
      signal?.throwIfAborted();
      return { ok: false, message: errorMessage(error) };
    }
  }

  /** The window that the list of models names. It is not waited for long. */
  async context_window(signal?: AbortSignal): Promise<number | undefined> {
    const late = new AbortController();
    using either = joinSignals(late.signal, ...signal ? [signal] : []);
    this.clock.sleep(WINDOW_MS, either.signal).then(() => late.abort(), () => {});
    try {
      const { contextWindow } = await import("./model_list.ts");
      return await contextWindow(this.model, async (endpoint) => {
        const native = typeof endpoint === "string" ? undefined : endpoint;
        const path = native === undefined ? "/models" : new URL(native.path, this.base_url).href;
        const payload = native?.post && { model: this.model };
        const method = payload === undefined ? "GET" : "POST";
        const answer = await this.#send(method, path, { payload, signal: either.signal });
        try {
          return isOk(answer) ? JSON.parse(await readText(answer, MAX_MODELS)) : undefined;
        } finally {
          answer.close();
        }
      });
    } catch {
      return undefined;
    } finally {
      late.abort();
    }
  }

  /** The address of an endpoint such as `/chat/completions`. */
  protected endpoint(path: string): string {
    return this.#endpoints[path] ??= endpointUrl(this.base_url, path);
  }

  /** Headers in addition to content type, accept and user agent. */
  protected headers(): Record<string, string> {
    const { api_key } = this.options;
    if (api_key === "") return {};
    if (isDeployment(this.base_url)) return { "api-key": api_key };
    return { authorization: `Bearer ${api_key}` };
  }

  /** The path of the endpoint for replies. */
  protected replyPath(): string {
    return COMPLETIONS;
  }

  /** What translates the events of an answer. Default: nothing, since they are chunks of the protocol. */
  protected translator(): MaybePromise<EventTranslator | undefined> {
    return undefined;
  }

  /** The parts of an assistant's message, for a protocol that keeps their order. */
  protected pieces(message: ChatMessage): ReplyPiece[] {
    return replyPieces(message);
  }

  /** The body of a request for a reply. The blocks of a provider with a protocol of its own mean nothing to this one. */
  protected payload(
    messages: ChatMessage[],
    options: ChatOptions,
  ): MaybePromise<Record<string, unknown>> {
    const { temperature, reasoning } = this.options;
    const max_tokens = options.max_tokens ?? this.options.max_tokens;
    const stream = options.stream ?? true;
    const own = this.translator !== OpenAICompatibleProvider.prototype.translator;
    const known = own ? messages.map(withoutBlocks) : messages;
    return {
      model: this.model,
      messages: wireMessages(this.echo_reasoning ? known : known.map(withoutReasoning)),
      temperature,
      ...(max_tokens > 0 && { max_tokens }),
      ...(options.tools?.length && { tools: options.tools }),
      ...(options.response_format && { response_format: options.response_format }),
      ...this.reasoningParameters(reasoning),
      stream,
      ...(stream && { stream_options: { include_usage: true } }),
    };
  }

  /** The parameters that request this much reasoning. */
  protected reasoningParameters(reasoning: Reasoning): Record<string, unknown> {
    if (reasoning === "on" || reasoning === "auto") return {};
    return { reasoning_effort: reasoning === "off" ? "none" : reasoning };
  }

  /** A random number from 0 to 1, which spreads the retries of many clients over time. */
  protected jitter(): number {
    return Math.random();
  }

  /** The failure while an announced time is not over. */
  #closed(): BackendError | undefined {
    const retry_at = Math.max(this.#opens_at, this.options.quota?.opens_at() ?? 0);
    const now = this.clock.now();
    if (retry_at <= now) return undefined;
    const facts = { kind: "announced" as const, retry_at };
    const what = `${this.#label} has announced when it may be asked again`;
    return new BackendError(429, `${what}.`, opening(facts, now), facts);
  }

  async #close(until: number): Promise<void> {
    this.#opens_at = until;
    await this.options.quota?.close(until);
  }

  /**
   * Sends the request once.
   *
   * @returns a failure after which it may be sent again, since nothing of an answer has been yielded
   */
  async *#attempt(
    messages: ChatMessage[],
    options: ChatOptions,
  ): AsyncGenerator<StreamEvent, BackendError | undefined> {
    let brought = false;
    let begun = false;
    try {
      const { answer, names } = await this.#complete(messages, options);
      begun = true;
      try {
        const assembler = new Assembler(this.#peer(this.replyPath()), await this.translator());
        const events = answerEvents(answer, assembler, options.cut);
        for await (const event of events) {
          brought ||= event.type !== "done";
          yield names?.event(event) ?? event;
        }
      } finally {
        answer.close();
      }
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      const failure = error instanceof BackendError ? error : undefined;
      const kind = failure?.kind;
      const cut = begun && !(error instanceof RefusedRequest);
      const final = brought || (cut && options.retry_cut === false);
      if (!final && (kind === "transient" || kind === "announced")) return failure;
      yield errorEvent(error);
    }
    return undefined;
  }

  /** Waits until a time, in milliseconds since 1970; a long wait yields a `wait` event every 30 seconds. */
  async *#pause(
    until: number,
    { status, message }: BackendError,
    { long, signal }: { long: boolean; signal?: AbortSignal },
  ): AsyncGenerator<StreamEvent> {
    const what = status === 429 ? "limits the rate of requests" : "failed";
    const reason = status === 0 ? message : `${this.#label} ${what} (${status})`;
    for (let now; (now = this.clock.now()) < until;) {
      const left = until - now;
      const wait = { type: "wait" as const, seconds: left / 1000 };
      yield long
        ? { ...wait, reason: `${reason}. ${opening({ retry_at: until }, now)}`, retry_at: until }
        : { ...wait, reason };
      await this.clock.sleep(long ? Math.min(left, LINE_MS) : left, signal);
    }
  }

  /** Sends the request until the backend accepts its form. */
  async #complete(
    messages: ChatMessage[],
    options: ChatOptions,
  ): Promise<{ answer: HttpAnswer; names?: PlainNames }> {
    const { signal } = options;
    let { tools } = options;
    const reasoning = this.reasoningParameters(this.options.reasoning);
    const path = this.replyPath();
    const { fields, headers } = await cacheKey(this.base_url, this.session_id, path);
    while (true) {
      const names = this.#plain_names && !this.#text_tools
        ? new (await import("./plain_names.ts")).PlainNames(tools)
        : undefined;
      if (this.#text_tools && tools !== undefined) {
        const { textMessages } = await import("./text_tools.ts");
        messages = textMessages(messages, tools);
        tools = undefined;
      }
      const taken = this.#strict.adapt(messages);
      const offered = this.#refused.tools(tools);
      const payload = this.#refused.adapt({
        ...await this.payload(names?.messages(taken) ?? taken, {
          ...options,
          tools: names?.tools(offered) ?? offered,
        }),
        ...fields,
      });
      const answer = await this.#send("POST", path, { payload, messages: taken, headers, signal });
      if (isOk(answer)) return { answer, names };
      const failure = await answerFailure(answer, this.#peer(path), this.clock);
      if (failure.kind === "overflow") throw failure;
      if (this.#strict.unseal(failure, taken)) continue;
      if (this.#refused.learn(failure, payload, reasoning)) continue;
      const sent = (payload.messages ?? payload.input ?? []) as Partial<ChatMessage>[];
      if (this.#strict.learn(failure, taken, sent)) continue;
      if (names === undefined && failure.kind === "permanent") {
        const { wantsPlainNames } = await import("./plain_names.ts");
        this.#plain_names = wantsPlainNames(failure, messages, tools); // also for later requests
        if (this.#plain_names) continue;
      }
      if (tools?.length && (await import("./text_tools.ts")).refusesTools(failure)) {
        if (!options.text_tools) throw withHint(failure, TEXT_CALLS);
        this.#text_tools = true; // also for later requests
        continue;
      }
      throw failure;
    }
  }

  async #send(
    method: "GET" | "POST",
    path: string,
    { payload, messages, headers, signal }: {
      payload?: Record<string, unknown>;
      /** Those that the payload is made of. */
      messages?: ChatMessage[];
      headers?: Record<string, string>;
      signal?: AbortSignal;
    },
  ): Promise<HttpAnswer> {
    const { user_agent, idle_timeout, content_timeout } = this.options;
    const body = payload && await requestBody(payload, messages, this.options.pace, this.#made);
    signal?.throwIfAborted();
    return await sendRequest({
      method,
      headers: {
        "accept": payload?.stream ? "text/event-stream, application/json" : "application/json",
        "user-agent": user_agent,
        ...(payload && { "content-type": "application/json" }),
        ...headers,
        ...this.headers(),
      },
      body,
      signal,
      idle_ms: idle_timeout * 1000,
      content_ms: content_timeout * 1000,
      clock: this.clock,
      peer: this.#peer(path),
    });
  }

  #peer(path: string): Peer {
    const url = path.startsWith("/") ? this.endpoint(path) : path;
    if (this.#receiver?.url === url) return this.#receiver;
    return this.#receiver = {
      name: this.#label,
      url,
      model: stripControl(this.model),
      api_key: this.options.api_key,
      connect: this.#connectTarget(),
      now: () => this.clock.now(),
    };
  }

  get #label(): string {
    return stripControl(this.name);
  }

  /** A vendor's name connects its default address only; other addresses are connected by URL. */
  #connectTarget(): string {
    const { DEFAULT_BASE_URL } = this.constructor as ProviderClass;
    const foreign = DEFAULT_BASE_URL !== "" &&
      originOf(DEFAULT_BASE_URL) !== originOf(this.base_url);
    const nameless = this.name === GENERIC_PROVIDER;
    return foreign || nameless ? canonicalBase(this.base_url) : this.#label;
  }
}

const TEXT_CALLS =
  "This model, or its server, takes no tools. With `svc config set text_calls run` svc tells it of " +
  "them in text, and runs the calls that it writes.";

/** A failure that the same request would end in again, with what helps. */
function withHint({ status, message, facts }: BackendError, hint: string): BackendError {
  return new BackendError(status, message, hint, { ...facts, kind: "permanent" });
}

/** The error as an event: message and hint in one line, without the last full stop. */
function errorEvent(error: unknown): StreamEvent {
  const other = { status: 0, facts: { kind: "permanent" as const } };
  const { status: code, facts } = error instanceof BackendError ? error : other;
  const hint = error instanceof SvcError && error.hint !== "" ? ` ${error.hint}` : "";
  const message = (errorMessage(error) + hint).replace(/\.$/, "");
  return { type: "error", code, message, ...facts };
}

/** Seconds of the shortest wait that is worth another request. */
const SHORTEST = 0.5;
/** Milliseconds between two `wait` events of a long wait. */
const LINE_MS = 30_000;

/** Milliseconds for finding out the context window, and the maximum size of a document about it in bytes. */
const WINDOW_MS = 5000;
const MAX_MODELS = 8 * 1024 * 1024;
