/** A vendor of models on a real port, with troubles by day, whose model follows a rule. */
import {
  completionDocument,
  completionEvents,
} from "../../plugins/svc-core-demo/src/completion.ts";
import { deliver } from "../../plugins/svc-core-demo/src/delivery.ts";
import type { Reply } from "../../plugins/svc-core-demo/src/script.ts";
import type { Random } from "../support/random.ts";
import type { FastClock } from "./clock.ts";
import { type Message, Model } from "./model.ts";

export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;

/** `stall`: every second reply says nothing. `gone`: there is no model nova. `credit`: none is left. */
export type Trouble = "refused" | "5xx" | "overloaded" | "quota" | "stall" | "credit" | "gone";

export interface Window {
  trouble: Trouble;
  from: number;
  to: number;
}

/** A request and its outcome. */
export interface Exchange {
  at: number;
  lane: string;
  outcome: "answered" | "cut" | "overflow" | Trouble;
  /** It could not succeed, and the vendor had said so to its lane before. */
  avoidable: boolean;
  /** It is the first request of a turn. */
  first: boolean;
  /** Tokens of the prompt, and how many of them are its longest common prefix with an earlier one. */
  tokens: number;
  cached: number;
  output: number;
}

const openai = (message: string, code: string | null, type = "invalid_request_error") => ({
  error: { message, type, param: null, code },
});
const anthropic = (type: string, message: string) => ({ type: "error", error: { type, message } });

/** Refusals of a long prompt as real backends word them, and whether `max_tokens` counts. */
const OVERFLOWS: [counts_output: boolean, body: (needed: number, window: number) => unknown][] = [
  [true, (n, max) =>
    openai(
      `This model's maximum context length is ${max} tokens. However, your messages resulted in ${n} ` +
        "tokens. Please reduce the length of the messages.",
      "context_length_exceeded",
    )],
  [false, () => openai("Please reduce the length of the messages or completion.", null)],
  [
    false,
    (n, max) =>
      anthropic("invalid_request_error", `prompt is too long: ${n} tokens > ${max} maximum`),
  ],
  [true, (n, max) =>
    anthropic(
      "invalid_request_error",
      `input length and \`max_tokens\` exceed context limit: ${
        n - 8192
      } + 8192 > ${max}, decrease ` +
        "input length or `max_tokens` and try again",
    )],
  [true, (n, max) => ({
    object: "error",
    message: `This model's maximum context length is ${max} tokens. However, you requested ${n} ` +
      `tokens (${
        n - 8192
      } in the messages, 8192 in the completion). Please reduce the length of the ` +
      "messages or completion.",
    type: "BadRequestError",
    param: null,
    code: 400,
  })],
  [false, (n, max) => ({
    error: {
      code: 400,
      message: "the request exceeds the available context size, try increasing it",
      type: "exceed_context_size_error",
      n_prompt_tokens: n,
      n_ctx: max,
    },
  })],
  [false, (n, max) =>
    openai(
      `Input tokens exceed the configured limit of ${max} tokens. Your messages resulted in ${n} ` +
        "tokens. Please reduce the length of the messages.",
      "context_length_exceeded",
    )],
];

/** Refusals until a quota opens again: announced by a header, by another one, by the text alone. */
function quotaReply(seconds: number, number: number): Reply {
  const [h, m] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60];
  const span = `${h > 0 ? `${h}h` : ""}${h + m > 0 ? `${m}m` : ""}${seconds % 60}s`;
  const headers: Record<string, string>[] = [
    { "retry-after": `${seconds}` },
    { "x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": span },
    {},
  ];
  const text = "Rate limit reached for atlas on tokens per day." +
    (number % 3 === 2 ? ` Please try again in ${span}.` : "");
  const body = openai(text, "rate_limit_exceeded", "tokens");
  return { status: 429, headers: headers[number % 3], body };
}

const REFUSALS: Partial<Record<Trouble, Reply>> = {
  "5xx": { status: 502, body: "<html><title>502 Bad Gateway</title></html>" },
  overloaded: { status: 529, body: anthropic("overloaded_error", "Overloaded") },
  credit: {
    status: 429,
    body: openai(
      "You exceeded your current quota, please check your plan and billing details.",
      "insufficient_quota",
      "insufficient_quota",
    ),
  },
  gone: {
    status: 404,
    body: openai("The model `nova` does not exist or you do not have access.", "model_not_found"),
  },
};

/** The header of an answer that says nothing while the clock stands still. */
const WAITS = "x-waits";

/** Milliseconds within which the same permanent refusal again could have been avoided. */
const LATER = HOUR / 2;
/** Requests of a lane in a minute of an outage, after which more could have been avoided. */
const TRIES = 10;

