import assert from "node:assert/strict";
import type { FailureKind, ProviderOptions, StreamEvent } from "../../src/plugins/api.ts";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import {
  bytes,
  calls,
  chunk,
  data,
  DONE,
  head,
  HELLO,
  json,
  providerOptions,
  TestClock,
  type Wire,
  type WireRequest,
  WireServer,
} from "./support.ts";

// The fault campaign: deviations of backends on the wire, and the exact stream events for each.

const KEY = "sk-very-secret-key";
const hello = token("hello");
const stop = done("stop");
const eof = done("eof");
const brokeOff = error(0, "The connection to acme broke off", "transient");
const BROKEN_JSON: StreamEvent = {
  type: "error",
  code: 0,
  message: "acme sent an event that is broken JSON",
};
const usage = { prompt_tokens: 1, completion_tokens: 2 };
const hi = chunk({ content: "hello" });
const end = chunk({}, "stop");

interface Fault {
  /** The bytes for each request, the last one for all further requests; or a function that answers. */
  answer: string | Uint8Array | (string | Uint8Array)[] | Answer;
  expect: StreamEvent[];
  options?: Partial<ProviderOptions>;
  /** The backend stops sending after `events` events, until the idle limit of `ms` ends. */
  silence?: { after: number; ms: number };
  /** The expected number of requests; default: the number of `wait` events plus one. */
  requests?: number;
}

type Answer = (wire: Wire, request: WireRequest) => Promise<void> | void;

