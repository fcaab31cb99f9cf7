import assert from "node:assert/strict";
import { startWire, type Wire } from "../../bench/wires.ts";
import type { Script } from "../../plugins/svc-core-demo/src/script.ts";

/** The events of one answer. */
async function ask(url: string, wire: Wire, body: unknown): Promise<Record<string, unknown>[]> {
  const answer = await fetch(`${url}/v1/${wire}`, { method: "POST", body: JSON.stringify(body) });
  return (await answer.text()).split("\n\n").filter((event) => event !== "").map((event) =>
    JSON.parse(event.slice(event.indexOf("data: ") + 6))
  );
}

const SCRIPT: Script = {
  replies: [
    { tool_calls: [{ name: "read", id: "call_1", arguments: { first: 1 } }] },
    { when: { tool_result: "line 1" }, text: ["It is ", "line 1."] },
  ],
};

Deno.test("the scripted responses backend calls a tool, and answers when its result has come", async () => {
  const server = startWire("responses", SCRIPT);
  const input: unknown[] = [{ role: "user", content: [{ type: "input_text", text: "Read it." }] }];
  const first = await ask(server.url, "responses", { input });
  const { item } = first.find(({ type }) => type === "response.output_item.done") as {
    item: Record<string, unknown>;
  };
  assert.deepEqual(
    [item.type, item.name, item.arguments],
    ["function_call", "read", '{"first":1}'],
  );
  input.push(item, { type: "function_call_output", call_id: item.call_id, output: "line 1" });
  const second = await ask(server.url, "responses", { input });
  const deltas = second.filter(({ type }) => type === "response.output_text.delta");
  assert.deepEqual(deltas.map(({ delta }) => delta), ["It is ", "line 1."]);
  assert.equal(second.at(-1)!.type, "response.completed");
  await server.close();
});

Deno.test("the scripted messages backend calls a tool, and answers when its result has come", async () => {
  const server = startWire("messages", SCRIPT);
  const messages: unknown[] = [{ role: "user", content: "Read it." }];
  const first = await ask(server.url, "messages", { messages });
  const [start] = first.filter(({ type }) => type === "content_block_start");
  assert.deepEqual(start!.content_block, {
    type: "tool_use",
    id: "call_1",
    name: "read",
    input: {},
  });
  assert.deepEqual(first.at(-2)!.delta, { stop_reason: "tool_use" });
  const content = [{ type: "tool_result", tool_use_id: "call_1", content: "line 1" }];
  messages.push({ role: "user", content });
  const second = await ask(server.url, "messages", { messages });
  const deltas = second.filter(({ type }) => type === "content_block_delta");
  assert.deepEqual(deltas.map(({ delta }) => (delta as { text: string }).text), [
    "It is ",
    "line 1.",
  ]);
  await server.close();
});
