import type { ChatMessage } from "../plugins/api.ts";
import type { BackendError } from "./failure.ts";

/**
 * What one backend demands of a conversation beyond the protocol. Some want earlier reasoning back and
 * others refuse it, some take only the order of roles that their model was trained on; the answer to a
 * first try is the only way to know, also behind a gateway. What was learned holds for all later requests.
 */
export class StrictMessages {
  #reasoning: boolean | undefined;
  #ordered = false;
  #texts = false;

  /** Whether earlier reasoning is to be sent; undefined while the backend did not say. */
  get reasoning(): boolean | undefined {
    return this.#reasoning;
  }

  /** Whether a request was rejected for the shape of its messages, and the next one will have another. */
  learn({ status, message }: BackendError, sent: ChatMessage[]): boolean {
    // Servers that fail while they lay out the conversation say 500.
    if (status !== 400 && status !== 422 && status !== 500) return false;
    if (this.#reasoning === undefined && /reasoning_content/.test(message)) {
      this.#reasoning = !sent.some((each) => each.reasoning_content !== undefined);
      return true;
    }
    if (!this.#ordered && ORDER.test(message)) return this.#ordered = true;
    if (this.#texts || status === 500) return false;
    this.#texts = TEXT.test(message) && sent.some((each) => each.content === null);
    return this.#texts;
  }

  /** The messages as this backend takes them. */
  adapt(messages: ChatMessage[]): ChatMessage[] {
    const ordered = this.#ordered ? inOrder(messages) : messages;
    if (this.#reasoning) return ordered.map(withReasoning);
    return this.#texts ? ordered.map(withText) : ordered;
  }
}

/** Signs that roles came in an order that the backend does not take. */
const ORDER =
  /roles? must alternate|alternating roles|unexpected role|after role|system message must|system messages? (is|are) only/i;

/** Signs that a message without a text was refused. */
const TEXT = /\bcontent\b.*(string|null)|(string|null|required).*\bcontent\b/i;

/** Where reasoning is wanted, it is wanted in every answer, with a content that is a text. */
function withReasoning(message: ChatMessage): ChatMessage {
  if (message.role !== "assistant") return message;
  const { content, reasoning_content = "" } = message;
  return { ...message, content: content ?? "", reasoning_content };
}

function withText(message: ChatMessage): ChatMessage {
  return { ...message, content: message.content ?? "" };
}

/**
 * One system message, at the beginning; then user and assistant in turn, and an answer between the results of
 * tools and the user. Nothing that was said is left out.
 */
function inOrder(messages: ChatMessage[]): ChatMessage[] {
  const ordered: ChatMessage[] = [];
  for (const message of messages) {
    const last = ordered.at(-1);
    const late = message.role === "system" && last !== undefined && last.role !== "system";
    const next: ChatMessage = late ? { ...message, role: "user" } : message;
    if (last?.role === "tool" && next.role === "user") {
      ordered.push({ role: "assistant", content: "(no answer)" }, next);
    } else if (last?.role === next.role && last.tool_calls === undefined && last.role !== "tool") {
      const content = joined(last.content, next.content);
      const reasoning_content = joined(last.reasoning_content, next.reasoning_content);
      ordered[ordered.length - 1] = {
        ...next,
        content,
        ...(reasoning_content !== null && { reasoning_content }),
      };
    } else {
      ordered.push(next);
    }
  }
  return ordered;
}

function joined(
  first: string | null | undefined,
  second: string | null | undefined,
): string | null {
  const said = [first, second].filter((text) => typeof text === "string" && text !== "");
  return said.length > 0 ? said.join("\n\n") : first ?? second ?? null;
}

/** A message to a backend that takes no reasoning. */
export function withoutReasoning(message: ChatMessage): ChatMessage {
  if (message.reasoning_content === undefined) return message;
  const { reasoning_content: _, ...rest } = message;
  return rest;
}
