import { type Clock, LARGE } from "../platform/clock.ts";
import { jsonOr } from "../platform/files.ts";
import type { ChatMessage, Provider, Usage, WireTool, WireToolCall } from "../plugins/api.ts";
import { TextBuffer } from "../providers/deltas.ts";
import { addUsage } from "./budget.ts";
import { type ReplyFacts, replyMessages } from "./conversation.ts";
import type { TurnError, TurnEvent, TurnResult } from "./events.ts";
import { reasonOf, type TurnModels } from "./models.ts";
import type { HeldCall } from "./held_call.ts";
import type { TurnScope } from "./scope.ts";

/**
 * Streams one reply into the turn's result, and its parts into the log, also when it is cancelled half-way.
 *
 * @param window the size of the model's context window in tokens, where it is known
 */
export async function* loggedReply(
  messages: (provider: Provider) => ChatMessage[],
  tools: WireTool[],
  scope: TurnScope & {
    result: TurnResult;
    models: TurnModels;
    /** Most tokens of the reply. Default: the setting. */
    max_tokens?: number;
  },
  window: () => number | undefined,
): AsyncGenerator<TurnEvent, Reply> {
  const { agent: { clock, config, run, mask, pace }, log, signal, result, answer, models } = scope;
  let thinking = "";
  let content = "";
  /** The part that comes first: the order of the parts is that in which their texts have begun to arrive. */
  let first: "thinking" | "token" = "thinking";
  const keep = () => {
    if (first === "token" && content !== "") log.append({ type: "text", text: content });
    if (thinking !== "") {
      log.append({ type: "thinking", text: thinking });
      result.thinking += (result.thinking === "" ? "" : "\n\n") + thinking;
    }
    if (first === "thinking" && content !== "") log.append({ type: "text", text: content });
    result.content = content;
  };
  const settings = {
    stream_retries: config.get("stream_retries"),
    stream_retry_delay: config.get("stream_retry_delay"),
    auto_continue: config.get("auto_continue"),
    auto_continue_max: config.get("auto_continue_max"),
    max_tokens: scope.max_tokens ?? config.get("max_tokens"),
    retry_budget: config.get("retry_budget"),
    text_calls: config.get("text_calls"),
  };
  const facts: ReplyFacts = { continued: [] };
  const { continued } = facts;
  log.beginReply(facts);
  let arrived: ArrivedTexts = {
    texts: () => ({ thinking, content }),
    sizes: () => ({ thinking: 0, token: 0 }),
  };
  const held = settings.text_calls === "run" ? await heldCall(tools, scope) : undefined;
  const place = (type: "thinking" | "token") => {
    const { thinking, token: all } = arrived.sizes();
    const token = all - (held?.length ?? 0);
    if ({ thinking, token }[first] === 0) first = type;
    const sent = [thinking > 0 ? `.t${thinking}` : "", token > 0 ? `.${token}` : ""];
    return `${log.parts}${(first === "thinking" ? sent : sent.reverse()).join("")}`;
  };
  const stream = streamReply({
    ...{ models, messages, tools, signal, clock, run, settings, continued },
    response_format: answer?.format,
    onStream: (texts) => arrived = texts,
  });
  let kept = false;
  try {
    while (true) {
      const { done, value } = await stream.next();
      if (!done) {
        if (value.type === "token" && held !== undefined) {
          const content = held.push(value.content);
          if (content !== "") yield { ...value, content, at: place("token") };
          continue;
        }
        const text = value.type === "thinking" || value.type === "token";
        yield text ? { ...value, at: place(value.type) } : value;
        continue;
      }
      if (held !== undefined) {
        const { content: whole } = value;
        await takeWrittenCalls(value, messages(models.provider), tools, scope);
        const content = held.end(whole, value.content);
        if (content !== "") yield { type: "token", run, content, at: place("token") };
      }
      ({ thinking, content } = value);
      const { reasoning_details: blocks } = value;
      const { name: provider, model } = models.provider;
      if (blocks !== undefined) facts.backend_state = { provider, model, blocks };
      if (content.length + thinking.length > LARGE) {
        await pace.turn(); // what has arrived last was read in this turn of the event loop
        await pace.turn();
      }
      kept = true;
      keep();
      for (const error of value.errors) error.message = mask(error.message);
      result.errors.push(...value.errors);
      result.status = value.status;
      result.reason = value.errors.map(reasonOf).findLast((reason) => reason !== "") ?? "";
      Object.assign(result, { model, provider });
      const size = window();
      if (Object.keys(value.usage).length > 0) {
        yield {
          type: "usage",
          run,
          usage: value.usage,
          ...(size !== undefined && { window: size }),
        };
      }
      return value;
    }
  } finally {
    if (!kept) {
      ({ thinking, content } = arrived.texts());
      keep();
    }
    await stream.return(undefined as never);
  }
}

