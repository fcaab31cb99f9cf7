import assert from "node:assert/strict";
import { systemClock } from "../../../src/platform/clock.ts";
import type { SourceHost } from "../../../src/plugins/api.ts";
import { commandLine } from "../../../tests/support/program.ts";
import { noProcessesLeft } from "../../../tests/support/processes.ts";
import { controlTools } from "../src/control_tools.ts";
import { Servers } from "../src/servers.ts";
import { bad, type Entry, fromNpm, type Imported, imported, noLogins, until } from "./support.ts";

Deno.test("a slow server of the newest revision is starting, and its tools join the next prompt [4.3, 9]", async () => {
  await using at = await imported([]);
  const log = `${at.project.path}/seen`;
  const servers = slowServers(at, [bad("late", {}, log)]);
  const list = controlTools(servers).find(({ name }) => name === "mcp_list")!;
  const { signal } = new AbortController();
  assert.deepEqual(await servers.tools(signal), []);
  await until(log, "received initialize"); // the probe had no answer in time
  assert.deepEqual(at.warnings, [
    "The MCP server late is starting; its tools come with a later prompt.",
  ]);
  assert.equal(await list.handler({}, {} as never), "late  starting (stdio)");
  assert.match(JSON.stringify(await servers.state()), /"state":"starting"/);

  await at.project.write("seen.open", "");
  const [connection] = await servers.list();
  await connection!.ready();
  const names = (await servers.tools(signal)).map(({ name }) => name);
  assert.deepEqual(names, ["late.run", "late.other"]);
  assert.match(
    await list.handler({}, {} as never) as string,
    /^late {2}connected \(stdio, 2026-07-28\), 2 tools/,
  );
  assert.equal(at.warnings.length, 1);
  await servers.close();
  await noProcessesLeft(at.project.path);
});

Deno.test("an unattended run waits for a server that starts slowly as long as its timeout says [4.3]", async () => {
  await using at = await imported([]);
  const log = `${at.project.path}/seen`;
  at.workspace.config.override("unattended", true);
  const slept: number[] = [];
  const sleep = (ms: number) => {
    slept.push(ms);
    return ms === 60_000 ? new Promise<void>(() => {}) : Promise.resolve();
  };
  const servers = slowServers(at, [bad("late", { timeout: 40 }, log), bad("plain")], sleep);
  const asked = servers.tools(new AbortController().signal);
  await until(log, "received initialize");
  await at.project.write("seen.open", "");
  const names = (await asked).map(({ name }) => name);
  assert.deepEqual(names, ["late.run", "late.other", "plain.run", "plain.other"]);
  assert.deepEqual([slept, at.warnings], [[60_000], []]);
  await servers.close();
});

Deno.test("an HTTP server has the configured timeout for its answer to the probe [4.3]", async () => {
  const { promise: started, resolve: start } = Promise.withResolvers<void>();
  const { promise: probed, resolve: probe } = Promise.withResolvers<void>();
  await using server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    async (request) => {
      const { id, method } = await request.json();
      probe();
      await started;
      if (method === "server/discover") return new Response("what?", { status: 400 });
      const about = { capabilities: { tools: {} }, serverInfo: { name: "o", version: "1" } };
      const result = method === "initialize"
        ? { protocolVersion: "2025-11-25", ...about }
        : { tools: [{ name: "run", inputSchema: { type: "object" } }] };
      return Response.json({ jsonrpc: "2.0", id, result });
    },
  );
  await using at = await imported([]);
  const url = `http://127.0.0.1:${server.addr.port}/mcp`;
  const servers = slowServers(at, [{ name: "far", transport: "http", url }]);
  const { signal } = new AbortController();
  assert.deepEqual(await servers.tools(signal), []);
  await probed;
  const [connection] = await servers.list();
  assert.equal(connection!.state, "starting");
  start();
  await connection!.ready();
  assert.deepEqual([connection!.state, connection!.problem], ["connected", ""]);
  await servers.close();
});

Deno.test("server-everything, server-filesystem and svc itself are connected when they start slowly [4.3]", async () => {
  await using at = await imported([]);
  const { path } = at.project;
  const [command, ...args] = commandLine(["mcp", "--path", path]);
  const entries = [
    fromNpm("server-everything"),
    fromNpm("server-filesystem", path),
    { name: "svc", command, args, sandbox: false },
  ];
  const servers = slowServers(at, entries.map((entry) => gated(entry, `${path}/open`)));
  const { signal } = new AbortController();
  assert.deepEqual(await servers.tools(signal), []);
  assert.equal(at.warnings.filter((warning) => warning.includes(" is starting;")).length, 3);
  await at.project.write("open", "");
  const connections = await servers.list();
  await Promise.all(connections.map((connection) => connection.ready()));
  assert.deepEqual(
    connections.map(({ state, revision, problem }) => [state, revision, problem]),
    [
      ["connected", "2025-11-25", ""],
      ["connected", "2025-11-25", ""],
      ["connected", "2026-07-28", ""],
    ],
  );
  await servers.close();
  await noProcessesLeft(path);
});

/** Servers that are too slow for the probe and for the prompt. */
function slowServers(
  { workspace, project, warnings }: Imported,
  servers: Entry[],
  sleep: SourceHost["sleep"] = () => Promise.resolve(),
): Servers {
  workspace.config.override("mcp.servers", servers);
  const host: SourceHost = {
    config: workspace.config,
    user_agent: "svc/0",
    start: ({ command, env, sandbox: confined = true }) =>
      workspace.sandbox.start({ command, cwd: project.path, env }, { confined }),
    now: systemClock.now,
    sleep,
    warn: (message) => warnings.push(message),
    logins: noLogins(),
  };
  return new Servers(host, 1);
}

/** A server whose program starts when a file is there. */
function gated({ command, args, ...entry }: Entry, file: string): Entry {
  const script = 'while [ ! -e "$0" ]; do sleep 0.02; done; exec "$@"';
  return { ...entry, command: "sh", args: ["-c", script, file, command, ...args as string[]] };
}
