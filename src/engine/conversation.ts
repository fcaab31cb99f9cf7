import type { ChatMessage, WireToolCall } from "../plugins/api.ts";
import type {
  Attachment,
  BackendState,
  Continued,
  NewPart,
  Turn,
  TurnStatus,
} from "../sessions/schema.ts";
import type { LeftOutResults } from "../sessions/results.ts";
import type { TurnLog } from "../sessions/session.ts";

/** A message and its origin in the log. */
export interface Entry {
  message: ChatMessage;
  /** Index of the turn; 0 for a summary. */
  turn: number;
  /** Position in the turn's parts; that of the first part for a whole reply. */
  part: number;
  /** The backend whose reasoning blocks the message has. */
  thought?: Served;
  /** The whole text of a tool result, of which the message may have less, until nothing is left of it; and the tool. */
  result?: { text: string; tool: string };
}

/** Reads what was attached to a prompt, or given by a tool; undefined when it is gone. */
export type ReadAttachment = (
  attachment: Attachment,
  origin: "user" | "tool",
) => Uint8Array | undefined;

/** What serves a turn. */
export type Served = Pick<Turn, "provider" | "model">;
type Command = Extract<NewPart, { type: "command" }>;
type ReplyPart = Extract<NewPart, { type: "text" | "thinking" | "tool" }>;

/** How a note of background commands begins in the log, and for the model. */
export const COMMANDS_NOTE = "[background commands] ";

/** Most calls of one message; backends reject more. */
const MOST_CALLS = 128;

/**
 * The conversation of a session, as the messages that a backend is sent (specification 2.2). It is built from the
 * parts of the log in their order: in the process that appends them as in every later one, so that all of
 * them send the same bytes. Compaction records apply to the parts before them.
 */
