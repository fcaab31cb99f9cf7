import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { agent, results } from "../../../tests/support/agent.ts";
import { call, say } from "../../../tests/support/backend.ts";
import { needs } from "../../../tests/support/needs.ts";
import { noProcessesLeft } from "../../../tests/support/processes.ts";
import { project } from "../../../tests/support/project.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import type { SourceHost, ToolDefinition, ToolRegistrar } from "../../../src/plugins/api.ts";
import { register_tools } from "../src/plugin.ts";

const PLUGINS = ["svc-core-fs", "svc-core-edit", "svc-core-lsp"];
const FAKE = fileURLToPath(new URL("fake_server.ts", import.meta.url));
const A = "./a.ts";
const files = {
  "tsconfig.json": '{ "compilerOptions": { "strict": true } }',
  "a.ts": "export function total(a: number, b: number): number {\n  return a + b;\n}\n",
  "b.ts": `import { total } from "${A}";\n\nexport const sum = total(1, "2");\n// total\n`,
};

/** Makes one call a round, and returns the results. */
async function run(
  command: string[],
  asked: [tool: string, args: Record<string, unknown>][],
  more: Record<string, unknown> = {},
): Promise<string[]> {
  const replies = asked.map(([tool, args]) => call(tool, args));
  await using it = await agent([...replies, say("done")], {
    files,
    config: {
      plugins: PLUGINS,
      "lsp.servers": [{ name: "the server", command, extensions: ["ts"] }],
      tool_permission: { edit: "allow" },
      ...more,
    },
  });
  const { events, result } = await it.turn("go");
  assert.equal(result.status, "ok");
  await it.workspace.close();
  await noProcessesLeft(it.project.path);
  return results(events);
}

const VERSIONS = ["typescript-language-server@5.3.0", "typescript@5.9.3"];

/** Installs the server; false where npm is missing or cannot reach its registry. */
async function installed(folder: string): Promise<boolean> {
  const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=0", "--prefix"];
  try {
    const { success } = await new Deno.Command("npm", {
      args: ["install", ...flags, folder, ...VERSIONS],
      stdin: "null",
      stdout: "null",
      stderr: "null",
    }).output();
    return success;
  } catch {
    return false;
  }
}

Deno.test("a language server of npm: its diagnostics after an edit, and the references of a symbol", async (t) => {
  await using npm = await project();
  if (!await installed(npm.path)) {
    needs("npm cannot install a language server", false);
    return;
  }
  await t.step("as a model calls them", async () => {
    const bin = `${npm.path}/node_modules/typescript-language-server/lib/cli.mjs`;
    const [first, , second, used] = await run(["node", bin, "--stdio"], [
      ["diagnostics", { path: "b.ts" }],
      ["file_edit", { path: "b.ts", old: '"2"', new: "2" }],
      ["diagnostics", { path: "b.ts" }],
      ["references", { path: "a.ts", line: 1, symbol: "total" }],
    ]);
    assert.match(first!, /^b\.ts:3:29: error: Argument of type 'string'.*2345/m);
    assert.doesNotMatch(second!, /error: Argument/);
    assert.deepEqual(used!.split("\n"), [
      "a.ts:1:17: export function total(a: number, b: number): number {",
      `b.ts:1:10: import { total } from "${A}";`,
      "b.ts:3:20: export const sum = total(1, 2);",
    ]);
  });
});

const fake = (kind: string) => [Deno.execPath(), "run", "--no-config", "--quiet", FAKE, kind];

Deno.test("a language server that fails has a result that says so, and is started anew", async () => {
  const look: [string, Record<string, unknown>] = ["diagnostics", { path: "b.ts" }];
  const uses: [string, Record<string, unknown>] = [
    "references",
    { path: "b.ts", line: 3, symbol: "sum" },
  ];
  for (
    const [kind, asked, expected] of [
      ["crash", [look, look], /^Error: the language server the server does not run: out of luck/],
      ["garbage", [look], /^Error: .*does not run: it does not speak the protocol/],
      ["refuses", [uses], /^Error: the server: not now/],
      ["bytes", [look], /^b\.ts:1:1: error: bad .*red!{3000}$/],
      ["asks", [look], /^b\.ts:1:1: error: bad/],
      ["far", [uses], /^\/etc\/passwd:1:1\n\/etc\/passwd:1:1$/],
      ["many", [look], /\n\.\.\. and more$/],
    ] as const
  ) {
    for (const result of await run(fake(kind), [...asked])) assert.match(result, expected, kind);
  }
});