const FAULTS: Record<string, Fault> = {
  // Framing of events.
  "a well-formed stream": { answer: HELLO, expect: [hello, stop] },
  "one byte at a time": {
    answer: async (wire) => {
      for (const byte of bytes(HELLO)) await wire.send(Uint8Array.of(byte));
    },
    expect: [hello, stop],
  },
  "a multi-byte character split between packets": {
    answer: async (wire) => {
      const all = bytes(head() + data(chunk({ content: "漢" }), end));
      const middle = all.indexOf(bytes("漢")[1]!);
      await wire.send(all.slice(0, middle), all.slice(middle));
    },
    expect: [token("漢"), stop],
  },
  "CRLF line ends": { answer: HELLO.replaceAll("\n\n", "\r\n\r\n"), expect: [hello, stop] },
  "bare CR line ends": {
    answer: head() + data(hi, end, DONE).replaceAll("\n", "\r"),
    expect: [hello, stop],
  },
  "a byte order mark": { answer: head() + "\ufeff" + data(hi, end, DONE), expect: [hello, stop] },
  "comments and retry, id and event lines": {
    answer: head() + ": keep-alive\n\nretry: 10\nid: 7\nevent: message\n" + data(hi, end, DONE),
    expect: [hello, stop],
  },
  "no space after `data:`": {
    answer: head() + data(hi, end, DONE).replaceAll("data: ", "data:"),
    expect: [hello, stop],
  },
  "an event over several data lines": {
    answer: head() + `data: {"choices": [{\ndata: "delta": {"content": "hello"}}]}\n\n` +
      data(end, DONE),
    expect: [hello, stop],
  },
  "a gzip body": { answer: await gzipped(data(hi, end, DONE)), expect: [hello, stop] },
  "chunked transfer encoding": {
    answer: chunked(data(hi), data(end, DONE)) + "0\r\n\r\n",
    expect: [hello, stop],
  },
  "a JSON document instead of a stream": {
    answer: json({
      choices: [{ message: { role: "assistant", content: "hello" }, finish_reason: "stop" }],
      usage,
    }),
    expect: [hello, done("stop", usage)],
  },
  "a stream that says it is JSON": {
    answer: head(200, { "content-type": "application/json" }) + data(hi, end, DONE),
    expect: [hello, stop],
  },
  "keep-alives that are no JSON": {
    answer: head() + data("ping", hi, "", end, DONE),
    expect: [hello, stop],
  },

  // End of the stream.
  "[DONE] twice": { answer: head() + data(hi, end, DONE, DONE), expect: [hello, stop] },
  "[DONE] missing": { answer: head() + data(hi, end), expect: [hello, stop] },
  "[DONE] without its blank line": {
    answer: head() + data(hi) + "data: [DONE]",
    expect: [hello, stop],
  },
  "finish_reason missing": { answer: head() + data(hi, DONE), expect: [hello, stop] },
  "finish_reason length": {
    answer: head() + data(hi, chunk({}, "length"), DONE),
    expect: [hello, done("length")],
  },
  "a finish_reason of the vendor's": {
    answer: head() + data(chunk({}, "content_filter"), DONE),
    expect: [done("content_filter")],
  },
  "usage in a chunk of its own": {
    answer: head() + data(hi, end, { choices: [], usage }, DONE),
    expect: [hello, done("stop", usage)],
  },
  "usage in a chunk of its own, then silence": {
    answer: async (wire) => {
      await wire.send(head(), data(hi, end, { choices: [], usage }));
      await wire.gone();
    },
    silence: { after: 1, ms: 10_000 },
    expect: [hello, done("stop", usage)],
  },
  "[DONE], then silence": {
    answer: async (wire) => {
      await wire.send(HELLO);
      await wire.gone();
    },
    silence: { after: 1, ms: 250 },
    expect: [hello, stop],
  },
  "a cut after the finish": { answer: chunked(data(hi, end)), expect: [hello, stop] },
  "neither finish_reason nor [DONE]": { answer: head() + data(hi), expect: [hello, eof] },
  "a cut in the middle of an event": {
    answer: head() + data(hi) + 'data: {"choices": [{"delta": {"cont',
    expect: [hello, eof],
  },
  "a cut of a chunked body": { answer: chunked(data(hi)), expect: [hello, brokeOff] },
  "a cut of a body with a length": {
    answer: head(200, { "content-length": "9999" }) + data(hi),
    expect: [hello, brokeOff],
  },
  "a gzip body without its last bytes": {
    answer: (await gzipped(data(hi, end, DONE))).slice(0, -4),
    expect: [hello, stop],
  },
  "a body that says it is gzip and is not": {
    answer: head(200, { "content-encoding": "gzip" }) + data(hi, end, DONE),
    expect: [error(0, "acme at HOST did not answer in valid HTTP")],
  },
  "an empty body": { answer: head(200, { "content-length": "0" }), expect: [eof] },
  "an answer without content": { answer: head() + data(end, DONE), expect: [stop] },
  "a hang in the middle": {
    answer: async (wire) => {
      await wire.send(head(), data(hi));
      await wire.gone();
    },
    silence: { after: 1, ms: 60_000 },
    expect: [hello, error(0, "acme sent nothing for 60 seconds", "stalled")],
  },
  "a hang before the first byte": {
    answer: (wire) => wire.gone(),
    silence: { after: 0, ms: 60_000 },
    expect: [error(0, "acme sent nothing for 60 seconds", "stalled")],
  },
  "a hang after the headers": {
    answer: async (wire) => {
      await wire.send(head());
      await wire.gone();
    },
    silence: { after: 0, ms: 60_000 },
    expect: [error(0, "acme sent nothing for 60 seconds", "stalled")],
  },

  // Content of events.
  "two choices": {
    answer: head() + data(
      {
        choices: [{ index: 1, delta: { content: "no" } }, {
          index: 0,
          delta: { content: "hello" },
        }],
      },
      { choices: [{ index: 1, delta: {}, finish_reason: "length" }] },
      end,
      DONE,
    ),
    expect: [hello, stop],
  },
  "reasoning in both spellings": {
    answer: head() +
      data(chunk({ reasoning: "a" }), chunk({ reasoning_content: "b" }), hi, end, DONE),
    expect: [thinking("a"), thinking("b"), hello, stop],
  },
  "content as an array of parts": {
    answer: head() + data(chunk({ content: [{ type: "text", text: "hello" }] }), end, DONE),
    expect: [hello, stop],
  },
  "a tool call split inside an escape": {
    answer: head() + data(
      calls({ index: 0, id: "c1", function: { name: "read", arguments: '{"path": "a\\' } }),
      calls({ index: 0, function: { arguments: 'u00e4"}' } }),
      chunk({}, "tool_calls"),
      DONE,
    ),
    expect: [toolCall("c1", "read", '{"path": "a\\u00e4"}'), done("tool_calls")],
  },
  "tool calls whose fragments take turns": {
    answer: head() + data(
      calls({ index: 0, id: "c1", function: { name: "one", arguments: "{" } }, {
        index: 1,
        id: "c2",
        function: { name: "two", arguments: "{" },
      }),
      calls({ index: 1, function: { arguments: "}" } }, { index: 0, function: { arguments: "}" } }),
      chunk({}, "tool_calls"),
    ),
    expect: [
      {
        type: "tool_calls",
        tool_calls: [...wireCall("c1", "one", "{}"), ...wireCall("c2", "two", "{}")],
      },
      done("tool_calls"),
    ],
  },
  "a tool call with invalid arguments": {
    answer: head() +
      data(calls({ index: 0, id: "c1", function: { name: "read", arguments: "{path:" } }), DONE),
    expect: [toolCall("c1", "read", "{path:"), done("tool_calls")],
  },
  "a tool call with an object as arguments": {
    answer: head() +
      data(calls({ index: 0, id: "c1", function: { name: "read", arguments: { a: 1 } } }), DONE),
    expect: [toolCall("c1", "read", '{"a":1}'), done("tool_calls")],
  },
  "a tool call that finishes with `stop`": {
    answer: head() + data(calls({ index: 0, id: "c1", function: { name: "read" } }), end, DONE),
    expect: [toolCall("c1", "read", ""), stop],
  },
  "a cut in the middle of a tool call": {
    answer: head() +
      data(calls({ index: 0, id: "c1", function: { name: "read", arguments: '{"pa' } })),
    expect: [eof],
  },
  "an event of broken JSON": {
    answer: head() + data(hi, '{"choices": [', end, DONE),
    expect: [hello, BROKEN_JSON],
  },
  "an error object in the stream": {
    answer: head() + data(hi, { error: { message: "Overloaded", code: 529 } }),
    expect: [hello, error(529, "acme reported an error: Overloaded")],
  },
  "an error object with status 200": {
    answer: json({ error: { message: "No credit", type: "billing" } }),
    expect: [error(0, "acme reported an error: No credit")],
  },
  "a web page with status 200": {
    answer: head(200, { "content-type": "text/html" }) + "<html><title>Sign in</title></html>",
    expect: [
      error(0, "The backend answered with a web page instead of a completion. Check the base URL"),
    ],
  },

  // Error answers.
  "400 as {error: {message}}": {
    answer: json({ error: { message: "A bad value.", code: "value" } }, 400),
    expect: [error(400, "acme rejected the request (400): A bad value")],
  },
  "401 that repeats the key": {
    answer: json({ error: { message: `Wrong key ${KEY}` } }, 401),
    expect: [
      error(
        401,
        "acme refused the key (401): Wrong key ***. Store a valid one with `svc connect acme`",
      ),
    ],
  },
  "401 without a key": {
    answer: json({ error: "Who are you?" }, 401),
    options: { api_key: "" },
    expect: [
      error(401, "acme wants a key (401): Who are you? Store one with `svc connect acme`"),
    ],
  },
  "403 as {message}": {
    answer: json({ message: "Not in your plan" }, 403),
    expect: [
      error(
        403,
        "acme refused access (403): Not in your plan. Check that the key may use the model m1, or " +
          "store another with `svc connect acme`",
      ),
    ],
  },
  "413 as {detail}": {
    answer: json({ detail: [{ loc: ["body"], msg: "too large" }] }, 413),
    expect: [
      error(
        413,
        "acme rejected the request (413): too large. `svc compact <session>` (`/compact`) makes room in a " +
          "long conversation; where a short one is refused, a smaller max_tokens does",
        "overflow",
      ),
    ],
  },
  "422 as plain text with escape sequences": {
    answer: head(422) + "\x1b]0;title\x07bad\x1b[31m\r\nthing\x00",
    expect: [error(422, "acme rejected the request (422): bad thing")],
  },
  "502 as a web page": {
    answer: head(502) + "<html>\n<head><title>502 Bad\nGateway</title></head></html>",
    options: { retry_budget: 0 },
    expect: [error(502, "acme failed (502): 502 Bad Gateway")],
  },
  "500 without a body": {
    answer: head(500, { "content-length": "0" }),
    options: { retry_budget: 0 },
    expect: [error(500, "acme failed (500)")],
  },
  "500 with a cut body": {
    answer: head(500, { "content-length": "99" }) + "oops",
    options: { retry_budget: 0 },
    expect: [error(500, "acme failed (500)")],
  },
  "503 with an endless body": {
    answer: async (wire) => {
      await wire.send(head(503));
      for (let i = 0; i < 10_000; i++) await wire.send("no ".repeat(1000));
      assert.fail("30 MB of an error body were read");
    },
    options: { retry_budget: 0 },
    expect: [error(503, `acme failed (503): ${"no ".repeat(133)}n…`)],
  },
  "500 with a body that never ends": {
    answer: async (wire) => {
      await wire.send(head(500));
      await wire.gone();
    },
    options: { retry_budget: 0 },
    silence: { after: 0, ms: 10_000 },
    expect: [error(500, "acme failed (500)")],
  },

  // Waiting for a busy backend.
  "429 with Retry-After in seconds": {
    answer: [json({ error: "slow down" }, 429, { "retry-after": "7" }), HELLO],
    expect: [wait(7, "acme limits the rate of requests (429)"), hello, stop],
  },
  "429 that counts in milliseconds": {
    answer: [json({}, 429, { "retry-after": "9", "retry-after-ms": "2500" }), HELLO],
    expect: [wait(2.5, "acme limits the rate of requests (429)"), hello, stop],
  },
  "429 with Retry-After as a date": {
    answer: [json({}, 429, { "retry-after": "Fri, 02 Jan 2026 03:04:25 GMT" }), HELLO],
    expect: [wait(20, "acme limits the rate of requests (429)"), hello, stop],
  },
  "429 that asks for more than the budget": {
    answer: json({ error: "slow down" }, 429, { "retry-after": "31" }),
    expect: [{
      type: "error",
      code: 429,
      message: "acme limits the rate of requests (429): slow down. It answers again at " +
        "2026-01-02T03:04:36Z, in 31 s",
      kind: "announced",
      retry_at: Date.UTC(2026, 0, 2, 3, 4, 36),
    }],
  },
  "429 with a short Retry-After for ever": {
    answer: json({ error: "slow down" }, 429, { "retry-after": "1" }),
    expect: [
      ...[1, 2, 4, 8].map((seconds) => wait(seconds, "acme limits the rate of requests (429)")),
      {
        type: "error",
        code: 429,
        message: "acme limits the rate of requests (429): slow down. It answers again at " +
          "2026-01-02T03:04:21Z, in 1 s",
        kind: "announced",
        retry_at: Date.UTC(2026, 0, 2, 3, 4, 36),
      },
    ],
  },
  "500, 503 and 529 before an answer": {
    answer: [json({}, 500), json({}, 503), json({}, 529), HELLO],
    expect: [
      wait(1, "acme failed (500)"),
      wait(2, "acme failed (503)"),
      wait(4, "acme failed (529)"),
      hello,
      stop,
    ],
  },
  "502 until the budget is used up": {
    answer: json({ message: "down" }, 502),
    options: { retry_budget: 8 },
    expect: [
      wait(1, "acme failed (502)"),
      wait(2, "acme failed (502)"),
      wait(4, "acme failed (502)"),
      wait(1, "acme failed (502)"),
      error(502, "acme failed (502): down"),
    ],
  },
  "429 with Retry-After 0 for ever": {
    answer: json({}, 429, { "retry-after": "0" }),
    options: { retry_budget: 3 },
    expect: [
      wait(1, "acme limits the rate of requests (429)"),
      wait(2, "acme limits the rate of requests (429)"),
      error(429, "acme limits the rate of requests (429)"),
    ],
  },
  "503 in place of an answer in the stream": {
    answer: [head() + data({ error: { message: "busy", code: 503 } }), HELLO],
    expect: [wait(1, "acme failed (503)"), hello, stop],
  },
  "a connection that is closed at once, then an answer": {
    answer: ["", chunked(data(chunk({}))), HELLO],
    expect: [
      wait(1, "The connection to acme broke off."),
      wait(2, "The connection to acme broke off."),
      hello,
      stop,
    ],
  },
  "503 in the middle of a stream is no answer to wait for": {
    answer: head() + data(hi, { error: { message: "gone", code: 503 } }),
    expect: [hello, error(503, "acme reported an error: gone")],
  },

  // Parameters that the backend does not know.
  "400 that turns down stream_options": {
    answer: async (wire, { body }) => {
      const bad = json({ error: { message: "Unknown field: stream_options" } }, 400);
      await wire.send("stream_options" in JSON.parse(body) ? bad : HELLO);
    },
    expect: [hello, stop],
    requests: 2,
  },
  "400 that asks for max_completion_tokens": {
    answer: async (wire, { body }) => {
      const { max_completion_tokens, max_tokens } = JSON.parse(body);
      const good = max_completion_tokens === 100 && max_tokens === undefined;
      const message = "Unsupported: 'max_tokens'. Use 'max_completion_tokens' instead.";
      await wire.send(good ? HELLO : json({ error: { message } }, 400));
    },
    expect: [hello, stop],
    requests: 2,
  },
  ...Object.fromEntries([
    "Your organization must be verified to stream this model.",
    "This model doesn't support tool use in streaming mode.",
    "Streaming is not supported for this model",
  ].map((message): [string, Fault] => [`400 that turns down the stream: ${message}`, {
    answer: async (wire, { body }) => {
      const { stream, stream_options } = JSON.parse(body);
      const good = !stream && stream_options === undefined;
      const answer = json({ choices: [{ message: { content: "hello" }, finish_reason: "stop" }] });
      await wire.send(good ? answer : json({ error: { message } }, 400));
    },
    expect: [hello, stop],
    requests: 2,
  }])),
  "400 that always blames stream_options": {
    answer: json({ error: { message: "stream_options" } }, 400),
    expect: [error(400, "acme rejected the request (400): stream_options")],
    requests: 2,
  },

  // Redirects on one host.
  ...Object.fromEntries([301, 302, 303, 307, 308].map((status): [string, Fault] => [
    `a ${status} redirect keeps method, body and key`,
    {
      answer: async (wire, request) => {
        if (wire.number === 1) return await wire.send(redirect(status, "/moved"));
        assert.equal(`${request.method} ${request.path}`, "POST /moved");
        assert.equal(JSON.parse(request.body).model, "m1");
        assert.equal(request.headers.get("authorization"), `Bearer ${KEY}`);
        await wire.send(HELLO);
      },
      expect: [hello, stop],
      requests: 2,
    },
  ])),
  "a redirect without an address": {
    answer: head(302, { "content-length": "0" }),
    expect: [error(302, "acme answered with a redirect that leads nowhere (302)")],
  },
  "redirects without an end": {
    answer: redirect(307, "/again"),
    expect: [error(307, "acme redirects more than 5 times")],
    requests: 6,
  },
  "a redirect to another scheme": {
    answer: redirect(307, "file:///etc/passwd"),
    expect: [error(0, "acme redirects to file:, which is not followed")],
  },

  // Not HTTP.
  "a connection that is closed at once": {
    answer: "",
    options: { retry_budget: 0 },
    expect: [brokeOff],
  },
  "an answer that is not HTTP": {
    answer: "SSH-2.0-OpenSSH\r\n\r\n",
    expect: [error(0, "acme at HOST did not answer in valid HTTP")],
  },
};

