import assert from "node:assert/strict";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { serveMcpStdio } from "../../src/mcp/stdio.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { VERSION } from "../../src/platform/environment.ts";
import { agent } from "../support/agent.ts";
import { call, hang, say, startBackend } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { connected, serverParameters, textOf } from "./support.ts";

const config = (settings: Record<string, unknown>) => ({
  ".svc/config.json": JSON.stringify(settings),
});

Deno.test("an MCP client of the current generation uses the modern revision, without a handshake [1, 4.2, 4.4, 9]", async () => {
  await using place = await project({ "a.txt": "alpha\n" });
  await using client = await connected(place.path, { pin: "2026-07-28" });
  assert.equal(client.getNegotiatedProtocolVersion(), "2026-07-28");
  assert.deepEqual(client.getServerVersion(), { name: "svc", version: VERSION });
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map(({ name }) => name), [
    "file_read",
    "list_dir",
    "glob",
    "grep",
    "file_write",
    "file_edit",
    "run_command",
    "git",
    "git_commit",
    "code_test",
    "code_lint",
    "code_format",
    "web_search",
    "web_fetch",
    "run_agent",
  ]);
  const gif = "R0lGODlhAQABAAAAACwAAAAAAQABAAAC";
  await Deno.writeFile(`${place.path}/b.gif`, Uint8Array.fromBase64(gif));
  const seen = await client.callTool({ name: "file_read", arguments: { path: "b.gif" } });
  const image = { type: "image", mimeType: "image/gif", data: gif };
  assert.deepEqual((seen.content as unknown[])[1], image);
  const read = await client.callTool({ name: "file_read", arguments: { path: "a.txt" } });
  assert.equal(textOf(read), "# a.txt - 1 lines, 6 chars\n1|alpha");
});

Deno.test("an MCP client of the earlier generation is answered after its handshake [4.2, 6.3]", async () => {
  await using place = await project({ "a.txt": "alpha\n" });
  const client = new OldClient({ name: "old", version: "1" });
  await client.connect(new OldTransport(serverParameters(place.path)));
  try {
    const { tools } = await client.listTools();
    assert.equal(tools.length, 15);
    const shell = await client.callTool({ name: "run_command", arguments: { command: "echo hi" } });
    assert.deepEqual([textOf(shell), shell.isError], ["$ echo hi\nexit 0\nhi", false]);
    await assert.rejects(client.callTool({ name: "nonesuch" }), /-32602: Unknown tool: nonesuch/);
  } finally {
    await client.close();
  }
});

Deno.test("tools that the mode or the lists deny are not offered to MCP clients, and calls of them are denied [4.2]", async () => {
  await using place = await project(config({ mode: "plan", "tools.deny": ["grep"] }));
  await using client = await connected(place.path);
  const names = (await client.listTools()).tools.map(({ name }) => name);
  assert.deepEqual(
    names.filter((name) => ["grep", "file_write", "run_command"].includes(name)),
    [],
  );
  assert.ok(names.includes("file_read"));
  const write = await client.callTool({
    name: "file_write",
    arguments: { path: "a.txt", content: "x" },
  });
  assert.equal(write.isError, true);
  assert.match(textOf(write), /^Error: permission denied: file_write \(category edit\)/);
  await assert.rejects(Deno.stat(`${place.path}/a.txt`), Deno.errors.NotFound);
});

Deno.test("an MCP client's call that the policy asks about runs, unless mcp_server.allow_ask is false [2.4, 2.13, 4.2]", async () => {
  const call = { name: "run_command", arguments: { command: "echo ran" } };
  await using open = await project();
  await using trusting = await connected(open.path);
  assert.equal(textOf(await trusting.callTool(call)), "$ echo ran\nexit 0\nran");
  await assert.rejects(Deno.stat(`${open.path}/.svc/sessions`), "it belongs to no session");
  await using shut = await project(config({ "mcp_server.allow_ask": false }));
  await using strict = await connected(shut.path);
  const refused = await strict.callTool(call);
  assert.equal(refused.isError, true);
  assert.match(textOf(refused), /permission denied: run_command .* is set to ask/);
});

Deno.test("an MCP client cannot access paths outside the worktree or change svc's settings [4.2]", async () => {
  await using outside = await project({ "secret.txt": "s3cret" });
  await using place = await project(config({}));
  await using client = await connected(place.path);
  const call = (name: string, args: Record<string, unknown>) =>
    client.callTool({ name, arguments: args });
  for (const path of [`${outside.path}/secret.txt`, "../../etc/passwd"]) {
    const read = await call("file_read", { path });
    assert.equal(read.isError, true, path);
    assert.match(textOf(read), /permission denied: .*outside/);
  }
  const own = await call("file_write", { path: ".svc/config.json", content: '{"mode": "x"}' });
  assert.equal(own.isError, true);
  assert.equal(await place.read(".svc/config.json"), "{}");
});

