import assert from "node:assert/strict";
import type { TurnTask } from "../../src/engine/task.ts";
import { agent, collect, type TestAgent } from "../support/agent.ts";
import { call, calls, say, think } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";

const turn = (it: TestAgent, task: TurnTask, signal?: AbortSignal) =>
  collect(it.engine.turn("go", { task, signal }));
/** The last message of the backend's n-th request, from 0. */
const asked = (it: TestAgent, n: number) => it.backend.chats[n].messages.at(-1);
const parts = (it: TestAgent) => it.session.document().turns.at(-1)!.parts;

async function appears(it: TestAgent, file: string): Promise<void> {
  while (await it.project.read(file).then(() => false, () => true)) {
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

const CALL = '<tool_call>\n{"name": "file_read", "arguments": {"path": "a.txt"}}\n</tool_call>';

Deno.test("verify: exit code 0 makes the result verified, and the run is in the log", async () => {
  await using it = await agent([say("done")], { files: { "a.txt": "x" } });
  const { result } = await turn(it, { verify: "cat a.txt && echo fine >&2" });
  assert.deepEqual([result.status, result.reason, result.verified], ["ok", "", true]);
  assert.equal(result.content, "done");
  const [, , last] = parts(it);
  assert.deepEqual([last!.type, it.backend.chats.length], ["command", 1]);
  assert.match(JSON.stringify(last), /verify: cat a\.txt .*exit code 0\\nx.*fine/);
});

Deno.test("verify: a failure goes back to the model with exit code and the end of the output", async () => {
  await using it = await agent(
    [say("done"), call("file_write", { path: "ok", content: "x" }), say("now it is")],
    { config: { tool_permission: { edit: "allow" } } },
  );
  const { result } = await turn(it, {
    verify: "test -f ok || { seq 1 5000; echo THE END; exit 7; }",
  });
  assert.deepEqual([result.status, result.verified], ["ok", true]);
  assert.equal(result.content, "now it is");
  const { role, content } = asked(it, 1);
  assert.equal(role, "user");
  assert.match(content, /exit code 7/);
  assert.match(content, /4999\n5000\nTHE END/);
  assert.match(content, /correction 1 of 3/);
  assert.ok(content.length < 9000);
  assert.equal(it.session.document().turns.length, 1);
  // What the model was told is in the log, so that the turn is sent again as it was.
  assert.deepEqual(
    parts(it).filter(({ type }) => type === "user").map((part) => "text" in part && part.text),
    ["go", content],
  );
});

Deno.test("verify: after the last correction the turn is an error with the reason verify", async () => {
  await using it = await agent([say("done"), say("done!"), say("really done")]);
  const { result } = await turn(it, { verify: "echo no such luck; exit 1", verify_rounds: 2 });
  assert.deepEqual([result.status, result.reason, result.verified], ["error", "verify", false]);
  assert.equal(it.backend.chats.length, 3);
  assert.match(result.errors.at(-1)!.message, /exit code 1 after 2 corrections: no such luck/);
  assert.equal(it.session.document().turns.at(-1)!.status, "error");
});

Deno.test("verify: without corrections one failure ends the turn", async () => {
  await using it = await agent([say("done")]);
  const { result } = await turn(it, { verify: "exit 3", verify_rounds: 0 });
  assert.deepEqual([result.reason, result.verified], ["verify", false]);
  assert.match(result.errors[0]!.message, /^Not verified: exit 3 ended with exit code 3$/);
  assert.equal(it.backend.chats.length, 1);
});

Deno.test("verify: the rounds of corrections count among those of the turn", async () => {
  await using it = await agent({ replies: [], default: say("done") });
  const look = call("list_dir", { path: "." });
  await using other = await agent([look, say("done"), look, say("done"), look]);
  const task = { verify: "false", verify_rounds: 9, max_rounds: 3 };
  const { result } = await turn(other, task);
  assert.deepEqual([result.status, result.reason, result.verified], ["error", "rounds", false]);
  assert.equal(other.backend.chats.length, 5);
  assert.equal((await turn(it, { ...task, verify_rounds: 1 })).result.reason, "verify");
});

Deno.test("verify: the person's authority counts, not the policy's, and nothing is asked", async () => {
  await using it = await agent([say("done")], { config: { tool_permission: { bash: "deny" } } });
  const { result } = await turn(it, { verify: "true" });
  assert.equal(result.verified, true);
  assert.deepEqual(it.session.document().permissions, []);
});

Deno.test("verify: the command has a time limit, and its children end with it", async () => {
  await using it = await agent([say("done")], { config: { verify_timeout: 0.2 } });
  const { result } = await turn(it, { verify: "sleep 98.7 & sleep 98.7", verify_rounds: 0 });
  assert.deepEqual([result.status, result.verified], ["error", false]);
  assert.match(result.errors[0]!.message, /did not end within 0.2 seconds/);
  await noProcessesLeft(it.project.path);
});

Deno.test("verify: cancelling the turn ends the command", async () => {
  await using it = await agent([say("done")]);
  const stop = new AbortController();
  let verified: boolean | undefined;
  let status = "";
  for await (
    const event of it.engine.turn("go", {
      task: { verify: "touch began; sleep 97.6" },
      signal: stop.signal,
    })
  ) {
    if (event.type === "notice" && event.message.startsWith("Verifying")) {
      appears(it, "began").then(() => stop.abort());
    }
    if (event.type === "turn_finished") ({ verified, status } = event.result);
  }
  assert.deepEqual([status, verified], ["cancelled", false]);
  await noProcessesLeft(it.project.path);
});

Deno.test("verify: a command that cannot be started is no reason to ask the model", async () => {
  await using it = await agent([say("done")], {
    config: { "sandbox.mode": "require" },
    env: { PATH: "/nowhere" },
  });
  const { result } = await turn(it, { verify: "true" });
  assert.deepEqual([result.status, result.reason, result.verified], ["error", "verify", false]);
  assert.match(result.errors[0]!.message, /cannot be run/);
  assert.equal(it.backend.chats.length, 1);
});

Deno.test("verify: a turn that did not end well is not verified", async () => {
  await using it = await agent([{ status: 400, body: { error: { message: "no" } } }]);
  const { result } = await turn(it, { verify: "true" });
  assert.deepEqual([result.status, result.verified], ["error", false]);
});

Deno.test("a turn with an invalid schema sends nothing, and is not verified", async () => {
  await using it = await agent([]);
  const { result } = await turn(it, { schema: { type: "objekt" }, verify: "true" });
  assert.deepEqual([result.status, result.reason, result.verified], ["error", "schema", false]);
  assert.match(result.errors[0]!.message, /schema of the answer is invalid: #\/type/);
  assert.deepEqual(it.backend.requests, []);
});

Deno.test("what the checks asked is sent again in later turns, byte for byte, also after a restart", async () => {
  const data = { n: 1 };
  await using it = await agent([
    say(CALL),
    say("done"),
    call("answer", { data }),
    call("file_write", { path: "ok", content: "" }),
    call("answer", { data }),
    say("You are welcome."),
  ], { config: { tool_permission: { edit: "allow" } } });
  const { result } = await turn(it, { schema: { type: "object" }, verify: "test -f ok" });
  assert.deepEqual([result.verified, result.data], [true, data]);
  await collect(it.another().turn("thank you"));
  const { chats } = it.backend;
  assert.equal(chats.length, 6);
  for (const [n, { messages }] of chats.slice(0, -1).entries()) {
    const next = chats[n + 1].messages;
    assert.deepEqual(next.slice(0, messages.length), messages, `request ${n + 2}`);
  }
});

Deno.test("a task without verify has no field verified", async () => {
  await using it = await agent([say("done")]);
  const { result } = await it.turn("go");
  assert.equal("verified" in result, false);
});

Deno.test("a call written as text is asked about once, and may be made then", async () => {
  await using it = await agent(
    [say(CALL), call("file_read", { path: "a.txt" }), say("It says x.")],
    {
      files: { "a.txt": "x" },
    },
  );
  const { result } = await it.turn("what is in a.txt?");
  assert.deepEqual([result.status, result.reason], ["ok", ""]);
  assert.equal(result.content, "It says x.");
  assert.match(asked(it, 1).content, /file_read.*was not run/);
});

Deno.test("a call that stays text is an error that names the likely cause", async () => {
  await using it = await agent([say(CALL), say(CALL)]);
  const { result } = await it.turn("what is in a.txt?");
  assert.deepEqual([result.status, result.reason], ["error", "text_call"]);
  assert.equal(it.backend.chats.length, 2);
  assert.match(result.errors[0]!.message, /--tool-call-parser.*--jinja/);
  assert.equal(it.session.document().turns.at(-1)!.status, "error");
});

Deno.test("no call is looked for in an answer that is longer than a model writes calls", async () => {
  await using it = await agent([say(`${"word ".repeat(120_000)}\n\n${CALL}`)]);
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, it.backend.chats.length], ["ok", 1]);
});

Deno.test("a call as text of a tool that is not offered is asked about with the names of those that are", async () => {
  await using it = await agent([say(CALL), say("I cannot read it.")], {
    config: { "tools.deny": ["file_read"] },
  });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.content], ["ok", "I cannot read it."]);
  assert.match(asked(it, 1).content, /There is no tool file_read; the tools are: .*\bgrep\b/);
});

