import { mintId } from "../platform/files.ts";
import type {
  ChatMessage,
  EventTranslator,
  ReplyPiece,
  StreamEvent,
  Usage,
  WireToolCall,
} from "../plugins/api.ts";
import { BackendError, type Peer, reportedFailure } from "./failure.ts";
import { isJson } from "./sse.ts";

/**
 * Converts the JSON texts of one completion, streamed chunks or a whole document, into stream events
 * (specification 6.2). `push` returns reasoning and content; `end` returns the tool calls and `done`.
 *
 * The answer of another protocol is translated first. Its reasoning blocks get their position in the reply, so that
 * `replyPieces` finds it again.
 */
export class Assembler {
  readonly #peer: Peer;
  readonly #translate: EventTranslator | undefined;
  readonly #calls = new ToolCallDeltas((text, cost) => this.#keep(text, cost));
  readonly #details = new ReasoningDetails();
  #reason = "";
  #done = false;
  #usage: Usage = {};
  #began = false;
  #several = false;
  #kept = 0;
  #arrived = 0;
  /** Characters of events without content, which a translator may keep. */
  #silent = 0;
  /** Characters of text so far. */
  #text = 0;

  constructor(peer: Peer, translate?: EventTranslator) {
    this.#peer = peer;
    this.#translate = translate;
  }

  /** The memory that the content so far takes; it grows with each piece. */
  get kept(): number {
    return this.#kept;
  }

  /** The characters of the content so far. */
  get arrived(): number {
    return this.#arrived;
  }

