import assert from "node:assert/strict";
import { Conversation } from "../../src/engine/conversation.ts";
import type { NewPart, Turn } from "../../src/sessions/schema.ts";

const timestamp = "2026-01-02T03:04:05.000Z";

const conversation = (turns: Turn[]) => new Conversation(turns).messages();

function turn(index: number, ...parts: NewPart[]): Turn {
  return {
    index,
    started_at: timestamp,
    ended_at: timestamp,
    status: "ok",
    model: "m",
    provider: "p",
    mode: "build",
    reasoning: "auto",
    parts: parts.map((part) => ({ ...part, timestamp })),
  };
}

const tool = (name: string, output: string): NewPart => ({
  type: "tool",
  name,
  input: { path: name },
  output,
  is_error: false,
});

Deno.test("a turn with thinking, tools and an answer becomes the protocol's messages", () => {
  const messages = conversation([
    turn(
      1,
      { type: "user", text: "q" },
      { type: "thinking", text: "look" },
      { type: "text", text: "I look." },
      tool("a", "A"),
      tool("b", "B"),
      { type: "text", text: "done" },
    ),
  ]);
  const call = (id: string, name: string) => ({
    id,
    type: "function",
    function: { name, arguments: `{"path":"${name}"}` },
  });
  assert.deepEqual(messages, [
    { role: "user", content: "q" },
    {
      role: "assistant",
      content: "I look.",
      reasoning_content: "look",
      tool_calls: [call("c00010003", "a"), call("c00010004", "b")],
    },
    { role: "tool", tool_call_id: "c00010003", content: "A" },
    { role: "tool", tool_call_id: "c00010004", content: "B" },
    { role: "assistant", content: "done" },
  ]);
});

Deno.test("every tool call has its result right behind it, whatever the parts", () => {
  const messages = conversation([
    turn(
      1,
      { type: "user", text: "q" },
      tool("a", "A"),
      { type: "thinking", text: "t" },
      tool("b", "B"),
    ),
    turn(2, { type: "user", text: "again" }),
  ]);
  for (const [place, message] of messages.entries()) {
    const ids = message.tool_calls?.map((call) => call.id) ?? [];
    const answers = messages.slice(place + 1, place + 1 + ids.length);
    assert.deepEqual(answers.map((answer) => answer.tool_call_id), ids);
  }
  assert.equal(messages.filter((message) => message.role === "tool").length, 2);
});

Deno.test("a reply of thinking alone is no message; slash commands are none either", () => {
  const messages = conversation([
    turn(1, { type: "user", text: "q" }, { type: "thinking", text: "hm" }),
    turn(2, { type: "command", text: "/help" }),
    turn(3, { type: "system", text: "note" }),
  ]);
  assert.deepEqual(messages, [
    { role: "user", content: "q" },
    { role: "system", content: "note" },
  ]);
});

Deno.test("the newest compaction stands for everything before compact_from", () => {
  const messages = conversation([
    turn(1, { type: "user", text: "old" }),
    turn(2, { type: "user", text: "kept" }),
    turn(3, { type: "command", text: "/compact", summary: "we spoke", compact_from: 2 }),
    turn(4, { type: "user", text: "new" }),
  ]);
  assert.deepEqual(messages.map((message) => message.content), [
    "Summary of the conversation so far:\n\nwe spoke",
    "kept",
    "new",
  ]);
});

Deno.test("a compaction record speaks for nothing that came after it", () => {
  const messages = conversation([
    turn(1, { type: "user", text: "old" }),
    turn(2, { type: "command", text: "/compact", summary: "we spoke", compact_from: 99 }),
    turn(3, { type: "user", text: "new" }, tool("a", "A"), { type: "text", text: "done" }),
  ]);
  assert.deepEqual(messages.map(({ role }) => role), [
    "user",
    "user",
    "assistant",
    "tool",
    "assistant",
  ]);
  assert.equal(messages[1]!.content, "new");
});

Deno.test("a command with its answer in the log is the question to it, as of a team that was run", () => {
  const messages = conversation([
    turn(1, { type: "command", text: "/teams run pair x" }, { type: "text", text: "done" }),
    turn(2, { type: "user", text: "q" }, { type: "text", text: "a" }),
  ]);
  assert.deepEqual(messages, [
    { role: "user", content: "/teams run pair x" },
    { role: "assistant", content: "done" },
    { role: "user", content: "q" },
    { role: "assistant", content: "a" },
  ]);
});

Deno.test("reasoning blocks go to the backend that sent them alone; older logs have them with a call", () => {
  const call = { id: "c", reasoning_details: [{ n: 1 }] };
  const backend_state = { provider: "p", model: "m", blocks: [{ n: 2 }] };
  const turns = [
    turn(1, { type: "user", text: "q" }, { ...tool("a", "A"), call } as NewPart),
    turn(2, { type: "user", text: "q" }, { type: "text", text: "t", round: 1, backend_state }),
    // A fallback has answered.
    {
      ...turn(3, { type: "user", text: "q" }, { type: "text", text: "t", round: 1, backend_state }),
      model: "other",
    },
  ];
  const blocks = (to: { provider: string; model: string }) =>
    new Conversation(turns, to).messages().flatMap((each) => each.reasoning_details ?? []);
  assert.deepEqual(blocks({ provider: "p", model: "m" }), [{ n: 1 }, { n: 2 }, { n: 2 }]);
  assert.deepEqual(blocks({ provider: "p", model: "other" }), []);
  const kept = new Conversation(turns, { provider: "p", model: "m" });
  const others = kept.messages({ provider: "o", model: "m" });
  assert.deepEqual(others.flatMap((each) => each.reasoning_details ?? []), []);
});
