import assert from "node:assert/strict";
import type { ChatMessage, WireTool } from "../../../src/plugins/api.ts";
import { compact } from "../../../src/engine/compaction.ts";
import { agent, collect, results } from "../../support/agent.ts";
import { call, httpError, say } from "../../support/backend.ts";

const plan = (...states: string[]) =>
  call("plan", { steps: states.map((state, i) => ({ step: `step ${i + 1}`, state })) });
const SHOWN = "Plan, 1 of 3 done:\n[x] step 1\n[>] step 2\n[ ] step 3";

Deno.test("plan keeps the steps of long work and their states, as its part in the log", async () => {
  await using it = await agent([
    plan("active", "pending"),
    plan("done", "active", "pending"),
    say("ok"),
  ]);
  const { events } = await it.turn("go");
  assert.deepEqual(results(events), ["Plan, 0 of 2 done:\n[>] step 1\n[ ] step 2", SHOWN]);
  const shown = events.filter((event) => event.type === "tool_result").map(({ echo }) => echo);
  assert.deepEqual(shown, [true, true]);
  const activity = events.flatMap((event) => event.type === "tool_call" ? [event.status] : []);
  assert.deepEqual(activity, ["plan: 0 of 2 done", "plan: 1 of 3 done"]);
  const [turn] = await it.session.turns();
  const parts = turn!.parts.filter((part) => part.type === "tool");
  assert.deepEqual(parts.at(-1)!.input, {
    steps: ["done", "active", "pending"].map((state, i) => ({ step: `step ${i + 1}`, state })),
  });
});

Deno.test("a plan without steps, or with a step of another form, is refused with one sentence", async () => {
  await using it = await agent([
    call("plan", { steps: [] }),
    call("plan", { steps: [{ step: "a", state: "begun" }] }),
    call("plan", { steps: [{ state: "done" }] }),
    call("plan", { steps: ["only text"] }),
    call("plan", { steps: [{ step: "a\nb" }] }),
    say("ok"),
  ]);
  const { events } = await it.turn("go");
  const [none, state, text, kind, fine] = results(events);
  assert.equal(none, "Error: a plan has 1 to 50 steps");
  const form = "Error: each step is {step, state}, with the state pending, active or done; not ";
  assert.equal(state, `${form}{"step":"a","state":"begun"}`);
  assert.equal(text, `${form}{"state":"done"}`);
  assert.match(kind!, /^Error: plan: "steps" item 1 must be an object/);
  assert.equal(fine, "Plan, 0 of 1 done:\n[ ] a b");
});

Deno.test("the newest plan is given back after a compaction, by the turn that compacts and by later processes", async () => {
  await using it = await agent({
    replies: [
      plan("active", "pending", "pending"),
      plan("done", "active", "pending"),
      say("one"),
      say("two"),
      say("three"),
      say("four"),
      { ...say("WHAT WAS DONE"), when: { system: "You keep the memory" } },
    ],
    default: { text: "more" },
  });
  for (const prompt of ["a", "b", "c", "d"]) await it.turn(prompt);
  const provider = it.workspace.connect(it.workspace.backend(), "");
  await compact({ provider, session: it.session, keep: 1 });
  await provider.close?.();
  await collect(it.another().turn("e"));
  await collect(it.another().turn("f"));
  for (const { messages } of it.backend.chats.slice(-2)) {
    const summary = messages.find(({ content }: ChatMessage) => content?.startsWith("Summary of"));
    assert.equal(
      summary.content,
      `Summary of the conversation so far:\n\nWHAT WAS DONE\n\n${SHOWN}`,
    );
  }
});

Deno.test("a plan whose call is still in the conversation is not repeated by a summary", async () => {
  await using it = await agent({
    replies: [
      say("one"),
      say("two"),
      plan("done", "active", "pending"),
      say("three"),
      { ...say("WHAT WAS DONE"), when: { system: "You keep the memory" } },
    ],
    default: { text: "more" },
  });
  for (const prompt of ["a", "b", "c"]) await it.turn(prompt);
  const provider = it.workspace.connect(it.workspace.backend(), "");
  await compact({ provider, session: it.session, keep: 1 });
  await provider.close?.();
  await collect(it.another().turn("d"));
  const sent = JSON.stringify(it.backend.chats.at(-1).messages);
  assert.equal(sent.split("[>] step 2").length - 1, 1);
});

Deno.test("a plan made in the running turn is given back when its older rounds are summarised", async () => {
  const long = "x".repeat(30_000);
  await using it = await agent({
    replies: [
      plan("done", "active", "pending"),
      call("file_read", { path: "a.txt" }),
      call("file_read", { path: "a.txt" }),
      httpError(400, { error: { message: "This model's maximum context length is 8000 tokens" } }),
      { ...say("WHAT WAS DONE"), when: { system: "You keep the memory" } },
    ],
    default: { text: "done" },
  }, { files: { "a.txt": long }, config: { context_window: 100_000 } });
  const { result } = await it.turn("go");
  assert.equal(result.status, "ok");
  const sent = JSON.stringify(it.backend.chats.at(-1).messages);
  assert.match(sent, /\[>\] step 2/);
});

Deno.test("plan needs no approval and works in plan mode; tool_permission.plan denies it", async () => {
  const names = (tools: WireTool[]) => tools.map((tool) => tool.function.name);
  for (const config of [{ mode: "plan" }, { tool_permission: { plan: "ask" } }]) {
    await using it = await agent([plan("active"), say("ok")], { config });
    const { result } = await it.turn("go");
    assert.deepEqual(result.tool_calls.map(({ is_error }) => is_error), [false]);
  }
  await using it = await agent([say("ok")], { config: { tool_permission: { plan: "deny" } } });
  await it.turn("go");
  assert.ok(!names(it.backend.chats[0].tools).includes("plan"));
});