/** Troubles of some hours on each day but the last, a model that vanishes, and a credit that runs out. */
export function troubles(start: number, days: number, random: Random): Window[] {
  const long = days > 10;
  const daily = long ? 2 : 5;
  const at = (day: number, hour: number, hours: number, trouble: Trouble): Window => {
    const from = start + Math.floor(day) * DAY + hour * HOUR;
    return { trouble, from, to: from + hours * HOUR };
  };
  const kinds: Trouble[] = ["stall", "quota", "refused", "5xx", "overloaded"];
  return [
    ...Array.from({ length: daily * (days - 1) }, (_, number) => {
      const trouble = kinds[number % kinds.length]!;
      const hour = 8 + number % daily * 16 / daily + random.below(2);
      return at(number / daily, hour, 1 + (trouble === "quota" ? random.below(3) : 0), trouble);
    }),
    at(days * 0.4, 2, long ? 50 : 5, "gone"),
    at(days * 0.7, 1, long ? 30 : 4, "credit"),
  ];
}

export class Vendor implements AsyncDisposable {
  readonly exchanges: Exchange[] = [];
  readonly model: Model;
  /** Called with each request before its answer, and after it. */
  watch: (phase: "request" | "answered") => void = () => {};
  readonly #clock: FastClock;
  readonly #windows: Window[];
  readonly #random: Random;
  readonly #limit: number;
  readonly #start: number;
  /** Until when a refusal holds that was sent to a lane, by lane and kind. */
  readonly #told = new Map<string, number>();
  /** When requests of each lane failed in an outage. */
  readonly #tries = new Map<string, number[]>();
  /** The latest prompts of each lane. */
  readonly #sent = new Map<string, string[]>();
  readonly #fetch = globalThis.fetch;
  /** Closes the port, and the connections; undefined while it is closed. */
  #open: AbortController | undefined;
  #closed = Promise.resolve();
  #port = 0;
  #refusals = 0;

