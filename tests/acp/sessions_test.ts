import type { McpServerStdio, SessionConfigOption, SessionUpdate } from "@agentclientprotocol/sdk";
import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { call, say, startBackend, think } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { backendConfig, startEditor } from "./support.ts";

const PNG =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const MCP = fileURLToPath(
  new URL("../../plugins/svc-core-mcp/tests/bad_server.ts", import.meta.url),
);

Deno.test("an editor lists the sessions of a folder, loads one with its history, resumes, closes and deletes it", async () => {
  await using backend = startBackend([
    think("Hm.", call("file_read", { path: "a.txt" })),
    say("It says alpha."),
    say("Still alpha."),
    say("Once more."),
  ]);
  const config = backendConfig(backend.url, { reasoning: "on" });
  await using place = await project({ "a.txt": "alpha\n", ...config });
  const cwd = place.path;
  let id = "";
  {
    await using editor = await startEditor(cwd);
    const { sessionId } = await editor.session(cwd);
    id = sessionId;
    const none = await editor.agent.request("session/list", { cwd });
    assert.deepEqual(none.sessions, [], "a session begins with its first prompt");
    await editor.prompt(id, "read a.txt");
  }
  await using editor = await startEditor(cwd);
  const { sessions: [listed] } = await editor.agent.request("session/list", { cwd });
  const { updatedAt, ...others } = listed!;
  assert.deepEqual(others, { sessionId: id, cwd, title: "read a.txt" });
  assert.ok(Date.parse(updatedAt!) > 0);
  const loaded = await editor.agent.request("session/load", { sessionId: id, cwd, mcpServers: [] });
  assert.equal(loaded.modes?.currentModeId, "build");
  const replayed = editor.updates.map(({ update }) => update);
  assert.deepEqual(replayed.map(({ sessionUpdate }) => sessionUpdate), [
    "user_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "agent_message_chunk",
  ]);
  const shown = replayed[2] as SessionUpdate & { sessionUpdate: "tool_call" };
  assert.deepEqual([shown.title, shown.kind, shown.status, shown.locations, shown.rawInput], [
    "read a.txt",
    "read",
    "completed",
    [{ path: `${cwd}/a.txt` }],
    { path: "a.txt" },
  ]);
  assert.equal(await editor.prompt(id, "and now?"), "end_turn");
  const [, , third] = backend.chats.map(({ messages }) => messages);
  assert.equal(third.at(-1).content, "and now?");
  assert.match(JSON.stringify(third), /It says alpha/);

  await editor.agent.request("session/close", { sessionId: id });
  await assert.rejects(editor.prompt(id, "hello?"), { code: -32002 });
  editor.updates.length = 0;
  await editor.agent.request("session/resume", { sessionId: id, cwd });
  assert.equal(await editor.prompt(id, "once more"), "end_turn");
  assert.equal(editor.said(id), "Once more.");

  await editor.agent.request("session/delete", { sessionId: id });
  assert.deepEqual((await editor.agent.request("session/list", {})).sessions, []);
  const gone = editor.agent.request("session/load", { sessionId: id, cwd, mcpServers: [] });
  await assert.rejects(gone, { code: -32002 });
});

Deno.test("sessions of several folders run at once, each with its own mode and model", async () => {
  const backends = [1, 2].map(() => startBackend([call("file_write", WRITE), say("done")]));
  await using one = backends[0]!;
  await using two = backends[1]!;
  await using first = await project(backendConfig(one.url));
  await using second = await project(backendConfig(two.url));
  await using editor = await startEditor(first.path, { home: first.path });
  const a = await editor.session(first.path);
  const b = await editor.session(second.path);
  assert.deepEqual(a.modes, {
    currentModeId: "build",
    availableModes: [
      { id: "build", name: "build" },
      { id: "plan", name: "plan", description: "Reads and answers, and changes nothing." },
    ],
  });
  await editor.agent.request("session/set_mode", { sessionId: b.sessionId, modeId: "plan" });
  const { currentModeId } = await editor.update("current_mode_update");
  assert.equal(currentModeId, "plan");
  const unknown = editor.agent.request("session/set_mode", {
    sessionId: b.sessionId,
    modeId: "chaos",
  });
  await assert.rejects(unknown, { code: -32602, message: /There is no mode "chaos"/ });
  const valueOf = (options: SessionConfigOption[], id: string) =>
    options.find((option) => option.id === id)?.currentValue;
  assert.equal(valueOf(a.configOptions!, "model"), "generic-compatible/scripted");
  await editor.update(
    "config_option_update",
    ({ configOptions }) => JSON.stringify(configOptions).includes("generic-compatible/demo"),
  );
  const { configOptions } = await editor.agent.request("session/set_config_option", {
    sessionId: a.sessionId,
    configId: "model",
    value: "generic-compatible/demo",
  });
  assert.deepEqual(["mode", "model"].map((id) => valueOf(configOptions, id)), [
    "build",
    "generic-compatible/demo",
  ]);
  await assert.rejects(
    editor.agent.request("session/set_config_option", {
      sessionId: a.sessionId,
      configId: "model",
      value: "other/none",
    }),
    { code: -32602 },
  );
  await Promise.all([a, b].map(({ sessionId }) => editor.prompt(sessionId, "write")));
  assert.equal(await first.read("made.txt"), "made\n");
  await assert.rejects(second.read("made.txt"), Deno.errors.NotFound);
  assert.deepEqual([one, two].map(({ chats }) => chats[0].model), ["demo", "scripted"]);
});

