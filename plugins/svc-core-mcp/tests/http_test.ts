import assert from "node:assert/strict";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { server } from "../../../tests/server/support.ts";
import { until } from "../../../tests/support/processes.ts";
import { imported } from "./support.ts";

const TOKEN = "t".repeat(32);
const COMMENT = new TextEncoder().encode(": open\n\n");

Deno.test("an MCP server over HTTP is sent the newest revision and the configured headers [2.10, 4.3, 5.1]", async () => {
  const file = await Deno.makeTempFile();
  await Deno.chmod(file, 0o600);
  await Deno.writeTextFile(file, TOKEN);
  await using served = await server(undefined, {
    mcp: true,
    files: { "a.txt": "alpha\n" },
    config: { "serve.token_file": file },
  });
  const url = `${served.http.url}/mcp`;
  const headers = { authorization: `Bearer ${TOKEN}` };
  await using at = await imported([
    { name: "far", transport: "http", url, headers },
    { name: "barred", transport: "http", url },
  ]);
  assert.ok((await at.tools()).includes("far.file_read"));
  assert.equal(
    await at.call("far.file_read", { path: "a.txt" }),
    "# a.txt - 1 lines, 6 chars\n1|alpha",
  );
  assert.match(
    await at.call("mcp_list"),
    /far {2}connected \(http, 2026-07-28\), \d+ tools under far\./,
  );
  assert.match(await at.call("mcp_list"), /barred {2}failed \(http\): .*(401|Unauthorized)/i);
  assert.doesNotMatch(await at.call("mcp_list"), new RegExp(TOKEN));
});

Deno.test("servers over HTTP that are silent, too large or invalid are errors", async () => {
  const { promise: never } = Promise.withResolvers<Response>();
  using silent = listen(() => never);
  using large = listen(() =>
    new Response(endless(), { headers: { "content-type": "application/json" } })
  );
  using garbage = listen(() => new Response("<html>welcome</html>"));
  using elsewhere = listen(() => Response.redirect("http://192.0.2.1/mcp", 307));
  const entry = (name: string, { url }: { url: string }) => ({ name, transport: "http", url });
  await using at = await imported([
    { ...entry("silent", silent), timeout: 0.5 },
    entry("large", { ...large, url: large.url }),
    entry("garbage", garbage),
    entry("elsewhere", elsewhere),
    entry("closed", { url: "http://127.0.0.1:1/mcp" }),
  ]);
  assert.deepEqual(await at.tools(), []);
  const listed = await at.call("mcp_list");
  for (const name of ["silent", "large", "garbage", "elsewhere", "closed"]) {
    assert.match(listed, new RegExp(`^${name}  failed \\(http\\): .+$`, "m"));
  }
  assert.match(listed, /^elsewhere .*redirect/im);
});

Deno.test("a session that the server has ended is started again", async () => {
  let session = "first";
  using old = listen(async (request) => {
    if (request.method !== "POST") return new Response(null, { status: 405 });
    const { id, method, params } = await request.json();
    const reply = (result: unknown, headers = {}) =>
      Response.json({ jsonrpc: "2.0", id, result }, { headers });
    if (id === undefined) return new Response(null, { status: 202 });
    if (method === "server/discover") return new Response("what?", { status: 400 });
    if (method === "initialize") {
      const { protocolVersion } = params;
      const about = {
        protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "o", version: "1" },
      };
      return reply(about, { "mcp-session-id": session });
    }
    if (request.headers.get("mcp-session-id") !== session) {
      return new Response("gone", { status: 404 });
    }
    if (method === "tools/list") {
      return reply({ tools: [{ name: "run", inputSchema: { type: "object" } }] });
    }
    return reply({ content: [{ type: "text", text: session }] });
  });
  await using at = await imported([{ name: "old", transport: "http", url: old.url }]);
  await at.tools();
  assert.equal(await at.call("old.run"), "first");
  session = "second";
  assert.match(await at.call("old.run"), /^Error: the MCP server old answered: .*gone/);
  assert.equal(await at.call("old.run"), "second");
});

