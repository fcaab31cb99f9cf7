import assert from "node:assert/strict";
import { agent, type TestAgent } from "../support/agent.ts";
import { call, calls, say } from "../support/backend.ts";

const files = { "a.txt": "alpha", "b.txt": "beta" };
const config = { tool_permission: { bash: "allow" } };
const READ = call("file_read", { path: "a.txt" });
const TOLD =
  /^You have made the same call of (\w+) 3 times, and its result was the same each time\./;

/** What the model was told, by the request that brought it first. */
function told(it: TestAgent): [request: number, text: string][] {
  const seen = new Set<string>();
  // deno-lint-ignore no-explicit-any
  return it.backend.chats.flatMap(({ messages }: any, n: number) => {
    const last = messages.at(-1);
    if (last.role !== "user" || !TOLD.test(last.content) || seen.has(last.content)) return [];
    seen.add(last.content);
    return [[n, TOLD.exec(last.content)![1]!] as [number, string]];
  });
}

Deno.test("the same call with the same result three times: the model is told, in the log too", async () => {
  await using it = await agent([READ, READ, READ, say("done")], { files });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.content], ["ok", "done"]);
  assert.deepEqual(told(it), [[3, "file_read"]]);
  const { parts } = it.session.document().turns[0]!;
  assert.match((parts.at(-2) as { text: string }).text, TOLD);
});

Deno.test("six times: the turn ends", async () => {
  await using it = await agent({ replies: [], default: READ }, { files });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.reason], ["error", "repetition"]);
  assert.match(result.errors[0]!.message, /the same call of file_read 6 times/);
  assert.equal(it.backend.chats.length, 6);
});

Deno.test("calls in turns are noticed as well", async () => {
  const OTHER = call("file_read", { path: "b.txt" });
  await using it = await agent({ replies: [READ, OTHER], loop: true }, { files });
  const { result } = await it.turn("go");
  assert.equal(result.reason, "repetition");
  assert.equal(it.backend.chats.length, 11);
});

Deno.test("a call that is made twice in one reply counts once", async () => {
  const twice = calls([["file_read", { path: "a.txt" }], ["file_read", { path: "a.txt" }]]);
  await using it = await agent([twice, twice, say("done")], { files });
  assert.equal((await it.turn("go")).result.status, "ok");
  assert.deepEqual(told(it), []);
});

Deno.test("a call counts anew after another result, and after another call that may have changed something", async () => {
  const append = (n: number) => call("run_command", { command: `echo ${n} >> c.txt` });
  const count = call("run_command", { command: "wc -l < c.txt" });
  await using it = await agent([
    ...[1, 2, 3, 4, 5, 6, 7].flatMap((n) => [append(n), count, READ]),
    say("done"),
  ], { files, config });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, told(it)], ["ok", []]);
});

Deno.test("the same call in another turn counts anew", async () => {
  await using it = await agent([READ, READ, say("one"), READ, READ, say("two")], { files });
  await it.turn("go");
  assert.equal((await it.turn("again")).result.content, "two");
  assert.deepEqual(told(it), []);
});