  /** Whether the backend sent token counts, or its finish reason. */
  get counted(): boolean {
    return this.finished || Object.keys(this.#usage).length > 0;
  }

  /** Whether the backend sent a finish reason; only token counts may follow. */
  get finished(): boolean {
    return this.#done || this.#reason !== "";
  }

  /** Whether `[DONE]` was received; nothing follows. */
  get done(): boolean {
    return this.#done;
  }

  /**
   * Processes one data event.
   *
   * @throws BackendError for an error that the backend reports, for broken JSON, and for an answer of more
   * than 32 Mi characters.
   */
  *push(text: string): Generator<StreamEvent> {
    if (text.trim() === "[DONE]") this.#done = true;
    // Any data other than an object and the end mark is a keep-alive.
    if (this.#done || !text.trimStart().startsWith("{")) return;
    const { kept } = this;
    for (const chunk of this.#parse(text)) {
      if (chunk === "[DONE]") this.#done = true;
      else yield* this.#chunk(chunk);
    }
    if (this.#translate && this.kept === kept) this.#silent += text.length;
    if (this.#silent > MAX_KEPT) throw this.#tooLong();
  }

  *#chunk(chunk: Fields): Generator<StreamEvent> {
    if (chunk.error) throw reportedFailure(chunk.error, this.#peer);
    if (isFailure(chunk)) throw reportedFailure(chunk, this.#peer);
    this.#usage = { ...this.#usage, ...usageOf(object(chunk.usage)) };
    const choice = this.#choice(chunk.choices);
    if (choice === undefined) return;
    if (choice.error) throw reportedFailure(choice.error, this.#peer);
    // Some backends repeat the whole message after its deltas.
    const part = object(choice.delta ?? (this.#began ? undefined : choice.message));
    this.#began = true;
    if (part.reasoning_details) {
      this.#keep(JSON.stringify(part.reasoning_details));
      const after = { text: this.#text, calls: this.#calls.size };
      this.#details.push(
        this.#translate ? placed(part.reasoning_details, after) : part.reasoning_details,
      );
    }
    yield* this.#thinking(part);
    yield* this.#content(part.content ?? part.refusal);
    const deltas = Array.isArray(part.tool_calls) ? part.tool_calls : [];
    if (part.function_call) deltas.push({ function: part.function_call }); // deprecated in the protocol
    this.#calls.push(deltas.map(object));
    if (typeof choice.finish_reason === "string") this.#reason ||= choice.finish_reason;
  }

  /** The last events: the tool calls, unless the stream was cut off, and `done`. */
  *end(): Generator<StreamEvent> {
    const calls = this.finished ? this.#calls.calls() : [];
    const reasoning_details = this.#details.blocks;
    if (calls.length > 0) {
      yield {
        type: "tool_calls",
        tool_calls: calls,
        ...(reasoning_details && { reasoning_details }),
      };
    }
    const implied = calls.length > 0 ? "tool_calls" : "stop";
    const reason = this.#reason || (this.#done ? implied : "eof");
    yield {
      type: "done",
      reason,
      usage: this.#usage,
      ...(reasoning_details && calls.length === 0 && { reasoning_details }),
    };
  }

  /** The chunks of an event. */
  #parse(text: string): (Fields | "[DONE]")[] {
    try {
      const event = JSON.parse(text);
      return this.#translate?.(event) ?? [event];
    } catch {
      throw new BackendError(0, `${this.#peer.name} sent an event that is broken JSON.`);
    }
  }

  /** The choice with index 0. A single choice counts as it: some backends number each chunk. */
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
      this.#text += content.length;
      if (content !== "") yield { type: "token", content: this.#keep(content) };
    } else if (Array.isArray(content)) {
      for (const item of content.map(object)) {
        if (item.thinking !== undefined) {
          yield* this.#thinking({ reasoning: textOf(item.thinking) });
        } else yield* this.#content(item.text);
      }
    }
  }

  /** Counts the memory that the answer takes. */
  #keep(text: string, cost = 0): string {
    this.#arrived += text.length;
    this.#kept += text.length + cost;
    if (this.#kept > MAX_KEPT) throw this.#tooLong();
    return text;
  }

  #tooLong(): BackendError {
    return new BackendError(0, `${this.#peer.name} sent an answer too long to keep.`);
  }
}

/**
 * A text that grows by pieces. They are joined in blocks: a string that is appended to a million times takes several
 * times the memory of its characters.
 */
export class TextBuffer {
  #blocks: string[] = [];
  #pieces: string[] = [];
  #waiting = 0;
  #size = 0;

  /** The number of its characters. */
  get size(): number {
    return this.#size;
  }

  add(piece: string): void {
    this.#size += piece.length;
    this.#pieces.push(piece);
    this.#waiting += piece.length;
    if (this.#waiting < BLOCK) return;
    this.#blocks.push(this.#pieces.join(""));
    this.#pieces = [];
    this.#waiting = 0;
  }

  toString(): string {
    const whole = [...this.#blocks, ...this.#pieces].join("");
    this.#blocks = [whole];
    this.#pieces = [];
    this.#waiting = 0;
    return whole;
  }
}

/** A JSON text that grows by pieces. Its end is noticed without parsing all of it again for each piece. */
class JsonBuffer extends TextBuffer {
  #depth = 0;
  #open: "" | "string" | "escape" = "";
  #first = "";
  #closed = false;
  #broken = false;

  override add(piece: string): void {
    super.add(piece);
    for (const char of piece) this.#follow(char);
  }

  get empty(): boolean {
    return this.size === 0;
  }

  /** Whether the text can be whole: its brackets and strings are closed, or it is a short word. */
  get ended(): boolean {
    if (this.#first !== "" && !'{["'.includes(this.#first)) return this.size < 100;
    return this.#closed && !this.#broken;
  }

  #follow(char: string): void {
    if (this.#open === "escape") this.#open = "string";
    else if (this.#open === "string") {
      if (char === "\\") this.#open = "escape";
      if (char === '"') this.#open = "";
    } else if (/\s/.test(char)) return;
    else {
      this.#first ||= char;
      if (this.#closed) this.#broken = true;
      if (char === '"') this.#open = "string";
      if (char === "{" || char === "[") this.#depth++;
      if (char === "}" || char === "]") this.#depth--;
    }
    if (this.#open === "" && this.#depth === 0) this.#closed = true;
  }
}

/** Characters of a block of a text. */
const BLOCK = 64 * 1024;

/** Maximum length of a completion, in characters. */
const MAX_KEPT = 32 * 1024 * 1024;

// deno-lint-ignore no-explicit-any
type Fields = Record<string, any>;

/** Whether a chunk is an error without the field `error`. */
function isFailure({ object, choices, type, code, message, detail }: Fields): boolean {
  if (object === "error") return true;
  if (choices !== undefined) return false;
  if (typeof message === "string") return type === "error" || code !== undefined;
  return typeof detail === "string" || (Array.isArray(detail) && detail.length > 0);
}

/**
 * The token counts of an answer under their names in the protocol, and the vendor's further numbers under their own.
 * `cached_tokens` and `reasoning_tokens` are parts of `prompt_tokens` and `completion_tokens`.
 */
function usageOf(usage: Fields): Usage {
  const { prompt_tokens_details: prompt, completion_tokens_details: completion } = usage;
  const named = {
    prompt_tokens: usage.prompt_tokens ?? usage.input_tokens,
    completion_tokens: usage.completion_tokens ?? usage.output_tokens,
    cached_tokens: usage.cached_tokens ?? object(prompt).cached_tokens ??
      usage.prompt_cache_hit_tokens ?? usage.cache_read_input_tokens,
    reasoning_tokens: usage.reasoning_tokens ?? object(completion).reasoning_tokens,
  };
  const counts = Object.entries({ ...usage, ...named });
  return Object.fromEntries(counts.filter(([, count]) => Number.isFinite(count)));
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

// deno-lint-ignore no-explicit-any
type Delta = Record<string, any>;

interface Parts {
  index: number;
  id: string;
  name: string;
  arguments: JsonBuffer;
  extra_content?: Record<string, unknown>;
}

/** Assembles the tool calls of one answer from their fragments. Backends number these in several ways. */
class ToolCallDeltas {
  readonly #calls: Parts[] = [];
  readonly #keep: (text: string, cost?: number) => string;

  /** @param keep counts a text that is held in memory, and its overhead in characters */
  constructor(keep: (text: string, cost?: number) => string) {
    this.#keep = keep;
  }

  /** The number of calls that have begun. */
  get size(): number {
    return this.#calls.length;
  }

  /** Adds the deltas of one chunk. */
  push(deltas: Delta[]): void {
    const touched = new Set<Parts>();
    for (const delta of deltas) touched.add(this.#add(delta, touched));
  }

  /**
   * The calls in the order of their index, each with a unique id; empty calls are omitted. A generated id
   * has nine letters and digits, which the strictest backend accepts.
   */
  calls(): WireToolCall[] {
    const ids = new Set<string>();
    const calls = this.#calls.filter((call) => call.name !== "" || !call.arguments.empty);
    return calls.sort((a, b) => a.index - b.index).map((call) => {
      let id = call.id;
      while (id === "" || ids.has(id)) id = `svc${mintId()}`;
      ids.add(id);
      const { name, arguments: args, extra_content } = call;
      return {
        id,
        type: "function",
        function: { name, arguments: args.toString() },
        ...(extra_content && { extra_content }),
      };
    });
  }

  #add(delta: Delta, touched: Set<Parts>): Parts {
    const { name: named, arguments: args } = delta.function ?? {};
    const id = typeof delta.id === "string" ? delta.id : "";
    const name = typeof named === "string" ? named : "";
    const call = this.#callFor({ index: delta.index, id, name, args }, touched);
    // Some backends give each fragment another id; the first one is used.
    call.id ||= id;
    // A name comes in fragments, or is repeated with each fragment of the arguments.
    if (name !== call.name) call.name += name;
    if (typeof args === "string") call.arguments.add(this.#keep(args));
    else if (typeof args === "object" && args !== null) {
      call.arguments = new JsonBuffer();
      call.arguments.add(this.#keep(JSON.stringify(args)));
    }
    if (typeof delta.extra_content === "object" && delta.extra_content !== null) {
      call.extra_content = delta.extra_content;
      this.#keep(JSON.stringify(delta.extra_content));
    }
    this.#keep(id + name);
    return call;
  }

  /** The call that a delta continues, or a new one. */
  #callFor(head: Head, touched: Set<Parts>): Parts {
    const { index, id, name } = head;
    const known = typeof index === "number"
      ? this.#calls.findLast((call) => call.index === index)
      : this.#calls.findLast((call) => id === "" || call.id === id) ??
        (name === "" ? this.#calls.at(-1) : undefined);
    if (known !== undefined && !startsAnother(head, known, touched)) return known;
    const position = typeof index === "number" ? index : this.#calls.length;
    const call: Parts = { index: position, id: "", name: "", arguments: new JsonBuffer() };
    this.#keep("", CALL_COST);
    this.#calls.push(call);
    return call;
  }
}

/** The overhead of a tool call, in characters. */
const CALL_COST = 32 * 1024;

/** The fields of a delta that identify its call. */
interface Head {
  index: unknown;
  id: string;
  name: string;
  args: unknown;
}

/**
 * Whether a delta starts a new call after the last one of its index. Backends that number each call 0, or
 * none, start the next one with a name; other backends repeat the name with each fragment.
 *
 * @param touched the calls for which the same chunk has brought a delta
 */
function startsAnother(
  { index, id, name, args }: Head,
  known: Parts,
  touched: Set<Parts>,
): boolean {
  if (name === "") return false;
  const numbered = typeof index === "number";
  const renamed = name !== known.name;
  if (known.arguments.empty) {
    return id !== "" && known.id !== "" && id !== known.id && (renamed || !numbered);
  }
  if (!known.arguments.ended || !isJson(known.arguments.toString())) return false;
  if (id !== "") return id !== known.id;
  return !numbered || renamed || touched.has(known) || (args !== undefined && args !== "");
}

type Detail = Record<string, unknown>;

/**
 * Assembles the reasoning blocks that a gateway streams next to its text. Some models behind it accept tool
 * results only together with their own blocks, unchanged and including signatures.
 */
class ReasoningDetails {
  readonly #blocks: Detail[] = [];

  /** Adds the blocks of a chunk, or fragments of one block. */
  push(details: unknown): void {
    if (!Array.isArray(details)) return;
    for (const detail of details) {
      if (typeof detail !== "object" || detail === null) continue;
      const last = this.#blocks.at(-1);
      if (last !== undefined && continues(last, detail)) merge(last, detail);
      else this.#blocks.push({ ...detail });
    }
  }

  /** Undefined when there are none. */
  get blocks(): Detail[] | undefined {
    return this.#blocks.length > 0 ? this.#blocks : undefined;
  }
}

/** The text field of the block types that are streamed in fragments. */
const PIECES: Record<string, string> = { "reasoning.text": "text", "reasoning.summary": "summary" };

function continues(last: Detail, next: Detail): boolean {
  return next.type === last.type && next.index === last.index && String(next.type) in PIECES;
}

function merge(block: Detail, piece: Detail): void {
  const text = PIECES[String(block.type)]!;
  const whole = `${block[text] ?? ""}${piece[text] ?? ""}`;
  for (const [key, value] of Object.entries(piece)) {
    if (value !== null && value !== undefined) block[key] = value;
  }
  block[text] = whole;
}

/** Where in its reply a block came: after so many characters of text, and so many calls. */
interface Position {
  text: number;
  calls: number;
}

function placed(blocks: Detail[], after: Position): Detail[] {
  const first = after.text === 0 && after.calls === 0;
  return first ? blocks : blocks.map((block) => ({ ...block, after }));
}

/** The parts of an assistant's message for a protocol that keeps their order. */
export function replyPieces(
  { content, tool_calls = [], reasoning_details = [] }: ChatMessage,
): ReplyPiece[] {
  const pieces: ReplyPiece[] = [];
  const from = { text: 0, calls: 0 };
  const upTo = ({ text, calls }: Position) => {
    const piece = (content ?? "").slice(from.text, text);
    if (piece.trim() !== "") pieces.push({ text: piece });
    pieces.push(...tool_calls.slice(from.calls, calls).map((call) => ({ call })));
    Object.assign(from, { text, calls });
  };
  for (const { after, ...block } of reasoning_details) {
    upTo(after as Position | undefined ?? from);
    pieces.push({ block });
  }
  upTo({ text: Infinity, calls: Infinity });
  return pieces;
}
