import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { call, say, startBackend } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { inProcess } from "../support/io.ts";
import { startSvc, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";

const SERVER = fileURLToPath(
  new URL("../../plugins/svc-core-mcp/tests/bad_server.ts", import.meta.url),
);

/** An entry of `mcp.servers`, as a user writes it. */
function entry(kind: string, file = "") {
  const args = [
    "run",
    "--no-prompt",
    "--no-config",
    "--allow-write",
    "--allow-env",
    SERVER,
    kind,
    file,
  ];
  return { name: kind, command: Deno.execPath(), args };
}

function worktree(settings: Record<string, unknown>): Promise<Project> {
  return project({ ".svc/config.json": JSON.stringify(settings) });
}

Deno.test("svc mcp list and connect check the configured servers [4.4]", async () => {
  await using place = await worktree({
    "mcp.servers": [entry("plain"), { name: "none", command: "nonesuch" }],
  });
  const at = { cwd: place.path };
  const listed = await svc(["mcp", "list"], at);
  assert.equal(listed.code, 0, listed.stderr);
  assert.equal(
    listed.stdout,
    "plain  connected  stdio, 2025-11-25  2 tools under plain\n" +
      "none   failed     stdio              The program nonesuch was not found\n",
  );
  const one = await svc(["mcp", "connect", "plain"], at);
  assert.deepEqual([one.code, one.stdout], [
    0,
    "plain  connected (stdio, 2025-11-25), 2 tools under plain.\n" +
    "  plain.run  run\n  plain.other  other\n",
  ]);
  const all = await svc(["mcp", "connect"], at);
  assert.equal(all.code, 1);
  assert.match(
    all.stdout,
    /^Error: none {2}failed \(stdio\): The program nonesuch was not found\nplain /,
  );
  const unknown = await svc(["mcp", "connect", "else"], at);
  assert.deepEqual([unknown.code, unknown.stdout], [2, ""]);
  assert.match(unknown.stderr, /There is no MCP server "else"/);
  await noProcessesLeft(place.path);
});

Deno.test("no command shows credentials of servers", async () => {
  const secret = "hunter2-hunter2";
  const headers = { authorization: `Bearer ${secret}` };
  await using place = await worktree({
    "mcp.servers": [
      { ...entry("plain"), env: { TOKEN: secret } },
      { name: "far", transport: "http", url: "http://127.0.0.1:1/mcp", headers },
      {
        name: "torn",
        transport: "http",
        url: "http://127.0.0.1:9/",
        headers: { key: `${secret}\n` },
      },
    ],
    tool_permission: { mcp: "allow" },
  });
  await using backend = startBackend([call("mcp_connect", {}), say("done")]);
  const model = ["--base-url", backend.url, "--model", "m", "-p", "go", "--verbose"];
  const commands = [
    ["mcp", "list"],
    ["mcp", "connect"],
    ["config", "get"],
    ["config", "get", "mcp.servers", "--show-origin"],
    ["config", "get", "mcp", "--local"],
    ["config", "reload"],
    ["run", "--session-id", "s", ...model],
  ];
  for (const command of commands) {
    const { stdout, stderr } = await inProcess(command, { cwd: place.path });
    assert.doesNotMatch(stdout + stderr, /hunter2/, command.join(" "));
  }
  const { stdout } = await inProcess(["config", "get", "mcp.servers"], { cwd: place.path });
  const [plain, far] = JSON.parse(stdout);
  assert.deepEqual([plain.env, far.headers], [{ TOKEN: "(hidden)" }, {
    authorization: "(hidden)",
  }]);
  const log = await place.read(".svc/sessions/s.json");
  assert.match(log, /mcp_connect/);
  assert.doesNotMatch(log + JSON.stringify(backend.chats), /hunter2/);
});

Deno.test("a run calls the tools of a server when mcp is allowed, and stops the server", async () => {
  await using place = await worktree({
    "mcp.servers": [entry("plain")],
    tool_permission: { mcp: "allow" },
  });
  await using backend = startBackend([call("plain.run", { text: "hi" }), say("done")]);
  const args = ["run", "--base-url", backend.url, "--model", "m", "-p", "go"];
  const ran = await inProcess(args, { cwd: place.path });
  assert.equal(ran.code, 0, ran.stderr);
  assert.equal(JSON.parse(ran.stdout).tool_calls[0].name, "plain.run");
  const [, request] = backend.chats;
  assert.equal(request!.messages.at(-1)!.content, "said hi");
  await noProcessesLeft(place.path);
});

Deno.test("servers of a repository are named and not started until they are trusted", async () => {
  await using place = await worktree({
    "mcp.servers": [
      { ...entry("plain"), env: { LD_PRELOAD: "/tmp/s3cret" } },
      { name: "far", transport: "http", url: "https://mcp.example/" },
    ],
  });
  const options = { cwd: place.path, env: { SVC_TRUST: "" } };
  const { stderr } = await inProcess(["run", "--provider", "demo", "-p", "hello"], options);
  assert.match(stderr, /2 openings are left out.*mcp:plain, mcp:far/);
  const listed = await inProcess(["mcp", "list"], options);
  assert.deepEqual([listed.code, listed.stdout], [0, ""]);
  assert.match(
    listed.stderr,
    /^Left out, not being trusted: mcp:plain, mcp:far\. Accept with: svc trust$/m,
  );
  const { stdout } = await inProcess(["trust"], options);
  assert.match(stdout, /starts the program "LD_PRELOAD=\.\.\. \S*deno run /);
  assert.match(stdout, /takes tools from "https:\/\/mcp\.example\/" by MCP/);
  assert.doesNotMatch(stderr + stdout, /s3cret/);
});

Deno.test("kill -9 of svc also ends its servers, even one that ignores the end of its input", async () => {
  await using place = await project();
  await using backend = startBackend([call("stays.run", {}), say("done"), { hang: true }]);
  const log = `${place.path}/seen`;
  await place.write(
    ".svc/config.json",
    JSON.stringify({
      "mcp.servers": [entry("stays", log)],
      tool_permission: { mcp: "allow" },
      base_url: backend.url,
      model: "m",
    }),
  );
  const session = startSvc([], { cwd: place.path, stdin: "" });
  const writer = session.stdin.getWriter();
  await writer.write(new TextEncoder().encode("go\ngo on\n"));
  await backend.arrived(3);
  assert.match(await Deno.readTextFile(log), /tools\/call/);
  session.kill("SIGKILL");
  await session.status;
  await Promise.all([session.stdout.cancel(), session.stderr.cancel()]);
  await noProcessesLeft(place.path);
});

Deno.test("/mcp controls the connections of a terminal session [4.7, 4.8]", async () => {
  await using place = await worktree({
    "mcp.servers": [entry("plain")],
  });
  const stdin = "/mcp\n/mcp connect plain\n/mcp\n/mcp disconnect plain\n/mcp list\n";
  const { stdout, stderr } = await svc([], { cwd: place.path, stdin });
  const lines = stdout.split("\n").filter((line) => line.startsWith("plain"));
  assert.deepEqual(lines, [
    "plain  disconnected  stdio",
    "plain  connected (stdio, 2025-11-25), 2 tools under plain.",
    "plain  connected  stdio, 2025-11-25  2 tools under plain",
    "plain is disconnected",
    "plain  disconnected  stdio",
  ], stderr);
  await noProcessesLeft(place.path);
});
