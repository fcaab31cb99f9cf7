import assert from "node:assert/strict";
import { summarise } from "../../src/engine/compaction.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import type { ChatMessage, ChatOptions, Provider, StreamEvent } from "../../src/plugins/api.ts";
import { agent, collect, type TestAgent } from "../support/agent.ts";
import { call, httpError, say } from "../support/backend.ts";

/** What the model says to a request; a text is an answer. */
type Answer = (messages: ChatMessage[]) => StreamEvent[] | string;

const SUMMARY = "You keep the memory of an agent";
const isSummary = ([system]: ChatMessage[]) => system!.content!.startsWith(SUMMARY);
const length = (value: unknown) => JSON.stringify(value).length;

/** A model with a context window, which refuses longer requests and counts a token for four characters. */
class Windowed {
  readonly name = "generic-compatible";
  readonly model = "test";
  readonly base_url = "";
  readonly session_id = "";
  readonly echo_reasoning = false;
  readonly sent: ChatMessage[][] = [];
  refused = 0;
  asked = 0;
  reported = true;
  named: number | undefined;
  listed: number | undefined;
  summary: Answer = copied;

  constructor(public window: number, readonly answer: Answer) {}

  async *chat(
    messages: ChatMessage[],
    { tools = [], max_tokens = REPLY }: ChatOptions = {},
  ): AsyncGenerator<StreamEvent> {
    const tokens = Math.ceil((length(messages) + length(tools)) / 4);
    if (tokens + max_tokens > this.window) {
      this.refused++;
      const message = "the request exceeds the context window";
      yield { type: "error", code: 400, message, kind: "overflow", window: this.named };
      return;
    }
    this.sent.push(structuredClone(messages));
    const said = (isSummary(messages) ? this.summary : this.answer)(messages);
    const events = typeof said === "string" ? [{ type: "token" as const, content: said }] : said;
    yield* events;
    const usage = this.reported ? { prompt_tokens: tokens, completion_tokens: 1 } : undefined;
    if (!events.some(({ type }) => type === "error")) {
      yield { type: "done", reason: "stop", usage: usage ?? {} };
    }
  }

  async chat_nonstreaming(messages: ChatMessage[]): Promise<string> {
    let text = "";
    for await (const event of this.chat(messages)) {
      if (event.type === "token") text += event.content;
      if (event.type === "error") throw Object.assign(new Error(event.message), event);
    }
    return text;
  }

  context_window(): Promise<number | undefined> {
    this.asked++;
    return Promise.resolve(this.listed);
  }

  /** The requests of the turns, and those for a summary. */
  get requests(): ChatMessage[][] {
    return this.sent.filter((messages) => !isSummary(messages));
  }
  get summaries(): ChatMessage[][] {
    return this.sent.filter(isSummary);
  }
}

const REPLY = 1000;

/** A summary of a model that copies the facts that it finds. */
function copied(messages: ChatMessage[]): string {
  const text = messages.at(-1)!.content!;
  return [...new Set(text.match(/The code word of day \d+ is \w+\./g) ?? ["nothing"])].join("\n");
}

/** A call of a number of its own: the same one again and again would end the turn. */
const read = (path: string, id: string, limit: number): StreamEvent[] => [{
  type: "tool_calls",
  tool_calls: [{
    ...{ id, type: "function" },
    function: { name: "file_read", arguments: JSON.stringify({ path, limit }) },
  }],
}];

/** Reads a file once for each of so many rounds of a turn, then says which. */
function reader(rounds: number): Answer {
  let calls = 0;
  return (messages) => {
    const asked = messages.findLastIndex(({ role, content }) =>
      role === "user" && !content!.startsWith("Summary")
    );
    const done = new Set(
      messages.slice(asked).flatMap(({ tool_calls = [] }) => tool_calls.map(({ id }) => id)),
    );
    const said = /\d+/.exec(messages[asked]!.content!)![0];
    const prefix = `call_${said}_`;
    const own = Math.max(0, ...[...done].map((id) => Number(id.replace(prefix, ""))));
    if (own < rounds) return read("a.txt", `${prefix}${own + 1}`, 1000 + own);
    return `done ${said} after ${++calls}`;
  };
}

const files = { "a.txt": `${"alpha beta gamma delta\n".repeat(200)}` };

async function windowed(
  model: Windowed,
  config: Record<string, unknown> = {},
  content: Record<string, string> = files,
  clock?: Clock,
): Promise<TestAgent> {
  const it = await agent([], { files: content, config: { max_tokens: REPLY, ...config }, clock });
  it.workspace.connect = () => model as unknown as Provider;
  return it;
}

