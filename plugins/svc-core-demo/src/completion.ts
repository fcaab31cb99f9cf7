import type { Reply } from "./script.ts";

/** A message of a client, not validated. */
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

  /** @throws Error when `text` is not a chat-completions request. */
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

/** The identification of a completion. */
export interface CompletionHead {
  id: string;
  model: string;
}

/**
 * A completion as server-sent events, one string for each: the content (reasoning, answer, tool calls)
 * and its end (finish reason, usage, `[DONE]`).
 */
export function completionEvents(
  reply: Reply,
  head: CompletionHead,
): { content: string[]; end: string[] } {
  const before = `{"id":${JSON.stringify(head.id)},"object":"chat.completion.chunk",` +
    `"created":${now()},"model":${JSON.stringify(head.model)},"choices":`;
  let role: { role?: string } = { role: "assistant" };
  const delta = (fields: Record<string, unknown>, finish: string | null = null) => {
    const choice = { index: 0, delta: { ...role, ...fields }, finish_reason: finish };
    role = {};
    return `data: ${before}[${JSON.stringify(choice)}]}\n\n`;
  };
  const content = [
    ...pieces(reply.thinking).map((text) => delta({ [reasoningKey(reply)]: text })),
    ...pieces(reply.text).map((text) => delta({ content: text })),
    ...callDeltas(reply, head.id).map((call) => delta({ tool_calls: [call] })),
  ];
  if (reply.end_early) return { content, end: [] };
  const end = [];
  const finish = finishReason(reply);
  if (finish !== null) end.push(delta({}, finish));
  if (reply.usage !== undefined) {
    end.push(`data: ${before}[],"usage":${JSON.stringify(reply.usage)}}\n\n`);
  }
  for (let i = Number(reply.done ?? 1); i > 0; i--) end.push("data: [DONE]\n\n");
  return { content, end };
}

/** A completion as one JSON document. */
export function completionDocument(reply: Reply, head: CompletionHead): string {
  const calls = reply.tool_calls?.map((call, index) => ({
    id: call.id ?? callId(head.id, index),
    type: "function",
    function: { name: call.name, arguments: argumentText(call.arguments) },
  }));
  return JSON.stringify({
    id: head.id,
    object: "chat.completion",
    created: now(),
    model: head.model,
    choices: [{
      index: 0,
      message: {
        role: "assistant",
        content: reply.text === undefined ? null : whole(reply.text),
        ...(reply.thinking !== undefined && { [reasoningKey(reply)]: whole(reply.thinking) }),
        ...(calls && { tool_calls: calls }),
      },
      finish_reason: reply.end_early ? null : finishReason(reply),
    }],
    ...(reply.usage && !reply.end_early && { usage: reply.usage }),
  });
}

/** The deltas of all calls. The fragments of several calls alternate, as the protocol allows. */
function callDeltas(reply: Reply, id: string): Record<string, unknown>[] {
  const calls = reply.tool_calls ?? [];
  const parts = calls.map((call) => slices(argumentText(call.arguments), call.fragments ?? 1));
  const deltas = [];
  for (let round = 0; round < Math.max(0, ...parts.map((each) => each.length)); round++) {
    for (const [index, call] of calls.entries()) {
      const part = parts[index]![round];
      if (part === undefined) continue;
      const start = { id: call.id ?? callId(id, index), type: "function" };
      deltas.push({
        index,
        ...(round === 0 && start),
        function: { ...(round === 0 && { name: call.name }), arguments: part },
      });
    }
  }
  return deltas;
}

/** A text in `count` slices of nearly the same length; surrogate pairs may be split. */
function slices(text: string, count: number): string[] {
  return Array.from(
    { length: count },
    (_, i) => text.slice(i * text.length / count, (i + 1) * text.length / count),
  );
}

function argumentText(args: Record<string, unknown> | string | undefined): string {
  return typeof args === "string" ? args : JSON.stringify(args ?? {});
}

function callId(completion: string, index: number): string {
  return `call_${completion.slice(completion.lastIndexOf("-") + 1)}_${index}`;
}

function finishReason(reply: Reply): string | null {
  return reply.finish !== undefined ? reply.finish : reply.tool_calls ? "tool_calls" : "stop";
}

function reasoningKey(reply: Reply): string {
  return reply.reasoning_key ?? "reasoning_content";
}

/** A string in word-sized pieces; a list as it is. */
function pieces(text: string | string[] | undefined): string[] {
  if (text === undefined) return [];
  return typeof text === "string" ? text.split(/(?<=\s)(?=\S)/) : text;
}

function whole(text: string | string[]): string {
  return typeof text === "string" ? text : text.join("");
}

function now(): number {
  return Math.floor(Date.now() / 1000);
}
