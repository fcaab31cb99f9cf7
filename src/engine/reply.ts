import type { ChatMessage, Provider, Usage, WireTool, WireToolCall } from "../plugins/api.ts";
import type { Clock } from "../platform/clock.ts";
import { type ReplyPiece, ThinkingSplitter } from "./thinking.ts";

/** How streams are retried and continued (specification 7.2, 8). */
export interface ReplySettings {
  /** Further attempts after a stream that brought nothing. */
  stream_retries: number;
  /** Seconds between attempts. */
  stream_retry_delay: number;
  auto_continue: boolean;
  auto_continue_max: number;
  /** 0: the provider's own limit holds. Only named in the warning here. */
  max_tokens: number;
  /** Seconds that a provider waits at most for a busy backend. Only named here. */
  retry_budget: number;
}

/** One model reply: what a round of the loop works with. */
export interface Reply {
  content: string;
  thinking: string;
  tool_calls: WireToolCall[];
  /** What the backend wants back with the calls. */
  reasoning_details?: ChatMessage["reasoning_details"];
  status: "ok" | "truncated" | "empty" | "error";
  errors: { code: number; message: string }[];
  usage: Usage;
}

/** What arrives while a reply is streamed. */
export type ReplyEvent =
  | ReplyPiece
  /** `retry_in`: seconds until the backend is asked again. */
  | { type: "notice"; message: string; retry_in?: number };

/** Vendors' own words for `length`, for a filter's veto, and for an answer that the backend broke off. */
const LIMITED = new Set(["length", "max_tokens", "max_output_tokens", "model_length"]);
const FILTERED = new Set(["content_filter", "safety", "sensitive"]);
const CUT = new Set(["eof", "error", "abort", "network_error", "insufficient_system_resource"]);

const STREAM_ENDED = "Stream ended before a completion event";
const EMPTY = "The model sent an empty answer";
const CONTINUE = "Your last message was cut off. Go on exactly where it stopped: no preamble, no " +
  "repetition.";
const CALL_CUT = "Your last tool call was cut off at the output limit and was not run. Make it " +
  "again in smaller pieces.";

/**
 * Streams one reply: an attempt that brings nothing is made again, an answer that is cut off is
 * continued and stitched together, up to the settings' caps. Failures are in the returned reply; only
 * a cancelled signal throws.
 */
export async function* streamReply(request: {
  provider: Provider;
  messages: ChatMessage[];
  tools: WireTool[];
  signal: AbortSignal;
  clock: Clock;
  settings: ReplySettings;
}): AsyncGenerator<ReplyEvent, Reply> {
  const { provider, tools, signal, clock, settings } = request;
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
  let continuations = 0;
  while (true) {
    const stream = yield* readStream(provider, messages, { tools, signal }, settings);
    addUsage(reply.usage, stream.usage);
    reply.content += stream.content;
    const cut = CUT.has(stream.reason);
    const brought = stream.content !== "" || stream.tool_calls.length > 0;

    if (stream.error !== undefined && stream.error.code !== 0) {
      return ended(reply, stream, "error", stream.error);
    }
    if (FILTERED.has(stream.reason) && stream.tool_calls.length === 0) {
      const message = `The backend's content filter ended the answer (${stream.reason})`;
      const status = reply.content === "" ? "empty" : "truncated";
      return ended(reply, stream, status, { code: 0, message });
    }
    if (!brought && (cut || stream.thinking === "")) {
      const error = stream.error ?? { code: 0, message: cut ? STREAM_ENDED : EMPTY };
      if (attempts < settings.stream_retries) {
        attempts++;
        const retry_in = settings.stream_retry_delay;
        const which = `attempt ${attempts + 1} of ${settings.stream_retries + 1}`;
        yield {
          type: "notice",
          message: `${closed(error.message)} ${retrying(retry_in, which)}`,
          retry_in,
        };
        await clock.sleep(retry_in * 1000, signal);
        continue;
      }
      if (stream.error !== undefined) return ended(reply, stream, "error", error);
      return ended(reply, stream, reply.content === "" ? "empty" : "truncated", error);
    }

    const limited = LIMITED.has(stream.reason);
    const callCut = (limited || cut) &&
      stream.tool_calls.some((call) => !parses(call.function.arguments));
    if (stream.tool_calls.length > 0 && !callCut) {
      reply.tool_calls = stream.tool_calls;
      if (stream.reasoning_details) reply.reasoning_details = stream.reasoning_details;
      return ended(reply, stream, "ok");
    }
    if (!limited && !cut) return ended(reply, stream, "ok");

    const goesOn = brought && settings.auto_continue && continuations < settings.auto_continue_max;
    if (!goesOn) {
      const message = cut ? STREAM_ENDED : truncationWarning(settings.max_tokens);
      return ended(reply, stream, "truncated", { code: 0, message });
    }
    continuations++;
    yield { type: "notice", message: "The answer was cut off; asking the model to go on." };
    reply.thinking += stream.thinking;
    messages = [...request.messages];
    if (reply.content !== "") messages.push({ role: "assistant", content: reply.content });
    messages.push({ role: "user", content: callCut ? CALL_CUT : CONTINUE });
  }
}