/** An engine as another process would have it. */
const restarted = async (it: TestAgent) => (await it.prepare()).open(it.session).engine;

const notices = (events: { type: string; message?: string }[]) =>
  events.flatMap(({ type, message }) => type === "notice" ? [message!] : []).join("\n");

const shared = (one: ChatMessage[], other: ChatMessage[]) => {
  const before = one.map((message) => JSON.stringify(message));
  let chars = 0;
  for (const [i, message] of other.entries()) {
    const text = JSON.stringify(message);
    if (text !== before[i]) break;
    chars += text.length;
  }
  return chars;
};

Deno.test("a backend is asked for its window once in ten minutes, by all turns, and not for short requests", async () => {
  const model = new Windowed(40_000, () => "done");
  let time = Date.now();
  await using it = await windowed(model, {}, {}, { ...systemClock, now: () => time });
  const asked = async (prompt: string) => {
    await collect((await restarted(it)).turn(prompt));
    return model.asked;
  };
  assert.equal(await asked("a short one"), 0);
  const long = "alpha ".repeat(6000);
  assert.deepEqual([await asked(long), await asked("again")], [1, 1]);
  time += 599_000;
  assert.equal(await asked("and again"), 1);
  time += 2000;
  assert.deepEqual([await asked("later"), await asked("at once")], [2, 2]);
});

