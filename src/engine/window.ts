import { LARGE } from "../platform/clock.ts";
import type { ConfigView, Provider, WireTool } from "../plugins/api.ts";
import type { NamedWindows } from "../providers/windows.ts";
import type { ProviderContext } from "./context.ts";
import { sizeOf } from "./conversation.ts";
import { type TurnEvent, TurnFailure, type TurnResult } from "./events.ts";
import type { TurnModels } from "./models.ts";
import { loggedReply, type Reply } from "./reply.ts";
import type { TurnScope } from "./scope.ts";

/** Tokens of a character, until the backend has reported the size of a request, and of text added later. */
const DENSITY = 0.3;
/** The share of the window that is used: sizes are estimates. */
const USED = 0.95;
/** Tokens of a request from which on the backend is asked for the window. No usable model has a smaller one. */
const ASK_FROM = 8000;
/** Characters that every result may have: a smaller part tells nothing. */
const LEAST_RESULT = 1000;
/** How many times the window an estimate must be, so that the request is not even tried. */
const CERTAIN = 1.5;

/**
 * The context window of a model, and what requests take of it. The size of a request is estimated from the last one
 * that the backend has counted, and the characters added since.
 */
export class ContextWindow {
  readonly #provider: Provider;
  readonly #config: ConfigView;
  readonly #named: NamedWindows;
  /** What the backend says, in tokens. */
  #found: number | undefined;
  /** The window that refused requests have shown, in tokens. */
  #learnt: number | undefined;
  #counted: { chars: number; tokens: number } | undefined;
  /** Characters of the last request. */
  #sent = 0;

  constructor(provider: Provider, config: ConfigView, named: NamedWindows) {
    this.#provider = provider;
    this.#config = config;
    this.#named = named;
  }

  get learnt(): number | undefined {
    return this.#learnt;
  }

