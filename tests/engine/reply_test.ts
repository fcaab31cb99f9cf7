import assert from "node:assert/strict";
import { TurnModels } from "../../src/engine/models.ts";
import { type Reply, type ReplySettings, streamReply } from "../../src/engine/reply.ts";
import type { ChatMessage, Provider, StreamEvent, WireToolCall } from "../../src/plugins/api.ts";
import { manualClock } from "../support/clock.ts";

const SETTINGS: ReplySettings = {
  stream_retries: 2,
  stream_retry_delay: 0.5,
  auto_continue: true,
  auto_continue_max: 2,
  max_tokens: 8192,
  retry_budget: 60,
  text_calls: "ask",
};

/** Plays one list of events per request, and remembers what was asked. */
function scripted(streams: StreamEvent[][]): { provider: Provider; asked: ChatMessage[][] } {
  const asked: ChatMessage[][] = [];
  const provider = {
    async *chat(messages: ChatMessage[]) {
      const events = streams[asked.length];
      asked.push(structuredClone(messages));
      assert.ok(events, "more requests than scripted");
      yield* events;
    },
  } as unknown as Provider;
  return { provider, asked };
}

async function reply(streams: StreamEvent[][], settings: Partial<ReplySettings> = {}) {
  const { provider, asked } = scripted(streams);
  const clock = manualClock();
  const stream = streamReply({
    models: new TurnModels([{ provider, used() {} }], {
      quota_wait: { seconds: 0 },
      now: () => clock.now(),
    }),
    messages: () => [{ role: "user", content: "hello" }],
    tools: [],
    signal: new AbortController().signal,
    run: 1,
    clock,
    settings: { ...SETTINGS, ...settings },
  });
  const events = [];
  while (true) {
    const { done, value } = await stream.next();
    if (done) return { reply: value as Reply, events, asked, slept: clock.slept };
    events.push(value);
  }
}

const token = (content: string): StreamEvent => ({ type: "token", content });
const thinking = (content: string): StreamEvent => ({ type: "thinking", content });
const done = (reason = "stop", usage = {}): StreamEvent => ({ type: "done", reason, usage });
const calls = (...tool_calls: WireToolCall[]): StreamEvent => ({ type: "tool_calls", tool_calls });
const call = (args: string): WireToolCall => ({
  id: "c1",
  type: "function",
  function: { name: "file_read", arguments: args },
});

Deno.test("a plain answer is one request, and its usage is reported [6.2]", async () => {
  const { reply: it, asked } = await reply([[token("Hi"), token("!"), done("stop", { total: 3 })]]);
  assert.deepEqual(it, {
    content: "Hi!",
    thinking: "",
    tool_calls: [],
    status: "ok",
    errors: [],
    usage: { total: 3 },
  });
  assert.equal(asked.length, 1);
});

Deno.test("a stream that ends with nothing is asked for again, after stream_retry_delay [2.13, 7.2]", async () => {
  const { reply: it, asked, slept, events } = await reply([[done("eof")], [token("x"), done()]]);
  assert.equal(it.status, "ok");
  assert.equal(it.content, "x");
  assert.equal(asked.length, 2);
  assert.deepEqual(slept, [500]);
  assert.match(JSON.stringify(events), /Stream ended before a completion event.*2 of 3/);
});

Deno.test("three streams that end with nothing are the error that the stream ended before a completion event [2.3, 2.13, 3.3, 7.2, 8]", async () => {
  const { reply: it, asked } = await reply([[done("eof")], [done("eof")], [done("eof")]]);
  assert.equal(asked.length, 3);
  assert.equal(it.status, "empty");
  assert.deepEqual(it.errors, [{ code: 0, message: "Stream ended before a completion event" }]);
});

Deno.test("an empty completion is asked for again [7.2]", async () => {
  const { reply: it, asked } = await reply([[done()], [done()], [token("x"), done()]]);
  assert.equal(asked.length, 3);
  assert.equal(it.content, "x");
});

Deno.test("a reply of reasoning alone is neither empty nor asked for again [2.1, 7.2]", async () => {
  const { reply: it, asked } = await reply([[thinking("hm"), done()]]);
  assert.equal(asked.length, 1);
  assert.equal(it.status, "ok");
  assert.equal(it.thinking, "hm");
});

Deno.test("a truncated answer is continued where it stopped and stitched together [7.2]", async () => {
  const { reply: it, asked } = await reply([
    [token("one two"), done("length", { total: 2 })],
    [token(" three"), done("stop", { total: 3 })],
  ]);
  assert.equal(it.status, "ok");
  assert.equal(it.content, "one two three");
  assert.deepEqual(it.usage, { total: 5 });
  assert.deepEqual(it.errors, []);
  assert.equal(asked[1]![1]!.role, "assistant");
  assert.equal(asked[1]![1]!.content, "one two");
  assert.equal(asked[1]![2]!.role, "user");
});

Deno.test("continuing a truncated answer stops at its cap with the warning for a configured max_tokens [2.3, 3.3, 7.2]", async () => {
  const { reply: it, asked } = await reply([
    [token("a"), done("length")],
    [token("b"), done("length")],
    [token("c"), done("length")],
  ]);
  assert.equal(asked.length, 3);
  assert.equal(it.status, "truncated");
  assert.equal(it.content, "abc");
  assert.match(it.errors[0]!.message, /configured max_tokens \(8192\)/);
});

