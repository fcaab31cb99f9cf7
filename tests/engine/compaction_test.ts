import assert from "node:assert/strict";
import { compact } from "../../src/engine/compaction.ts";
import { Conversation } from "../../src/engine/conversation.ts";
import { SvcError } from "../../src/platform/error.ts";
import type { ChatMessage } from "../../src/plugins/api.ts";
import { exportMarkdown } from "../../src/sessions/export.ts";
import type { Session } from "../../src/sessions/session.ts";
import { agent, collect, type TestAgent } from "../support/agent.ts";
import { call, hang, httpError, type Reply, say, think } from "../support/backend.ts";

/** An agent with a conversation of `turns` turns, and what the model then says. */
async function talked(turns: number, ...then: Reply[]): Promise<TestAgent> {
  const answers = Array.from({ length: turns }, (_, i) => say(`answer ${i + 1}`));
  const it = await agent([...answers, ...then]);
  for (let i = 1; i <= turns; i++) await it.turn(`prompt ${i}`);
  return it;
}

function run(it: TestAgent, keep: number, signal?: AbortSignal, session: Session = it.session) {
  const provider = it.workspace.connect(it.workspace.backend(), "test");
  return compact({ provider, session, keep, signal });
}

const contents = (messages: ChatMessage[]) => messages.map(({ content }) => content);
const lastRequest = (it: TestAgent) => it.backend.chats.at(-1).messages as ChatMessage[];
const summed = (text: string) => `Summary of the conversation so far:\n\n${text}`;

Deno.test("compaction summarises the turns before the last compact_keep; the log gains a record and keeps the rest [2.1, 2.2, 2.13, 8]", async () => {
  await using it = await talked(5, say("  they counted\n"));
  const before = it.session.document().turns;
  assert.deepEqual(await run(it, 2), { summary: "they counted", compact_from: 4, turns: 3 });

  const asked = contents(lastRequest(it)).join("\n");
  for (const i of [1, 2, 3]) assert.match(asked, new RegExp(`prompt ${i}[^]*answer ${i}`));
  assert.doesNotMatch(asked, /(prompt|answer) [45]/);

  const turns = it.session.document().turns;
  assert.deepEqual(turns.slice(0, 5), before);
  const { index, status, parts } = turns[5]!;
  assert.deepEqual([turns.length, index, status, parts.length], [6, 6, "ok", 1]);
  const { timestamp: _, ...record } = parts[0]!;
  assert.deepEqual(record, {
    type: "command",
    text: "/compact",
    summary: "they counted",
    compact_from: 4,
  });
  assert.match(exportMarkdown(it.session.document()), /starts at turn 4/);
});

Deno.test("the running engine and a new one send the summary from the next turn on", async () => {
  await using it = await talked(3, say("they counted"), say("four"), say("five"));
  await run(it, 1);
  const kept = [summed("they counted"), "prompt 3", "answer 3"];
  await it.turn("prompt 4");
  assert.deepEqual(contents(lastRequest(it)).slice(1), [...kept, "prompt 4"]);
  await collect(it.another().turn("prompt 5"));
  assert.deepEqual(contents(lastRequest(it)).slice(1), [...kept, "prompt 4", "four", "prompt 5"]);
});

Deno.test("a second compaction builds on the first, and records do not count as turns", async () => {
  await using it = await talked(3, say("first"), say("answer 4"), say("second"));
  await run(it, 1);
  await it.turn("prompt 4");
  assert.deepEqual(await run(it, 1), { summary: "second", compact_from: 4, turns: 1 });
  const asked = contents(lastRequest(it)).join("\n");
  assert.match(asked, /first[^]*prompt 3[^]*answer 3/);
  assert.doesNotMatch(asked, /prompt [124]/);
  const { turns } = it.session.document();
  assert.deepEqual(contents(new Conversation(turns).messages()), [
    summed("second"),
    "prompt 4",
    "answer 4",
  ]);
});

Deno.test("with nothing before the turns to keep no model is asked and nothing is written", async () => {
  await using it = await talked(2, say("all"));
  const before = it.session.document();
  assert.equal(await run(it, 2), undefined);
  assert.equal(await run(it, 9), undefined);
  assert.equal(it.backend.chats.length, 2);
  assert.deepEqual(it.session.document(), before);
  assert.deepEqual(await run(it, 0), { summary: "all", compact_from: 3, turns: 2 });
  assert.equal(await run(it, 0), undefined, "the summary alone is nothing to compact");
});

