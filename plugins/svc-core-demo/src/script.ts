import type { ChatRequest } from "./completion.ts";

/** A scripted scenario: the replies of the server. README.md describes the format. */
export interface Script {
  replies: Reply[];
  /** Used replies become usable again when none is left for a request. */
  loop?: boolean;
  /** Served when no reply is left. */
  default?: Reply;
  /** The ids that `GET /v1/models` lists, or its reply. */
  models?: string[] | Reply;
}

/** One reply: a completion, exact bytes (`raw`), an HTTP answer (`status`) or a redirect; and its delivery. */
export interface Reply {
  /** Serves only requests that match. */
  when?: When;
  /** Requests that this reply serves (1). */
  repeat?: number;

  /** The answer. An array: one event and one write for each element. */
  text?: string | string[];
  /** Reasoning before the answer. */
  thinking?: string | string[];
  /** The field of the reasoning (`reasoning_content`). */
  reasoning_key?: "reasoning_content" | "reasoning";
  tool_calls?: ScriptedCall[];
  /** Answers with a part of the request instead of `text`. */
  echo?: Echo;
  /** The finish reason; null leaves it out. Default: `tool_calls` or `stop`. */
  finish?: string | null;
  usage?: Record<string, unknown>;
  /** false: no `[DONE]`. A number: that many. */
  done?: boolean | number;
  /** Ends the stream cleanly after the content: no finish reason, usage or `[DONE]`. */
  end_early?: boolean;

  /** The exact body; an array: one write for each element. */
  raw?: string | string[] | { base64: string };

  /** HTTP status, with `body` as its text or JSON document. */
  status?: number;
  body?: unknown;

  redirect?: { status?: number; location: string };

  headers?: Record<string, string>;
  /** Milliseconds before the first byte. */
  delay_ms?: number;
  /** Milliseconds between writes; every event becomes a write of its own. */
  chunk_delay_ms?: number;
  /** Splits the whole body into writes of this many bytes. */
  split_bytes?: number;
  /** Breaks the connection: after the content, in the middle of a JSON document, or after n writes. */
  cut?: boolean | { after: number };
  /** Sends the content, then nothing until the client disconnects. Without content, no headers either. */
  hang?: boolean;
}

/** The conditions on a request: `model` is compared, the others are texts that it must contain. */
export interface When {
  /** In the last user message. */
  user?: string;
  /** In a system message. */
  system?: string;
  /** In a tool result after the last user message. */
  tool_result?: string;
  model?: string;
}

export interface ScriptedCall {
  name: string;
  /** An object, or the raw text. */
  arguments?: Record<string, unknown> | string;
  id?: string;
  /** Number of deltas for the arguments (1). */
  fragments?: number;
}

/** The parts of a request that a reply can answer with. */
export type Echo = typeof ECHOES[number];
export const ECHOES = ["last_user", "system", "messages", "tools", "headers", "body"] as const;

/** Selects the replies of a script, request by request. */
export class ScriptPlayer {
  readonly script: Script;
  /** How often each reply can still be used. */
  readonly #left: number[];
  /** Every reply before this one is used up. */
  #first = 0;

  /** @throws ScriptError when the script is not valid. */
  constructor(script: Script) {
    this.script = checkScript(script);
    this.#left = script.replies.map((reply) => reply.repeat ?? 1);
  }

