import assert from "node:assert/strict";
import { join } from "node:path";
import { Workspace } from "../../src/engine/workspace.ts";
import { McpTools } from "../../src/mcp/tools.ts";
import type { Operator } from "../../src/policy/operator.ts";
import { agent, type TestAgent } from "../support/agent.ts";
import { call, calls, say } from "../support/backend.ts";

/** Keeps what it is given in a file, a line each, and then decides by the rest of the command. */
const keep = (rest = "true") => `cat >>seen; echo >>seen; ${rest}`;
const hook = (command: string, matcher = "", timeout?: number) => ({
  matcher,
  hooks: [{ type: "command", command, timeout }],
});

function watched(
  replies: Parameters<typeof agent>[0],
  hooks: Record<string, unknown>,
  more: Record<string, unknown> = {},
  options: Partial<Parameters<typeof agent>[1]> = {},
) {
  return agent(replies, {
    files: { "note.txt": "text\n" },
    config: { hooks, tool_permission: { edit: "allow", bash: "allow" }, ...more },
    ...options,
  });
}

/** What the programs were given. */
// deno-lint-ignore no-explicit-any
async function seen(it: TestAgent): Promise<any[]> {
  const text = await it.project.read("seen");
  return text.trim().split("\n").map((line) => JSON.parse(line));
}

const results = (it: TestAgent): string[] =>
  it.backend.chats.at(-1).messages.filter(({ role }: { role: string }) => role === "tool")
    .map(({ content }: { content: string }) => content);

Deno.test("each event starts its programs, with JSON on standard input", async () => {
  await using it = await watched([
    call("file_read", { path: "note.txt" }),
    say("done"),
  ], {
    turn_start: [hook(keep())],
    tool_call: [hook(keep())],
    tool_result: [hook(keep())],
    turn_end: [hook(keep())],
  });
  const { result } = await it.turn("go");
  assert.equal(result.status, "ok");
  const given = await seen(it);
  assert.deepEqual(given.map(({ hook_event_name }) => hook_event_name), [
    "turn_start",
    "tool_call",
    "tool_result",
    "turn_end",
  ]);
  const [start, called, answered, end] = given;
  assert.deepEqual([start.prompt, start.session_id, start.cwd], [
    "go",
    it.session.name,
    it.project.path,
  ]);
  assert.equal(start.transcript_path, it.session.path);
  assert.deepEqual([called.tool_name, called.tool_input], ["file_read", { path: "note.txt" }]);
  assert.match(answered.tool_response.output, /1\|text/);
  assert.equal(answered.tool_use_id, called.tool_use_id);
  assert.deepEqual([end.last_assistant_message, end.stop_hook_active], ["done", false]);
});

Deno.test("under the names of other agents, programs get the names of their tools", async () => {
  await using it = await watched([
    calls([["file_write", { path: "a.txt", content: "x" }], ["run_command", { command: "true" }]]),
    say("done"),
  ], {
    UserPromptSubmit: [hook(keep("echo The moon is full."))],
    PreToolUse: [hook(keep(), "Edit|Write")],
    PostToolUse: [hook(keep('test -d "$CLAUDE_PROJECT_DIR"'), "Bash")],
    Stop: [hook(keep())],
    SubagentStop: [hook("false")],
  });
  const { events } = await it.turn("go");
  const given = await seen(it);
  assert.deepEqual(
    given.map(({ hook_event_name, tool_name }) => [hook_event_name, tool_name]),
    [
      ["UserPromptSubmit", undefined],
      ["PreToolUse", "Write"],
      ["PostToolUse", "Bash"],
      ["Stop", undefined],
    ],
  );
  assert.equal(given[1].tool_input.file_path, join(it.project.path, "a.txt"));
  assert.equal(given[1].permission_mode, "default");
  assert.match(JSON.stringify(it.backend.chats[0].messages), /The moon is full\./);
  assert.deepEqual(events.filter(({ type }) => type === "notice"), []);
});