Deno.test("sessions of one name in two folders are never mixed up by an editor", async () => {
  await using first = await project();
  await using second = await project();
  const run = ["run", "--provider", "demo", "--session-id", "nightly", "-p", "hello"];
  await Promise.all([first, second].map(({ path }) => svc(run, { cwd: path })));
  await using editor = await startEditor(first.path);
  const load = (cwd: string) =>
    editor.agent.request("session/load", { sessionId: "nightly", cwd, mcpServers: [] });
  await load(first.path);
  await assert.rejects(load(second.path), { code: -32602, message: /two of a name cannot be/ });
  await editor.agent.request("session/close", { sessionId: "nightly" });
  await load(second.path);
  await editor.agent.request("session/delete", { sessionId: "nightly" });
  const listed = async (cwd: string) =>
    (await editor.agent.request("session/list", { cwd })).sessions.map(({ sessionId }) =>
      sessionId
    );
  assert.deepEqual(await listed(second.path), []);
  assert.deepEqual(await listed(first.path), ["nightly"]);
});

const WRITE = { path: "made.txt", content: "made\n" };

Deno.test("texts, links and images of a prompt are attached; a link that cannot be is named, with a notice", async () => {
  await using backend = startBackend([say("seen")]);
  await using place = await project({ "src/a.ts": "let a;\n", ...backendConfig(backend.url) });
  await using editor = await startEditor(place.path, {
    capabilities: { session: { notices: {} } },
  });
  const { sessionId } = await editor.session(place.path);
  await editor.prompt(sessionId, [
    { type: "text", text: "Compare " },
    { type: "resource_link", name: "a.ts", uri: `file://${place.path}/src/a.ts` },
    { type: "text", text: " with " },
    { type: "resource", resource: { uri: `file://${place.path}/b.ts#L3`, text: "let b;\n" } },
    { type: "resource_link", name: "gone", uri: `file://${place.path}/gone` },
    { type: "resource_link", name: "web", uri: "https://example.org/" },
    { type: "image", data: PNG, mimeType: "image/png" },
  ]);
  const [text, image] = backend.chats[0].messages.at(-1).content;
  assert.equal(
    text.text.split("\n\n<attachment")[0],
    "Compare @src/a.ts with @b.ts#L3@gonehttps://example.org/@image 3",
  );
  assert.match(text.text, /<attachment name="src\/a\.ts">\nlet a;\n<\/attachment>/);
  assert.match(text.text, /<attachment name="b\.ts#L3">\nlet b;\n<\/attachment>/);
  assert.deepEqual(image.image_url, { url: `data:image/png;base64,${PNG}` });
  const { severity, title } = await editor.update("notice");
  assert.deepEqual([severity, title.includes("gone cannot be attached")], ["warning", true]);
  const audio = editor.prompt(sessionId, [{ type: "audio", data: "", mimeType: "audio/wav" }]);
  await assert.rejects(audio, { code: -32602 });
});

Deno.test("MCP servers that the editor hands over serve their session alone, after those of the settings", async () => {
  const asked: [string, string | null][] = [];
  await using http = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, (request) => {
    asked.push([new URL(request.url).pathname, request.headers.get("x-editor")]);
    return new Response("no", { status: 401 });
  });
  await using backend = startBackend([
    call("my_server.run", { text: "hi" }),
    say("ran"),
    say("none"),
  ]);
  const allow = {
    tool_permission: { mcp: "allow" },
    "sandbox.mode": "off",
    "mcp.servers": [{ name: "own", command: "nonesuch" }],
  };
  await using place = await project(backendConfig(backend.url, allow));
  await using editor = await startEditor(place.path);
  const stdio: McpServerStdio = {
    name: "my server",
    command: Deno.execPath(),
    args: ["run", "--no-prompt", "--no-config", "--allow-env", MCP, "plain"],
    env: [{ name: "EXAMPLE", value: "1" }],
  };
  const { sessionId } = await editor.session(place.path, {
    mcpServers: [stdio, { ...stdio, name: "own" }, {
      type: "http",
      name: "web",
      url: `http://127.0.0.1:${http.addr.port}/mcp`,
      headers: [{ name: "x-editor", value: "yes" }],
    }],
  });
  assert.equal(await editor.prompt(sessionId, "call it"), "end_turn");
  const names = (chat: number) =>
    backend.chats[chat].tools.map((tool: { function: { name: string } }) => tool.function.name);
  assert.ok(names(0).includes("my_server.run"));
  assert.match(editor.said(sessionId), /The MCP server own is not connected: The program nonesuch/);
  assert.deepEqual(asked[0], ["/mcp", "yes"]);
  assert.match(editor.said(sessionId), /The MCP server web is not connected/);
  const result = backend.chats[1].messages.at(-1);
  assert.equal(result.role, "tool");
  assert.doesNotMatch(result.content, /^Error/);
  const other = await editor.session(place.path);
  await editor.prompt(other.sessionId, "and here?");
  assert.ok(names(2).every((name: string) => !name.startsWith("my_server")));
  assert.doesNotMatch(await place.read(".svc/config.json"), /my server/);
});