Deno.test("a connection over HTTP recovers when the server is back", async () => {
  let away = false;
  await using served = await server(undefined, { mcp: true, files: { "a.txt": "x" } });
  using door = listen((request) =>
    away ? new Response("down", { status: 503 }) : fetch(new URL("/mcp", served.http.url), {
      method: request.method,
      headers: withoutHost(request.headers),
      body: request.body,
    })
  );
  await using at = await imported([{ name: "far", transport: "http", url: door.url }]);
  await at.tools();
  away = true;
  assert.match(
    await at.call("far.file_read", { path: "a.txt" }),
    /^Error: the MCP server far answered: .*down$/,
  );
  away = false;
  assert.match(await at.call("far.file_read", { path: "a.txt" }), /^# a.txt/);
});

Deno.test("a server that is left sees its event stream closed, also after a garbage collection [4.3]", async () => {
  let state = "";
  using legacy = listen(async (request) => {
    if (request.method === "GET") {
      state = "open";
      request.signal.addEventListener("abort", () => state = "closed");
      const body = new ReadableStream({ start: (stream) => stream.enqueue(COMMENT) });
      return new Response(body, { headers: { "content-type": "text/event-stream" } });
    }
    const { id, method, params } = await request.json();
    const reply = (result: unknown) => Response.json({ jsonrpc: "2.0", id, result });
    if (id === undefined) return new Response(null, { status: 202 });
    if (method === "server/discover") return new Response("what?", { status: 400 });
    if (method === "tools/list") return reply({ tools: [] });
    const { protocolVersion } = params;
    const serverInfo = { name: "o", version: "1" };
    return reply({ protocolVersion, capabilities: { tools: {} }, serverInfo });
  });
  await using at = await imported([{ name: "far", transport: "http", url: legacy.url }]);
  await at.tools();
  await until(() => state === "open");
  await collectGarbage();
  await at.call("mcp_disconnect", { name: "far" });
  await until(() => state === "closed");
});

Deno.test("credentials are hidden in all errors", async () => {
  const secret = "hunter2-hunter2";
  let step = "";
  using parrot = listen(async (request) => {
    const { id, method } = await request.clone().json().catch(() => ({}));
    const quoted = `who is ${request.headers.get("authorization")}?`;
    if (step === "refuse") return new Response(quoted, { status: 401 });
    const reply = (body: object) => Response.json({ jsonrpc: "2.0", id, ...body });
    if (method === "server/discover") return reply({ error: { code: -32601, message: quoted } });
    if (method === "initialize") {
      const serverInfo = { name: "parrot", version: "1" };
      const capabilities = { tools: {} };
      return reply({ result: { protocolVersion: "2025-11-25", capabilities, serverInfo } });
    }
    if (method === "tools/list") {
      return reply({ result: { tools: [{ name: "run", inputSchema: { type: "object" } }] } });
    }
    if (method !== "tools/call") return new Response(null, { status: 202 });
    return step === "fail"
      ? reply({ error: { code: -32000, message: quoted } })
      : reply({ result: { content: [{ type: "text", text: quoted }] } });
  });
  const headers = { authorization: `Bearer ${secret}` };
  const entry = (name: string, headers: Record<string, string>) => ({
    name,
    transport: "http",
    url: parrot.url,
    headers,
  });
  await using at = await imported([
    entry("parrot", headers),
    entry("torn", { "x-api-key": `${secret}\nmore` }),
  ]);
  await at.tools();
  const said = [await at.call("parrot.run"), await at.call("mcp_list")];
  step = "fail";
  said.push(await at.call("parrot.run"));
  step = "refuse";
  said.push(await at.call("parrot.run"), await at.call("mcp_connect"), await at.call("mcp_list"));
  assert.equal(said[0], "who is (hidden)?");
  assert.match(said[1]!, /^torn {2}failed \(http\): .*\(hidden\)/m);
  assert.equal(said[2], "Error: the MCP server parrot answered: who is (hidden)?");
  assert.match(said[3]!, /who is \(hidden\)\?/);
  assert.doesNotMatch([...said, ...at.warnings].join("\n"), /hunter2/);
});

async function collectGarbage(): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc");
  for (let times = 0; times < 3; times++) {
    await new Promise((resume) => setTimeout(resume));
    collect();
  }
}

function listen(
  answer: (request: Request) => Response | Promise<Response>,
): Disposable & { url: string } {
  const closing = new AbortController();
  const { addr } = Deno.serve(
    { port: 0, hostname: "127.0.0.1", signal: closing.signal, onListen() {} },
    answer,
  );
  return { url: `http://127.0.0.1:${addr.port}/mcp`, [Symbol.dispose]: () => closing.abort() };
}

function endless(): ReadableStream<Uint8Array> {
  return new ReadableStream({
    pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024).fill(32)),
  });
}

function withoutHost(headers: Headers): Headers {
  const copy = new Headers(headers);
  copy.delete("host");
  return copy;
}