Deno.test("a program refuses a call by exit code 2 or by its decision; nothing runs", async () => {
  const denied = JSON.stringify({
    hookSpecificOutput: { permissionDecision: "deny", permissionDecisionReason: "Not on Sundays." },
  });
  const blocked = JSON.stringify({ decision: "block", reason: "Not that way." });
  const refusals: [string, string][] = [
    ["echo No such writes. >&2; exit 2", "No such writes."],
    [`echo '${denied}'`, "Not on Sundays."],
    [`echo '${blocked}'`, "Not that way."],
    [`echo '{"continue": false, "stopReason": "Enough."}'`, "Enough."],
    // A guard that cannot speak has not agreed.
    ["sleep 9", "did not end within"],
    ["no-such-program", "was not run to its end"],
  ];
  for (const [command, reason] of refusals) {
    await using it = await watched([
      call("file_write", { path: "made.txt", content: "x" }),
      say("I see"),
    ], { tool_call: [hook(command, "file_.*", command.startsWith("sleep") ? 0.2 : undefined)] });
    const { result } = await it.turn("go");
    assert.deepEqual([result.status, result.refused], ["ok", ["file_write (edit)"]], command);
    assert.ok(results(it)[0]!.includes(reason), results(it)[0]);
    await assert.rejects(it.project.read("made.txt"));
    const [audited] = it.session.document().permissions!;
    assert.deepEqual([audited!.action, audited!.decision], ["deny", "denied"]);
  }
});

Deno.test("changed arguments run in place of the call's, and the policy decides about them anew", async () => {
  const to = (input: unknown) =>
    `echo '${
      JSON.stringify({ hookSpecificOutput: { permissionDecision: "allow", updatedInput: input } })
    }'`;
  await using it = await watched([
    call("run_command", { command: "echo one" }),
    say("done"),
  ], { tool_call: [hook(to({ command: "echo two" }))] });
  await it.turn("go");
  assert.match(results(it)[0]!, /two/);
  assert.doesNotMatch(results(it)[0]!, /one/);

  await using outside = await watched([
    call("file_write", { path: "in.txt", content: "x" }),
    say("done"),
  ], { tool_call: [hook(to({ path: "/etc/out.txt", content: "x" }))] });
  const { result } = await outside.turn("go");
  assert.deepEqual(result.refused, ["file_write (edit)"]);

  // A hook that allows a call does not answer for the policy.
  await using asked = await watched(
    [call("run_command", { command: "touch made" }), say("done")],
    { tool_call: [hook(to({ command: "touch made" }))] },
    { tool_permission: { bash: "ask" } },
  );
  assert.deepEqual((await asked.turn("go")).result.refused, ["run_command (bash)"]);
});

Deno.test("a guard of other agents sees each file of a patch, and can change the path of a call", async () => {
  const patch = "*** Begin Patch\n*** Add File: a.txt\n+x\n*** Add File: .env\n+x\n*** End Patch";
  await using it = await watched([call("apply_patch", { input: patch }), say("done")], {
    PreToolUse: [hook(`! grep -q '"file_path":"/.*/[.]env"' || exit 2`, "Edit|Write")],
  });
  assert.deepEqual((await it.turn("go")).result.refused, ["apply_patch (edit)"]);

  const updatedInput = { path: "a.txt", content: "x", file_path: "b.txt" };
  await using moved = await watched(
    [call("file_write", { path: "a.txt", content: "x" }), say("done")],
    { PreToolUse: [hook(`echo '${JSON.stringify({ hookSpecificOutput: { updatedInput } })}'`)] },
  );
  await moved.turn("go");
  assert.match(results(moved)[0]!, /Created .*b\.txt/);
});

Deno.test("a program whose JSON cannot be read refuses the call", async () => {
  const broken = [`echo '{"decision": "block", "reason": "not "this""}'`, `echo '{'; seq 100000`];
  for (const command of broken) {
    await using it = await watched(
      [call("run_command", { command: "touch made" }), say("done")],
      { tool_call: [hook(command)] },
    );
    assert.deepEqual((await it.turn("go")).result.refused, ["run_command (bash)"]);
  }
});

Deno.test("a program has the operator asked about a call that the policy allows, and ask learns of it", async () => {
  const questions: string[] = [];
  const operator: Operator = {
    confirm: ({ reason }) => {
      questions.push(reason);
      return Promise.resolve({ granted: true, scope: "once", by: "operator" });
    },
    ask: () => Promise.resolve(undefined),
  };
  const decision = {
    hookSpecificOutput: { permissionDecision: "ask", permissionDecisionReason: "Sure?" },
  };
  await using it = await watched(
    [call("run_command", { command: "echo ran" }), say("done")],
    { tool_call: [hook(`echo '${JSON.stringify(decision)}'`)], ask: [hook(keep())] },
    {},
    { operator, headless: false },
  );
  await it.turn("go");
  assert.deepEqual(questions, ["Sure?"]);
  assert.match(results(it)[0]!, /ran/);
  assert.deepEqual((await seen(it)).map(({ message }) => message), [
    "Approve a call of run_command? Sure?",
  ]);
});

