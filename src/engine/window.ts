import type { ConfigView, Provider, WireTool } from "../plugins/api.ts";
import type { ProviderContext } from "./context.ts";
import { sizeOf } from "./conversation.ts";
import { type TurnEvent, TurnFailure, type TurnResult } from "./events.ts";
import type { TurnModels } from "./models.ts";
import { loggedReply, type Reply } from "./reply.ts";
import type { TurnScope } from "./scope.ts";

/** Tokens of a character, until the backend has reported the size of a request, and of text added later. */
const DENSITY = 0.25;
/** The share of the window that is used: sizes are estimates. */
const USED = 0.95;
/** Tokens of a request from which on the backend is asked for the window. No usable model has a smaller one. */
const ASK_FROM = 8000;
/** How many times the window an estimate must be, so that the request is not even tried. */
const CERTAIN = 1.5;

/**
 * The context window of a model, and what requests take of it. The size of a request is estimated from the last one
 * that the backend has counted, and the characters added since.
 */
export class ContextWindow {
  readonly #provider: Provider;
  readonly #config: ConfigView;
  #asked: Promise<number | undefined> | undefined;
  /** The window that refused requests have shown, in tokens. */
  #learnt: number | undefined;
  #counted: { chars: number; tokens: number } | undefined;

  constructor(provider: Provider, config: ConfigView) {
    this.#provider = provider;
    this.#config = config;
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
    const set: number = this.#config.get("context_window");
    const learnt = this.#learnt ?? Infinity;
    if (set > 0) return Math.min(set, learnt);
    if (this.tokens(chars) >= ASK_FROM) {
      this.#asked ??= this.#provider.context_window?.(signal).catch(() => undefined);
    }
    const found = await this.#asked;
    signal.throwIfAborted();
    const size = Math.min(found || Infinity, learnt);
    return size === Infinity ? undefined : size;
  }

  /** The tokens that a request may have in a window, with space for the reply (`max_tokens`). */
  limit(size: number): number {
    const reply: number = this.#config.get("max_tokens") || ASK_FROM / 2;
    return (size - (reply <= size / 2 ? reply : size / 4)) * USED;
  }

  /** Learns the size of a request that the backend has counted. */
  count(chars: number, { prompt_tokens: tokens = 0 }: Reply["usage"]): void {
    if (tokens > 0) this.#counted = { chars, tokens };
  }

  /** Learns from an earlier compaction of the session. */
  recall(size: number | undefined): void {
    this.#learnt ??= size;
  }

  /**
   * Learns that a request was too large. Nothing is learnt of a small one: its refusal has another reason.
   *
   * @param named the window that the refusal named
   */
  refuse(chars: number, named: number | undefined): void {
    const tokens = this.tokens(chars);
    if (named === undefined && tokens < ASK_FROM / 2) return;
    const size = named ?? tokens;
    this.#learnt = Math.min(size, this.#learnt ?? Infinity);
    const limit = this.limit(this.#learnt);
    if (tokens <= limit) this.#counted = { chars, tokens: limit + 1 };
  }
}

/**
 * One reply to the conversation. Where the request would not fit the model's context window, or was refused for
 * that, the conversation is compacted first: once, and once more only if the refusal shows a smaller window.
 *
 * @throws TurnFailure `context` when the request cannot fit
 */
export async function* fittingReply(
  context: ProviderContext,
  tools: WireTool[],
  scope: TurnScope & { result: TurnResult; models: TurnModels },
): AsyncGenerator<TurnEvent, Reply> {
  const { agent: { session }, result, signal, models } = scope;
  const { conversation } = context;
  let window = context.window(models.provider);
  const fixed = context.prompt().length + JSON.stringify(tools).length;
  const chars = () =>
    conversation.entries.reduce(
      (sum, { message }) => sum + sizeOf(message, models.provider.echo_reasoning),
      fixed,
    );
  const compact = async function* (size: number, refused: boolean) {
    const { fit } = await import("./compaction.ts");
    const most = window.limit(size) * chars() / window.tokens(chars());
    return yield* fit(context, { most, fixed, refused }, scope);
  };
  const before = await window.size(chars(), signal);
  let compacted = false;
  if (before !== undefined && window.tokens(chars()) > window.limit(before)) {
    compacted = yield* compact(before, false);
    const tokens = window.tokens(chars());
    if (tokens > before * CERTAIN) throw new TurnFailure("context", tooLarge(tokens, before));
  }
  const sent = chars();
  const reply = yield* loggedReply(context.messages(), tools, scope);
  window = context.window(models.provider); // a fallback may have answered
  if (!reply.continued) window.count(sent, reply.usage);
  const refusal = reply.errors.find(({ kind }) => kind === "overflow");
  if (refusal === undefined || reply.content !== "") return reply;
  window.refuse(sent, refusal.window);
  const size = await window.size(sent, signal);
  const fits = size !== undefined && (!compacted || size < before!) && (yield* compact(size, true));
  if (!fits) return unfit(reply, result, size);
  session.recordError(refusal.code, refusal.message);
  result.errors = result.errors.filter((error) => !reply.errors.includes(error));
  const second = yield* loggedReply(context.messages(), tools, scope);
  if (!second.continued) window.count(chars(), second.usage);
  const again = second.errors.some(({ kind }) => kind === "overflow") && second.content === "";
  return again ? unfit(second, result, size) : second;
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
  return `The request does not fit the model's context window: about ${
    Math.round(tokens)
  } tokens, of ` +
    `${size}. ${hint(size)}`;
}

function hint(size: number | undefined): string {
  const larger = size === undefined ? "a larger window" : `a window of more than ${size} tokens`;
  return "The prompt, the system prompt and the tools alone have to fit: shorten the prompt, offer fewer tools " +
    `(tools.allow), set a smaller max_tokens, or use a model with ${larger}.`;
}