Deno.test("a call in the reasoning is asked about too; a reasoning without one keeps the status ok [2.2]", async () => {
  await using it = await agent([
    think("I think about it."),
    think(`I look.\n\n${CALL}`),
    call("file_read", { path: "a.txt" }),
    say("It says x."),
  ], { files: { "a.txt": "x" } });
  const alone = await it.turn("think");
  assert.deepEqual([alone.result.status, alone.result.content], ["ok", ""]);
  const { result } = await it.turn("what is in a.txt?");
  assert.deepEqual([result.status, result.content], ["ok", "It says x."]);
  assert.match(
    asked(it, 2).content,
    /a call of the tool file_read in its reasoning\. It was not run/,
  );
});

Deno.test("a call that stays in the reasoning is an error; an answer after it is one", async () => {
  await using it = await agent([think(CALL), think(CALL)]);
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.reason], ["error", "text_call"]);
  const answers = say("The file is empty.");
  await using other = await agent([think(CALL, answers), think(CALL, answers)]);
  assert.deepEqual([(await other.turn("go")).result.status, other.backend.chats.length], ["ok", 2]);
});

Deno.test("a call that the output limit cuts off is asked for again, and is no part of the answer", async () => {
  const begun = `<tool_call>\n{"name": "file_write", "arguments": {"path": "a.txt", "content": "${
    "x".repeat(300)
  }`;
  await using it = await agent([
    say(`I'll do it.\n\n${begun}`, { finish: "length" }),
    call("file_write", { path: "a.txt", content: "x" }),
    say("Written."),
  ], { config: { tool_permission: { edit: "allow" } } });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.content, result.errors], ["ok", "Written.", []]);
  assert.match(asked(it, 1).content, /file_write in its text, which was cut off.*smaller pieces/);
  await using other = await agent([
    say(begun, { finish: "length" }),
    say(begun, { finish: "length" }),
  ]);
  const stays = await other.turn("go");
  assert.deepEqual([stays.result.status, stays.result.reason], ["error", "text_call"]);
});