/** Adds the counts of `more` to `total`. */
export function addUsage(total: Usage, more: Usage): void {
  for (const [key, count] of Object.entries(more)) {
    if (typeof count === "number") total[key] = (total[key] ?? 0) + count;
  }
}

interface Stream {
  content: string;
  thinking: string;
  tool_calls: WireToolCall[];
  reasoning_details?: ChatMessage["reasoning_details"];
  reason: string;
  usage: Usage;
  error: { code: number; message: string } | undefined;
}

async function* readStream(
  provider: Provider,
  messages: ChatMessage[],
  options: { tools: WireTool[]; signal: AbortSignal },
  { retry_budget }: ReplySettings,
): AsyncGenerator<ReplyEvent, Stream> {
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
  const keep = (piece: ReplyPiece): ReplyPiece => {
    if (piece.type === "token") stream.content += piece.content;
    else stream.thinking += piece.content;
    return piece;
  };
  for await (const event of provider.chat(messages, options)) {
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
        const which = `attempt ${++asked}, waiting ${retry_budget} s in all at most`;
        const message = `${closed(event.reason)} ${retrying(event.seconds, which)}`;
        yield { type: "notice", message, retry_in: event.seconds };
        break;
      }
      case "error":
        stream.error = { code: event.code, message: event.message };
        break;
      case "done":
        stream.reason = event.reason.toLowerCase();
        stream.usage = event.usage;
        break;
    }
  }
  for (const piece of splitter.end()) yield keep(piece);
  return stream;
}

/** A phrase as a sentence. */
function closed(phrase: string): string {
  return /[.?!]$/.test(phrase) ? phrase : `${phrase}.`;
}

function retrying(seconds: number, which: string): string {
  return `Retrying in ${seconds.toFixed(1)} s (${which}).`;
}

/** Closes `reply` with what its last stream thought, a status, and the error behind it. */
function ended(
  reply: Reply,
  stream: Stream,
  status: Reply["status"],
  error?: { code: number; message: string },
): Reply {
  reply.thinking += stream.thinking;
  reply.status = status;
  if (error !== undefined) reply.errors.push(error);
  return reply;
}

function parses(text: string): boolean {
  try {
    JSON.parse(text === "" ? "{}" : text);
    return true;
  } catch {
    return false;
  }
}

function truncationWarning(max_tokens: number): string {
  return max_tokens > 0
    ? `The answer was cut off at the configured max_tokens (${max_tokens}); raise it for longer answers.`
    : "The answer was cut off at the provider's own output limit (max_tokens is 0, so none is sent).";
}
