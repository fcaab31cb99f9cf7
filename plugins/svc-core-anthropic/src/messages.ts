import type {
  ChatMessage,
  EventTranslator,
  ReplyPiece,
  WireTool,
} from "../../../src/plugins/api.ts";

type Block = { type: string; [field: string]: unknown };

/** A message of the Messages protocol. */
interface Message {
  role: "user" | "assistant";
  content: Block[];
}

/**
 * The fields `system`, `tools` and `messages` of `POST /v1/messages`. The last of the tools, the system prompt, the
 * last message, and the one with which the request before ended are marked for the prompt cache: so each request reads
 * what the one before wrote.
 *
 * @param pieces the parts of an assistant's message in their order
 */
export function requestFields(
  given: ChatMessage[],
  tools: WireTool[] = [],
  pieces: (message: ChatMessage) => ReplyPiece[],
): { system?: Block[]; tools?: Record<string, unknown>[]; messages: Message[] } {
  const leads = given[0]?.role === "system" && given[0].content !== "";
  const messages: Message[] = [];
  for (const message of given[0]?.role === "system" ? given.slice(1) : given) {
    const content = message.role === "assistant" ? replyBlocks(pieces(message)) : blocks(message);
    const role = message.role === "assistant" ? "assistant" : "user";
    const last = messages.at(-1);
    if (content.length === 0) continue;
    if (last?.role === role) last.content.push(...content);
    else messages.push({ role, content });
  }
  for (const { content } of messages.filter(({ role }) => role === "user").slice(-2)) {
    content.push({ ...content.pop()!, ...CACHED });
  }
  const schemas: Record<string, unknown>[] = tools.map(({ function: { parameters, ...rest } }) => ({
    ...rest,
    input_schema: parameters,
  }));
  if (schemas.length > 0) Object.assign(schemas.at(-1)!, CACHED);
  return {
    ...leads && { system: [{ type: "text", text: given[0]!.content, ...CACHED }] },
    ...schemas.length > 0 && { tools: schemas },
    messages,
  };
}

const CACHED = { cache_control: { type: "ephemeral" } };

/**
 * Whether the model may think with a budget: not while it answers results of calls that it made without thinking, as
 * another backend may have done. The protocol refuses such a request.
 */
export function mayThink(messages: Message[]): boolean {
  let at = messages.length - 1;
  const answersCalls = () => messages[at]?.content.some(({ type }) => type === "tool_result");
  while (answersCalls()) at -= 2;
  const first = messages[at + 1]?.content[0];
  return first === undefined || isThinking(first);
}

function isThinking({ type }: { type?: unknown }): boolean {
  return type === "thinking" || type === "redacted_thinking";
}

/** The blocks of a message of the user, a note, or the result of a call. */
function blocks({ role, content, images = [], tool_call_id = "" }: ChatMessage): Block[] {
  const seen = images.map(({ media_type, data }) => ({
    type: "image",
    source: { type: "base64", media_type, data },
  }));
  const text = content?.trim() ? [{ type: "text", text: content }] : [];
  if (role === "tool") {
    const result = seen.length > 0 ? [...text, ...seen] : content ?? "";
    return [{ type: "tool_result", tool_use_id: plainId(tool_call_id), content: result }];
  }
  const all = [...text, ...seen];
  return all.length > 0 ? all : [{ type: "text", text: "(no text)" }];
}

function replyBlocks(pieces: ReplyPiece[]): Block[] {
  return pieces.flatMap((piece): Block[] => {
    if ("text" in piece) return [{ type: "text", text: piece.text }];
    if ("block" in piece) return isThinking(piece.block) ? [piece.block as Block] : [];
    const { id, function: { name, arguments: input } } = piece.call;
    return [{ type: "tool_use", id: plainId(id), name, input: JSON.parse(input) }];
  });
}

/** Ids of other backends may have characters that this one refuses. */
function plainId(id: string): string {
  return id.replace(/[^\w-]/g, "_");
}

const FINISH: Record<string, string> = {
  end_turn: "stop",
  stop_sequence: "stop",
  tool_use: "tool_calls",
  max_tokens: "length",
  model_context_window_exceeded: "length",
  refusal: "content_filter",
};

// deno-lint-ignore no-explicit-any
type Fields = Record<string, any>;

/** Translates the events of one answer, or the document that is a whole one. */
export function messagesTranslator(): EventTranslator {
  let usage: Fields = {};
  /** The thinking block that has begun. */
  let thought: Fields | undefined;

  const begin = (index: number, block: Fields): Fields[] => {
    switch (block.type) {
      case "thinking":
        thought = { ...block };
        return [delta({ reasoning_content: block.thinking })];
      case "redacted_thinking":
        return [delta({ reasoning_details: [block] })];
      case "text":
        return [delta({ content: block.text })];
      case "tool_use": {
        const given = Object.keys(block.input ?? {}).length > 0;
        const called = { name: block.name, ...given && { arguments: block.input } };
        return [delta({ tool_calls: [{ index, id: block.id, function: called }] })];
      }
      default:
        return [];
    }
  };
  const grow = (index: number, { type, ...piece }: Fields): Fields[] => {
    switch (type) {
      case "text_delta":
        return [delta({ content: piece.text })];
      case "input_json_delta":
        return [delta({ tool_calls: [{ index, function: { arguments: piece.partial_json } }] })];
      case "thinking_delta":
        if (thought) thought.thinking = `${thought.thinking ?? ""}${piece.thinking ?? ""}`;
        return [delta({ reasoning_content: piece.thinking })];
      case "signature_delta":
        if (thought) thought.signature = `${thought.signature ?? ""}${piece.signature ?? ""}`;
    }
    return [];
  };
  const end = (): Fields[] => {
    const block = thought;
    thought = undefined;
    return block?.signature ? [delta({ reasoning_details: [block] })] : [];
  };
  const finish = ({ stop_reason: reason }: Fields, counts: Fields = {}): Fields => {
    const known = Object.entries(counts).filter(([, count]) => typeof count === "number");
    usage = { ...usage, ...Object.fromEntries(known) };
    return { ...delta({}, reason ? FINISH[reason] ?? reason : null), usage: countsOf(usage) };
  };

  return (event) => {
    switch (event.type) {
      case "message_start":
        usage = { ...event.message?.usage };
        return [];
      case "content_block_start":
        return begin(event.index, { ...event.content_block });
      case "content_block_delta":
        return grow(event.index, { ...event.delta });
      case "content_block_stop":
        return end();
      case "message_delta":
        return [finish({ ...event.delta }, event.usage)];
      case "message_stop":
        return ["[DONE]"];
      case "message": {
        const content: Fields[] = event.content ?? [];
        const said = content.flatMap((block, index) => [...begin(index, block), ...end()]);
        return [...said, finish(event, event.usage), "[DONE]"];
      }
      default:
        return event.error ? [{ error: event.error }] : []; // else a ping
    }
  };
}

function delta(delta: Fields, finish_reason: string | null = null): Fields {
  return { choices: [{ index: 0, delta, finish_reason }] };
}

/** The token counts under their names in svc: what is read from the cache and written into it is part of the prompt. */
function countsOf(usage: Fields): Fields {
  const { input_tokens = 0, cache_read_input_tokens: read = 0 } = usage;
  const { cache_creation_input_tokens: written = 0, output_tokens = 0 } = usage;
  return {
    prompt_tokens: input_tokens + read + written,
    completion_tokens: output_tokens,
    cached_tokens: read,
    ...written > 0 && { cache_write_tokens: written },
  };
}
