import { isObject } from "../platform/files.ts";
import type { ChatMessage, WireTool } from "../plugins/api.ts";
import type { BackendError } from "./failure.ts";

type Payload = Record<string, unknown>;

/**
 * The optional parameters, and the schema keywords of tools, that one backend rejects. Models differ in what
 * they accept (no reasoning, one fixed temperature, another name for the limit), and only a rejected request
 * shows it. The request is then sent again without the parameter, and so are later ones.
 */
export class RefusedParameters {
  readonly #names = new Set<string>();
  readonly #keywords = new SchemaKeywords();

  /** Whether the request can be sent again without the parameter that the backend rejected. */
  learn(failure: BackendError, payload: Payload, reasoning: Payload): boolean {
    const format = ["response_format", "text"].find((name) => name in payload) ?? "";
    const formatted = format !== "";
    if (failure.status !== 400 && failure.status !== 422) {
      // Servers that fail while they compile the format send 500.
      if (failure.status < 500 || !formatted || !FORMAT.test(failure.message)) return false;
      this.#names.add(format);
      return true;
    }
    const signs: [name: string, sign: RegExp][] = [
      ["stream_options", /stream_options|include_usage/],
      ["include", /encrypted.?content is not supported/i],
      // A gateway complains in the words of the protocol that it translates the request into.
      ...Object.keys(reasoning).map((
        name,
      ): [string, RegExp] => [name, RegExp(`\\b(${name}|reasoning_effort)\\b`)]),
      [format, FORMAT],
      ["max_tokens", /max_completion_tokens/],
      ["prompt_cache_key", /prompt_cache_key/],
      // The user has to correct a temperature that is out of range.
      ["temperature", /temperature.*(not (support|permitted|allowed)|default|deprecated|only)/i],
      ["temperature", /(unsupported|unknown|unrecogni[sz]ed|only).*temperature/i],
    ];
    if (payload.stream === true) signs.push(["stream", NO_STREAM]);
    const culprit = signs.find(([name, sign]) => name in payload && sign.test(failure.message));
    if (culprit === undefined && this.#keywords.learn(failure.message, payload.tools)) return true;
    // A backend that does not know the format may say anything.
    const name = culprit?.[0] ?? (formatted ? format : undefined);
    if (name !== undefined) this.#names.add(name);
    return name !== undefined;
  }

  /** The tools as this backend accepts them. */
  tools(tools: WireTool[] | undefined): WireTool[] | undefined {
    return tools && this.#keywords.adapt(tools);
  }

  /** The payload as this backend accepts it. */
  adapt(payload: Payload): Payload {
    const adapted = { ...payload };
    for (const name of this.#names) delete adapted[name];
    if (this.#names.has("stream")) delete adapted.stream_options;
    if (this.#names.has("max_tokens")) adapted.max_completion_tokens = payload.max_tokens;
    return adapted;
  }
}

/** Messages of backends that have no format for answers, or none along with tools. */
const FORMAT = /response_format|json.?(mode|schema|object)|structured.?output|grammar/i;

/** Messages of backends that do not stream this model, or not for this customer. */
const NO_STREAM =
  /verified to stream|stream(ing)?\b.{0,40}(not supported|unsupported)|support.{0,40} stream(ing)?\b/i;

/**
 * How backends take the id of a conversation, so that its requests reach the machine that has its beginning in the
 * prompt cache: a field of the body, or a header. Others find the beginning without it (Groq, DeepSeek, Anthropic),
 * or would refuse an unknown field.
 */
const CACHE_KEYS: Record<string, { field: string } | { header: string }> = {
  "api.openai.com": { field: "prompt_cache_key" },
  "api.mistral.ai": { field: "prompt_cache_key" },
  "api.x.ai": { header: "x-grok-conv-id" },
  "openrouter.ai": { header: "x-session-id" },
  "api.fireworks.ai": { header: "x-session-affinity" },
  "api.cloudflare.com": { header: "x-session-affinity" },
};

/**
 * The fields and headers that tell the backend at a base URL which conversation a request belongs to: a hash, since
 * the name of a session is no concern of a backend. The Responses protocol has its field at every address.
 *
 * @param path of the endpoint
 */
export async function cacheKey(
  base_url: string,
  session_id: string,
  path: string,
): Promise<{ fields: Record<string, string>; headers: Record<string, string> }> {
  const key = path.endsWith("/responses")
    ? CACHE_KEYS["api.openai.com"]
    : URL.canParse(base_url)
    ? CACHE_KEYS[new URL(base_url).hostname]
    : undefined;
  if (key === undefined || session_id === "") return { fields: {}, headers: {} };
  const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(session_id));
  const id = new Uint8Array(hash, 0, 16).toHex();
  return "field" in key
    ? { fields: { [key.field]: id }, headers: {} }
    : { fields: {}, headers: { [key.header]: id } };
}

type Schema = Record<string, unknown>;

/**
 * The JSON Schema keywords that one backend rejects in the parameters of tools. Tools of MCP servers may use
 * any keyword, and one of them makes such a backend reject every request. Removing it is safe, since the tool
 * still checks its arguments.
 */
export class SchemaKeywords {
  readonly #refused = new Set<string>();

  /** Whether the message names keywords of the tools that were not removed yet. */
  learn(message: string, tools: unknown): boolean {
    if (!Array.isArray(tools) || !COMPLAINT.test(message)) return false;
    const before = this.#refused.size;
    const schemas = JSON.stringify(tools);
    for (const keyword of KEYWORDS) {
      if (named(keyword, message) && schemas.includes(`"${keyword}":`)) this.#refused.add(keyword);
    }
    return this.#refused.size > before;
  }

  /** The tools as this backend accepts them. */
  adapt(tools: WireTool[]): WireTool[] {
    if (this.#refused.size === 0) return tools;
    return tools.map((tool) => {
      const parameters = this.#without(
        tool.function.parameters,
      ) as WireTool["function"]["parameters"];
      return { ...tool, function: { ...tool.function, parameters } };
    });
  }

  #without(schema: unknown): unknown {
    if (Array.isArray(schema)) return schema.map((each) => this.#without(each));
    if (!isObject(schema)) return schema;
    const kept = Object.entries(schema).filter(([key]) => !this.#refused.has(key));
    return Object.fromEntries(kept.map(([key, value]) => {
      if (DATA.has(key)) return [key, value];
      if (!BY_NAME.has(key) || !isObject(value)) return [key, this.#without(value)];
      const named = Object.entries(value).map(([name, each]) => [name, this.#without(each)]);
      return [key, Object.fromEntries(named)];
    }));
  }
}

const COMPLAINT = /(tool|function|schema|parameters)/i;

/** Keywords that restrict or annotate a schema; the remaining ones hold its structure. */
const KEYWORDS = [
  ...["$schema", "$id", "$comment", "title", "default", "examples", "format", "pattern", "const"],
  ...["additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties"],
  ...["anyOf", "oneOf", "allOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  ...["multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"],
  ...["minProperties", "maxProperties", "readOnly", "writeOnly", "deprecated", "contentEncoding"],
];

/** Keywords whose keys are property names, and keywords whose values are data. */
const BY_NAME = new Set(["properties", "patternProperties", "$defs", "definitions"]);
const DATA = new Set(["default", "examples", "enum", "const"]);

/** Whether a message names a keyword. A common word has to be in quotation marks. */
function named(keyword: string, message: string): boolean {
  const word = keyword.replace("$", "\\$");
  const common = /^[a-z]+$/.test(keyword);
  return RegExp(common ? `["'\`]${word}\\\\?["'\`]` : `(?<![\\w$])${word}(?!\\w)`).test(message);
}

/**
 * The requirements of one backend for messages beyond the protocol. Some backends require earlier reasoning
 * and others reject it; some accept only the order of roles that their model was trained on. Only a rejected
 * request shows it, also behind a gateway. The requirements hold for all later requests.
 */
export class StrictMessages {
  #reasoning: boolean | undefined;
  #ordered = false;
  #texts = false;
  #blind = false;
  #unsealed = false;

  /** Whether to send earlier reasoning; undefined until the backend shows it. */
  get reasoning(): boolean | undefined {
    return this.#reasoning;
  }

  /** Whether the request was rejected for the reasoning blocks in it, and can be sent again without them. */
  unseal({ status, message }: BackendError, messages: ChatMessage[]): boolean {
    if (status !== 400 || !SEALED.test(message)) return false;
    const sealed = messages.some((each) => each.reasoning_details !== undefined);
    this.#unsealed ||= sealed;
    return sealed;
  }

  /**
   * Whether the request was rejected for its messages and can be sent again with adapted ones.
   *
   * @param messages as `adapt` returned them
   * @param sent in the form of the protocol
   */
  learn(
    { status, message }: BackendError,
    messages: ChatMessage[],
    sent: Partial<ChatMessage>[],
  ): boolean {
    if (
      !this.#blind && FORM.includes(status) && IMAGES.test(message) &&
      messages.some(({ images }) => images !== undefined)
    ) return this.#blind = true;
    // Servers that fail while they render the prompt template send 500.
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

  /** The messages as this backend accepts them. */
  adapt(messages: ChatMessage[]): ChatMessage[] {
    const own = this.#unsealed ? messages.map(withoutBlocks) : messages;
    const seen = this.#blind ? own.map(withoutImages) : own;
    const ordered = this.#ordered ? inOrder(imagesApart(seen)) : seen;
    if (this.#reasoning) return ordered.map(withReasoning);
    return this.#texts ? ordered.map(withText) : ordered;
  }
}

/** Messages of backends that reject the order of roles. */
const ORDER =
  /roles? must alternate|alternating roles|unexpected role|after role|system message must|system messages? (is|are) only/i;

/** Messages of backends that reject a message without a text. */
const TEXT = /\bcontent\b.*(string|null)|(string|null|required).*\bcontent\b/i;

/** Backends that require reasoning require it in every answer, along with a text. */
function withReasoning(message: ChatMessage): ChatMessage {
  if (message.role !== "assistant") return message;
  const { content, reasoning_content = "" } = message;
  return { ...message, content: content ?? "", reasoning_content };
}

/** Status codes of a refused form: a limit, an outage or a key says nothing about it. */
const FORM = [400, 404, 415, 422, 500, 501];

/** Messages of backends whose model takes no images; some only name the form that they are sent in. */
const IMAGES =
  /image|vision|multi-?modal|modalit|content.{0,60}(must be|expected|should be|valid) a? ?(valid )?string/i;

function withoutImages({ images, ...message }: ChatMessage): ChatMessage {
  if (images === undefined) return message;
  const names = images.map(({ name }) => name).join(", ");
  const note = `[The model takes no images; these were left out: ${names}]`;
  return { ...message, content: joined(message.content, note) };
}

/** Messages of backends that cannot verify a reasoning block, such as one of another account. */
const SEALED =
  /signature|encrypted.?content.{0,80}(verified|invalid|decrypt)|invalid.?encrypted|(thinking|reasoning).{0,3} blocks?\b/i;

/** The message without its reasoning blocks. */
export function withoutBlocks({ reasoning_details: _, ...message }: ChatMessage): ChatMessage {
  return message;
}

function withText(message: ChatMessage): ChatMessage {
  return { ...message, content: message.content ?? "" };
}

/**
 * One system message first, then user and assistant alternately, and an assistant message between tool
 * results and the user. No text is dropped.
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
      const images = [...last.images ?? [], ...next.images ?? []];
      ordered[ordered.length - 1] = {
        ...next,
        content,
        ...(reasoning_content !== null && { reasoning_content }),
        ...(images.length > 0 && { images }),
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
  const texts = [first, second].filter((text) => typeof text === "string" && text !== "");
  return texts.length > 0 ? texts.join("\n\n") : first ?? second ?? null;
}

/** Messages in the form of the protocol, where images are parts of the content. */
export function wireMessages(messages: ChatMessage[]): (ChatMessage | Record<string, unknown>)[] {
  return imagesApart(messages).map(wireMessage);
}

/** The protocol has no images in results: a message of the user after the results of a reply has them. */
function imagesApart(messages: ChatMessage[]): ChatMessage[] {
  if (!messages.some(({ role, images }) => role === "tool" && images)) return messages;
  const apart: ChatMessage[] = [];
  let images: NonNullable<ChatMessage["images"]> = [];
  for (const [i, message] of messages.entries()) {
    const { images: own = [], ...rest } = message;
    const isResult = message.role === "tool";
    apart.push(isResult ? rest : message);
    if (isResult) images.push(...own);
    if (images.length === 0 || messages[i + 1]?.role === "tool") continue;
    const names = images.map(({ name }) => name).join(", ");
    apart.push({ role: "user", content: `[The images of these results: ${names}]`, images });
    images = [];
  }
  return apart;
}

function wireMessage(given: ChatMessage): ChatMessage | Record<string, unknown> {
  const { images, ...message } = given;
  if (images === undefined) return given;
  const parts = images.map(({ media_type, data }) => ({
    type: "image_url",
    image_url: { url: `data:${media_type};base64,${data}` },
  }));
  return { ...message, content: [{ type: "text", text: message.content }, ...parts] };
}

/** The message for a backend that accepts no reasoning. */
export function withoutReasoning(message: ChatMessage): ChatMessage {
  if (message.reasoning_content === undefined) return message;
  const { reasoning_content: _, ...rest } = message;
  return rest;
}