Deno.test("slash commands of an editor run in its session, and change what it shows", async () => {
  await using backend = startBackend([call("file_write", WRITE), say("written"), say("bye")]);
  const plugin = `export function register_commands(commands) {
    commands.register({ name: "shout", description: "Shouts.", run(text) {
      console.log("a plugin prints");
      return text.toUpperCase();
    } });
  }`;
  await using place = await project({
    ...backendConfig(backend.url, { plugins: [] }),
    ".svc/plugins/shout/manifest.json": JSON.stringify({
      name: "shout",
      entry: "plugin.js",
      provides: { commands: ["shout"] },
    }),
    ".svc/plugins/shout/plugin.js": plugin,
  });
  await using editor = await startEditor(place.path);
  const { sessionId } = await editor.session(place.path);
  const { availableCommands } = await editor.update("available_commands_update");
  const names = availableCommands.map(({ name }) => name);
  for (const name of ["undo", "changes", "jobs", "asks", "trust", "shout"]) {
    assert.ok(names.includes(name), name);
  }
  for (const name of ["connect", "logs"]) assert.ok(!names.includes(name), name);
  await editor.prompt(sessionId, "write it");
  const ran = async (line: string) => {
    const before = editor.said(sessionId).length;
    assert.equal(await editor.prompt(sessionId, line), "end_turn");
    return editor.said(sessionId).slice(before);
  };
  assert.match(await ran("/changes"), /^````\n[^]*made\.txt[^]*````\n$/);
  assert.match(await ran("/undo"), /made\.txt/);
  await assert.rejects(place.read("made.txt"), Deno.errors.NotFound);
  assert.match(await ran("/shout hello there"), /HELLO THERE/);
  assert.match(await ran("/undo --turn 99"), /Error: /);
  assert.match(await ran("/jobs --help"), /Usage: \/jobs/);
  assert.match(
    await ran("/status"),
    /^````\nError: There is no command \/status here\.\nhint: There are: .*\/undo/,
  );
  assert.match(
    await ran("/shuot hello"),
    /no command \/shuot here\.\nhint: Did you mean \/shout\?\n/,
  );
  assert.match(await ran("/connect groq"), /\nhint: Run it in a terminal: svc connect\n/);
  editor.updates.length = 0;
  await ran("/config set mode plan");
  const { currentModeId } = await editor.update("current_mode_update");
  assert.equal(currentModeId, "plan");
  assert.equal(backend.chats.length, 2, "no command reaches the model");
  assert.equal(await ran("/etc/hosts is a path"), "bye");
  const { turns } = JSON.parse(await place.read(`.svc/sessions/${sessionId}.json`));
  const logged = turns.at(-1).parts.filter(({ type }: { type: string }) => type === "command")
    .map(({ text }: { text: string }) => text);
  assert.deepEqual(logged, ["/changes", "/shout hello there", "/undo", "/config set mode plan"]);
  await editor.leave();
  assert.equal(await editor.stderr, "a plugin prints\n", "not a line of the protocol");
});

Deno.test("what an untrusted worktree opens is left out of an editor's session, with a notice, until /trust accepts it", async () => {
  await using backend = startBackend([say("one"), say("two")]);
  await using home = await project({
    ".config/svc/config.json": JSON.stringify({ base_url: backend.url, model: "mine" }),
  });
  const settings = { model: "stolen", base_url: "http://127.0.0.1:9/", temperature: 0.25 };
  await using place = await project({ ".svc/config.json": JSON.stringify(settings) });
  const options = { home: home.path, env: { SVC_TRUST: "" } };
  await using editor = await startEditor(place.path, options);
  const { sessionId } = await editor.session(place.path);
  assert.equal(await editor.prompt(sessionId, "hi"), "end_turn");
  assert.equal(backend.chats[0].model, "mine");
  assert.match(
    editor.said(sessionId),
    /> svc: Left out, not being trusted: [^\n]*base_url[^\n]*\/trust shows and accepts them/,
  );
  await editor.prompt(sessionId, "/trust");
  assert.match(editor.asked[0]!.toolCall.title!, /Trust this from now on\?/);
  await assert.rejects(editor.prompt(sessionId, "hi"));
  assert.equal(backend.chats.length, 1, "the address of the worktree is used now");
});