Deno.test("core tools and tools of other servers are not offered to MCP clients [4.2]", async () => {
  await using place = await project(config({
    tool_permission: { mcp: "allow" },
    "mcp.servers": [{ name: "other", command: "nonesuch" }],
  }));
  await using client = await connected(place.path);
  const names = (await client.listTools()).tools.map(({ name }) => name);
  for (const name of ["ask", "delegate", "team", "handoff", "catalog", "mcp_connect"]) {
    assert.ok(!names.includes(name), name);
    await assert.rejects(client.callTool({ name, arguments: {} }), { code: -32602 });
  }
});

Deno.test("run_agent has an agent do a task, in a session that goes on, within a budget [4.2]", async () => {
  await using backend = startBackend([
    call("file_read", { path: "a.txt" }),
    say("It says alpha."),
    say("Again alpha."),
    call("run_command", { command: "touch made" }),
    say("I may not."),
    call("ask", { question: "Which colour?" }),
    say("I asked."),
    ...Array.from({ length: 3 }, () => call("file_read", { path: "a.txt" })),
  ]);
  await using place = await project({
    "a.txt": "alpha\n",
    ...config({ base_url: backend.url, model: "test", memory_enabled: false }),
  });
  await using client = await connected(place.path);
  const lines: string[] = [];
  const run = async (args: Record<string, unknown>) => {
    const onprogress = ({ message }: { message?: string }) => void lines.push(message ?? "");
    const result = await client.callTool({ name: "run_agent", arguments: args }, { onprogress });
    return { text: textOf(result), isError: result.isError };
  };
  const first = await run({ prompt: "What does a.txt say?" });
  assert.match(first.text, /^It says alpha\.\n\n\[session (\S+), ok\]$/);
  const session = /session (\S+),/.exec(first.text)![1]!;
  const second = await run({ prompt: "Once more.", session });
  assert.match(second.text, /Again alpha/);
  assert.match(JSON.stringify(backend.chats[2].messages), /What does a\.txt say\?.*Once more\./);
  const log = JSON.parse(await place.read(`.svc/sessions/${session}.json`));
  assert.deepEqual(log.turns.map(({ status }: { status: string }) => status), ["ok", "ok"]);
  // The client has confirmed the agent, not the agent's calls.
  await run({ prompt: "make a file" });
  await assert.rejects(Deno.stat(`${place.path}/made`), Deno.errors.NotFound);
  const asked = await run({ prompt: "ask" });
  assert.match(asked.text, /ok; questions that wait for a person: #1\]$/);
  const { resources } = await client.listResources();
  const uri = "polyglav://ask/1";
  assert.deepEqual(resources[0], {
    uri,
    name: "ask #1",
    description: "Which colour?",
    mimeType: "application/json",
  });
  const { contents } = await client.readResource({ uri });
  assert.equal(JSON.parse((contents[0] as { text: string }).text).status, "pending");
  await assert.rejects(client.readResource({ uri: "polyglav://ask/2" }));
  const spent = await run({ prompt: "read on", budget: { tool_calls: 1 } });
  assert.equal(spent.isError, true);
  assert.match(spent.text, /^Error: the agent ended with status error: .*tool calls/);
  for (const budget of [{ cost: "little" }, { tokens: 0 }, { tool_calls: null }, { seconds: -1 }]) {
    assert.match((await run({ prompt: "go", budget })).text, /^Error: .*"budget\.[a-z_]+" must be/);
  }
  const unknown = await run({ prompt: "go", role: "nonesuch" });
  assert.match(unknown.text, /^Error: .*There is no role "nonesuch"/);
  assert.ok(lines.some((line) => line.includes("a.txt")), lines.join());
});

Deno.test("what an agent of run_agent runs in the background ends when its session is no longer used", async () => {
  const QUARTER = 15 * 60_000;
  const clock = {
    now: () => Date.now(),
    sleep: (ms: number, signal?: AbortSignal) =>
      ms === QUARTER ? Promise.resolve() : systemClock.sleep(ms, signal),
  };
  const command = "exec sleep 600";
  await using it = await agent(
    [call("run_command", { command, background: true }), say("It runs.")],
    { config: { tool_permission: { bash: "allow" } }, clock },
  );
  const input = new TransformStream<Uint8Array, Uint8Array>();
  const output = new TransformStream<Uint8Array, Uint8Array>();
  const { workspace } = it;
  const { signal } = new AbortController();
  const served = serveMcpStdio({
    ...{ workspace, signal },
    input: input.readable,
    output: output.writable,
  });
  const writer = input.writable.getWriter();
  const send = (message: object) =>
    writer.write(new TextEncoder().encode(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`));
  const clientInfo = { name: "test", version: "1" };
  const params = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  void send({ id: 1, method: "initialize", params });
  void send({ method: "notifications/initialized" });
  const asked = { name: "run_agent", arguments: { prompt: "go", session: "own" } };
  void send({ id: 2, method: "tools/call", params: asked });
  let text = "";
  for await (const piece of output.readable.pipeThrough(new TextDecoderStream())) {
    text += piece;
    if (text.includes('"id":2')) break;
  }
  assert.match(text, /It runs/);
  await noProcessesLeft(it.project.path);
  await writer.close().catch(() => {});
  await served;
});

Deno.test("a cancelled run_agent cancels its turn, and a denied category delegate hides it [4.2]", async () => {
  await using backend = startBackend([hang("I think")]);
  await using place = await project(
    config({ base_url: backend.url, model: "test", memory_enabled: false }),
  );
  await using client = await connected(place.path);
  const stop = new AbortController();
  const running = client.callTool(
    { name: "run_agent", arguments: { prompt: "go", session: "long" } },
    { signal: stop.signal },
  );
  await backend.arrived(1);
  stop.abort();
  await assert.rejects(running);
  await backend.requests[0]!.gone;
  await using shut = await project(config({ tool_permission: { delegate: "deny" } }));
  await using strict = await connected(shut.path);
  const names = (await strict.listTools()).tools.map(({ name }) => name);
  assert.ok(!names.includes("run_agent"));
});

Deno.test("sessions are the resources polyglav://session/<name>, and reading one does not change it [4.2]", async () => {
  await using place = await project();
  const ran = await svc(["run", "--provider", "demo", "--session-id", "two words", "-p", "hello"], {
    cwd: place.path,
  });
  assert.equal(ran.code, 0, ran.stderr);
  const file = `${place.path}/.svc/sessions/two words.json`;
  const before = await Deno.readTextFile(file);
  await using client = await connected(place.path);
  const { resources } = await client.listResources();
  const uri = "polyglav://session/two%20words";
  assert.deepEqual(resources, [{ uri, name: "two words", mimeType: "application/json" }]);
  const { contents: [content] } = await client.readResource({ uri });
  assert.equal(content!.mimeType, "application/json");
  assert.deepEqual(JSON.parse((content as { text: string }).text), JSON.parse(before));
  assert.equal(await Deno.readTextFile(file), before);
  const { resourceTemplates: [template] } = await client.listResourceTemplates();
  assert.equal(template!.uriTemplate, "polyglav://session/{name}");
  for (
    const wrong of ["polyglav://session/none", "polyglav://session/..%2f..%2fetc", "file:///a"]
  ) {
    await assert.rejects(client.readResource({ uri: wrong }), /not found/i, wrong);
  }
});

Deno.test("a long command sends progress, and ends with its children when it is cancelled", async () => {
  await using place = await project();
  await using client = await connected(place.path);
  const seen = Promise.withResolvers<{ progress: number; message?: string }>();
  const cancelled = new AbortController();
  const call = client.callTool(
    { name: "run_command", arguments: { command: "sleep 600 & sleep 601" } },
    { onprogress: (progress) => seen.resolve(progress), signal: cancelled.signal },
  );
  call.catch(() => {});
  const { progress, message } = await seen.promise;
  assert.deepEqual([progress, message], [0, "$ sleep 600 & sleep 601"]);
  cancelled.abort();
  await assert.rejects(call);
  while (await sleeping(place.path) > 0);
});

Deno.test("when the client disconnects, the server and its commands end", async () => {
  await using place = await project();
  const server = startSvc(["mcp"], { cwd: place.path, stdin: "" });
  const writer = server.stdin.getWriter();
  const send = (message: unknown) =>
    writer.write(new TextEncoder().encode(JSON.stringify(message) + "\n"));
  await send(request(1, "initialize", HELLO));
  await send(request(2, "tools/call", {
    name: "run_command",
    arguments: { command: "sleep 600" },
    _meta: { progressToken: 1 },
  }));
  const lines = reader(server.stdout);
  assert.equal((await lines()).id, 1);
  assert.equal((await lines()).method, "notifications/progress");
  await writer.close();
  assert.equal((await server.status).code, 0);
  await server.stderr.cancel();
  await noProcessesLeft(place.path);
});

Deno.test("the standard output of svc mcp holds JSON-RPC lines only, without warnings [4.2]", async () => {
  await using place = await project({ ".svc/config.json": '{"nonsense": 1}' });
  const lines = [
    request(1, "initialize", HELLO),
    "no json at all",
    request(2, "tools/list", {}),
    request(3, "nonesuch/method", {}),
  ].map((each) => typeof each === "string" ? each : JSON.stringify(each));
  const server = startSvc(["mcp"], { cwd: place.path, stdin: "" });
  const writer = server.stdin.getWriter();
  await writer.write(new TextEncoder().encode(lines.join("\n") + "\n"));
  const read = reader(server.stdout);
  const answers = [await read(), await read(), await read()];
  await writer.close();
  assert.deepEqual(answers.map(({ jsonrpc, id }) => [jsonrpc, id]).sort(), [
    ["2.0", 1],
    ["2.0", 2],
    ["2.0", 3],
  ]);
  assert.equal(answers.find(({ id }) => id === 3)!.error.code, -32601);
  assert.match(await new Response(server.stderr).text(), /warning: .*nonsense/);
  await server.status;
});

Deno.test("a modern MCP request without its _meta fields is answered with -32602 [4.2, 7.5]", async () => {
  await using place = await project();
  const server = startSvc(["mcp"], { cwd: place.path, stdin: "" });
  const writer = server.stdin.getWriter();
  const send = (message: unknown) =>
    writer.write(new TextEncoder().encode(JSON.stringify(message) + "\n"));
  const read = reader(server.stdout);
  const full = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": { name: "t", version: "1" },
    "io.modelcontextprotocol/clientCapabilities": {},
  };
  await send(request(1, "server/discover", { _meta: full }));
  assert.deepEqual((await read()).result.supportedVersions, ["2026-07-28"]);
  await send(request(2, "tools/list", { _meta: full }));
  assert.equal((await read()).result.tools.length, 15);
  await send(request(3, "tools/list", {}));
  assert.equal((await read()).error.code, -32602);
  const { "io.modelcontextprotocol/clientCapabilities": _, ...partial } = full;
  await send(request(4, "tools/list", { _meta: partial }));
  assert.equal((await read()).error.code, -32602);
  await writer.close();
  await server.stderr.cancel();
  await server.status;
});

Deno.test("initialize is answered in every revision of docs/mcp.md, and in the newest for others [4.2, 9]", async () => {
  const docs = await Deno.readTextFile(new URL("../../docs/mcp.md", import.meta.url));
  const named = docs.slice(0, docs.indexOf("\n## ")).match(/20\d\d-\d\d-\d\d/g)!;
  const [, ...revisions] = new Set(named);
  assert.equal(revisions.length, 5);
  for (const asked of [...revisions, "1999-01-01"]) {
    await using place = await project();
    const server = startSvc(["mcp"], { cwd: place.path, stdin: "" });
    const writer = server.stdin.getWriter();
    const hello = request(1, "initialize", { ...HELLO, protocolVersion: asked });
    await writer.write(new TextEncoder().encode(JSON.stringify(hello) + "\n"));
    const { result } = await reader(server.stdout)();
    assert.equal(result.protocolVersion, revisions.includes(asked) ? asked : "2025-11-25");
    await writer.close();
    await server.stderr.cancel();
    await server.status;
  }
});

const HELLO = {
  protocolVersion: "2025-11-25",
  capabilities: {},
  clientInfo: { name: "t", version: "1" },
};

function request(id: number, method: string, params: unknown) {
  return { jsonrpc: "2.0", id, method, params };
}

/** Reads one line after the other, each of which has to be JSON. */
// deno-lint-ignore no-explicit-any
function reader(stream: ReadableStream<Uint8Array>): () => Promise<any> {
  const source = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return async () => {
    while (!text.includes("\n")) {
      const { value, done } = await source.read();
      if (done) throw new Error(`the output ended: ${text}`);
      text += value;
    }
    const [line = "", ...rest] = text.split("\n");
    text = rest.join("\n");
    return JSON.parse(line);
  };
}

/** The number of `sleep` processes in a folder. */
async function sleeping(folder: string): Promise<number> {
  const script = 'for p in /proc/[0-9]*; do [ "$(readlink $p/cwd)" = "$1" ] && ' +
    'tr "\\0" " " < $p/cmdline; done 2>/dev/null | grep -c "sleep 60"';
  const { stdout } = await new Deno.Command("bash", {
    args: ["-c", script, "sh", folder],
    cwd: "/",
  })
    .output();
  return Number(new TextDecoder().decode(stdout));
}