Deno.test("results of old calls are left out before a request that would not fit, without a model", async () => {
  const model = new Windowed(20_000, reader(3));
  await using it = await windowed(model, { context_window: 20_000 });
  const engine = await restarted(it);
  let shortened = "";
  for (let i = 1; shortened === "" && i < 9; i++) {
    shortened = notices((await collect(engine.turn(`read ${i}`))).events);
  }
  assert.match(shortened, /results of \d+ older tool calls were left out/);
  assert.deepEqual([model.refused, model.summaries.length], [0, 0]);
  const last = model.requests.at(-1)!;
  const results = last.filter(({ role }) => role === "tool").map(({ content }) => content!);
  assert.match(results[0]!, /^\[This result was left out to make room: .* call file_read again/);
  assert.match(results.at(-1)!, /alpha beta/);
  // The log keeps them, and another process sends the same.
  const logged = it.session.document().turns.flatMap(({ parts }) => parts);
  assert.ok(logged.every((part) => part.type !== "tool" || part.output.includes("alpha beta")));
  await collect((await restarted(it)).turn("read 77"));
  const again = model.requests.find((messages) => messages.length > last.length)!;
  assert.equal(shared(last, again), length(last) - last.length - 1);
});

Deno.test("a refusal teaches the window: the turn goes on, and later processes know it", async () => {
  for (const named of [undefined, 20_000]) {
    const model = new Windowed(20_000, reader(3));
    Object.assign(model, { named, reported: false });
    await using it = await windowed(model);
    let engine = await restarted(it);
    for (let i = 1; i <= 12; i++) {
      const { result } = await collect(engine.turn(`read ${i}`));
      assert.deepEqual([result.status, result.errors, result.reason], ["ok", [], ""], `turn ${i}`);
      if (i % 3 === 0) engine = await restarted(it);
    }
    assert.equal(model.refused, 1, `named: ${named}`);
    assert.equal(it.session.document().errors.length, 1);
  }
});

Deno.test("the window of the backend's list of models is used when no setting says it", async () => {
  const model = new Windowed(20_000, reader(3));
  model.listed = 20_000;
  await using it = await windowed(model);
  const engine = await restarted(it);
  for (let i = 1; i <= 9; i++) await collect(engine.turn(`read ${i}`));
  assert.equal(model.refused, 0);
});

Deno.test("a long turn is compacted while it runs: the request and the newest rounds stay", async () => {
  const model = new Windowed(20_000, reader(80));
  await using it = await windowed(model, { context_window: 20_000, noise_tools: [] });
  const engine = await restarted(it);
  const { result } = await collect(engine.turn("read 1 file, many times"));
  assert.deepEqual([result.status, result.tool_calls.length], ["ok", 80]);
  assert.equal(model.refused, 0);
  for (const messages of model.requests) {
    assert.equal(messages.filter(({ content }) => content === "read 1 file, many times").length, 1);
    const results = messages.filter(({ role }) => role === "tool");
    if (results.length > 0) assert.match(results.at(-1)!.content!, /alpha beta/);
  }
  const compactions = it.session.document().turns[0]!.parts.filter(({ type }) =>
    type === "command"
  );
  assert.ok(compactions.length > 1 && compactions.length < 20, `${compactions.length} compactions`);
  // Another process continues with the same messages.
  const last = model.requests.at(-1)!;
  await collect((await restarted(it)).turn("read 2"));
  const next = model.requests.find((messages) => messages.at(-1)!.content === "read 2")!;
  assert.equal(shared(last, next), length(last) - last.length - 1);
});

Deno.test("a backend's refusal over the wire is followed by a shorter request", async () => {
  const reads = Array.from(
    { length: 6 },
    (_, i) => call("file_read", { path: "a.txt", limit: 1000 + i }),
  );
  const message = "This model's maximum context length is 16000 tokens. However, your messages " +
    "resulted in 17400 tokens. Please reduce the length of the messages.";
  const error = { message, type: "invalid_request_error", code: "context_length_exceeded" };
  const script = [...reads, say("read"), httpError(400, { error }), say("ok")];
  await using it = await agent(script, { files, config: { max_tokens: REPLY } });
  await it.turn("read");
  const { result } = await it.turn("go on");
  assert.deepEqual([result.status, result.errors, result.reason], ["ok", [], ""]);
  const [refused, second] = it.backend.chats.slice(-2);
  assert.ok(length(second) < 0.7 * length(refused));
  assert.equal(second.messages.at(-1).content, "go on");
});

Deno.test("the last results of a turn that ended without an answer can be left out in the next", async () => {
  const model = new Windowed(16_000, reader(1));
  const content = { "a.txt": `${"x".repeat(100)}\n`.repeat(450) };
  await using it = await windowed(model, { max_rounds: 1 }, content);
  assert.equal((await collect((await restarted(it)).turn("read 1"))).result.reason, "rounds");
  Object.assign(model, { answer: () => "done", listed: 16_000, model: "small" });
  const { result } = await collect(
    (await restarted(it)).turn(`go on ${"y".repeat(5000)}`),
  );
  assert.equal(result.status, "ok");
  assert.deepEqual([model.refused, model.summaries.length], [0, 0]);
  const results = model.requests.at(-1)!.filter(({ role }) => role === "tool");
  assert.match(results[0]!.content!, /^\[This result was left out/);
});

Deno.test("a result larger than the window is read in parts, or cut once a refusal shows the window", async () => {
  const big = Array.from({ length: 400 }, (_, i) => `line ${i} ${"x".repeat(200)}\n`).join("");
  const read = async (config: Record<string, unknown>) => {
    const model = new Windowed(12_000, reader(1));
    await using it = await windowed(model, config, { "a.txt": big });
    const { result, events } = await collect((await restarted(it)).turn("read 1"));
    assert.equal(result.status, "ok");
    const [part] = it.session.document().turns[0]!.parts.filter(({ type }) => type === "tool");
    assert.ok(part?.type === "tool");
    return { model, notices: notices(events), logged: part.output };
  };
  const known = await read({ context_window: 12_000 });
  assert.deepEqual([known.model.refused, known.notices], [0, ""]);
  assert.match(known.logged, /line 30 x[^]*the result limit is reached; continue with offset/);

  const unknown = await read({});
  assert.equal(unknown.model.refused, 1);
  assert.match(unknown.notices, /long results of the last calls were cut/);
  assert.match(
    unknown.model.requests.at(-1)!.at(-1)!.content!,
    /line 3 x[^]*\[The rest of this result was left out to make room: \d+ of \d+ characters/,
  );
  assert.match(unknown.logged, /line 390/);
});

Deno.test("what cannot be made to fit ends with the reason context and a hint, and few requests", async () => {
  for (const config of [{ context_window: 10_000 }, {}]) {
    const model = new Windowed(10_000, () => "done");
    await using it = await windowed(model, config);
    const engine = await restarted(it);
    const { result } = await collect(engine.turn("x".repeat(100_000)));
    assert.deepEqual([result.status, result.reason], ["error", "context"]);
    assert.match(result.errors.at(-1)!.message, /shorten the prompt/);
    assert.ok(model.refused + model.sent.length <= 1);
    // It leaves the conversation, and the session is as good as before.
    const { result: next } = await collect(engine.turn("short"));
    assert.equal(next.status, "ok");
  }
});

Deno.test("a reply that would fill the window is requested smaller, and nothing is left out for it", async () => {
  for (const config of [{}, { context_window: 10_000 }]) {
    const model = new Windowed(10_000, () => "done");
    model.named = 10_000;
    await using it = await windowed(model, { max_tokens: 10_000, ...config });
    const { result } = await collect((await restarted(it)).turn("short"));
    assert.deepEqual([result.status, result.errors], ["ok", []]);
    assert.equal(model.refused, "context_window" in config ? 0 : 1);
    const { parts } = it.session.document().turns[0]!;
    assert.deepEqual(parts.map(({ type }) => type), ["user", "text"]);
  }
});

Deno.test("turns that the model cannot summarise are left out, with a note of them", async () => {
  const model = new Windowed(8000, () => "x".repeat(3000));
  model.summary = () => [{ type: "error", code: 400, message: "no" }];
  await using it = await windowed(model, { context_window: 8000, stream_retries: 0 });
  const engine = await restarted(it);
  for (let i = 1; i <= 12; i++) {
    const { result } = await collect(engine.turn(`order ${i}`));
    assert.equal(result.status, "ok", JSON.stringify(result.errors));
  }
  const [, summary] = model.requests.at(-1)!;
  assert.match(summary!.content!, /left out without a summary[^]*user: order 2/);
  assert.equal(model.refused, 0);
});

Deno.test("a piece for a summary that the backend refuses is halved, and nothing of a prompt is cut", async () => {
  const model = new Windowed(4000, () => "");
  const word = (day: number) => `The code word of day ${day} is heron${day}.`;
  const text = Array.from({ length: 30 }, (_, i) => `${"y".repeat(1500)} ${word(i)}`).join(" ");
  const provider = model as unknown as Provider;
  const summary = await summarise([{ role: "user", content: text }], { provider });
  for (let day = 0; day < 30; day++) assert.ok(summary.includes(word(day)), `day ${day}`);
  assert.ok(model.refused > 0 && model.refused < 4, `${model.refused} refused`);
});

for (const [code, kind] of [[503, "transient"], [404, "permanent"]] as const) {
  Deno.test(`a ${kind} failure while a summary is due leaves the conversation as it is`, async () => {
    const model = new Windowed(8000, () => "x".repeat(3000));
    const down: StreamEvent[] = [
      { type: "error", code, message: "There is no model", kind },
    ];
    let out = false;
    const { answer } = model;
    Object.assign(model, { answer: (messages: ChatMessage[]) => out ? down : answer(messages) });
    model.summary = (messages) => out ? down : copied(messages);
    await using it = await windowed(model, { context_window: 8000, stream_retries: 0 });
    const engine = await restarted(it);
    await collect(engine.turn("The code word of day 1 is heron."));
    for (let i = 2; model.summaries.length === 0 && i < 40; i++) {
      const before = it.session.document().turns.length;
      out = true;
      assert.equal((await collect(engine.turn(`order ${i}`))).result.status, "error");
      const [failed] = it.session.document().turns.slice(before);
      assert.ok(failed!.parts.every(({ type }) => type !== "command"));
      out = false;
      await collect(engine.turn(`order ${i}`));
    }
    assert.match(JSON.stringify(model.requests.at(-1)), /day 1 is heron/);
  });
}

Deno.test("a code word of day 1 is known on day 30, also to a model whose summaries are too long", async () => {
  for (const more of ["", "chatter ".repeat(4000)]) {
    const model = new Windowed(16_000, reader(2));
    model.summary = (messages) => `${copied(messages)}\n${more}`;
    await using it = await windowed(model, { context_window: 16_000 });
    for (let day = 1; day <= 30; day++) {
      const engine = await restarted(it);
      const word = `The code word of day ${day} is word${day}.`;
      const prompt = `Task ${day}. ${"y".repeat(2000)} ${day % 7 === 1 ? word : ""} ${
        "z".repeat(9000)
      }`;
      const { result } = await collect(engine.turn(prompt));
      assert.equal(result.status, "ok");
    }
    assert.ok(model.summaries.length > 3, `${model.summaries.length} summaries`);
    const sent = JSON.stringify(model.requests.at(-1));
    for (const day of more === "" ? [1, 8, 15, 22, 29] : [1, 29]) {
      assert.match(sent, new RegExp(`day ${day} is word${day}`));
    }
    assert.equal(model.refused, 0);
  }
});

Deno.test("over a month of runs 90 % and more of each request is the one before it", async () => {
  const model = new Windowed(40_000, reader(4));
  await using it = await windowed(model, { context_window: 40_000 });
  for (let run = 1; run <= 70; run++) {
    const { result } = await collect((await restarted(it)).turn(`Run ${run}`));
    assert.equal(result.status, "ok");
  }
  const { requests } = model;
  let same = 0;
  let all = 0;
  for (let i = 1; i < requests.length; i++) {
    same += shared(requests[i - 1]!, requests[i]!);
    all += length(requests[i]);
  }
  assert.ok(same / all >= 0.9, `${same / all}`);
  assert.equal(model.refused, 0);
});