for (const [name, fault] of Object.entries(FAULTS)) {
  Deno.test(`fault: ${name}`, async () => {
    await using server = new WireServer(answerOf(fault.answer));
    const options = providerOptions({ base_url: server.url, ...fault.options });
    const clock = new TestClock((ms) => !PATIENCE.includes(ms));
    const stream = new Steady(options, clock).chat([{ role: "user", content: "hi" }]);
    const events: StreamEvent[] = [];
    while (true) {
      const next = stream.next();
      if (fault.silence?.after === events.length) {
        await server.asked;
        await expireUntil(next, fault.silence.ms, clock);
      }
      const { value, done } = await next;
      if (done) break;
      events.push(value);
    }
    const host = server.url.slice("http://".length);
    assert.deepEqual(JSON.parse(JSON.stringify(events).replaceAll(host, "HOST")), fault.expect);
    assert.equal(JSON.stringify(events).includes(KEY), false);
    const waits = events.filter((event) => event.type === "wait").length;
    assert.equal(server.requests.length, fault.requests ?? waits + 1);
  });
}

/** Ends sleeps of `ms` milliseconds until `done` settles: the timer of a limit may start before the wait. */
async function expireUntil(done: Promise<unknown>, ms: number, clock: TestClock): Promise<void> {
  let waiting = true;
  done.finally(() => waiting = false);
  while (waiting) await Promise.race([done, clock.expire(ms)]);
}