/** What keeps a call that is written as text from being shown. */
async function heldCall(offered: WireTool[], { tools, task }: TurnScope): Promise<HeldCall> {
  const { HeldCall } = await import("./held_call.ts");
  const names = offered.flatMap(({ function: { name } }) => [
    name,
    ...tools.find(name)?.aliases ?? [],
  ]);
  return new HeldCall(names, task?.schema === undefined);
}

/** Replaces the end of a whole reply that is tool calls as text by these calls. */
async function takeWrittenCalls(
  reply: Reply,
  messages: ChatMessage[],
  offered: WireTool[],
  { tools, task }: TurnScope,
): Promise<void> {
  if (reply.status !== "ok" || reply.tool_calls.length > 0 || reply.continued) return;
  const names = offered.map((tool) => tool.function.name);
  const { mayHaveCall } = await import("./checks.ts");
  if (!mayHaveCall(reply.content, tools.list())) return;
  const { writtenCalls } = await import("./written_calls.ts");
  const found = writtenCalls(
    reply.content,
    tools.list().filter(({ name }) => names.includes(name)),
    {
      json: task?.schema === undefined,
      earlier: messages.map(({ content }) => content ?? ""),
    },
  );
  if (found === undefined) return;
  reply.content = found.text;
  reply.origin = "text";
  reply.tool_calls = found.calls.map((call) => ({
    id: crypto.randomUUID().replaceAll("-", "").slice(0, 9), // the length that every backend accepts
    type: "function",
    function: call,
  }));
}

/** How streams are retried and continued (specification 7.2, 8). */
export interface ReplySettings {
  /** Further attempts after a stream without content. */
  stream_retries: number;
  /** Seconds between attempts. */
  stream_retry_delay: number;
  auto_continue: boolean;
  auto_continue_max: number;
  /** 0: the provider's own limit holds. */
  max_tokens: number;
  /** Seconds that a provider waits at most for a busy backend. Only named here. */
  retry_budget: number;
  text_calls: "ask" | "run" | "off";
}

/** What is asked of a model, and for which run. */
interface ReplyRequest {
  models: TurnModels;
  /** The messages for the provider that is asked. */
  messages: (provider: Provider) => ChatMessage[];
  tools: WireTool[];
  signal: AbortSignal;
  clock: Clock;
  run: number;
  settings: ReplySettings;
  /** Receives the positions in the reply where the model was asked to continue. */
  continued?: ReplyFacts["continued"];
  response_format?: Record<string, unknown>;
  /** Is passed the texts so far with each attempt: an attempt without an answer loses its thinking. */
  onStream?: (texts: ArrivedTexts) => void;
}

/** The texts of a reply that is being streamed, and the numbers of their characters. */
interface ArrivedTexts {
  texts(): Pick<Reply, "content" | "thinking">;
  sizes(): { thinking: number; token: number };
}

/** One reply of the model. */
export interface Reply {
  content: string;
  thinking: string;
  tool_calls: WireToolCall[];
  /** What the backend expects to get back with the reply. */
  reasoning_details?: ChatMessage["reasoning_details"];
  status: "ok" | "truncated" | "empty" | "error";
  errors: TurnError[];
  usage: Usage;
  /** Whether the model was asked to continue: the usage is of several requests then. */
  continued?: true;
  /** `text`: the calls were written as text. */
  origin?: "text";
}

