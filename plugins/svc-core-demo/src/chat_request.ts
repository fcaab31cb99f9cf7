/** A message as a client sends it; nothing about it can be relied on. */
export interface RequestMessage {
  role?: unknown;
  content?: unknown;
  tool_calls?: unknown;
  tool_call_id?: unknown;
}

/** A chat-completions request, read leniently. */
export class ChatRequest {
  readonly body: Record<string, unknown>;
  readonly messages: readonly RequestMessage[];
  readonly model: string;
  readonly stream: boolean;
  /** Length of the request in characters. */
  readonly size: number;

  /** @throws Error with a sentence when `text` is no such request. */
  constructor(text: string) {
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      throw new Error("the body is not JSON");
    }
    const fields = body as Record<string, unknown> | null;
    if (!Array.isArray(fields?.messages)) throw new Error('the body has no "messages" list');
    this.body = fields;
    this.messages = fields.messages.filter((message) => typeof message === "object" && message);
    this.model = typeof fields.model === "string" ? fields.model : "";
    this.stream = fields.stream === true;
    this.size = text.length;
  }

  /** Index of the last user message, or -1. */
  lastUserIndex(): number {
    return this.messages.findLastIndex((message) => message.role === "user");
  }

  lastUser(): string {
    return contentText(this.messages[this.lastUserIndex()]?.content);
  }

  /** All system messages. */
  system(): string {
    return this.#texts(this.messages, "system");
  }

  /** All tool results after the last user message. */
  results(): string {
    return this.#texts(this.messages.slice(this.lastUserIndex() + 1), "tool");
  }

  #texts(messages: readonly RequestMessage[], role: string): string {
    return messages.filter((message) => message.role === role)
      .map((message) => contentText(message.content)).join("\n");
  }
}

/** The text of a message's content, which may also be a list of parts. */
export function contentText(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return "";
  return content.map((part) => typeof part?.text === "string" ? part.text : "").join("");
}