export class Conversation {
  /** Index of the newest turn. */
  turn = 0;
  /** The context window, in tokens, that a refused request had shown before the newest compaction. */
  window?: number;
  /** The newest summary. */
  summary = "";
  /** Where the session began; see `environment.ts`. */
  environment?: string;
  /** The newest plan that the model has made with the tool `plan`. */
  #plan = "";
  readonly #backend?: Served;
  readonly #attached: ReadAttachment;
  #entries: Entry[] = [];
  /** Position of the next part. */
  #next = 0;
  /** Whether another backend serves the turn: its ids and reasoning blocks mean nothing to this one. */
  #foreign = false;
  #command = "";
  /** The parts of the current reply, and the position of its entries. */
  #reply: {
    part: ReplyPart;
    place: number;
    call?: WireToolCall;
    /** What the model was sent of a result. */
    sent?: Pick<ChatMessage, "content" | "images">;
  }[] = [];
  #replyAt = 0;

  /**
   * @param backend what the conversation is sent to
   * @param attached the contents of attachments. Default: none is kept
   */
  constructor(
    turns: readonly Turn[] = [],
    backend?: Served,
    attached: ReadAttachment = () => undefined,
  ) {
    this.#backend = backend;
    this.#attached = attached;
    for (const turn of turns) this.add(turn);
  }

  /**
   * Adds a turn of the log.
   *
   * @param leftOut the tool results that the log leaves out. Default: none
   */
  add(turn: Turn, leftOut: ReturnType<LeftOutResults["read"]> = () => undefined): void {
    this.begin(turn);
    for (const [i, part] of turn.parts.entries()) this.append(part, leftOut(turn.index, i, part));
    this.end(turn.status);
  }

  /** Whether it is sent to this backend. */
  isFor({ provider, model }: Served): boolean {
    return this.#backend?.provider === provider && this.#backend.model === model;
  }

  get entries(): readonly Entry[] {
    return this.#entries;
  }

  /** Position of the next part of the turn. */
  get next(): number {
    return this.#next;
  }

  /** The notes that the conversation begins with. They belong to the system prompt. */
  get preface(): string {
    return this.#entries.slice(0, this.#begin()).map(({ message }) => message.content).join("\n\n");
  }

  /** The messages after the system prompt, without the reasoning blocks of other backends. */
  messages(to = this.#backend): ChatMessage[] {
    return this.#entries.slice(this.#begin()).map(({ message, thought = to }) => {
      if (thought?.provider === to?.provider && thought?.model === to?.model) return message;
      const { reasoning_details: _, ...rest } = message;
      return rest;
    });
  }

  /** Whether the newest note with the first line of `note` is `note`. */
  knows(note: string): boolean {
    return this.note(note.slice(0, note.indexOf("\n") + 1)) === note;
  }

  /** The text of the newest note that begins so; undefined for none. */
  note(beginning: string): string | undefined {
    const { message } =
      this.#entries.findLast(({ message: { role, content } }) =>
        role === "system" && content!.startsWith(beginning)
      ) ?? {};
    return message?.content ?? undefined;
  }

  begin(
    { index, provider, model, environment }: Served & Pick<Turn, "index" | "environment">,
  ): void {
    this.turn = index;
    this.environment ??= environment;
    this.#next = 0;
    this.#command = "";
    const backend = this.#backend ?? { provider, model };
    this.#foreign = provider !== backend.provider || model !== backend.model;
  }

  /** @param sent the text of a tool result that the model was sent, where the log has another */
  append(part: NewPart, sent?: string): void {
    const place = this.#next++;
    switch (part.type) {
      case "user": {
        this.#endReply();
        const { text, attachments = [] } = part;
        const content = attachments.length === 0
          ? { content: text }
          : withAttachments(text, attachments, (each) => this.#attached(each, "user"));
        this.#push({ role: "user", ...content }, place);
        break;
      }
      case "system":
        this.#endReply();
        this.#push({ role: "system", content: part.text }, place);
        break;
      case "command":
        this.#endReply();
        this.#command = part.text;
        this.#compact(part);
        break;
      default:
        if (!this.#continues(part)) this.#endReply();
        // The answer of a command needs a question before it.
        if (part.type === "text" && this.#command !== "" && !this.#spoke()) {
          this.#push({ role: "user", content: this.#command }, place);
          this.#endReply();
        }
        if (part.type === "tool" && part.name === "plan" && !part.is_error) {
          this.#plan = part.output;
        }
        this.#reply.push({
          part,
          place,
          call: this.#wireCall(part, place),
          ...(part.type === "tool" && {
            sent: withAttachments(
              sent ?? part.output,
              part.attachments ?? [],
              (each) => this.#attached(each, "tool"),
            ),
          }),
        });
        this.#entries.splice(this.#replyAt, Infinity, ...this.#replyEntries());
    }
  }

  /**
   * Ends the turn. One that got no reply leaves the conversation, so that the next prompt does not repeat an open
   * request. The end of any other that failed or was cancelled is noted.
   */
  end(status: TurnStatus): void {
    this.#endReply();
    if (status === "running" || status === "ok" || status === "truncated") return;
    const first = this.#entries.findLastIndex(({ turn }) => turn !== this.turn) + 1;
    const own = this.#entries.slice(first);
    if (!own.some(({ message }) => message.role === "assistant")) {
      this.#entries.length = first;
      this.#endReply();
      return;
    }
    if (!own.some(({ message }) => message.role === "user")) return; // a call that a person typed
    const how = status === "cancelled" ? "was cancelled here" : "ended here without an answer";
    const note = `[The turn ${how}. What it had begun may be unfinished.]`;
    this.#push({ role: "user", content: note }, this.#next++);
    this.#endReply();
  }

  /** The number of leading notes. */
  #begin(): number {
    const at = this.#entries.findIndex(({ message }) => message.role !== "system");
    return at < 0 ? this.#entries.length : at;
  }

  #push(message: ChatMessage, part: number): void {
    this.#entries.push({ message, turn: this.turn, part });
    this.#replyAt = this.#entries.length;
  }

  #endReply(): void {
    this.#reply = [];
    this.#replyAt = this.#entries.length;
  }

  #spoke(): boolean {
    return this.#reply.length > 0 || this.#entries.at(-1)?.turn === this.turn;
  }

  /** Whether a part belongs to the current reply. Old logs have no rounds: thinking begins a reply there. */
  #continues({ type, round }: ReplyPart): boolean {
    const last = this.#reply.at(-1)?.part;
    if (last === undefined) return true;
    if (round !== undefined || last.round !== undefined) return round === last.round;
    return type === "tool" || (type === "text" && last.type !== "tool");
  }

  #replyEntries(): Entry[] {
    const { turn } = this;
    const part = this.#reply[0]!.place;
    const text = (type: "text" | "thinking") =>
      this.#reply.map((each) => each.part.type === type ? each.part.text : "").join("");
    const calls = this.#reply.flatMap(({ part, call, ...rest }) =>
      part.type === "tool" && call ? [{ ...rest, part, call }] : []
    );
    const { continued = [], backend_state: state } = this.#reply[0]!.part;
    const formerly = this.#foreign ? undefined : calls[0]?.part.call?.reasoning_details;
    const head = replyMessages({
      content: text("text"),
      thinking: text("thinking"),
      continued,
      tool_calls: calls.slice(0, MOST_CALLS).map(({ call }) => call),
      reasoning_details: state?.blocks ?? formerly,
    });
    const entries: Entry[] = head.map((message) => ({
      message,
      turn,
      part,
      ...(message.reasoning_details && { thought: state ?? this.#backend }),
    }));
    for (const [i, { part, place, sent, call }] of calls.entries()) {
      if (i > 0 && i % MOST_CALLS === 0) {
        const tool_calls = calls.slice(i, i + MOST_CALLS).map(({ call }) => call);
        const message: ChatMessage = { role: "assistant", content: null, tool_calls };
        entries.push({ message, turn, part: place });
      }
      const message: ChatMessage = { role: "tool", tool_call_id: call.id, ...sent! };
      const result = { text: sent!.content!, tool: part.name };
      entries.push({ message, turn, part: place, result });
    }
    return entries;
  }

  /** Old logs have no ids of calls: each gets one of nine letters and digits, which every backend accepts. */
  #wireCall(part: ReplyPart, place: number): WireToolCall | undefined {
    if (part.type !== "tool") return undefined;
    const { name, input, call } = part;
    const known = this.#foreign ? undefined : call;
    return {
      id: known?.id ?? `c${base36(this.turn)}${base36(place)}`,
      type: "function",
      function: {
        name: call?.name ?? name,
        arguments: call?.arguments ?? JSON.stringify(input),
      },
      ...(known?.extra_content && { extra_content: known.extra_content }),
    };
  }

  #compact(record: Command): void {
    if (!this.#foreign) this.window = record.window ?? this.window;
    if (record.summary !== undefined) this.#summarise(record.summary, record);
    const { results_max, results_since, results_from = 0, results_part = 0 } = record;
    if (results_max === undefined) return;
    for (const entry of this.#entries) {
      const { turn, part, message, result } = entry;
      if (turn > results_from || (turn === results_from && part >= results_part)) break;
      if (result === undefined) continue;
      if (results_since !== undefined && (turn < results_from || part < results_since)) continue;
      const shorter = shortened(result.text, results_max, result.tool);
      // A message that was sent is not changed: `requestBody` keeps its JSON.
      const changed = { ...message };
      if (shorter.length < message.content!.length) changed.content = shorter;
      entry.message = changed;
      if (results_max > 0) continue;
      if (message.images !== undefined) changed.content += `\n${IMAGES_GONE}`;
      delete changed.images;
      entry.result = undefined; // it cannot become shorter
    }
  }

  #summarise(summary: string, { compact_from = this.turn, compact_part = 0 }: Command): void {
    this.summary = summary;
    const from = Math.min(compact_from, this.turn); // a record cannot summarise later turns
    const kept = this.#entries.filter((entry) =>
      entry.turn > from || (entry.turn === from && entry.part >= compact_part)
    );
    const request = this.request(from).filter(({ part }) => part < compact_part);
    const note = compact_part > 0
      ? "\n\nIt includes the first steps of the work on the request that follows."
      : "";
    const planned = kept.some(({ result }) => result?.tool === "plan");
    const plan = planned || this.#plan === "" ? "" : `\n\n${this.#plan}`;
    const content = `Summary of the conversation so far:\n\n${summary}${plan}${note}`;
    const first: Entry[] = summary === ""
      ? []
      : [{ message: { role: "user", content }, turn: 0, part: 0 }];
    this.#entries = [...first, ...request, ...kept];
    this.#endReply();
  }

  /** What a turn was asked: its messages before the first reply. */
  request(turn: number): Entry[] {
    const own = this.#entries.filter((entry) => entry.turn === turn);
    const end = own.findIndex(({ message }) => message.role === "assistant");
    return end < 0 ? own : own.slice(0, end);
  }
}