  /** The reply for a request, or undefined when the script is exhausted. */
  next(request: ChatRequest): Reply | undefined {
    return this.#take(request) ??
      (this.script.loop ? this.#rewind(request) : undefined) ??
      this.script.default;
  }

  #take(request: ChatRequest): Reply | undefined {
    const { replies } = this.script;
    while (this.#left[this.#first] === 0) this.#first++;
    for (let i = this.#first; i < replies.length; i++) {
      if (this.#left[i]! === 0 || !matches(replies[i]!.when, request)) continue;
      this.#left[i]!--;
      return replies[i];
    }
    return undefined;
  }

  /** Restarts the replies that match this request only; other conversations continue. */
  #rewind(request: ChatRequest): Reply | undefined {
    this.script.replies.forEach((reply, i) => {
      if (matches(reply.when, request)) this.#left[i] = reply.repeat ?? 1;
    });
    this.#first = 0;
    return this.#take(request);
  }
}

function matches(when: When | undefined, request: ChatRequest): boolean {
  if (when === undefined) return true;
  if (when.model !== undefined && when.model !== request.model) return false;
  if (when.user !== undefined && !request.lastUser().includes(when.user)) return false;
  if (when.system !== undefined && !request.system().includes(when.system)) return false;
  return when.tool_result === undefined || request.results().includes(when.tool_result);
}

/** Wrong usage, in one sentence; `exit` is the exit code of the program. */
export class UsageError extends Error {
  override readonly name = "UsageError";
  readonly exit = 2;
  readonly code: string;
  readonly hint: string;

  constructor(code: string, message: string, hint: string) {
    super(message);
    this.code = code;
    this.hint = hint;
  }
}

/** A script that cannot be played. */
export class ScriptError extends UsageError {
  constructor(message: string) {
    super("bad_script", message, "The format is described in docs/demo-model.md.");
  }
}

/** @throws ScriptError with the location in the script and the expected value. */
export function parseScript(text: string): Script {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new ScriptError(`The script is not JSON: ${(error as Error).message}.`);
  }
  return checkScript(value);
}

/** @throws ScriptError with the location in the script and the expected value. */
export function checkScript(value: unknown): Script {
  fields(value, "The script", SCRIPT);
  if (!has(value, "replies")) throw new ScriptError('The script has no "replies" list.');
  return value as Script;
}

/** Throws when `value` is not valid; `path` is its location in the script. */
type Check = (value: unknown, path: string) => void;

const string: Check = (value, path) => {
  if (typeof value !== "string") wrong(path, "a string", value);
};

const boolean: Check = (value, path) => {
  if (typeof value !== "boolean") wrong(path, "true or false", value);
};

const whole = (least: number, most = Number.MAX_SAFE_INTEGER): Check => (value, path) => {
  if (!Number.isSafeInteger(value) || (value as number) < least || (value as number) > most) {
    const range = most === Number.MAX_SAFE_INTEGER ? `${least} or more` : `${least} to ${most}`;
    wrong(path, `a whole number, ${range}`, value);
  }
};

const object: Check = (value, path) => {
  if (!isObject(value)) wrong(path, "an object", value);
};

const list = (item: Check): Check => (value, path) => {
  if (!Array.isArray(value)) return wrong(path, "a list", value);
  value.forEach((each, i) => item(each, `${path}[${i}]`));
};

const record = (item: Check): Check => (value, path) => {
  if (!isObject(value)) return wrong(path, "an object", value);
  for (const [key, each] of Object.entries(value)) item(each, `${path}.${key}`);
};

const oneOf = (words: readonly string[]): Check => (value, path) => {
  if (!words.includes(value as string)) wrong(path, `one of ${words.join(", ")}`, value);
};

const shape = (known: Record<string, Check>, required: string[] = []): Check => (value, path) => {
  fields(value, path, known);
  for (const key of required) {
    if (!has(value, key)) throw new ScriptError(`${path} has no "${key}".`);
  }
};

const pieces: Check = (value, path) => {
  if (Array.isArray(value)) list(string)(value, path);
  else if (typeof value !== "string") wrong(path, "a string or a list of strings", value);
};

const base64: Check = (value, path) => {
  string(value, path);
  try {
    atob(value as string);
  } catch {
    throw new ScriptError(`${path} is not base64.`);
  }
};

const CALL: Record<string, Check> = {
  name: string,
  arguments: (value, path) => {
    if (typeof value !== "string" && !isObject(value)) wrong(path, "an object or a string", value);
  },
  id: string,
  fragments: whole(1),
};

