import type { ChatMessage } from "../plugins/api.ts";
import type { Part, Turn } from "../sessions/schema.ts";

/**
 * The provider's messages for a conversation so far. From the newest compaction record on, earlier
 * turns are replaced by its summary (specification 2.2: `command` parts with `compact_from`).
 *
 * The log does not keep the backend's call ids, so each tool part gets one made of its place: nine letters
 * and digits, which even the strictest backend takes.
 */
export function historyMessages(turns: readonly Turn[]): ChatMessage[] {
  const { summary, from } = newestCompaction(turns);
  const messages: ChatMessage[] = [];
  if (summary !== "") {
    messages.push({ role: "user", content: `Summary of the conversation so far:\n\n${summary}` });
  }
  for (const turn of turns) {
    if (turn.index >= from) messages.push(...turnMessages(turn));
  }
  return messages;
}

/** The newest summary in a log, and the index of the turn from which on turns speak for themselves. */
export function newestCompaction(turns: readonly Turn[]): { summary: string; from: number } {
  for (const { index, parts } of turns.toReversed()) {
    for (const part of parts) {
      if (part.type !== "command" || part.summary === undefined) continue;
      // A record cannot speak for what came after it.
      return { summary: part.summary, from: Math.min(part.compact_from ?? index, index) };
    }
  }
  return { summary: "", from: 0 };
}

/** The provider's messages for one turn. Every tool call has its result right behind it. */
export function turnMessages(turn: Turn): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let command = "";
  let assistant: ChatMessage | undefined;
  let results: ChatMessage[] = [];
  const flush = () => {
    if (assistant !== undefined) messages.push(assistant, ...results);
    assistant = undefined;
    results = [];
  };
  const open = () => assistant ??= { role: "assistant", content: null };
  turn.parts.forEach((part: Part, place) => {
    switch (part.type) {
      case "user":
        flush();
        messages.push({ role: "user", content: part.text });
        break;
      case "system":
        flush();
        messages.push({ role: "system", content: part.text });
        break;
      case "thinking":
        flush();
        open().reasoning_content = part.text;
        break;
      case "text":
        if (results.length > 0) flush();
        // A command whose output the log has: without it, an answer would stand there to no question.
        if (command !== "" && messages.length === 0 && assistant === undefined) {
          messages.push({ role: "user", content: command });
        }
        open().content = (assistant?.content ?? "") + part.text;
        break;
      case "tool": {
        const id = `c${base36(turn.index)}${base36(place)}`;
        const message = open();
        message.tool_calls ??= [];
        message.tool_calls.push({
          id,
          type: "function",
          function: { name: part.name, arguments: JSON.stringify(part.input) },
        });
        results.push({ role: "tool", tool_call_id: id, content: part.output });
        break;
      }
      case "command":
        command = part.text;
        break;
    }
  });
  flush();
  // A reply of thinking alone carries nothing that a backend accepts as a message.
  return messages.filter((message) =>
    message.role !== "assistant" || message.content !== null || message.tool_calls !== undefined
  );
}

function base36(n: number): string {
  return n.toString(36).padStart(4, "0");
}