Deno.test("a model that fails, says nothing or is interrupted leaves the log as it was", async () => {
  const script = [httpError(401), say(" "), think("hm"), say("<think>only this</think>"), hang()];
  await using it = await talked(2, ...script);
  const before = it.session.document();
  await assert.rejects(
    run(it, 1),
    (error) => error instanceof SvcError && /401/.test(error.message),
  );
  for (let i = 0; i < 3; i++) {
    await assert.rejects(run(it, 1), (e) => e instanceof SvcError && e.code === "no_summary");
  }
  const controller = new AbortController();
  const hanging = run(it, 1, controller.signal);
  await it.backend.arrived(2 + script.length);
  controller.abort(new Error("enough"));
  await assert.rejects(hanging, /enough/);
  assert.deepEqual(it.session.document(), before);
});

Deno.test("reasoning in the model's answer is no part of the summary", async () => {
  await using it = await talked(2, say("<think>what matters?</think>\n\nthey counted"));
  assert.equal((await run(it, 1))?.summary, "they counted");
});

Deno.test("a long history is read in pieces, each request bounded, with what came before", async () => {
  const big = "x".repeat(300_000);
  const script = Array.from({ length: 100 }, (_, i) => say(`summary ${i + 1}`));
  await using it = await agent([call("file_read", { path: "big.txt" }), say(big), ...script], {
    files: { "big.txt": `${"y".repeat(90_000)}\n` },
  });
  await it.turn("read it");
  for (let i = 0; i < 30; i++) it.session.appendUser(`note ${i} ${"z".repeat(20_000)}`);
  const before = it.backend.chats.length;
  const { summary } = (await run(it, 0))!;
  const requests = it.backend.chats.slice(before);
  assert.ok(requests.length > 3, `${requests.length} requests`);
  assert.equal(summary, `summary ${requests.length}`);
  for (const [i, { messages }] of requests.entries()) {
    const text = contents(messages).join("\n");
    assert.ok(text.length < 60_000, `${text.length} characters`);
    assert.equal(text.includes(`summary ${i}\n`), i > 0);
  }
  const all = requests.flatMap(({ messages }) => contents(messages)).join("\n");
  for (let i = 0; i < 30; i++) assert.match(all, new RegExp(`note ${i} z`));
  assert.match(all, /calls file_read\] \{"path":"big\.txt"\}/);
});

Deno.test("a reply with hundreds of calls is read in pieces too", async () => {
  const script = Array.from({ length: 20 }, (_, i) => say(`summary ${i + 1}`));
  await using it = await agent([say("one"), ...script]);
  await it.turn("go");
  await it.session.acquireTurn();
  const head = { model: "m", provider: "p", mode: "build", reasoning: false };
  const turn = it.session.beginTurn(head);
  for (let i = 0; i < 400; i++) {
    const input = { id: `call ${i}`, text: "w".repeat(1000) };
    turn.append({ type: "tool", name: "t", input, output: "", is_error: false });
  }
  turn.end("ok");
  await run(it, 0);
  const texts = it.backend.chats.slice(1).map(({ messages }) => contents(messages).join("\n"));
  assert.ok(texts.every(({ length }) => length < 60_000));
  for (let i = 0; i < 400; i++) assert.ok(texts.some((text) => text.includes(`"call ${i}"`)));
});

Deno.test("a turn that still runs, and what came in meanwhile, is kept", async () => {
  await using it = await talked(2, say("they counted"));
  await it.session.acquireTurn();
  const head = { model: "m", provider: "p", mode: "build", reasoning: false };
  const running = it.session.beginTurn(head);
  running.append({ type: "user", text: "prompt 3" });
  const other = it.workspace.sessions.open(it.session.name);
  other.appendUser("aside");
  assert.equal((await run(it, 0, undefined, other))?.compact_from, 3);
  other.close();
  running.append({ type: "text", text: "answer 3" });
  running.end("ok");
  const { turns } = it.session.document();
  assert.deepEqual(contents(new Conversation(turns).messages()), [
    summed("they counted"),
    "prompt 3",
    "answer 3",
    "aside",
  ]);
});
