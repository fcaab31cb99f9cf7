import type {
  ChatMessage,
  ChatOptions,
  EventTranslator,
  ReplyPiece,
} from "../../../src/plugins/api.ts";

type Item = Record<string, unknown>;

/**
 * The fields `instructions`, `input`, `tools` and `text` of `POST /v1/responses`.
 *
 * @param pieces the parts of an assistant's message in their order
 */
export function requestFields(
  messages: ChatMessage[],
  { tools = [], response_format }: Pick<ChatOptions, "tools" | "response_format">,
  pieces: (message: ChatMessage) => ReplyPiece[],
): Record<string, unknown> {
  const leads = messages[0]?.role === "system";
  const { type, json_schema } = (response_format ?? {}) as { type?: string; json_schema?: Item };
  return {
    ...leads && { instructions: messages[0]!.content },
    input: (leads ? messages.slice(1) : messages).flatMap((message) =>
      message.role === "assistant" ? replyItems(pieces(message)) : [item(message)]
    ),
    ...tools.length > 0 &&
      { tools: tools.map((tool) => ({ type: "function", ...tool.function, strict: false })) },
    ...type && { text: { format: { type, ...json_schema } } },
  };
}

/** The item of a message of the user, a note, or the result of a call. */
function item({ role, content, images = [], tool_call_id }: ChatMessage): Item {
  const parts = images.length === 0 ? content ?? "" : [
    { type: "input_text", text: content ?? "" },
    ...images.map(({ media_type, data }) => ({
      type: "input_image",
      image_url: `data:${media_type};base64,${data}`,
    })),
  ];
  if (role === "tool") {
    return { type: "function_call_output", call_id: tool_call_id, output: parts };
  }
  return { type: "message", role, content: parts };
}

function replyItems(pieces: ReplyPiece[]): Item[] {
  return pieces.flatMap((piece): Item[] => {
    if ("block" in piece) return isSealed(piece.block) ? [piece.block] : [];
    if ("text" in piece) {
      const content = [{ type: "output_text", text: piece.text }];
      return [{ type: "message", role: "assistant", content }];
    }
    const { id, function: called } = piece.call;
    return [{ type: "function_call", call_id: id, ...called }];
  });
}

/** Whether a reasoning item can be sent again: nothing is stored, so it needs its content. */
function isSealed({ type, encrypted_content }: Item): boolean {
  return type === "reasoning" && typeof encrypted_content === "string" && encrypted_content !== "";
}

// deno-lint-ignore no-explicit-any
type Fields = Record<string, any>;

/** Translates the events of one answer, or the document that is a whole one. */
export function responsesTranslator(): EventTranslator {
  /** The items whose content has begun to arrive, by their index. */
  const begun = new Set<number>();
  let called = false;

  const grow = (index: number, part: Fields): Fields[] => {
    begun.add(index);
    return [delta(part)];
  };
  /** A whole item. Some backends send its content only here. */
  const whole = (index: number, item: Fields): Fields[] => {
    const known = begun.has(index);
    switch (item.type) {
      case "message": {
        const text = (item.content ?? []).map(({ text, refusal }: Fields) => text ?? refusal ?? "");
        return known ? [] : grow(index, { content: text.join("") });
      }
      case "function_call": {
        called = true;
        const { name, call_id: id, arguments: args } = item;
        const call = { index, id, function: { name, ...!known && { arguments: args } } };
        return [delta({ tool_calls: [call] })];
      }
      case "reasoning": {
        const texts = [...item.summary ?? [], ...item.content ?? []].map(({ text }: Fields) =>
          text
        );
        const { type, summary = [], encrypted_content } = item;
        return [
          ...known || texts.length === 0
            ? []
            : grow(index, { reasoning_content: texts.join("\n\n") }),
          ...isSealed(item)
            ? [delta({ reasoning_details: [{ type, summary, encrypted_content }] })]
            : [],
        ];
      }
      default:
        return [];
    }
  };
  const end = ({ error, incomplete_details, usage }: Fields): (Fields | "[DONE]")[] => {
    if (error) return [{ error }];
    const cut = incomplete_details?.reason;
    const reason = cut === "max_output_tokens" ? "length" : cut ?? (called ? "tool_calls" : "stop");
    return [{ ...delta({}, reason), ...usage && { usage: countsOf(usage) } }, "[DONE]"];
  };

  return (event) => {
    const { type, output_index: index, item = {} } = event;
    switch (type) {
      case "response.output_item.added":
        if (item.type !== "function_call") return [];
        return [delta({
          tool_calls: [{ index, id: item.call_id, function: { name: item.name } }],
        })];
      case "response.output_text.delta":
      case "response.refusal.delta":
        return grow(index, { content: event.delta });
      case "response.reasoning_summary_part.added":
        return begun.has(index) ? [delta({ reasoning_content: "\n\n" })] : [];
      case "response.reasoning_summary_text.delta":
      case "response.reasoning_text.delta":
        return grow(index, { reasoning_content: event.delta });
      case "response.function_call_arguments.delta":
        return grow(index, { tool_calls: [{ index, function: { arguments: event.delta } }] });
      case "response.output_item.done":
        return whole(index, item);
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
        return end({ ...event.response });
      case "error":
        return [{ error: event.error ?? { code: event.code, message: event.message } }];
    }
    if (event.object === "response") {
      return [
        ...(event.output ?? []).flatMap((each: Fields, i: number) => whole(i, each)),
        ...end(event),
      ];
    }
    return event.error ? [{ error: event.error }] : [];
  };
}

function delta(delta: Fields, finish_reason: string | null = null): Fields {
  return { choices: [{ index: 0, delta, finish_reason }] };
}

/** The token counts under their names in svc. */
function countsOf({ input_tokens, output_tokens, ...details }: Fields): Fields {
  return {
    prompt_tokens: input_tokens,
    completion_tokens: output_tokens,
    cached_tokens: details.input_tokens_details?.cached_tokens,
    reasoning_tokens: details.output_tokens_details?.reasoning_tokens,
  };
}
