import type { ChatMessage, WireTool } from "../plugins/api.ts";
import type { BackendError } from "./failure.ts";

type Payload = Record<string, unknown>;

/**
 * The optional parameters, and keywords in the schemas of tools, that one backend turns down. Models differ in what they take (no reasoning,
 * one fixed temperature, another name for the limit), and the answer to a first try is the only way to
 * know; a request that failed over one is made again without it, and so are all later ones.
 */
export class RefusedParameters {
  readonly #names = new Set<string>();
  readonly #keywords = new SchemaKeywords();

  /** Whether a rejected request was rejected for a parameter that it can do without. */
  learn(failure: BackendError, payload: Payload, reasoning: Payload): boolean {
    if (failure.status !== 400 && failure.status !== 422) return false;
    const signs: [name: string, sign: RegExp][] = [
      ["stream_options", /stream_options|include_usage/],
      ...Object.keys(reasoning).map((name): [string, RegExp] => [name, RegExp(`\\b${name}\\b`)]),
      ["max_tokens", /max_completion_tokens/],
      // A temperature that is out of range is the user's to correct.
      ["temperature", /temperature.*(not (support|permitted|allowed)|default|deprecated|only)/i],
      ["temperature", /(unsupported|unknown|unrecogni[sz]ed|only).*temperature/i],
    ];
    if (payload.stream === true) signs.push(["stream", NO_STREAM]);
    const culprit = signs.find(([name, sign]) => name in payload && sign.test(failure.message));
    if (culprit === undefined) return this.#keywords.learn(failure.message, payload.tools);
    this.#names.add(culprit[0]);
    return true;
  }

  /** The payload as this backend takes it. */
  adapt(payload: Payload): Payload {
    const adapted = { ...payload };
    for (const name of this.#names) delete adapted[name];
    if (Array.isArray(payload.tools)) {
      adapted.tools = this.#keywords.adapt(payload.tools as WireTool[]);
    }
    if (this.#names.has("stream")) delete adapted.stream_options;
    if (this.#names.has("max_tokens")) adapted.max_completion_tokens = payload.max_tokens;
    return adapted;
  }
}

/** Signs that this model, or this customer, is answered with whole documents only. */
const NO_STREAM =
  /verified to stream|stream(ing)?\b.{0,40}(not supported|unsupported)|support.{0,40} stream(ing)?\b/i;

type Schema = Record<string, unknown>;

/**
 * The JSON Schema keywords that one backend turns down in the parameters of tools. Those of MCP servers may
 * hold any, and one of them makes such a backend reject every request. Without it a schema only says less:
 * the tool still checks what it is given.
 */
export class SchemaKeywords {
  readonly #refused = new Set<string>();

  /** Whether a rejected request was rejected for keywords that its tools can do without. */
  learn(message: string, tools: unknown): boolean {
    if (!Array.isArray(tools) || !COMPLAINT.test(message)) return false;
    const before = this.#refused.size;
    const schemas = JSON.stringify(tools);
    for (const keyword of KEYWORDS) {
      if (named(keyword, message) && schemas.includes(`"${keyword}":`)) this.#refused.add(keyword);
    }
    return this.#refused.size > before;
  }

  /** The tools as this backend takes them. */
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
    if (!isSchema(schema)) return schema;
    const kept = Object.entries(schema).filter(([key]) => !this.#refused.has(key));
    return Object.fromEntries(kept.map(([key, value]) => {
      if (DATA.has(key)) return [key, value];
      if (!BY_NAME.has(key) || !isSchema(value)) return [key, this.#without(value)];
      const named = Object.entries(value).map(([name, each]) => [name, this.#without(each)]);
      return [key, Object.fromEntries(named)];
    }));
  }
}

const COMPLAINT = /(tool|function|schema|parameters)/i;

/** Keywords that narrow or annotate; the others carry a schema. */
const KEYWORDS = [
  ...["$schema", "$id", "$comment", "title", "default", "examples", "format", "pattern", "const"],
  ...["additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties"],
  ...["anyOf", "oneOf", "allOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"],
  ...["multipleOf", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"],
  ...["minProperties", "maxProperties", "readOnly", "writeOnly", "deprecated", "contentEncoding"],
];

/** Keywords whose keys are names, and those whose values are data. */
const BY_NAME = new Set(["properties", "patternProperties", "$defs", "definitions"]);
const DATA = new Set(["default", "examples", "enum", "const"]);

/** Whether a message speaks of a keyword. A common word has to stand in quotation marks. */
function named(keyword: string, message: string): boolean {
  const word = keyword.replace("$", "\\$");
  const common = /^[a-z]+$/.test(keyword);
  return RegExp(common ? `["'\`]${word}\\\\?["'\`]` : `(?<![\\w$])${word}(?!\\w)`).test(message);
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

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