/** Idle limits in milliseconds: for any bytes, for token counts, for the end of the body. */
const PATIENCE = [60_000, 10_000, 250];

class Steady extends OpenAICompatibleProvider {
  protected override jitter(): number {
    return 0;
  }
}

function answerOf(answer: Fault["answer"]): Answer {
  if (typeof answer === "function") return answer;
  const list = Array.isArray(answer) ? answer : [answer];
  return (wire) => wire.send(list[Math.min(wire.number, list.length) - 1]!);
}

function token(content: string): StreamEvent {
  return { type: "token", content };
}

function thinking(content: string): StreamEvent {
  return { type: "thinking", content };
}

function done(reason: string, usage: Record<string, number> = {}): StreamEvent {
  return { type: "done", reason, usage };
}

function error(
  code: number,
  message: string,
  kind: FailureKind = code === 429 || code >= 500 ? "transient" : "permanent",
): StreamEvent {
  return { type: "error", code, message, kind };
}

function wait(seconds: number, reason: string): StreamEvent {
  return { type: "wait", seconds, reason };
}

function wireCall(id: string, name: string, args: string) {
  return [{ id, type: "function" as const, function: { name, arguments: args } }];
}

function toolCall(id: string, name: string, args: string): StreamEvent {
  return { type: "tool_calls", tool_calls: wireCall(id, name, args) };
}

function redirect(status: number, location: string): string {
  return head(status, { location, "content-length": "0" });
}

/** A chunked body of these pieces, without its last chunk. */
function chunked(...pieces: string[]): string {
  const body = pieces.map((piece) => `${bytes(piece).length.toString(16)}\r\n${piece}\r\n`);
  return head(200, { "transfer-encoding": "chunked" }) + body.join("");
}

async function gzipped(text: string): Promise<Uint8Array> {
  const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("gzip"));
  const body = new Uint8Array(await new Response(stream).arrayBuffer());
  const start = bytes(head(200, { "content-encoding": "gzip" }));
  return new Uint8Array([...start, ...body]);
}