const IMAGES_GONE = "[The images of this result were left out to make room.]";

/** What a model is sent for a prompt, or a result, with its attachments. */
function withAttachments(
  text: string,
  attachments: readonly Attachment[],
  read: (attachment: Attachment) => Uint8Array | undefined,
): Pick<ChatMessage, "content" | "images"> {
  const blocks: string[] = [];
  const images: NonNullable<ChatMessage["images"]> = [];
  for (const each of attachments) {
    const { name, media_type } = each;
    const content = read(each);
    if (content === undefined) {
      blocks.push(`[The attachment ${name} is no longer kept.]`);
    } else if (media_type !== undefined) {
      images.push({ name, media_type, data: content.toBase64() });
    } else {
      const inside = new TextDecoder().decode(content);
      let tag = "attachment";
      while (inside.includes(`</${tag}>`)) tag += "_";
      blocks.push(`<${tag} name=${JSON.stringify(name)}>\n${inside.trimEnd()}\n</${tag}>`);
    }
  }
  return {
    content: [text, ...blocks].join("\n\n"),
    ...(images.length > 0 && { images }),
  };
}

/** A reply, with the positions where the model was asked to continue. */
interface ReplyContent {
  content: string;
  thinking: string;
  continued: Continued[];
  tool_calls?: WireToolCall[];
  reasoning_details?: ChatMessage["reasoning_details"];
}