/** Finish reasons of vendors that mean: the output limit, a content filter, an answer that was cut. */
const LIMITED = new Set(["length", "max_tokens", "max_output_tokens", "model_length"]);
const FILTERED = new Set(["content_filter", "safety", "sensitive"]);
const CUT = new Set(["eof", "error", "abort", "network_error", "insufficient_system_resource"]);

/** How often one reply is requested again after a stream that stalled. */
const MAX_STALLS = 1;

const STREAM_ENDED = "Stream ended before a completion event";
const EMPTY = "The model sent an empty answer";
const CONTINUE = "Your last message was cut off. Go on exactly where it stopped: no preamble, no " +
  "repetition.";
const CALL_CUT = "Your last tool call was cut off at the output limit and was not run. Make it " +
  "again in smaller pieces.";

/**
 * Streams one reply: an attempt without content is repeated, an answer that is cut off is
 * continued and stitched together, up to the settings' caps. Failures are in the returned reply; only
 * a cancelled signal throws.
 */
export async function* streamReply(request: ReplyRequest): AsyncGenerator<TurnEvent, Reply> {
  const { models, signal, clock, run, settings, continued = [] } = request;
  const reply: Reply = {
    content: "",
    thinking: "",
    tool_calls: [],
    status: "ok",
    errors: [],
    usage: {},
  };
  let messages = request.messages;
  let attempts = 0;
  let stalls = 0;
  while (true) {
    const texts: Texts = { content: new TextBuffer(), thinking: new TextBuffer() };
    request.onStream?.({
      texts: () => ({
        content: `${reply.content}${texts.content}`,
        thinking: `${reply.thinking}${texts.thinking}`,
      }),
      sizes: () => ({
        token: reply.content.length + texts.content.size,
        thinking: reply.thinking.length + texts.thinking.size,
      }),
    });
    const stream = yield* readStream({ ...request, messages }, texts);
    addUsage(reply.usage, stream.usage);
    reply.content += stream.content;
    texts.content = new TextBuffer();
    const cut = CUT.has(stream.reason);
    const brought = stream.content !== "" || stream.tool_calls.length > 0;

    const { error } = stream;
    const kind = error?.kind;
    if (kind === "stalled") stalls++;
    const over = kind === "overflow" || kind === "permanent";
    if (error !== undefined && kind === undefined && error.code !== 0) {
      return ended(reply, stream, "error", error);
    }
    // What was cut off after its beginning, or stalled, is requested again below.
    if (error && kind && (over || kind !== "stalled" && !brought && stream.thinking === "")) {
      const next = brought ? { error } : models.next(error);
      if ("error" in next) return ended(reply, stream, "error", next.error);
      if (next.notice !== "") yield notice(run, `${closed(error.message)} ${next.notice}`);
      continue;
    }
    if (FILTERED.has(stream.reason) && stream.tool_calls.length === 0) {
      const message = `The backend's content filter ended the answer (${stream.reason})`;
      const status = reply.content === "" ? "empty" : "truncated";
      return ended(reply, stream, status, { code: 0, message });
    }
    if (!brought && (cut || stream.thinking === "")) {
      const failure = error ?? { code: 0, message: cut ? STREAM_ENDED : EMPTY };
      if (attempts < settings.stream_retries && stalls <= MAX_STALLS) {
        attempts++;
        const retry_in = settings.stream_retry_delay;
        const which = `attempt ${attempts + 1} of ${settings.stream_retries + 1}`;
        yield notice(run, `${closed(failure.message)} ${retrying(retry_in, which)}`, retry_in);
        await clock.sleep(retry_in * 1000, signal);
        continue;
      }
      if (error !== undefined) return ended(reply, stream, "error", error);
      return ended(reply, stream, reply.content === "" ? "empty" : "truncated", failure);
    }

    const limited = LIMITED.has(stream.reason);
    const callCut = (limited || cut) &&
      stream.tool_calls.some((call) =>
        jsonOr(call.function.arguments || "{}", undefined) === undefined
      );
    if (stream.tool_calls.length > 0 && !callCut) {
      reply.tool_calls = stream.tool_calls;
      return ended(reply, stream, "ok");
    }
    if (!limited && !cut) return ended(reply, stream, "ok");

    if (settings.text_calls !== "off" && (await hasCutCall(reply.content, request.tools))) {
      yield notice(run, "A tool call in the text of the answer was cut off.");
      return ended(reply, stream, "truncated"); // the turn asks for it again
    }
    const goesOn = brought && settings.auto_continue && stalls <= MAX_STALLS &&
      continued.length < settings.auto_continue_max;
    if (!goesOn) {
      const message = cut ? STREAM_ENDED : truncationWarning(settings.max_tokens);
      return ended(reply, stream, "truncated", error?.kind ? error : { code: 0, message });
    }
    yield notice(run, "The answer was cut off; asking the model to go on.");
    reply.thinking += stream.thinking;
    texts.thinking = new TextBuffer();
    const { content, thinking } = reply;
    continued.push({
      text: content.length,
      thinking: thinking.length,
      request: callCut ? CALL_CUT : CONTINUE,
    });
    reply.continued = true;
    const so_far = replyMessages({ content, thinking, continued });
    messages = (provider) => [...request.messages(provider), ...so_far];
  }
}