Deno.test("a language server is sent no file that the call may not read, and ends when it fails", async () => {
  await using outside = await project({ "secret.ts": "the secret" });
  const settings = {
    plugins: [...PLUGINS, "svc-core-exec"],
    tool_permission: { bash: "allow", edit: "allow" },
  };
  const server = (kind: string) => ({
    "lsp.servers": [{ name: "the server", command: fake(kind), extensions: ["ts"] }],
  });
  await using it = await agent([
    call("diagnostics", { path: "a.ts" }),
    call("run_command", { command: `ln -sf ${outside.path}/secret.ts a.ts` }),
    call("diagnostics", { path: "b.ts" }),
    say("done"),
  ], { files, config: { ...settings, ...server("echo") } });
  const [, , shown] = results((await it.turn("go")).events);
  assert.match(shown!, /export const sum/);
  assert.doesNotMatch(shown!, /the secret/);

  await using other = await agent([call("diagnostics", { path: "a.ts" }), say("done")], {
    files,
    config: { ...settings, ...server("garbage") },
  });
  await other.turn("go");
  await noProcessesLeft(other.project.path);
});

Deno.test("calls at the same time share one language server", async () => {
  await using place = await project(files);
  let started = 0;
  const server = () => {
    started++;
    const output = new TransformStream<Uint8Array, Uint8Array>();
    const writer = output.writable.getWriter();
    const answer = (message: Uint8Array) => {
      const id = /"id":(\d+)/.exec(new TextDecoder().decode(message))?.[1];
      const reply = `{"id":${id},"result":{"capabilities":{"diagnosticProvider":true},"items":[]}}`;
      const text = `Content-Length: ${reply.length}\r\n\r\n${reply}`;
      if (id !== undefined) void writer.write(new TextEncoder().encode(text));
    };
    return {
      input: new WritableStream({ write: answer }),
      output: output.readable,
      errors: new Response("").body,
    };
  };
  const host = {
    config: { get: () => [{ name: "s", command: ["s"], extensions: ["ts"] }] },
    now: () => 0,
    sleep: () => new Promise(() => {}),
    start: server,
  } as unknown as SourceHost;
  const tools = new Map<string, ToolDefinition>();
  register_tools({
    register: (each: ToolDefinition) => void tools.set(each.name, each),
    source: (make: (host: SourceHost) => unknown) => make(host),
  } as unknown as ToolRegistrar);
  const context = toolContext({ worktree: place.path });
  const look = async (path: string) => await tools.get("diagnostics")!.handler({ path }, context);
  const found = await Promise.all(["a.ts", "b.ts", "a.ts", "b.ts"].map(look));
  assert.deepEqual(found, Array(4).fill("no diagnostics"));
  assert.equal(started, 1);
});

Deno.test("a call that no server can answer is an error, and starts none", async () => {
  const [other, missing, outside, symbol] = await run(["no-such-program"], [
    ["diagnostics", { path: "tsconfig.json" }],
    ["diagnostics", { path: "b.ts" }],
    ["diagnostics", { path: "/etc/hosts.ts" }],
    ["references", { path: "a.ts", line: 2, symbol: "total" }],
  ]);
  assert.match(other!, /^Error: no language server is configured for tsconfig\.json/);
  assert.match(missing!, /^Error: .*no-such-program/);
  assert.match(outside!, /^Error: permission denied/);
  assert.match(symbol!, /^Error: /);
});

Deno.test("the tools are offered where the plugin is enabled and a server is configured, unless dev is denied", async () => {
  const servers = [{ name: "s", command: ["s"], extensions: ["ts"] }];
  for (
    const [config, offered] of [
      [{ "lsp.servers": servers }, false],
      [{ plugins: PLUGINS }, false],
      [{ plugins: PLUGINS, "lsp.servers": servers }, true],
      [{ plugins: PLUGINS, "lsp.servers": servers, tool_permission: { dev: "deny" } }, false],
    ] as const
  ) {
    await using it = await agent([say("done")], { config });
    await it.turn("go");
    const names = it.backend.chats[0].tools.map((each: { function: { name: string } }) =>
      each.function.name
    );
    assert.equal(names.includes("diagnostics"), offered, JSON.stringify(config));
  }
});