/** The messages of a reply, and the requests to continue in it. Backends reject a message of thinking alone. */
export function replyMessages(
  { content, thinking, continued, tool_calls = [], reasoning_details }: ReplyContent,
): ChatMessage[] {
  const messages: ChatMessage[] = [];
  let from = { text: 0, thinking: 0 };
  const piece = (end?: { text: number; thinking: number }, calls: WireToolCall[] = []) => {
    const text = content.slice(from.text, end?.text);
    const thought = thinking.slice(from.thinking, end?.thinking);
    if (text === "" && calls.length === 0) return;
    messages.push({
      role: "assistant",
      content: text === "" ? null : text,
      ...(thought !== "" && { reasoning_content: thought }),
      ...(end === undefined && reasoning_details && { reasoning_details }),
      ...(calls.length > 0 && { tool_calls: calls }),
    });
  };
  for (const each of continued) {
    piece(each);
    messages.push({ role: "user", content: each.request });
    from = each;
  }
  piece(undefined, tool_calls);
  return messages;
}

/** What the first part of a reply tells of it. */
export interface ReplyFacts {
  continued: Continued[];
  backend_state?: BackendState;
}

/** The running turn of a session. What is appended goes into the log and into the conversation. */
export class LoggedTurn {
  readonly #log: TurnLog;
  readonly #conversation?: Conversation;
  readonly #results?: LeftOutResults;
  #round = 0;
  #reply: ReplyFacts = { continued: [] };
  #parts = 0;

  /** @param conversation which has begun the turn. Default: a turn of no reply. */
  constructor(log: TurnLog, conversation?: Conversation, results?: LeftOutResults) {
    this.#log = log;
    this.#conversation = conversation;
    this.#results = results;
  }

  get index(): number {
    return this.#log.index;
  }

  /** The number of its parts so far. */
  get parts(): number {
    return this.#parts;
  }

  /** Begins a reply: the parts from here on belong to it. `facts` may be filled until the first of them. */
  beginReply(facts: ReplyFacts): void {
    this.#round++;
    this.#reply = facts;
  }