Deno.test("with text_calls: off nothing is asked about a call as text", async () => {
  await using it = await agent([say(CALL)], { config: { text_calls: "off" } });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.content, it.backend.chats.length], ["ok", CALL, 1]);
});

Deno.test("denied names each refused call and why", async () => {
  await using it = await agent([
    calls([
      ["run_command", { command: "ls" }],
      ["run_command", { command: "pwd" }],
      ["file_write", { path: "x", content: "" }],
      ["no_such_tool", {}],
    ]),
    say("I could not."),
  ], { config: { tool_permission: { edit: "deny" } } });
  const { result } = await it.turn("go");
  assert.deepEqual(result.denied.map(({ tool }) => tool), [
    "run_command",
    "run_command",
    "file_write",
  ]);
  assert.match(result.denied[0]!.reason, /bash is set to ask.*nobody is there to approve it/);
  assert.match(result.denied[2]!.reason, /edit is set to deny/);
  assert.deepEqual(result.refused, ["run_command (bash)", "file_write (edit)"]);
  assert.equal(result.status, "ok");
});

Deno.test("a turn in which every call is refused ends with the reason refused", async () => {
  const refused = call("run_command", { command: "ls" });
  await using it = await agent([refused, refused, refused]);
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.reason], ["error", "refused"]);
  assert.equal(result.denied.length, 3);
});

Deno.test("denied has the calls of the agents that were started too", async () => {
  await using it = await agent([
    call("delegate", { role: "maker", task: "make it" }),
    call("file_write", { path: "x", content: "" }),
    say("I could not."),
    say("It could not."),
  ], {
    files: { ".svc/roles.json": JSON.stringify({ maker: { system_prompt: "YOU MAKE" } }) },
    config: { tool_permission: { edit: "deny", delegate: "allow" } },
  });
  const { result } = await it.turn("go");
  assert.deepEqual(result.denied.map(({ tool }) => tool), ["file_write"]);
  assert.deepEqual(result.refused, []);
});
