import type { StreamEvent, Usage } from "../plugins/api.ts";
import { BackendError, type Peer, reportedFailure } from "./failure.ts";
import { ReasoningDetails } from "./reasoning_details.ts";
import { ToolCallDeltas } from "./tool_call_deltas.ts";

/**
 * Turns the JSON texts of one completion, streamed chunks or a whole document, into stream events
 * (specification 6.2): reasoning and content as they arrive, tool calls and the end from `end()`.
 */
export class Assembler {
  readonly #peer: Peer;
  readonly #calls = new ToolCallDeltas((text, cost) => this.#keep(text, cost));
  readonly #details = new ReasoningDetails();
  #reason = "";
  #done = false;
  #usage: Usage = {};
  #began = false;
  #several = false;
  #kept = 0;

  constructor(peer: Peer) {
    this.#peer = peer;
  }

  /** The backend said that the answer is complete; only token counts may still follow. */
  get finished(): boolean {
    return this.#done || this.#reason !== "";
  }

  /** `[DONE]` was seen: nothing follows. */
  get done(): boolean {
    return this.#done;
  }

  /**
   * Takes one data event.
   *
   * @throws BackendError for an error the backend reports, for broken JSON, and beyond 32 Mi characters.
   */
  *push(text: string): Generator<StreamEvent> {
    if (text.trim() === "[DONE]") this.#done = true;
    // What is neither an object nor the end mark is somebody's keep-alive.
    if (this.#done || !text.trimStart().startsWith("{")) return;
    const chunk = this.#parse(text);
    if (chunk.error) throw reportedFailure(chunk.error, this.#peer);
    if (isFailure(chunk)) throw reportedFailure(chunk, this.#peer);
    for (const [key, count] of Object.entries(object(chunk.usage))) {
      if (typeof count === "number" && Number.isFinite(count)) this.#usage[key] = count;
    }
    const choice = this.#choice(chunk.choices);
    if (choice === undefined) return;
    if (choice.error) throw reportedFailure(choice.error, this.#peer);
    // Some backends repeat the whole message at the end of the deltas that made it.
    const part = object(choice.delta ?? (this.#began ? undefined : choice.message));
    this.#began = true;
    if (part.reasoning_details) {
      this.#keep(JSON.stringify(part.reasoning_details));
      this.#details.push(part.reasoning_details);
    }
    yield* this.#thinking(part);
    yield* this.#content(part.content ?? part.refusal);
    const deltas = Array.isArray(part.tool_calls) ? part.tool_calls : [];
    if (part.function_call) deltas.push({ function: part.function_call }); // the protocol's former way
    this.#calls.push(deltas.map(object));
    if (typeof choice.finish_reason === "string") this.#reason ||= choice.finish_reason;
  }

  /** The events that close the stream: the tool calls, unless it was cut off, and `done`. */
  *end(): Generator<StreamEvent> {
    const calls = this.finished ? this.#calls.whole() : [];
    const reasoning_details = this.#details.blocks;
    if (calls.length > 0) {
      yield {
        type: "tool_calls",
        tool_calls: calls,
        ...(reasoning_details && { reasoning_details }),
      };
    }
    const unsaid = calls.length > 0 ? "tool_calls" : "stop";
    const reason = this.#reason || (this.#done ? unsaid : "eof");
    yield { type: "done", reason, usage: this.#usage };
  }

  #parse(text: string): Fields {
    try {
      return JSON.parse(text);
    } catch {
      throw new BackendError(0, `${this.#peer.name} sent an event that is broken JSON.`);
    }
  }

  /** One answer is asked for: a lone choice is it, even where every chunk has another number. */
  #choice(choices: unknown): Fields | undefined {
    if (!Array.isArray(choices)) return undefined;
    this.#several ||= choices.length > 1;
    const list = choices.map(object);
    return this.#several ? list.find((choice) => (choice.index ?? 0) === 0) : list[0];
  }

  *#thinking(part: Fields): Generator<StreamEvent> {
    const reasoning = [part.reasoning_content, part.reasoning].find((text) =>
      typeof text === "string" && text !== ""
    );
    if (reasoning !== undefined) yield { type: "thinking", content: this.#keep(reasoning) };
  }

  *#content(content: unknown): Generator<StreamEvent> {
    if (typeof content === "string") {
      if (content !== "") yield { type: "token", content: this.#keep(content) };
    } else if (Array.isArray(content)) {
      for (const item of content.map(object)) {
        if (item.thinking !== undefined) {
          yield* this.#thinking({ reasoning: textOf(item.thinking) });
        } else yield* this.#content(item.text);
      }
    }
  }

  /** Counts what somebody will hold in memory. */
  #keep(text: string, cost = 0): string {
    this.#kept += text.length + cost;
    if (this.#kept > MAX_KEPT) {
      throw new BackendError(0, `${this.#peer.name} sent an answer too long to keep.`);
    }
    return text;
  }
}

/** Longest completion, in characters. */
const MAX_KEPT = 32 * 1024 * 1024;

// deno-lint-ignore no-explicit-any
type Fields = Record<string, any>;

/** An error that is no completion, and does not say `error`. */
function isFailure({ object, choices, type, code, message, detail }: Fields): boolean {
  if (object === "error") return true;
  if (choices !== undefined) return false;
  if (typeof message === "string") return type === "error" || code !== undefined;
  return typeof detail === "string" || (Array.isArray(detail) && detail.length > 0);
}

function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map((item) => string(object(item).text)).join("");
  return string(value);
}

function string(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function object(value: unknown): Fields {
  return typeof value === "object" && value !== null ? value : {};
}