const COMPLETION: Record<string, Check> = {
  text: pieces,
  thinking: pieces,
  reasoning_key: oneOf(["reasoning_content", "reasoning"]),
  tool_calls: list(shape(CALL, ["name"])),
  echo: oneOf(ECHOES),
  finish: (value, path) => {
    if (value !== null && typeof value !== "string") wrong(path, "a string or null", value);
  },
  usage: object,
  done: (value, path) => {
    if (typeof value === "number") whole(0, 1000)(value, path);
    else if (typeof value !== "boolean") wrong(path, "true, false or a number", value);
  },
  end_early: boolean,
};

const RAW: Record<string, Check> = {
  raw: (value, path) => {
    if (isObject(value)) shape({ base64 }, ["base64"])(value, path);
    else pieces(value, path);
  },
};

const HTTP: Record<string, Check> = { status: whole(200, 599), body: () => {} };

const REDIRECT: Record<string, Check> = {
  redirect: shape({ status: whole(300, 399), location: string }, ["location"]),
};

/** The kinds of replies; a reply of no kind is an empty completion. */
const KINDS = [COMPLETION, RAW, HTTP, REDIRECT];

const REPLY: Record<string, Check> = {
  ...Object.assign({}, ...KINDS),
  when: shape({ user: string, system: string, tool_result: string, model: string }),
  repeat: whole(1),
  headers: (value, path) => {
    record(string)(value, path);
    try {
      new Headers(value as Record<string, string>);
    } catch {
      throw new ScriptError(`${path} has a name or value that HTTP does not allow.`);
    }
  },
  delay_ms: whole(0, 2 ** 31 - 1),
  chunk_delay_ms: whole(0, 2 ** 31 - 1),
  split_bytes: whole(1),
  cut: (value, path) => {
    if (isObject(value)) shape({ after: whole(0) }, ["after"])(value, path);
    else if (typeof value !== "boolean") {
      wrong(path, "true or an object such as {after: 2}", value);
    }
  },
  hang: boolean,
};

const reply: Check = (value, path) => {
  fields(value, path, REPLY);
  const used = KINDS.map((kind) => Object.keys(kind).find((key) => has(value, key)))
    .filter((key) => key !== undefined);
  if (used.length > 1) {
    throw new ScriptError(
      `${path} has both "${used[0]}" and "${used[1]}", which are different kinds of reply.`,
    );
  }
  if (used[0] === "body") throw new ScriptError(`${path} has a "body" but no "status".`);
  for (const [a, b] of [["text", "echo"], ["cut", "hang"]] as const) {
    if (has(value, a) && has(value, b)) {
      throw new ScriptError(`${path} has both "${a}" and "${b}"; choose one.`);
    }
  }
};

const SCRIPT: Record<string, Check> = {
  replies: list(reply),
  loop: boolean,
  default: reply,
  models: (value, path) => {
    if (isObject(value)) reply(value, path);
    else list(string)(value, path);
  },
};

function fields(value: unknown, path: string, known: Record<string, Check>): void {
  if (!isObject(value)) return wrong(path, "an object", value);
  for (const [key, each] of Object.entries(value)) {
    if (!Object.hasOwn(known, key)) {
      const names = Object.keys(known).join(", ");
      throw new ScriptError(`${path} has an unknown key "${key}"; there are ${names}.`);
    }
    if (each !== undefined) known[key]!(each, path === "The script" ? key : `${path}.${key}`);
  }
}

function wrong(path: string, expected: string, value: unknown): never {
  const found = JSON.stringify(value) ?? String(value);
  const shown = found.length > 60 ? `${found.slice(0, 60)}…` : found;
  throw new ScriptError(`${path} must be ${expected}, not ${shown}.`);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function has(value: unknown, key: string): boolean {
  return (value as Record<string, unknown>)[key] !== undefined;
}
