import assert from "node:assert/strict";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { until } from "../support/processes.ts";
import { startSvc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { server, type TestServer } from "./support.ts";

const text = (result: unknown) => (result as { content: { text: string }[] }).content[0]!.text;

const TOKEN = "t".repeat(32);

async function modern(
  { http }: Pick<TestServer, "http">,
  headers: Record<string, string> = {},
): Promise<Client> {
  const client = new Client(
    { name: "new", version: "1" },
    { versionNegotiation: { mode: { pin: "2026-07-28" } } },
  );
  await client.connect(
    new StreamableHTTPClientTransport(new URL(`${http.url}/mcp`), {
      requestInit: { headers },
      fetch: async (url, init) => {
        const response = await fetch(url, init);
        // Deno 2.9.6 closes the connection on this signal only while the response is referenced.
        init?.signal?.addEventListener("abort", () => void response.body);
        return response;
      },
    }),
  );
  return client;
}

Deno.test("POST /mcp: clients of both generations list and call tools over HTTP, side by side [4.1, 4.2]", async () => {
  await using at = await server(undefined, { mcp: true, files: { "a.txt": "alpha\n" } });
  const old = new OldClient({ name: "old", version: "1" });
  await old.connect(new OldTransport(new URL(`${at.http.url}/mcp`)));
  const young = await modern(at);
  assert.equal(young.getNegotiatedProtocolVersion(), "2026-07-28");
  const call = { name: "file_read", arguments: { path: "a.txt" } };
  const [one, other] = await Promise.all([old.callTool(call), young.callTool(call)]);
  for (const result of [one, other]) {
    assert.equal(text(result), "# a.txt - 1 lines, 6 chars\n1|alpha");
  }
  assert.equal((await old.listTools()).tools.length, (await young.listTools()).tools.length);
  await old.close();
  await young.close();
});

Deno.test("POST /mcp: sessions of the server are resources [4.2]", async () => {
  await using at = await server([{ text: "hello" }], { mcp: true });
  await at.post("/chat", { prompt: "hi", session: "mine" });
  const client = await modern(at);
  const { resources } = await client.listResources();
  assert.deepEqual(resources.map(({ uri }) => uri), ["polyglav://session/mine"]);
  const { contents } = await client.readResource({ uri: "polyglav://session/mine" });
  assert.equal(JSON.parse((contents[0] as { text: string }).text).session_name, "mine");
  await client.close();
});

Deno.test("POST /mcp: a call sends progress as an event stream, and ends when its client cancels or disconnects [4.1, 6.3]", async () => {
  await using at = await server(undefined, { mcp: true, token: TOKEN });
  const client = await modern(at, { authorization: `Bearer ${TOKEN}` });
  const started = Promise.withResolvers<void>();
  const cancel = new AbortController();
  const command = "trap 'echo > ended; exit' TERM; echo > begun; while :; do sleep 0.1; done";
  const call = client.callTool(
    { name: "run_command", arguments: { command, timeout: 600 } },
    { onprogress: () => started.resolve(), signal: cancel.signal },
  );
  call.catch(() => {});
  await started.promise;
  await until(() => exists(`${at.project.path}/begun`));
  cancel.abort();
  await assert.rejects(call);
  await until(() => exists(`${at.project.path}/ended`));
  await client.close();
});

Deno.test("stopping the server ends calls that run", async () => {
  const at = await server(undefined, { mcp: true, token: TOKEN });
  const client = await modern(at, { authorization: `Bearer ${TOKEN}` });
  const started = Promise.withResolvers<void>();
  const call = client.callTool(
    { name: "run_command", arguments: { command: "sleep 600" } },
    { onprogress: () => started.resolve() },
  );
  await started.promise;
  await at[Symbol.asyncDispose]();
  const { isError } = await call;
  assert.equal(isError, true);
  assert.match(text(await call), /^Error: cancelled/);
});

Deno.test("invalid requests to /mcp get the codes of JSON-RPC, and GET gets 405: there is no HTTP+SSE transport [4.2, 7.5, 9]", async () => {
  await using at = await server(undefined, { mcp: true, config: { "serve.max_body": 1000 } });
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const post = (body: unknown, more = {}) =>
    at.post("/mcp", body, { headers: { ...headers, ...more } });
  const garbled = await post("{nonsense");
  assert.deepEqual([garbled.status, garbled.body.error.code], [400, -32700]);
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  const bare = await post(list, { "mcp-protocol-version": "2026-07-28" });
  assert.deepEqual([bare.status, bare.body.error.code], [400, -32602]);
  const large = await post({ ...list, params: { cursor: "x".repeat(2000) } });
  assert.deepEqual([large.status, large.body], [413, {
    error: "the body is larger than 1000 bytes",
  }]);
  const got = await at.get("/mcp");
  assert.deepEqual([got.status, got.headers.get("allow")], [405, "POST"]);
});

Deno.test("POST /mcp: pages of other origins and requests without a token are rejected [5.1]", async () => {
  const file = Deno.makeTempFileSync();
  Deno.chmodSync(file, 0o600);
  Deno.writeTextFileSync(file, "a".repeat(32));
  await using at = await server(undefined, { mcp: true, config: { "serve.token_file": file } });
  const list = { jsonrpc: "2.0", id: 1, method: "tools/list", params: {} };
  const headers = {
    "content-type": "application/json",
    accept: "application/json, text/event-stream",
  };
  const status = async (more: Record<string, string>) =>
    (await at.post("/mcp", list, { headers: { ...headers, ...more } })).status;
  const authorization = `Bearer ${"a".repeat(32)}`;
  assert.equal(await status({}), 401);
  assert.equal(await status({ authorization, origin: "https://evil.example" }), 403);
  assert.equal(await status({ authorization }), 200);
});

Deno.test("POST /mcp: a request without a token gets no call that the policy asks about [4.2]", async () => {
  await using at = await server(undefined, {
    mcp: true,
    token: TOKEN,
    files: { "a.txt": "alpha\n" },
    config: { "tool_permission.bash_allow": ["echo"] },
  });
  const call = async (command: string, headers: Record<string, string> = {}) => {
    const client = await modern(at, headers);
    const result = await client.callTool({ name: "run_command", arguments: { command } });
    assert.equal(
      (await client.callTool({ name: "list_dir", arguments: { path: "." } })).isError,
      false,
    );
    await client.close();
    return result;
  };
  const refused = await call("touch made");
  assert.equal(refused.isError, true);
  assert.match(text(refused), /^Error: permission denied: run_command/);
  assert.equal(text(await call("echo hi")), "$ echo hi\nexit 0\nhi");
  const authorization = `Bearer ${TOKEN}`;
  assert.equal((await call("touch made", { authorization })).isError, false);
  assert.deepEqual((await at.get("/version")).status, 200);
  assert.deepEqual((await at.get("/version", { authorization: `Bearer ${TOKEN}x` })).status, 401);
  assert.deepEqual((await at.get("/version", { authorization: "Basic eDp5" })).status, 200);
});

Deno.test("POST /mcp: on a server without any token, no call that the policy asks about runs", async () => {
  await using at = await server(undefined, { mcp: true });
  for (const authorization of ["Bearer ", "Bearer x", "Bearer undefined"]) {
    const client = await modern(at, { authorization });
    const call = { name: "run_command", arguments: { command: "true" } };
    assert.equal((await client.callTool(call)).isError, true);
    await client.close();
  }
});

Deno.test("svc serve offers /mcp only when the plugin is loaded [4.1]", async () => {
  for (const [plugins, expected] of [[undefined, 200], [["svc-core-fs"], 404]] as const) {
    await using place = await project(
      plugins === undefined ? {} : { ".svc/config.json": JSON.stringify({ plugins }) },
    );
    const home = `${place.path}/home`;
    await Deno.mkdir(home);
    const child = startSvc(["serve", "--port", "0"], { cwd: place.path, home });
    const lines = child.stderr.pipeThrough(new TextDecoderStream()).getReader();
    let said = "";
    while (!/listening on \S+\n/.test(said)) said += (await lines.read()).value;
    const [, url] = /listening on (\S+)\n/.exec(said)!;
    const file = `${home}/.config/svc/serve.tokens`;
    const token = (await Deno.readTextFile(file).catch(() => "")).trim();
    assert.ok(said.includes(`made a token in ${file}`), said);
    assert.equal(Deno.statSync(file).mode! & 0o777, 0o600);
    const response = await fetch(`${url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({
        jsonrpc: "2.0",
        id: 1,
        method: "tools/call",
        params: { name: "run_command", arguments: { command: "echo hi" } },
      }),
    });
    assert.equal(response.status, expected);
    const body = await response.text();
    if (expected === 200) assert.match(body, /exit 0\\nhi/);
    child.kill("SIGTERM");
    await child.status;
    await lines.cancel();
    await child.stdout.cancel();
  }
});

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}

Deno.test("POST /mcp: malformed requests of a client do not fill the log", async () => {
  await using at = await server(undefined, { mcp: true });
  const headers = { accept: "application/json, text/event-stream" };
  for (let n = 0; n < 50; n++) {
    await at.post("/mcp", { jsonrpc: "1.0", id: n, method: "tools/list" }, { headers });
  }
  const warned = at.warnings.filter((warning) => warning.startsWith("A request to /mcp failed"));
  assert.equal(warned.length, 1, warned.join("\n"));
});
