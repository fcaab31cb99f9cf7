import assert from "node:assert/strict";
import { join } from "node:path";
import type { TurnEvent } from "../../src/engine/events.ts";
import type { WireTool } from "../../src/plugins/api.ts";
import type { Operator } from "../../src/policy/operator.ts";
import type { Part, PermissionEntry } from "../../src/sessions/schema.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { agent, collect, results } from "../support/agent.ts";
import { call, calls, cut, httpError, raw, say, think, usage } from "../support/backend.ts";
import { tool } from "../support/tool.ts";

const types = (parts: Part[]) => parts.map((part) => part.type);
const ofType = <T extends TurnEvent["type"]>(events: TurnEvent[], type: T) =>
  events.filter((event): event is TurnEvent & { type: T } => event.type === type);

Deno.test("a turn reads a file through a tool and answers; every step is in the log [1, 2.2, 6.2]", async () => {
  await using it = await agent([
    think("I look.", call("file_read", { path: "a.txt" })),
    say(["It says ", "hello."], usage(10, 5)),
  ], { files: { "a.txt": "hello\n" } });
  const { result, events } = await it.turn("what is in a.txt?");

  assert.equal(result.status, "ok");
  assert.equal(result.content, "It says hello.");
  assert.equal(result.thinking, "I look.");
  assert.deepEqual(result.tool_calls, [
    { name: "file_read", arguments: { path: "a.txt" }, is_error: false, refused: false },
  ]);
  assert.deepEqual(result.errors, []);
  assert.equal(result.usage.total_tokens, 15);
  assert.equal(result.session, it.session.name);

  const log = it.session.document();
  assert.equal(log.turns.length, 1);
  const [turn] = log.turns;
  assert.equal(turn!.status, "ok");
  assert.equal(turn!.provider, "generic-compatible");
  assert.deepEqual(types(turn!.parts), ["user", "thinking", "tool", "text"]);
  const tool = turn!.parts[2] as Part & { type: "tool" };
  assert.match(tool.output, /^# a\.txt - 1 lines/);
  assert.deepEqual(log.permissions.map(({ timestamp: _, ...entry }) => entry), [
    { tool: "file_read", action: "allow", decision: "granted", path: "a.txt" },
  ]);
  assert.deepEqual(
    [...new Set(events.map((event) => event.type))],
    [
      "turn_started",
      "thinking",
      "tool_call",
      "permission",
      "tool_result",
      "token",
      "usage",
      "turn_finished",
    ],
  );
});

Deno.test("the backend is asked as the protocol says, and the system prompt is never logged [1, 2.2, 2.13]", async () => {
  await using it = await agent([say("ok")], {
    files: { "AGENTS.md": "Speak like a pirate." },
    config: { system_prompt: "You are a test." },
  });
  await it.turn("hello");
  const [chat] = it.backend.chats;
  assert.equal(chat.model, "test");
  assert.equal(chat.stream, true);
  assert.equal(chat.max_tokens, 8192);
  assert.equal(chat.temperature, 0.7);
  assert.equal(chat.messages[0].role, "system");
  assert.match(chat.messages[0].content, /You are a test\./);
  assert.match(chat.messages[0].content, /Speak like a pirate\./);
  assert.deepEqual(chat.messages.slice(1), [{ role: "user", content: "hello" }]);
  const [request] = it.backend.requests;
  assert.match(request!.headers["user-agent"]!, /^svc\/\d+\.\d+\.\d+$/);
  assert.doesNotMatch(JSON.stringify(it.session.document()), /pirate|You are a test/);
});

Deno.test("project instructions are capped, and a link out of the worktree is not read [2.13, 8]", async () => {
  await using it = await agent([say("ok"), say("ok"), say("ok")], {
    files: { "AGENTS.md": "x".repeat(50) + "SECRET" },
    config: { project_instructions_max_chars: 50 },
  });
  await it.turn("one");
  assert.doesNotMatch(it.backend.chats[0].messages[0].content, /SECRET/);
  assert.match(it.backend.chats[0].messages[0].content, /\(truncated\)/);

  await it.project.write("AGENTS.md", "€".repeat(2_000_000));
  const huge = await it.turn("huge");
  assert.match(it.backend.chats[1].messages[0].content, /\n€{50}\n\.\.\. \(truncated\)/);
  assert.match(JSON.stringify(huge.events), /AGENTS\.md has 6000000 bytes; only the first 50/);

  const outside = await Deno.makeTempFile();
  await Deno.writeTextFile(outside, "OUTSIDE");
  await Deno.remove(join(it.project.path, "AGENTS.md"));
  await Deno.symlink(outside, join(it.project.path, "AGENTS.md"));
  const { events } = await it.turn("two");
  assert.doesNotMatch(it.backend.chats[2].messages[0].content, /OUTSIDE/);
  assert.match(JSON.stringify(ofType(events, "notice")), /leads out of the worktree/);
  await Deno.remove(outside);
});

Deno.test("a second turn carries the first, from memory and from the log alike", async () => {
  await using it = await agent([
    call("file_read", { path: "a.txt" }),
    say("first"),
    say("second"),
    say("third"),
  ], { files: { "a.txt": "x" } });
  await it.turn("one");
  await it.turn("two");
  await collect(it.another().turn("three"));
  const [, , fromMemory, fromLog] = it.backend.chats;
  const shape = (chat: { messages: { role: string; content: string }[] }) =>
    chat.messages.slice(1).map(({ role, content }) => [role, content]);
  const expected = [
    ["user", "one"],
    ["assistant", null],
    ["tool", shape(fromMemory)[2]![1]],
    ["assistant", "first"],
    ["user", "two"],
  ];
  assert.deepEqual(shape(fromMemory), expected);
  assert.deepEqual(shape(fromLog), [...expected, ["assistant", "second"], ["user", "three"]]);
});

Deno.test("what another process appended to the session is part of the next turn", async () => {
  await using it = await agent([say("one"), say("two")]);
  await it.turn("first");
  it.session.appendUser("[answer to parked ask #1] blue");
  await it.turn("go on");
  assert.match(JSON.stringify(it.backend.chats[1].messages), /parked ask #1\] blue/);
});

Deno.test("read-only calls of one batch run side by side, results in order", async () => {
  await using it = await agent([
    calls([
      ["file_read", { path: "a.txt" }],
      ["glob", { pattern: "*.txt" }],
      ["file_read", { path: "b.txt" }],
    ]),
    say("done"),
  ], { files: { "a.txt": "A", "b.txt": "B" } });
  const { events } = await it.turn("read both");
  const order = events.filter((e) => e.type === "tool_call" || e.type === "tool_result")
    .map((event) => event.type);
  assert.deepEqual(order, [
    "tool_call",
    "tool_call",
    "tool_call",
    "tool_result",
    "tool_result",
    "tool_result",
  ]);
  const results = it.backend.chats[1].messages.filter((m: { role: string }) => m.role === "tool");
  const ids = it.backend.chats[1].messages.find((m: { tool_calls?: unknown }) => m.tool_calls)
    .tool_calls.map((c: { id: string }) => c.id);
  assert.deepEqual(results.map((m: { tool_call_id: string }) => m.tool_call_id), ids);
  assert.match(results[0].content, /1\|A/);
  assert.match(results[2].content, /1\|B/);
});

Deno.test("a batch of hundreds of reads runs a few at a time, and every call is audited once", async () => {
  const batch = Array.from({ length: 100 }, (): [string, Record<string, unknown>] => ["slow", {}]);
  await using it = await agent([calls(batch), say("done")]);
  let running = 0;
  let most = 0;
  const two = Promise.withResolvers<void>();
  it.workspace.tools.register(
    tool({
      name: "slow",
      async handler() {
        most = Math.max(most, ++running);
        if (running === 2) two.resolve();
        await two.promise;
        running--;
        return "ok";
      },
    }),
    "test",
  );
  const { result } = await it.turn("go");
  assert.equal(result.tool_calls.length, 100);
  assert.ok(most > 1 && most <= 16, `${most} at once`);
  assert.equal(it.session.document().permissions.length, 100);
});

Deno.test("a tool says to which models its schema is sent, and runs for the others too", async () => {
  for (const [model, offered] of [["test", false], ["trained-2", true]] as const) {
    await using it = await agent([call("special"), say("done")], { config: { model } });
    const offer = (name: string) => name.startsWith("trained");
    it.workspace.tools.register(tool({ name: "special", offer }), "test");
    const { events } = await it.turn("go");
    const names = it.backend.chats[0].tools.map((each: WireTool) => each.function.name);
    assert.deepEqual([names.includes("special"), results(events)], [offered, ["done"]]);
  }
});

Deno.test("arguments that nest without end fail their call, and the turn goes on", async () => {
  const deep = `{"path": ${"[".repeat(20_000)}${"]".repeat(20_000)}}`;
  await using it = await agent([call("file_read", deep), call("unknown", deep), say("done")]);
  const { result } = await it.turn("go");
  assert.equal(result.status, "ok");
  assert.equal(result.content, "done");
});

Deno.test("instructions are read from no pipe, no huge file and no link to keys", async () => {
  await using it = await agent([say("ok"), say("ok"), say("ok")]);
  const file = join(it.project.path, "AGENTS.md");
  const warned = async () => JSON.stringify(ofType((await it.turn("hello")).events, "notice"));
  await new Deno.Command("mkfifo", { args: [file] }).output();
  assert.match(await warned(), /AGENTS\.md cannot be read/);
  Deno.removeSync(file);
  Deno.writeTextFileSync(file, "");
  Deno.truncateSync(file, 1_000_000_000_000);
  assert.match(await warned(), /AGENTS\.md cannot be read/);
  Deno.removeSync(file);
  const keys = join(it.workspace.paths.user, "providers.json");
  Deno.mkdirSync(it.workspace.paths.user, { recursive: true });
  Deno.writeTextFileSync(keys, '{"x": {"api_key": "SECRET"}}');
  Deno.symlinkSync(keys, file);
  assert.match(await warned(), /leads out of the worktree, or to keys/);
  assert.doesNotMatch(JSON.stringify(it.backend.chats), /SECRET/);
});

Deno.test("calls that change something run one after another", async () => {
  await using it = await agent([
    calls([
      ["file_write", { path: "a.txt", content: "1" }],
      ["file_write", { path: "a.txt", content: "2", mode: "a" }],
      ["file_read", { path: "a.txt" }],
    ]),
    say("done"),
  ]);
  const { events } = await it.turn("write");
  assert.equal(await it.project.read("a.txt"), "12");
  assert.match(ofType(events, "tool_result")[2]!.output, /1\|12/);
});

Deno.test("an ask without a human is refused, audited and told to the model; the turn goes on", async () => {
  await using it = await agent([
    call("run_command", { command: "touch ran" }),
    say("I could not."),
  ]);
  const { result, events } = await it.turn("run it");
  assert.equal(result.status, "ok");
  assert.equal(result.tool_calls[0]!.is_error, true);
  await assert.rejects(it.project.read("ran"));
  const [entry] = it.session.document().permissions;
  assert.equal(entry!.action, "ask");
  assert.equal(entry!.decision, "declined");
  assert.match(ofType(events, "tool_result")[0]!.output, /permission denied/);
  assert.match(it.backend.chats[0].messages[0].content, /refused: .*bash/);
});

Deno.test("an operator's yes runs the call, and the audit says who gave it [2.4]", async () => {
  const asked: string[] = [];
  const operator: Operator = {
    confirm(request) {
      asked.push(request.preview);
      return Promise.resolve({ granted: true, scope: "always", by: "operator" });
    },
    ask: () => Promise.resolve(undefined),
  };
  await using it = await agent([
    call("run_command", { command: "touch ran" }),
    call("run_command", { command: "touch ran" }),
    say("done"),
  ], { operator, headless: false });
  const { result } = await it.turn("run it twice");
  assert.equal(result.tool_calls.every((each) => !each.is_error), true);
  assert.equal(asked.length, 1, "always is not asked again");
  assert.match(asked[0]!, /touch ran/);
  const [entry] = it.session.document().permissions;
  assert.deepEqual(
    [entry!.action, entry!.decision, entry!.scope, entry!.granted_by],
    ["ask", "granted", "always", "operator"],
  );
});

Deno.test("an edit that can do nothing goes back to the model without asking, and does not run", async () => {
  const asked: string[] = [];
  const operator: Operator = {
    confirm(request) {
      asked.push(request.preview);
      return Promise.resolve({ granted: true, scope: "once", by: "operator" });
    },
    ask: () => Promise.resolve(undefined),
  };
  await using it = await agent([
    call("file_edit", { path: "a.txt", old: "zwei", new: "2" }),
    call("file_edit", { path: "none.txt", old: "zwei", new: "2" }),
    call("file_edit", { path: "a.txt", old: "two", new: "2" }),
    say("done"),
  ], { operator, headless: false, config: { "tool_permission.edit": "ask" } });
  await it.project.write("a.txt", "one\ntwo\n");
  const { result, events } = await it.turn("edit");
  assert.equal(result.status, "ok");
  assert.deepEqual(result.tool_calls.map(({ is_error }) => is_error), [true, true, false]);
  const [first, second] = ofType(events, "tool_result");
  assert.match(first!.output, /^Error: old does not occur in a\.txt/);
  assert.match(second!.output, /^Error: there is no none\.txt/);
  assert.equal(asked.length, 1);
  assert.match(asked[0]!, /\n-two\n\+2\n/);
  assert.equal(await it.project.read("a.txt"), "one\n2\n");
});

Deno.test("every call that is decided has an audit entry, with a path when it has one [2.4]", async () => {
  await using it = await agent([
    call("file_read", { path: "a.txt" }),
    call("run_command", { command: "true" }),
    call("code_test", {}),
    call("file_edit", { path: "a.txt", old: "zwei", new: "2" }),
    say("done"),
  ], { files: { "a.txt": "one\n" }, config: { "tool_permission.edit": "ask" } });
  const { events } = await it.turn("look");
  const [, , tested, edited] = ofType(events, "tool_result");
  assert.match(tested!.output, /^Error: .*dev\.test_cmd/);
  assert.match(edited!.output, /^Error: old does not occur/);
  const file = `.svc/sessions/${it.session.name}.json`;
  const { permissions } = JSON.parse(await it.project.read(file));
  assert.deepEqual(permissions.map(({ timestamp: _, ...entry }: PermissionEntry) => entry), [
    { tool: "file_read", action: "allow", decision: "granted", path: "a.txt" },
    { tool: "run_command", action: "ask", decision: "declined" },
    { tool: "code_test", action: "ask", decision: "declined" },
    { tool: "file_edit", action: "ask", decision: "declined", path: "a.txt" },
  ]);
});

Deno.test("a human's no is told to the model as declined, and is no error [7.3]", async () => {
  const operator: Operator = {
    confirm: () => Promise.resolve({ granted: false, scope: "once", by: "operator" }),
    ask: () => Promise.resolve(undefined),
  };
  await using it = await agent([
    call("run_command", { command: "ls" }),
    call("web_fetch", { url: "http://a.example" }),
    say("fine"),
  ], { operator, headless: false, config: { "tool_permission.web": "ask" } });
  const { result, events } = await it.turn("run");
  const outputs = ["run_command", "web_fetch"].map((name) =>
    `[cancelled] User declined the ${name} call`
  );
  assert.deepEqual(ofType(events, "tool_result").map(({ output }) => output), outputs);
  const parts = it.session.document().turns[0]!.parts.filter((part) => part.type === "tool");
  assert.deepEqual(parts.map(({ output }) => output), outputs);
  for (const each of [...parts, ...result.tool_calls]) assert.equal(each.is_error, false);
  assert.equal(result.denied.length, 2);
});

Deno.test("refused calls in three rounds in a row stop the loop [5.3, 8]", async () => {
  const again = call("run_command", { command: "ls" });
  await using it = await agent([again, again, again, say("never asked")]);
  const { result } = await it.turn("run");
  assert.equal(result.status, "error");
  assert.match(result.errors[0]!.message, /refused/);
  assert.equal(it.backend.chats.length, 3);
  assert.equal(it.session.document().turns[0]!.status, "error");
});

Deno.test("an unknown tool and broken arguments are answered so that the model can do better [7.3]", async () => {
  await using it = await agent([
    calls([["no_such_tool", {}], ["file_read", "{broken"]]),
    say("sorry"),
  ]);
  const { result, events } = await it.turn("try");
  assert.equal(result.status, "ok");
  const [unknown, broken] = ofType(events, "tool_result");
  assert.match(unknown!.output, /^Error: .*no_such_tool.*file_read/s);
  assert.match(broken!.output, /^Error: .*JSON/s);
  const parts = it.session.document().turns[0]!.parts.filter((part) => part.type === "tool");
  assert.deepEqual(parts.map((part) => part.is_error), [true, true]);
});

Deno.test("arguments go back to the backend as a JSON object, whatever it called them", async () => {
  const given = ["{broken", "", "null", '"{\\"path\\":\\"a\\"}"', '{ "path": "a" }'];
  await using it = await agent([
    calls(given.map((args) => ["list_dir", args])),
    say("done"),
  ]);
  await it.turn("go");
  const [, assistant] = it.backend.chats[1].messages.slice(-given.length - 2);
  assert.deepEqual(
    // deno-lint-ignore no-explicit-any
    assistant.tool_calls.map((each: any) => each.function.arguments),
    ["{}", "{}", "{}", '{"path":"a"}', '{ "path": "a" }'],
  );
});

Deno.test("signatures and blocks of reasoning go back to the backend that gave them", async () => {
  const chunk = (delta: unknown) =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta }] })}\n\n`;
  const text = { type: "reasoning.text", index: 0 };
  const sealed = { type: "reasoning.encrypted", data: "x", id: "r1", index: 1 };
  const extra_content = { google: { thought_signature: "s1" } };
  const function_ = { name: "list_dir", arguments: "{}" };
  await using it = await agent([
    raw([
      chunk({ reasoning: "I ", reasoning_details: [{ ...text, text: "I ", signature: null }] }),
      chunk({ reasoning: "look", reasoning_details: [{ ...text, text: "look", signature: "s0" }] }),
      chunk({ reasoning_details: [sealed] }),
      chunk({ tool_calls: [{ index: 0, id: "c1", function: function_, extra_content }] }),
      "data: [DONE]\n\n",
    ]),
    say("done"),
  ]);
  await it.turn("go");
  const assistant = it.backend.chats[1].messages.at(-2);
  assert.deepEqual(assistant.tool_calls, [
    { id: "c1", type: "function", function: function_, extra_content },
  ]);
  assert.deepEqual(assistant.reasoning_details, [
    { ...text, text: "I look", signature: "s0" },
    sealed,
  ]);
});

Deno.test("noise_tools: their output is kept out of the log, not from the model, and their errors are in both [2.13]", async () => {
  await using it = await agent([
    calls([["file_read", { path: "a.txt" }], ["file_read", { path: "b.txt" }]]),
    say("ok"),
  ], {
    files: { "a.txt": "NOISE" },
    config: { noise_tools: ["file_read"] },
  });
  await it.turn("read");
  assert.match(JSON.stringify(it.backend.chats[1].messages), /NOISE/);
  const [read, failed] = it.session.document().turns[0]!.parts
    .flatMap((part) => part.type === "tool" ? [part.output] : []);
  assert.equal(read, "[file_read result excluded from log, see tool call above for parameters]");
  assert.match(failed!, /^Error: .*b\.txt/);
});

Deno.test("session_tool_max_chars cuts what is logged and says how long it was [2.13, 8]", async () => {
  await using it = await agent([call("file_read", { path: "a.txt" }), say("ok")], {
    files: { "a.txt": "y".repeat(500) },
    config: { session_tool_max_chars: 40 },
  });
  const { events } = await it.turn("read");
  const full = ofType(events, "tool_result")[0]!.output;
  const part = it.session.document().turns[0]!.parts[1] as Part & { type: "tool" };
  assert.equal(part.output, `${full.slice(0, 40)}… (truncated from ${full.length} chars)`);
});

Deno.test("tool_max_result_chars is the most that the model gets of a result [2.13, 8]", async () => {
  await using it = await agent([call("glob", { pattern: "*" }), say("ok")], {
    files: Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`file_${i}.txt`, ""])),
    config: { tool_max_result_chars: 300 },
  });
  const { events } = await it.turn("list");
  const [result] = ofType(events, "tool_result");
  assert.match(
    result!.output,
    /^file_0[^]*characters left out; the whole is in [^]*\nfile_99\.txt$/,
  );
  assert.ok(result!.output.length <= 300);
});

Deno.test("tool_analysis adds the model's line on a result to its part [2.2, 2.13, 4.10]", async () => {
  await using it = await agent({
    replies: [
      call("file_read", { path: "a.txt" }),
      { ...say("A greeting.\nMore."), ...usage(100, 20) },
      { ...say("done"), ...usage(7, 3) },
    ],
  }, { files: { "a.txt": "hello" }, config: { tool_analysis: true } });
  const { result } = await it.turn("read");
  // What it cost belongs to the turn.
  assert.deepEqual(result.usage, { prompt_tokens: 107, completion_tokens: 23, total_tokens: 130 });
  const part = it.session.document().turns[0]!.parts[1] as Part & { type: "tool" };
  assert.equal(part.analysis, "A greeting.");
  assert.equal(it.backend.chats[1].stream, false);
});

Deno.test("an HTTP error ends the turn with its code, in the result and in the log [2.3, 3.3, 7.2]", async () => {
  await using it = await agent([httpError(401, { error: { message: "bad key" } })]);
  const { result } = await it.turn("hello");
  assert.equal(result.status, "error");
  assert.equal(result.errors[0]!.code, 401);
  const log = it.session.document();
  assert.equal(log.errors[0]!.code, 401);
  assert.equal(log.turns[0]!.status, "error");
  assert.deepEqual(types(log.turns[0]!.parts), ["user"]);
});

Deno.test("when the stream ends after tools ran, the warning says that their results are saved [2.1, 7.2]", async () => {
  const nothing = { finish: null, done: false };
  await using it = await agent([
    call("file_read", { path: "a.txt" }),
    nothing,
    nothing,
    nothing,
  ], { files: { "a.txt": "x" } });
  const { result, events } = await it.turn("read");
  assert.equal(result.status, "empty");
  assert.equal(result.errors[0]!.message, "Stream ended before a completion event");
  assert.match(JSON.stringify(ofType(events, "notice")), /results so far are saved/);
  assert.deepEqual(types(it.session.document().turns[0]!.parts), ["user", "tool"]);
});

Deno.test("a cut stream is continued over the wire and stitched in one part [7.2]", async () => {
  await using it = await agent([cut(["one ", "two "]), say("three")]);
  const { result } = await it.turn("count");
  assert.equal(result.status, "ok");
  assert.equal(result.content, "one two three");
  const parts = it.session.document().turns[0]!.parts;
  assert.deepEqual(types(parts), ["user", "text"]);
});

Deno.test("cancelling in the middle of a stream keeps what had arrived, with the status cancelled [2.3, 3.3, 7.3]", async () => {
  await using it = await agent([{ text: ["partial answer"], hang: true }]);
  const controller = new AbortController();
  const events: TurnEvent[] = [];
  for await (const event of it.engine.turn("hello", { signal: controller.signal })) {
    events.push(event);
    if (event.type === "token") controller.abort();
  }
  const last = events.at(-1) as TurnEvent & { type: "turn_finished" };
  assert.equal(last.result.status, "cancelled");
  assert.equal(last.result.content, "partial answer");
  const [turn] = it.session.document().turns;
  assert.equal(turn!.status, "cancelled");
  assert.deepEqual(types(turn!.parts), ["user", "text"]);
});

Deno.test("cancelling in the middle of a tool ends its child processes and keeps its part [7.3]", async () => {
  const operator: Operator = {
    confirm: () => Promise.resolve({ granted: true, scope: "once", by: "operator" }),
    ask: () => Promise.resolve(undefined),
  };
  await using it = await agent([
    call("run_command", { command: "touch hold; sleep 1000; touch late" }),
  ], { operator, headless: false });
  const controller = new AbortController();
  const watcher = Deno.watchFs(it.project.path);
  const started = (async () => {
    for await (const { paths } of watcher) {
      if (paths.some((path) => path.endsWith("/hold"))) return;
    }
  })();
  const turn = it.turn("run", controller.signal);
  await started;
  controller.abort();
  const { result } = await turn;
  watcher.close();
  assert.equal(result.status, "cancelled");
  await noProcessesLeft(it.project.path);
  const [logged] = it.session.document().turns;
  assert.equal(logged!.status, "cancelled");
  assert.deepEqual(types(logged!.parts), ["user", "tool"]);
});

Deno.test("leaving the iteration cancels the turn and frees the session", async () => {
  await using it = await agent([say(["a", "b", "c"]), say("next")]);
  for await (const event of it.engine.turn("hello")) {
    if (event.type === "token") break;
  }
  assert.equal(it.session.document().turns[0]!.status, "cancelled");
  const { result } = await it.turn("again");
  assert.equal(result.content, "next");
});

Deno.test("plan mode tells the model, and denies edits and commands", async () => {
  await using it = await agent([
    calls([["file_write", { path: "a.txt", content: "x" }], ["run_command", { command: "ls" }]]),
    say("a plan"),
  ], { config: { mode: "plan" } });
  await it.turn("plan it");
  assert.match(it.backend.chats[0].messages[0].content, /plan mode/);
  await assert.rejects(it.project.read("a.txt"));
  assert.deepEqual(
    it.session.document().permissions.map(({ action, decision }) => [action, decision]),
    [["deny", "denied"], ["deny", "denied"]],
  );
});

Deno.test("two workspaces in one process do not see each other", async () => {
  await using one = await agent([say("one")], { config: { "tools.deny": ["file_read"] } });
  await using two = await agent([say("two")]);
  await Promise.all([one.turn("a"), two.turn("b")]);
  const tools = (chat: { tools?: { function: { name: string } }[] }) =>
    chat.tools?.map((tool) => tool.function.name) ?? [];
  assert.ok(!tools(one.backend.chats[0]).includes("file_read"));
  assert.ok(tools(two.backend.chats[0]).includes("file_read"));
  assert.deepEqual(one.workspace.sessions.list(), [one.session.name]);
});

Deno.test("a model that never stops calling is stopped at max_rounds, and its results are kept", async () => {
  const script = { replies: [{ ...call("list_dir", { path: "." }), repeat: 5 }, say("over")] };
  await using it = await agent(script, { config: { max_rounds: 3 } });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.reason], ["error", "rounds"]);
  assert.match(
    result.errors[0]!.message,
    /^Stopped after 3 rounds of tool calls \(max_rounds\)/,
  );
  const [turn] = it.session.document().turns;
  assert.equal(turn!.parts.filter(({ type }) => type === "tool").length, 3);
  assert.equal(result.tool_calls.length, 3);
  await using free = await agent(script, { config: { max_rounds: 0 } });
  assert.equal((await free.turn("go")).result.content, "over");
});

Deno.test("the prompt is in the log when the turn is said to have started", async () => {
  await using it = await agent([say("one")]);
  for await (const event of it.engine.turn("remember this")) {
    if (event.type !== "turn_started") continue;
    assert.deepEqual(
      it.session.document().turns[0]!.parts.map((part) => "text" in part && part.text),
      [
        "remember this",
      ],
    );
  }
});
