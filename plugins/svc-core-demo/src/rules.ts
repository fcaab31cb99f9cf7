import type { RequestMessage } from "./chat_request.ts";

/** The next message of the assistant: calls, or a text. */
export interface Answer {
  text: string;
  calls: { name: string; arguments: Record<string, unknown> }[];
}

export function respond(_messages: readonly RequestMessage[], _tools: unknown): Answer {
  return { text: "Hello.", calls: [] };
}