  /** @param limit the tokens of a prompt at most */
  constructor(clock: FastClock, windows: Window[], random: Random, limit: number) {
    this.#clock = clock;
    this.#windows = windows;
    this.#random = random;
    this.#limit = limit;
    this.#start = clock.now();
    this.model = new Model(random);
    this.#listen();
    // The clock cannot see requests and answers on their way, and the vendor not those that are refused.
    globalThis.fetch = async (input, init) => {
      if (!String(input).startsWith(this.url)) return await this.#fetch(input, init);
      try {
        return this.#seen(await clock.during(this.#fetch(input, init)));
      } catch (error) {
        if (this.#open === undefined && init?.body) this.#refused(String(init.body));
        throw error;
      }
    };
    for (const { from, to } of windows.filter(({ trouble }) => trouble === "refused")) {
      this.#close(from, to);
    }
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}/v1`;
  }

  /** The trouble of requests for a model, if any. */
  trouble(at: number = this.#clock.now(), model = "atlas"): Trouble | undefined {
    return this.#windows.find(({ from, to, trouble }) =>
      from <= at && at < to && (trouble !== "gone" || model === "nova")
    )?.trouble;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    globalThis.fetch = this.#fetch;
    this.#open?.abort();
    await this.#closed;
  }

  #listen(): void {
    this.#open = new AbortController();
    const { finished } = Deno.serve({
      port: this.#port,
      signal: this.#open.signal,
      hostname: "127.0.0.1",
      onListen: ({ port }) => void (this.#port = port),
      onError: () => new Response(null, { status: 500 }),
    }, (request) => this.#answer(request));
    this.#closed = finished;
  }

  async #close(from: number, to: number): Promise<void> {
    await this.#clock.sleep(from - this.#clock.now());
    this.#open?.abort();
    this.#open = undefined;
    await this.#clock.during(this.#closed);
    await this.#clock.sleep(to - this.#clock.now());
    this.#listen();
  }

  #refused(body: string): void {
    const { messages } = JSON.parse(body);
    this.#record(messages, "refused", { avoidable: this.#hasty(this.model.lane(messages)) });
  }

  async #answer(request: Request): Promise<Response> {
    if (request.method === "GET") return this.#models();
    const body = await request.json();
    this.watch("request");
    const reply = this.#reply(body);
    queueMicrotask(() => this.watch("answered"));
    if (reply === undefined) return this.#stalled();
    const { status } = reply;
    const head = { id: `chatcmpl-${this.exchanges.length}`, model: body.model };
    const type = body.stream && !status ? "text/event-stream" : "application/json";
    const made = status
      ? {
        content: [typeof reply.body === "string" ? reply.body : JSON.stringify(reply.body)],
        end: [],
      }
      : body.stream
      ? completionEvents(reply, head)
      : { content: [], end: [completionDocument(reply, head)] };
    const content = { type, body: made.content, end: made.end, stepwise: false };
    return deliver(content, reply, status ?? 200, () => {});
  }

  #models(): Response {
    const data = ["atlas", "nova"].filter((id) => this.trouble(undefined, id) !== "gone")
      .map((id) => ({ id, object: "model", ...id === "nova" && { context_length: this.#limit } }));
    return Response.json({ object: "list", data });
  }

  /** What a request is answered with; undefined: a stream that says nothing. */
  // deno-lint-ignore no-explicit-any
  #reply(body: any): Reply | undefined {
    const messages: Message[] = body.messages;
    const lane = this.model.lane(messages);
    const text = JSON.stringify(body.tools ?? []) + JSON.stringify(messages);
    const tokens = Math.ceil(text.length / 4);
    const now = this.#clock.now();
    const trouble = this.trouble(now, body.model);
    if (trouble === "quota") {
      const { to } = this.#windows.find(({ from, to }) => from <= now && now < to)!;
      this.#record(messages, trouble, { tokens, avoidable: this.#tell(`${lane} quota`, to) });
      return quotaReply(Math.ceil((to - now) / 1000), this.#refusals++);
    }
    if (trouble !== undefined && REFUSALS[trouble] !== undefined) {
      const avoidable = trouble === "gone" || trouble === "credit"
        ? this.#tell(`${lane} ${trouble}`, now + LATER)
        : this.#hasty(lane);
      this.#record(messages, trouble, { tokens, avoidable });
      return REFUSALS[trouble];
    }
    const [counts_output, refusal] = OVERFLOWS[this.#refusals % OVERFLOWS.length]!;
    const needed = tokens + (counts_output ? body.max_tokens ?? 0 : 0);
    if (needed > this.#limit) {
      this.#refusals++;
      const avoidable = this.#tell(`${lane} overflow`, Infinity);
      this.#record(messages, "overflow", { tokens, avoidable });
      return { status: 400, body: refusal(needed, this.#limit) };
    }
    const chance = this.#random.next();
    if (trouble === "stall" && chance < 0.5) {
      return void this.#record(messages, "stall", { tokens });
    }
    const cached = this.#common(lane, text);
    const { max_tokens = Infinity } = body;
    const whole = this.model.reply(messages, body.tools);
    const size = Math.ceil(JSON.stringify(whole).length / 4);
    const reply: Reply = size <= max_tokens
      ? whole
      : { text: `${whole.text ?? ""}`.slice(0, 4 * max_tokens), finish: "length" };
    const output = Math.min(size, max_tokens);
    const cut = chance > 0.985 && now > this.#start;
    this.#record(messages, cut ? "cut" : "answered", { tokens, cached, output });
    const usage = {
      prompt_tokens: tokens,
      completion_tokens: output,
      total_tokens: tokens + output,
      prompt_tokens_details: { cached_tokens: cached },
    };
    return { ...reply, usage, ...cut && { cut: true } };
  }

  #record(messages: Message[], outcome: Exchange["outcome"], counts: Partial<Exchange>): void {
    this.exchanges.push({
      at: this.#clock.now(),
      lane: this.model.lane(messages),
      outcome,
      avoidable: false,
      first: messages.at(-1)?.role === "user",
      tokens: 0,
      cached: 0,
      output: 0,
      ...counts,
    });
  }

  /** Tells a lane of a refusal until a time. Returns whether an earlier one still holds. */
  #tell(key: string, until: number): boolean {
    const before = this.#told.get(key) ?? 0;
    this.#told.set(key, until);
    return before > this.#clock.now();
  }

  /** Counts a request of a lane in an outage. Returns whether there were too many. */
  #hasty(lane: string): boolean {
    const now = this.#clock.now();
    const times = (this.#tries.get(lane) ?? []).filter((time) => time > now - 60_000);
    this.#tries.set(lane, [...times, now]);
    return times.length >= TRIES;
  }

  /** Tokens of the longest common prefix with one of the latest prompts of the lane. */
  #common(lane: string, text: string): number {
    const before = this.#sent.get(lane) ?? [];
    const lengths = before.map((other) => {
      let [low, high] = [0, Math.min(text.length, other.length)];
      while (low < high) {
        const middle = Math.ceil((low + high) / 2);
        if (text.startsWith(other.slice(low, middle), low)) low = middle;
        else high = middle - 1;
      }
      return low;
    });
    this.#sent.set(lane, [text, ...before].slice(0, 3));
    return Math.floor(Math.max(0, ...lengths) / 4);
  }

  /** An answer for whose pieces time stands still, unless it waits for the clock itself. */
  #seen(response: Response): Response {
    if (response.body === null || response.headers.has(WAITS)) return response;
    const reader = response.body.getReader();
    const pull = async (controller: ReadableByteStreamController) => {
      const { done, value } = await this.#clock.during(reader.read());
      if (!done) return controller.enqueue(value);
      controller.close();
      controller.byobRequest?.respond(0);
    };
    const cancel = (reason: unknown) => reader.cancel(reason);
    return new Response(new ReadableStream({ type: "bytes", pull, cancel }), response);
  }

  /** A stream of comments, until the client leaves. */
  #stalled(): Response {
    const left = new AbortController();
    const pull = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
      controller.enqueue(new TextEncoder().encode(": ping\n\n"));
      await this.#clock.sleep(100_000, left.signal).catch(() => {});
    };
    return new Response(new ReadableStream({ pull, cancel: () => left.abort() }), {
      headers: { "content-type": "text/event-stream", [WAITS]: "yes" },
    });
  }
}
