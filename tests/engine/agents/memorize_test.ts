import assert from "node:assert/strict";
import { agentRole } from "../../../src/engine/agents.ts";
import { compact } from "../../../src/engine/compaction.ts";
import { memorize } from "../../../src/engine/memorize.ts";
import { agent, type TestAgent } from "../../support/agent.ts";
import { as, call, calls, hang, httpError, type Reply, say } from "../../support/backend.ts";

const files = {
  ".svc/roles.json": JSON.stringify({
    digger: { system_prompt: "YOU DIG" },
    miner: { system_prompt: "YOU MINE", model: "small" },
  }),
};
const on = { memory_enabled: true };
const to = (role: string, task: string) => call("delegate", { role, task });
const keeps = (role: string, reply: Reply) => as(`You keep the memory of the role ${role}`, reply);
const memoryOf = (it: TestAgent, role: string) =>
  it.project.read(`.svc/memory/roles/${role}.md`).catch(() => undefined);
// deno-lint-ignore no-explicit-any
const chatsOf = (it: TestAgent, system: string): any[] =>
  it.backend.chats.filter(({ messages }) => messages[0].content.includes(system));

Deno.test("a role remembers its delegated runs: each one updates its memory [2.12]", async () => {
  await using it = await agent([
    to("digger", "dig here"),
    as("YOU DIG", call("list_dir", { path: "." })),
    as("YOU DIG", say("found coal")),
    keeps("digger", say("coal lies here")),
    { ...say("thanks"), when: { tool_result: "found coal" } },
    { ...to("digger", "dig there"), when: { user: "again" } },
    { ...as("YOU DIG", say("found tin")), when: { system: "YOU DIG", user: "dig there" } },
    keeps("digger", say("coal lies here, tin there")),
    say("thanks"),
  ], { files, config: on });
  await it.turn("go");
  await it.workspace.background.settle();
  assert.equal(await memoryOf(it, "digger"), "coal lies here\n");
  const [first] = chatsOf(it, "You keep the memory");
  assert.match(first.messages[0].content, /fewer than 2000 characters/);
  assert.match(
    first.messages[1].content,
    /\[user\] dig here[^]*list_dir[^]*\[assistant\] found coal/,
  );
  assert.doesNotMatch(chatsOf(it, "YOU DIG")[0].messages[0].content, /## Role memory/);

  await it.turn("again");
  await it.workspace.background.settle();
  const again = chatsOf(it, "YOU DIG").at(-1).messages[0].content;
  assert.match(again, /## Role memory\n\nNotes from earlier runs\..*\n\ncoal lies here\n/);
  const [, second] = chatsOf(it, "You keep the memory");
  assert.match(
    second.messages[1].content,
    /What is known so far:\n\ncoal lies here\n[^]*dig there/,
  );
  assert.doesNotMatch(second.messages[1].content, /dig here/);
  assert.equal(await memoryOf(it, "digger"), "coal lies here, tin there\n");
});

Deno.test("the caller's next round does not wait for the memory; the end of the program does, for a while", async () => {
  await using it = await agent([
    to("digger", "dig"),
    as("YOU DIG", say("found coal")),
    keeps("digger", hang("coal li")),
    say("done"),
  ], { files, config: on });
  const { result } = await it.turn("go");
  assert.equal(result.content, "done");
  assert.equal(await memoryOf(it, "digger"), undefined);
  const interrupt = new AbortController();
  const settled = it.workspace.background.settle(interrupt.signal);
  interrupt.abort();
  await settled;
  assert.match((await memoryOf(it, "digger"))!, /^Run \S+Z: verified\nfound coal\n$/);
  assert.deepEqual(it.warnings, [
    "The memory of role digger has no summary of this run: it was interrupted",
  ]);
});

Deno.test("when the model fails, and for a run that failed before it did anything, the fallback is kept", async () => {
  await using it = await agent([
    to("digger", "dig"),
    as("YOU DIG", say("found coal")),
    keeps("digger", httpError(400)),
    { ...to("miner", "mine"), when: { tool_result: "found coal" } },
    as("YOU MINE", httpError(401)),
    say("done"),
  ], { files, config: on });
  const { result } = await it.turn("go");
  assert.equal(result.content, "done");
  await it.workspace.background.settle();
  assert.match((await memoryOf(it, "digger"))!, /^Run \S+Z: verified\nfound coal\n$/);
  assert.match((await memoryOf(it, "miner"))!, /^Run \S+Z: failed\n.*401/);
  assert.equal(chatsOf(it, "You keep the memory").length, 1);
});

Deno.test("agents of one role that end at once are both remembered", async () => {
  await using it = await agent([
    calls([["delegate", { role: "miner", task: "one" }], ["delegate", {
      role: "miner",
      task: "two",
    }]]),
    { ...say("gold"), when: { system: "YOU MINE", user: "one" } },
    { ...say("silver"), when: { system: "YOU MINE", user: "two" } },
    keeps("miner", say("first")),
    keeps("miner", say("first and second")),
    say("done"),
  ], { files, config: on });
  await it.turn("go");
  await it.workspace.background.settle();
  const asked = chatsOf(it, "You keep the memory");
  const user = asked.map(({ messages }) => messages[1].content);
  assert.equal(asked.length, 2);
  assert.doesNotMatch(user[0], /What is known/);
  assert.match(user[1], /What is known so far:\n\nfirst\n/);
  assert.deepEqual(asked.map(({ model }) => model), ["small", "small"]);
  assert.match(user.join(), /gold[^]*silver|silver[^]*gold/);
  assert.equal(await memoryOf(it, "miner"), "first and second\n");
});

Deno.test("nothing is written for a cancelled run, nor where memory is switched off", async () => {
  for (const off of [{ memory_enabled: false }, { ...on, "memory.role": false }]) {
    await using it = await agent([to("digger", "dig"), as("YOU DIG", say("coal")), say("done")], {
      files: { ...files, ".svc/memory/roles/digger.md": "known" },
      config: off,
    });
    await it.turn("go");
    await it.workspace.background.settle();
    assert.equal(it.backend.chats.length, 3);
    assert.doesNotMatch(chatsOf(it, "YOU DIG")[0].messages[0].content, /## Role memory/);
    assert.equal(await memoryOf(it, "digger"), "known");
  }
  await using it = await agent([to("digger", "dig"), as("YOU DIG", hang("half"))], {
    files,
    config: on,
  });
  const stop = new AbortController();
  for await (const event of it.engine.turn("go", { signal: stop.signal })) {
    if (event.type === "token" && event.run === 2) stop.abort();
  }
  await it.workspace.background.settle();
  assert.equal(await memoryOf(it, "digger"), undefined);
});

Deno.test("a root run of a role knows what the role remembers; a memory too long is cut for the prompt [2.12]", async () => {
  await using it = await agent([say("hi")], {
    files: { ...files, ".svc/memory/roles/digger.md": "coal lies here" },
    config: { ...on, memory_max_chars: 4 },
  });
  const { prompt } = await agentRole(it.workspace, "digger");
  assert.match(prompt.memory, /^## Role memory\n\nNotes [^\n]*\n\ncoal$/);
});

Deno.test("a whole session is remembered from its newest compaction on", async () => {
  await using it = await agent([
    say("one"),
    say("two"),
    as("lets the agent go on", say("they counted to one")),
    as("You keep the memory of the team counters", say("counting")),
  ], { config: on });
  await it.turn("first");
  await it.turn("second");
  const backend = it.workspace.backend();
  const provider = it.workspace.connect(backend, "x");
  await compact({ provider, session: it.session, keep: 1 });
  await memorize({
    workspace: it.workspace,
    scope: "team",
    name: "counters",
    turns: it.session.document().turns,
    ended: { ok: true, text: "two" },
    backend,
    session_id: "x",
    signal: new AbortController().signal,
  });
  const { content } = it.backend.chats.at(-1).messages[1];
  assert.match(content, /What is known so far:\n\nthey counted to one\n[^]*\[user\] second/);
  assert.doesNotMatch(content, /\[user\] first/);
  assert.equal(it.workspace.memory.read("team", "counters"), "counting");
});