Deno.test("without a configured max_tokens the truncation warning names the provider's own limit [7.2]", async () => {
  const streams = [[token("a"), done("length")]];
  const { reply: it } = await reply(streams, { auto_continue: false, max_tokens: 0 });
  assert.equal(it.status, "truncated");
  assert.match(it.errors[0]!.message, /provider's own output limit/);
});

Deno.test("a truncated turn of reasoning alone keeps its thinking [2.1, 7.2]", async () => {
  const { reply: it, asked } = await reply([[thinking("long"), done("length")]]);
  assert.equal(asked.length, 1);
  assert.equal(it.status, "truncated");
  assert.equal(it.thinking, "long");
});

Deno.test("an answer whose stream is cut is continued; the content is not lost [7.2]", async () => {
  const { reply: it } = await reply([[token("half"), done("eof")], [token(" whole"), done()]]);
  assert.equal(it.status, "ok");
  assert.equal(it.content, "half whole");
});

Deno.test("a network failure in the middle of an answer counts as a cut [7.2]", async () => {
  const cut: StreamEvent = { type: "error", code: 0, message: "Connection lost" };
  const { reply: it } = await reply([[token("half"), cut], [token(" whole"), done()]]);
  assert.equal(it.content, "half whole");
  assert.deepEqual(it.errors, []);
});

Deno.test("a network failure that stays is the error of the reply [2.3, 7.2]", async () => {
  const refused: StreamEvent = { type: "error", code: 0, message: "Connection refused" };
  const { reply: it, asked } = await reply([[refused], [refused], [refused]]);
  assert.equal(asked.length, 3);
  assert.equal(it.status, "error");
  assert.deepEqual(it.errors, [{ code: 0, message: "Connection refused" }]);
});

Deno.test("an HTTP error is final and keeps what had arrived [7.2]", async () => {
  const denied: StreamEvent = { type: "error", code: 401, message: "Unauthorized" };
  const { reply: it, asked } = await reply([[token("a"), denied]]);
  assert.equal(asked.length, 1);
  assert.equal(it.status, "error");
  assert.equal(it.content, "a");
  assert.deepEqual(it.errors, [{ code: 401, message: "Unauthorized" }]);
});

Deno.test("a tool call that the output limit cut is asked for again, never run", async () => {
  const { reply: it, asked } = await reply([
    [calls(call('{"path": "REA')), done("length")],
    [calls(call('{"path": "README.md"}')), done("tool_calls")],
  ]);
  assert.equal(it.tool_calls.length, 1);
  assert.equal(it.tool_calls[0]!.function.arguments, '{"path": "README.md"}');
  assert.match(asked[1]!.at(-1)!.content!, /tool call was cut off/);
});

Deno.test("a vendor's own word for the output limit continues the answer too", async () => {
  for (const reason of ["max_tokens", "MAX_TOKENS", "model_length", "max_output_tokens"]) {
    const { reply: it } = await reply([[token("a"), done(reason)], [token("b"), done()]]);
    assert.equal(it.content, "ab", reason);
    assert.equal(it.status, "ok");
    const again = await reply([[calls(call('{"pa')), done(reason)], [token("ok"), done()]]);
    assert.deepEqual(again.reply.tool_calls, []);
  }
});

Deno.test("an answer that the backend says it broke off is continued, half a call never run", async () => {
  for (const reason of ["error", "abort", "network_error", "insufficient_system_resource"]) {
    const { reply: it } = await reply([[token("a"), done(reason)], [token("b"), done()]]);
    assert.equal(it.content, "ab", reason);
    const again = await reply([[calls(call('{"pa')), done(reason)], [token("ok"), done()]]);
    assert.deepEqual(again.reply.tool_calls, []);
    const nothing = await reply([[done(reason)], [token("x"), done()]]);
    assert.equal(nothing.reply.content, "x");
  }
});

Deno.test("a content filter's veto is said, and not asked for again", async () => {
  for (const [said, status] of [[[], "empty"], [[token("half")], "truncated"]] as const) {
    const { reply: it, asked } = await reply([[...said, done("content_filter")]]);
    assert.equal(it.status, status);
    assert.deepEqual(it.errors, [{
      code: 0,
      message: "The backend's content filter ended the answer (content_filter)",
    }]);
    assert.equal(asked.length, 1);
  }
});

Deno.test("reasoning between markers in the content is split from the answer [6.2]", async () => {
  const { reply: it, events } = await reply([[token("<think>why</th"), token("ink>yes"), done()]]);
  assert.equal(it.thinking, "why");
  assert.equal(it.content, "yes");
  assert.deepEqual(events, [
    { type: "thinking", run: 1, content: "why" },
    { type: "token", run: 1, content: "yes" },
  ]);
});

Deno.test("a notice names the wait for a busy backend, and the attempt that follows", async () => {
  const wait = (seconds: number): StreamEvent => ({
    type: "wait",
    seconds,
    reason: "acme limits the rate of requests (429)",
  });
  const { events } = await reply([[wait(1.5), wait(3), done("eof")], [token("Hi"), done()]]);
  const notice = (message: string, retry_in: number) => ({
    type: "notice",
    run: 1,
    level: "warning",
    message,
    retry_in,
  });
  const busy = "acme limits the rate of requests (429). Retrying in";
  assert.deepEqual(events, [
    notice(`${busy} 1.5 s (attempt 2, waiting 60 s in all at most).`, 1.5),
    notice(`${busy} 3.0 s (attempt 3, waiting 60 s in all at most).`, 3),
    notice(
      "Stream ended before a completion event. Retrying in 0.5 s (attempt 2 of 3).",
      0.5,
    ),
    { type: "token", run: 1, content: "Hi" },
  ]);
  const refused: StreamEvent = { type: "error", code: 0, message: "acme is away. Is it running?" };
  const [first] = (await reply([[refused], [token("Hi"), done()]])).events;
  assert.match((first as { message: string }).message, /running\? Retrying in 0\.5 s/);
});