/** Whether a text that was cut off ends in a tool call. */
async function hasCutCall(text: string, tools: WireTool[]): Promise<boolean> {
  if (tools.length === 0 || !/[<{[]/.test(text)) return false;
  const { cutCall } = await import("./text_call.ts");
  return cutCall(text, tools.map((tool) => tool.function.name)) !== undefined;
}

/** The texts of a stream that is being read. */
type Texts = Record<"content" | "thinking", TextBuffer>;

interface Stream {
  content: string;
  thinking: string;
  tool_calls: WireToolCall[];
  reasoning_details?: ChatMessage["reasoning_details"];
  reason: string;
  usage: Usage;
  error: TurnError | undefined;
}

async function* readStream(
  { models, messages, tools, signal, run, settings, response_format }: ReplyRequest,
  texts: Texts,
): AsyncGenerator<TurnEvent, Stream> {
  let asked = 1;
  const stream: Stream = {
    content: "",
    thinking: "",
    tool_calls: [],
    reason: "eof",
    usage: {},
    error: undefined,
  };
  const splitter = new ThinkingSplitter();
  const keep = (piece: ReplyPiece): TurnEvent => {
    texts[piece.type === "token" ? "content" : "thinking"].add(piece.content);
    return { type: piece.type, run, content: piece.content };
  };
  const { provider, patience } = models;
  const { retry_budget } = settings;
  const max_tokens = settings.max_tokens || undefined;
  const retry_cut = settings.stream_retries > 0;
  const text_tools = settings.text_calls === "run";
  const options = {
    ...{ tools, text_tools, max_tokens, signal, response_format, retry_cut },
    ...patience,
  };
  for await (const event of provider.chat(messages(provider), options)) {
    switch (event.type) {
      case "thinking":
        yield keep(event);
        break;
      case "token":
        for (const piece of splitter.push(event.content)) yield keep(piece);
        break;
      case "tool_calls":
        stream.tool_calls.push(...event.tool_calls);
        stream.reasoning_details = event.reasoning_details;
        break;
      case "wait": {
        if (event.retry_at !== undefined) {
          yield notice(run, closed(event.reason), event.seconds);
          break;
        }
        const which = `attempt ${++asked}, waiting ${retry_budget} s in all at most`;
        const message = `${closed(event.reason)} ${retrying(event.seconds, which)}`;
        yield notice(run, message, event.seconds);
        break;
      }
      case "error": {
        const { type: _, ...error } = event;
        stream.error = error;
        break;
      }
      case "done":
        stream.reason = event.reason.toLowerCase();
        stream.usage = event.usage;
        stream.reasoning_details ??= event.reasoning_details;
        break;
    }
  }
  for (const piece of splitter.end()) yield keep(piece);
  stream.content = texts.content.toString();
  stream.thinking = texts.thinking.toString();
  return stream;
}

/** @param retry_in seconds until the backend is asked again */
function notice(run: number, message: string, retry_in?: number): TurnEvent {
  const event = { type: "notice" as const, run, level: "warning" as const, message };
  return retry_in === undefined ? event : { ...event, retry_in };
}

/** A phrase as a sentence. */
function closed(phrase: string): string {
  return /[.?!]$/.test(phrase) ? phrase : `${phrase}.`;
}

function retrying(seconds: number, which: string): string {
  return `Retrying in ${seconds.toFixed(1)} s (${which}).`;
}

/** Completes `reply` with the thinking of its last stream, a status, and the error behind it. */
function ended(
  reply: Reply,
  stream: Stream,
  status: Reply["status"],
  error?: TurnError,
): Reply {
  reply.thinking += stream.thinking;
  if (stream.reasoning_details) reply.reasoning_details = stream.reasoning_details;
  reply.status = status;
  if (error !== undefined) reply.errors.push(error);
  return reply;
}

function truncationWarning(max_tokens: number): string {
  return max_tokens > 0
    ? `The answer was cut off at the configured max_tokens (${max_tokens}); raise it for longer answers.`
    : "The answer was cut off at the provider's own output limit (max_tokens is 0, so none is sent).";
}

/** A piece of a reply, which is either reasoning or answer. */
interface ReplyPiece {
  type: "thinking" | "token";
  content: string;
}

const OPENERS = ["<think>", "<thinking>"];

/**
 * Splits reasoning that a backend embeds in the content of its reply, between thinking markers at
 * its beginning, from the answer (specification 6.2). Markers may arrive cut anywhere.
 */
export class ThinkingSplitter {
  #state: "start" | "thinking" | "answer" | "gap" = "start";
  #held = "";
  #closer = "";
  #fresh = false; // the opening marker was the last thing pushed

  /** The pieces that are decided once `content` has arrived. */
  push(content: string): ReplyPiece[] {
    const pieces: ReplyPiece[] = [];
    this.#held += content;
    if (this.#state === "start") this.#start();
    if (this.#state === "thinking") this.#think(pieces);
    if (this.#state === "gap") {
      this.#held = this.#held.trimStart(); // the blank lines between the marker and the answer
      if (this.#held !== "") this.#state = "answer";
    }
    if (this.#state === "answer" && this.#held !== "") {
      pieces.push({ type: "token", content: this.#held });
      this.#held = "";
    }
    return pieces;
  }

  /** The text that was held back when the stream ended. */
  end(): ReplyPiece[] {
    const content = this.#held;
    this.#held = "";
    if (content === "") return [];
    return [{ type: this.#state === "thinking" ? "thinking" : "token", content }];
  }

  #start(): void {
    const text = this.#held.trimStart();
    const opener = OPENERS.find((marker) => text.startsWith(marker));
    if (opener !== undefined) {
      this.#state = "thinking";
      this.#closer = opener.replace("<", "</");
      this.#held = text.slice(opener.length);
      this.#fresh = true;
    } else if (!OPENERS.some((marker) => marker.startsWith(text))) {
      this.#state = "answer";
    }
  }

  #think(pieces: ReplyPiece[]): void {
    if (this.#fresh && this.#held !== "") {
      this.#held = this.#held.replace(/^\n/, "");
      this.#fresh = false;
    }
    const end = this.#held.indexOf(this.#closer);
    const certain = end >= 0 ? end : this.#held.length - overlap(this.#held, this.#closer);
    if (certain > 0) pieces.push({ type: "thinking", content: this.#held.slice(0, certain) });
    if (end >= 0) {
      this.#held = this.#held.slice(end + this.#closer.length);
      this.#state = "gap";
    } else {
      this.#held = this.#held.slice(certain);
    }
  }
}

/** Length of the longest end of `text` that begins `marker`. */
function overlap(text: string, marker: string): number {
  for (let length = Math.min(marker.length - 1, text.length); length > 0; length--) {
    if (marker.startsWith(text.slice(-length))) return length;
  }
  return 0;
}

/** A whole answer without the reasoning that a backend embedded in it. */
export function withoutThinking(answer: string): string {
  const splitter = new ThinkingSplitter();
  return [...splitter.push(answer), ...splitter.end()]
    .map(({ type, content }) => type === "token" ? content : "").join("");
}