  /**
   * @param sent the text of a tool result that the model is sent, where the log has another
   * @param kept whether later processes send this text too
   */
  append(part: NewPart, sent?: string, kept = false): void {
    const logged = this.#ofReply(part);
    if (kept && sent !== undefined && part.type === "tool" && this.#conversation) {
      const { turn, next } = this.#conversation;
      this.#results?.append({ turn, part: next, output: part.output, sent });
    }
    this.#log.append(logged);
    this.#parts++;
    this.#conversation?.append(logged, sent);
  }

  /** As `TurnLog.end`. */
  end(...args: Parameters<TurnLog["end"]>): void {
    try {
      this.#log.end(...args);
      this.#conversation?.end(args[0]);
    } catch (error) {
      this.forget();
      throw error;
    }
  }

  /** Has the conversation read again before the next turn: the log may have lost this one. */
  forget(): void {
    if (this.#conversation) this.#conversation.turn = NaN;
  }

  #ofReply(part: NewPart): NewPart {
    if (this.#round === 0) return part;
    if (part.type !== "text" && part.type !== "thinking" && part.type !== "tool") return part;
    const { continued, backend_state } = this.#reply;
    this.#reply = { continued: [] };
    return {
      ...part,
      round: this.#round,
      ...(continued.length > 0 && { continued }),
      ...(backend_state && { backend_state }),
    };
  }
}

/** The messages of one turn, without those that a summary in it replaces. */
export function turnMessages(turn: Turn): ChatMessage[] {
  const { entries } = new Conversation([turn]);
  return entries.filter((entry) => entry.turn === turn.index).map(({ message }) => message);
}

/** The newest summary in a log, and the index of the turn from which on turns are sent as they are. */
export function newestCompaction(turns: readonly Turn[]): { summary: string; from: number } {
  for (const { index, parts } of turns.toReversed()) {
    for (const part of parts.toReversed()) {
      if (part.type !== "command" || part.summary === undefined) continue;
      return { summary: part.summary, from: Math.min(part.compact_from ?? index, index) };
    }
  }
  return { summary: "", from: 0 };
}

/** Characters that an image counts for: about as many tokens as backends count for a large one. */
const IMAGE = 5000;

/** The characters that the images of a message count for. */
export function imageChars({ images = [] }: ChatMessage): number {
  return images.length * IMAGE;
}

/** The characters that a message takes in a request. */
export function sizeOf(message: ChatMessage, echo_reasoning: boolean): number {
  const { content, images, tool_calls, reasoning_content, reasoning_details } = message;
  let size = 40 + (content?.length ?? 0);
  if (images !== undefined) size += images.length * IMAGE;
  if (echo_reasoning || reasoning_details) size += reasoning_content?.length ?? 0;
  if (tool_calls === undefined) return size;
  for (const call of tool_calls) {
    size += 80 + call.function.name.length + call.function.arguments.length;
  }
  return size;
}

/** Characters by which a text must exceed a limit, so that cutting it saves more than the marker takes. */
const MARKER = 300;

/** What a result that was cut says of the file of the whole (`withoutMiddle`). */
const WHOLE = /; the whole is in \S+, for file_read and grep/;

/** The beginning of a tool result, and how to get the rest. */
export function shortened(text: string, most: number, tool: string): string {
  if (text.length <= most + MARKER) return text;
  const boundary = text.lastIndexOf("\n", most);
  const kept = text.slice(0, boundary >= most / 2 ? boundary : most).toWellFormed();
  const what = kept === "" ? "This result" : "The rest of this result";
  const whole = WHOLE.exec(text)?.[0] ?? "";
  if (whole !== "" && !kept.includes(whole)) {
    return `${kept}${kept === "" ? "" : "\n"}[${what} was left out to make room${whole}]`;
  }
  return `${kept}${kept === "" ? "" : "\n"}[${what} was left out to make room: ${
    text.length - kept.length
  } of ${text.length} characters. If it is needed and the call changes nothing, call ${tool} again, for a smaller ` +
    "part of it where that is possible.]";
}

function base36(n: number): string {
  return n.toString(36).padStart(4, "0");
}