  /** The tokens of a request of so many characters. */
  tokens(chars: number): number {
    if (this.#counted === undefined) return chars * DENSITY;
    const density = this.#counted.tokens / this.#counted.chars;
    const more = chars - this.#counted.chars;
    return this.#counted.tokens + more * (more > 0 ? Math.max(density, DENSITY) : density);
  }

  /** The window in tokens: the setting, else what the backend says, and no more than a refusal has shown. */
  async size(chars: number, signal: AbortSignal): Promise<number | undefined> {
    if (this.#config.get("context_window") > 0) return this.known;
    if (this.#learnt === undefined && this.tokens(chars) >= ASK_FROM) {
      this.#found = await this.#named.of(this.#provider, signal);
    }
    signal.throwIfAborted();
    return this.known;
  }

  /** The window as far as it is known, without asking the backend. */
  get known(): number | undefined {
    const size = Math.min(
      this.#config.get("context_window") || this.#found || Infinity,
      this.#learnt ?? Infinity,
    );
    return size === Infinity ? undefined : size;
  }

  /** Most tokens of a reply: the setting `max_tokens`, and a part of a window that this would fill. */
  reply(size = Infinity): number {
    const set: number = this.#config.get("max_tokens");
    return set <= size / 2 ? set : Math.floor(size / 4);
  }

  /** The tokens that a request may have in a window, with space for the reply. */
  limit(size: number): number {
    return (size - (this.reply(size) || ASK_FROM / 2)) * USED;
  }

  /**
   * The characters that a result of `length` may have: its share of half of the tokens that the last request and its
   * reply leave. The backend is asked for the window when the next request would ask.
   *
   * @param results how many results share them
   */
  async room(length: number, results: number, signal: AbortSignal): Promise<number> {
    const size = await this.size(this.#sent + length, signal).catch(() => this.known);
    if (size === undefined) return Infinity;
    const left = this.limit(size) - this.tokens(this.#sent);
    const density = this.tokens(this.#sent + 1) - this.tokens(this.#sent);
    return Math.max(LEAST_RESULT, Math.floor(left / 2 / results / density));
  }

  /** Learns the size of a request that was sent, and that the backend has counted where it reports it. */
  count(chars: number, { prompt_tokens: tokens = 0 }: Reply["usage"]): void {
    this.#sent = chars;
    if (tokens > 0) this.#counted = { chars, tokens };
  }

  /** Learns from an earlier compaction of the session. */
  recall(size: number | undefined): void {
    this.#learnt ??= size;
  }

  /**
   * Learns from the refusal of a request. Nothing is learnt of a small one, which has another reason.
   *
   * @param named the window that the refusal named
   */
  refuse(chars: number, named: number | undefined): void {
    const tokens = this.tokens(chars);
    if (named === undefined && tokens < ASK_FROM / 2) return;
    this.#learnt = Math.min(named ?? tokens, this.#learnt ?? Infinity);
  }

  /** Learns that a request that was refused is larger than it seemed. */
  correct(chars: number, size: number): void {
    const limit = this.limit(size);
    if (this.tokens(chars) <= limit) this.#counted = { chars, tokens: limit + 1 };
  }
}

/**
 * One reply to the conversation. Where the request would not fit the model's context window, or was refused for
 * that, the conversation is compacted first: once, and once more only if the refusal shows a smaller window. Where
 * it was refused for the size of the reply, it is sent again with a smaller `max_tokens`.
 *
 * @throws TurnFailure `context` when the request cannot fit
 */
export async function* fittingReply(
  context: ProviderContext,
  tools: WireTool[],
  scope: TurnScope & { result: TurnResult; models: TurnModels },
): AsyncGenerator<TurnEvent, Reply> {
  const { agent: { session, pace }, result, signal, models } = scope;
  const { conversation } = context;
  let window = context.window(models.provider);
  const fixed = context.fixed(tools);
  let measured: number | undefined;
  const chars = () =>
    measured ??= conversation.entries.reduce(
      (sum, { message }) => sum + sizeOf(message, models.provider.echo_reasoning),
      fixed,
    );
  const compact = async function* (size: number, refused: boolean) {
    await scope.hooks?.compaction();
    const { fit } = await import("./compaction.ts");
    const most = window.limit(size) * chars() / window.tokens(chars());
    measured = undefined;
    return yield* fit(context, { most, fixed, refused }, scope);
  };
  const done = { compacted: false, refit: false, lessened: false };
  let size = await window.size(chars(), signal);
  if (size !== undefined && window.tokens(chars()) > window.limit(size)) {
    done.compacted = yield* compact(size, false);
    const tokens = window.tokens(chars());
    if (tokens > size * CERTAIN) throw new TurnFailure("context", tooLarge(tokens, size));
  }
  while (true) {
    const sent = chars();
    if (sent > LARGE) await pace.turn();
    const max_tokens = window.reply(size);
    const reply = yield* loggedReply(
      (provider) => context.messages(provider),
      tools,
      { ...scope, max_tokens },
      () => context.window(models.provider).known,
    );
    window = context.window(models.provider); // a fallback may have answered
    window.count(sent, reply.continued ? {} : reply.usage);
    const refusal = reply.errors.find(({ kind }) => kind === "overflow");
    if (refusal === undefined) return reply;
    window.refuse(sent, refusal.window);
    if (reply.content !== "") return reply;
    const before = size;
    size = await window.size(sent, signal);
    if (size === undefined) return unfit(reply, result, size);
    if (
      !done.lessened && window.reply(size) < max_tokens && window.tokens(sent) <= window.limit(size)
    ) {
      done.lessened = true;
    } else {
      window.correct(sent, size);
      const again = !done.refit && (!done.compacted || size < before!);
      done.refit = true;
      if (!again || !(yield* compact(size, true))) return unfit(reply, result, size);
    }
    session.recordError(refusal.code, refusal.message);
    result.errors = result.errors.filter((error) => !reply.errors.includes(error));
  }
}

/** Completes a reply that was refused although nothing more can be left out. */
function unfit(reply: Reply, result: TurnResult, size: number | undefined): Reply {
  result.reason = "context";
  for (const error of reply.errors) {
    if (error.kind === "overflow") error.message = `${error.message}. ${hint(size)}`;
  }
  return reply;
}

function tooLarge(tokens: number, size: number): string {
  return `The request does not fit the model's context window: about ` +
    `${Math.round(tokens)} tokens, of ${size}. ${hint(size)}`;
}

function hint(size: number | undefined): string {
  const larger = size === undefined ? "a larger window" : `a window of more than ${size} tokens`;
  return "The prompt, the system prompt and the tools alone have to fit: shorten the prompt, offer fewer tools " +
    `(tools.allow), set a smaller max_tokens, or use a model with ${larger}.`;
}