Deno.test("a parked ask starts the programs of ask", async () => {
  await using it = await watched(
    [call("ask", { question: "Which way?" }), say("waiting")],
    { ask: [hook(keep())] },
    { unattended: true },
  );
  await it.turn("go");
  assert.deepEqual((await seen(it)).map(({ message }) => message), ["Which way?"]);
});

Deno.test("what a program says of a result is sent to the model with it, also after a restart", async () => {
  const said = { decision: "block", reason: "Line 1 is too long." };
  await using it = await watched([
    call("file_read", { path: "note.txt" }),
    say("one"),
    say("two"),
  ], { tool_result: [hook(`echo '${JSON.stringify(said)}'`)] });
  await it.turn("go");
  assert.match(results(it)[0]!, /1\|text[^]*\[hook\] Line 1 is too long\./);
  const before = results(it)[0];
  const again = it.another();
  for await (const _ of again.turn("more"));
  assert.equal(results(it)[0], before);
  await again.close();
});

Deno.test("a program refuses a turn before the model is asked", async () => {
  await using it = await watched([], { turn_start: [hook("echo Not today. >&2; exit 2")] });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.reason], ["error", "refused"]);
  assert.match(result.errors[0]!.message, /A hook refused the turn: Not today\./);
  assert.equal(it.backend.chats.length, 0);
});

Deno.test("a program of the turn's end has the model go on, and not without end", async () => {
  const rest = `grep -q stop_hook_active.:true seen || { echo Run the tests. >&2; exit 2; }`;
  await using it = await watched([say("done"), say("tests pass")], {
    turn_end: [hook(keep(rest))],
  });
  const { result, events } = await it.turn("go");
  assert.deepEqual([result.status, result.content], ["ok", "tests pass"]);
  // The answers are paragraphs of their own, since front ends join them.
  const shown = events.flatMap((event) => event.type === "token" ? [event.content] : []);
  assert.equal(shown.join(""), "done\n\ntests pass");
  const notices = events.flatMap((event) => event.type === "notice" ? [event.message] : []);
  assert.deepEqual(notices, [
    "A hook has not accepted the end of the turn; the model is asked again.",
  ]);
  assert.match(it.backend.chats[1].messages.at(-1).content, /Run the tests\./);

  const replies = Array.from({ length: 9 }, (_, i) => say(`answer ${i + 1}`));
  await using endless = await watched(replies, { turn_end: [hook("exit 2")] });
  assert.equal((await endless.turn("go")).result.content, "answer 6");
});

Deno.test("a program that fails otherwise is named in a warning, and the work goes on", async () => {
  await using it = await watched([call("file_read", { path: "note.txt" }), say("done")], {
    tool_call: [hook("echo oops >&2; exit 1")],
    tool_result: [hook("sleep 9", "", 0.2)],
  });
  const { events, result } = await it.turn("go");
  assert.equal(result.status, "ok");
  const notices = events.flatMap((event) => event.type === "notice" ? [event.message] : []);
  assert.match(notices.join("\n"), /hook echo oops .* of tool_call failed \(exit 1\): oops/);
  assert.match(notices.join("\n"), /hook sleep 9 of tool_result did not end within 0.2 seconds/);
});

Deno.test("calls of MCP clients pass the programs too", async () => {
  await using it = await watched([], { tool_call: [hook("echo Closed. >&2; exit 2")] });
  const tools = new McpTools(it.workspace, () => assert.fail());
  const hooks = { signal: new AbortController().signal, confirmed: true };
  const { content, isError } = await tools.call("file_read", { path: "note.txt" }, hooks);
  assert.deepEqual([isError, JSON.stringify(content).includes("Closed.")], [true, true]);
});

Deno.test("a worktree's hooks count once they are trusted, and cannot switch the operator's off before", async () => {
  await using it = await agent([], {
    files: { ".svc/config.json": JSON.stringify({ hooks: { tool_call: [] } }) },
    user: { "config.json": JSON.stringify({ hooks: { tool_call: [hook("exit 2")] } }) },
  });
  const open = (trusted: boolean) =>
    Workspace.open({
      path: it.project.path,
      environment: {
        home: it.workspace.paths.user.replace("/.config/svc", ""),
        cwd: it.project.path,
        get: () => undefined,
      },
      warn: () => {},
      trusted,
    });
  assert.equal(open(false).config.get("hooks").tool_call!.length, 1);
  assert.equal(open(true).config.get("hooks").tool_call!.length, 0);
});
