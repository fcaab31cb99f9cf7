import type { SessionUpdate } from "@agentclientprotocol/sdk";
import assert from "node:assert/strict";
import { Updates } from "../../src/acp/updates.ts";
import type { Workspace } from "../../src/engine/workspace.ts";
import { VERSION } from "../../src/platform/environment.ts";
import { ToolRegistry } from "../../src/tools/registry.ts";
import { call, calls, httpError, say, startBackend, think, usage } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { startSvc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { backendConfig, startEditor } from "./support.ts";

Deno.test("an editor gets thoughts, text and calls of a turn as they come, and its end", async () => {
  await using backend = startBackend([
    think("Hm.", call("file_read", { path: "a.txt" })),
    say(["It says ", "\x1b[31malpha."], usage(90, 10)),
  ]);
  const config = backendConfig(backend.url, { context_window: 8000, reasoning: "on" });
  await using place = await project({ "a.txt": "alpha\n", ...config });
  await using editor = await startEditor(place.path);
  assert.deepEqual(editor.initialized, {
    protocolVersion: 1,
    agentInfo: { name: "svc", title: "svc", version: VERSION },
    authMethods: [],
    agentCapabilities: {
      loadSession: true,
      promptCapabilities: { image: true, embeddedContext: true },
      mcpCapabilities: { http: true },
      sessionCapabilities: { list: {}, delete: {}, resume: {}, close: {} },
    },
  });
  const { sessionId } = await editor.session(place.path);
  await editor.update("available_commands_update");
  await editor.update("config_option_update");
  editor.updates.length = 0;
  assert.equal(await editor.prompt(sessionId, "read a.txt"), "end_turn");
  const path = `${place.path}/a.txt`;
  const said = (sessionUpdate: string, text: string) => ({
    sessionUpdate,
    content: { type: "text", text },
  });
  const output = "# a.txt - 1 lines, 6 chars\n1|alpha";
  const [info, ...shown] = editor.updates.map(({ update }) => update).reverse();
  assert.deepEqual(shown.reverse(), [
    said("agent_thought_chunk", "Hm."),
    {
      sessionUpdate: "tool_call",
      toolCallId: "call-1",
      name: "file_read",
      title: "read a.txt",
      kind: "read",
      status: "pending",
      locations: [{ path }],
      rawInput: { path: "a.txt" },
    },
    { sessionUpdate: "tool_call_update", toolCallId: "call-1", status: "in_progress" },
    {
      sessionUpdate: "tool_call_update",
      toolCallId: "call-1",
      status: "completed",
      content: [{ type: "content", content: { type: "text", text: `\`\`\`\n${output}\n\`\`\`` } }],
      rawOutput: output,
    },
    said("agent_message_chunk", "It says "),
    said("agent_message_chunk", "alpha."),
    { sessionUpdate: "usage_update", used: 100, size: 8000 },
  ]);
  assert.equal(info?.sessionUpdate === "session_info_update" && info.title, "read a.txt");
});

Deno.test("an editor shows edits as diffs, the plan, the output of commands while they run, and failures", async () => {
  await using backend = startBackend([
    calls([
      ["file_edit", { path: "a.txt", old: "two", new: "2" }],
      ["file_write", { path: "new.txt", content: "fresh\n" }],
      ["plan", { steps: [{ step: "edit", state: "done" }, { step: "run" }] }],
      ["run_command", { command: "echo before; cat go; exit 3" }],
    ]),
    say("done"),
  ]);
  const allow = { tool_permission: { bash: "allow", edit: "allow" } };
  const files = { "a.txt": "one\ntwo\nthree\n", ...backendConfig(backend.url, allow) };
  await using place = await project(files);
  assert.ok((await new Deno.Command("mkfifo", { args: [`${place.path}/go`] }).output()).success);
  await using editor = await startEditor(place.path);
  const { sessionId } = await editor.session(place.path);
  const ended = editor.prompt(sessionId, "work");
  const running = await editor.update(
    "tool_call_update",
    ({ status, content }) => status === "in_progress" && /before/.test(JSON.stringify(content)),
  );
  const priority = "medium";
  assert.deepEqual((await editor.update("plan")).entries, [
    { content: "edit", priority, status: "completed" },
    { content: "run", priority, status: "pending" },
  ]);
  await Deno.writeTextFile(`${place.path}/go`, "after\n");
  assert.equal(await ended, "end_turn");
  const updates = editor.updates.map(({ update }) => update);
  const diffs = updates.flatMap((update) =>
    update.sessionUpdate === "tool_call_update" ? update.content ?? [] : []
  ).filter(({ type }) => type === "diff");
  assert.deepEqual(diffs, [
    {
      type: "diff",
      path: `${place.path}/a.txt`,
      oldText: "one\ntwo\nthree",
      newText: "one\n2\nthree",
    },
    { type: "diff", path: `${place.path}/new.txt`, oldText: null, newText: "fresh\n" },
  ]);
  const last = updates.findLast((update) =>
    update.sessionUpdate === "tool_call_update" && update.toolCallId === running.toolCallId
  );
  assert.ok(last?.sessionUpdate === "tool_call_update" && last.status === "failed");
  assert.match(String(last.rawOutput), /exit 3\nbefore\nafter/);
});

Deno.test("a call of the tool plan is a plan for the editor, live and from the log", async () => {
  const sent: SessionUpdate[] = [];
  const workspace = { tools: new ToolRegistry(), paths: { worktree: "/work" } } as Workspace;
  const updates = new Updates(workspace, (update) => Promise.resolve(void sent.push(update)));
  const steps = [
    { step: "read", state: "done" },
    { step: "write", state: "active" },
    { step: "test", state: "pending" },
  ];
  const common = { run: 1, id: "c", name: "plan" };
  const input = { steps };
  const result = { output: "kept", is_error: false, note: "", echo: false, duration: 0 };
  await updates.event({
    type: "tool_call",
    ...common,
    arguments: input,
    category: "plan",
    status: "",
  });
  await updates.event({ type: "tool_result", ...common, ...result });
  const part = { type: "tool" as const, name: "plan", input, output: "kept", is_error: false };
  const head = {
    index: 1,
    started_at: "",
    ended_at: "",
    status: "ok" as const,
    model: "",
    mode: "",
  };
  const turn = { ...head, provider: "", reasoning: "", parts: [{ ...part, timestamp: "" }] };
  await updates.replay([turn]);
  const priority = "medium";
  const plan = {
    sessionUpdate: "plan",
    entries: [
      { content: "read", priority, status: "completed" },
      { content: "write", priority, status: "in_progress" },
      { content: "test", priority, status: "pending" },
    ],
  };
  assert.deepEqual(sent, [plan, plan]);
});

Deno.test("session/cancel and a client that disconnects end the turn and its programs", async () => {
  const sleep = call("run_command", { command: "echo up; sleep 600 & sleep 601" });
  await using backend = startBackend([sleep, say("on"), sleep]);
  const allow = { tool_permission: { bash: "allow" } };
  await using place = await project(backendConfig(backend.url, allow));
  const editor = await startEditor(place.path);
  const { sessionId } = await editor.session(place.path);
  const up = () =>
    editor.update("tool_call_update", ({ content }) => /up/.test(JSON.stringify(content ?? "")));
  const ended = editor.prompt(sessionId, "sleep");
  await up();
  await editor.agent.notify("session/cancel", { sessionId });
  assert.equal(await ended, "cancelled");
  const last = editor.updates.findLast(({ update }) => update.sessionUpdate === "tool_call_update");
  assert.ok(last?.update.sessionUpdate === "tool_call_update");
  assert.equal(last.update.status, "failed");
  assert.equal(await editor.prompt(sessionId, "go on"), "end_turn");
  editor.updates.length = 0;
  const left = editor.prompt(sessionId, "sleep again").catch(() => "gone");
  await up();
  assert.equal(await editor.leave(), 0);
  assert.equal(await left, "gone");
  await noProcessesLeft(place.path);
  const { turns } = JSON.parse(await place.read(`.svc/sessions/${sessionId}.json`));
  assert.deepEqual(turns.map(({ status }: { status: string }) => status), [
    "cancelled",
    "ok",
    "cancelled",
  ]);
});

Deno.test("a session that an editor closes ends its background commands, also one that is opened twice at once", async () => {
  const start = call("run_command", { command: "sleep 600", background: true });
  await using backend = startBackend([start, say("on"), start, say("on")]);
  const allow = { tool_permission: { bash: "allow" } };
  await using place = await project(backendConfig(backend.url, allow));
  await using editor = await startEditor("/");
  const { sessionId } = await editor.session(place.path);
  await editor.prompt(sessionId, "sleep");
  await editor.agent.request("session/close", { sessionId });
  await noProcessesLeft(place.path);
  const open = () =>
    editor.agent.request("session/resume", { sessionId, cwd: place.path, mcpServers: [] })
      .catch(() => {});
  await Promise.all([open(), open(), open()]);
  await editor.prompt(sessionId, "sleep");
  await editor.agent.request("session/close", { sessionId });
  await noProcessesLeft(place.path);
});

Deno.test("an editor that disconnects before it answers a question ends the turn, and the call is not run", async () => {
  await using backend = startBackend([call("run_command", { command: "touch made" }), say("on")]);
  await using place = await project(backendConfig(backend.url));
  const asked = Promise.withResolvers<void>();
  const editor = await startEditor(place.path, {
    permission() {
      asked.resolve();
      return new Promise(() => {});
    },
  });
  const { sessionId } = await editor.session(place.path);
  const left = editor.prompt(sessionId, "touch").catch(() => "gone");
  await asked.promise;
  assert.equal(await editor.leave(), 0);
  assert.equal(await left, "gone");
  const { turns: [turn], permissions } = JSON.parse(
    await place.read(`.svc/sessions/${sessionId}.json`),
  );
  assert.equal(turn.status, "cancelled");
  assert.equal(permissions.length, 1);
  assert.equal(await editor.stderr, "");
  await assert.rejects(place.read("made"));
  assert.equal(backend.chats.length, 1);
});

Deno.test("a turn that fails is an error with its reason, one that max_rounds ends or a cut answer is none", async () => {
  await using backend = startBackend([
    httpError(401, { error: { message: "no such key" } }),
    call("list_dir", { path: "." }),
    say("half", { finish: "length" }),
  ]);
  const settings = { max_rounds: 1, auto_continue: false };
  await using place = await project(backendConfig(backend.url, settings));
  await using editor = await startEditor(place.path);
  const { sessionId } = await editor.session(place.path);
  await assert.rejects(
    editor.prompt(sessionId, "one"),
    (error: { code: number; data: unknown }) => {
      assert.match(String(error), /no such key/);
      assert.deepEqual([error.code, error.data], [-32603, { code: "backend" }]);
      return true;
    },
  );
  assert.equal(await editor.prompt(sessionId, "two"), "max_turn_requests");
  assert.match(editor.said(sessionId), /Stopped after 1 rounds of tool calls/);
  assert.equal(await editor.prompt(sessionId, "three"), "max_tokens");
});

Deno.test("the standard output of svc acp holds the protocol only; warnings go to standard error and the session", async () => {
  await using backend = startBackend([say("hello")]);
  await using place = await project(backendConfig(backend.url, { nonsense: 1 }));
  const child = startSvc(["acp"], { cwd: place.path, stdin: "" });
  const writer = child.stdin.getWriter();
  const send = (message: unknown) =>
    writer.write(new TextEncoder().encode(
      typeof message === "string"
        ? message
        : JSON.stringify({ jsonrpc: "2.0", ...message as object }) + "\n",
    ));
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  // deno-lint-ignore no-explicit-any
  const seen: any[] = [];
  let rest = "";
  // deno-lint-ignore no-explicit-any
  const until = async (accepts: (message: any) => boolean) => {
    while (!seen.some(accepts)) {
      const { value, done } = await lines.read();
      assert.ok(!done, "the program ended");
      const read = (rest + value).split("\n");
      rest = read.pop()!;
      seen.push(...read.map((line) => JSON.parse(line)));
    }
    return seen.find(accepts);
  };
  await send("no json\n");
  assert.equal((await until(({ error }) => error?.code === -32700)).id, null);
  await send({ id: 1, method: "initialize", params: { protocolVersion: 99 } });
  assert.equal((await until(({ id }) => id === 1)).result.protocolVersion, 1);
  await send({ id: 2, method: "nonesuch", params: {} });
  assert.equal((await until(({ id }) => id === 2)).error.code, -32601);
  await send({ id: 3, method: "session/new", params: { cwd: "relative", mcpServers: [] } });
  assert.equal((await until(({ id }) => id === 3)).error.code, -32602);
  await send({ id: 4, method: "session/new", params: { cwd: place.path, mcpServers: [] } });
  const { sessionId } = (await until(({ id }) => id === 4)).result;
  const prompt = [{ type: "text", text: "hi" }];
  await send({ id: 5, method: "session/prompt", params: { sessionId, prompt } });
  assert.deepEqual((await until(({ id }) => id === 5)).result, { stopReason: "end_turn" });
  await writer.close();
  while (!(await lines.read()).done);
  assert.equal((await child.status).code, 0);
  assert.match(await new Response(child.stderr).text(), /^warning: .*nonsense/);
  const noted = seen.filter(({ params }) => /nonsense/.test(params?.update?.content?.text));
  assert.equal(noted.length, 1);
  assert.ok(seen.every(({ jsonrpc }) => jsonrpc === "2.0"));
});
