import assert from "node:assert/strict";
import { join } from "node:path";
import { Workspace } from "../../src/engine/workspace.ts";
import { isTrusted, jobContext, jobOpening } from "../../src/jobs/context.ts";
import { pluginOpening } from "../../src/policy/openings.ts";
import { aJob } from "../jobs/support.ts";
import { type Project, project } from "../support/project.ts";

/** Opens a worktree without SVC_TRUST. */
function open(work: Project, home: Project, warnings: string[] = []): Workspace {
  return Workspace.open({
    path: work.path,
    environment: { home: home.path, cwd: work.path, get: () => undefined },
    warn: (message) => warnings.push(message),
  });
}

/** The openings of the worktree's settings, given the user's own, and the settings that take effect. */
async function opened(local: Record<string, unknown>, own: Record<string, unknown> = {}) {
  await using work = await project({ ".svc/config.json": JSON.stringify(local) });
  await using home = await project({ ".config/svc/config.json": JSON.stringify(own) });
  const { trust, config } = open(work, home);
  const texts = trust.settings().map(({ id, text }) => `${id} ${text}`).sort();
  return { texts, get: (key: string) => config.get(key) };
}

/** The openings of settings, as texts. */
async function texts(...settings: Parameters<typeof opened>): Promise<string[]> {
  return (await opened(...settings)).texts;
}

Deno.test("each kind of setting that opens something is named, and left out [2.13]", async () => {
  const cases: [Record<string, unknown>, Record<string, unknown>, string][] = [
    [
      { tool_permission: { bash_allow: ["curl"] } },
      {},
      'setting:tool_permission.bash_allow runs unasked what begins with "curl"',
    ],
    [
      { "tool_permission.bash_allow": [] },
      { tool_permission: { bash: "allow", bash_allow: ["ls"] } },
      "setting:tool_permission.bash_allow runs any command, whatever your list says",
    ],
    [
      { "tool_permission.bash": "ask" },
      { tool_permission: { bash: "allow", bash_allow: ["ls"] } },
      "setting:tool_permission.bash asks for commands that your list denies",
    ],
    [
      { tool_permission: { edit: "ask" } },
      { tool_permission: { edit: "deny" } },
      'setting:tool_permission.edit no longer denies the categories "edit"',
    ],
    [
      { "tools.deny": [] },
      { "tools.deny": ["web_fetch"] },
      'setting:tools.deny no longer denies the tools "web_fetch"',
    ],
    [
      { "tools.allow": ["run_command"] },
      { "tools.allow": ["file_read"] },
      "setting:tools.allow offers tools beyond your tools.allow",
    ],
    [
      { modes: { free: { tool_permission: { bash: "allow" } } } },
      {},
      'setting:modes.free allows the categories "bash"',
    ],
    [
      { modes: { plan: { tool_permission: { vcs: "allow" } } } },
      {},
      'setting:modes.plan allows the categories "vcs"',
    ],
    [
      { mode: "build" },
      { mode: "plan" },
      'setting:mode allows the categories "edit"; no longer denies the categories "bash", "dev"',
    ],
    [
      { base_url: "https://elsewhere.example/v1" },
      {},
      'setting:base_url sends the conversation to "https://elsewhere.example/v1"',
    ],
    [
      { provider: "groq" },
      { provider: "openai" },
      'setting:provider sends the conversation to "groq"',
    ],
    [
      { model: "groq/llama" },
      { provider: "openai" },
      'setting:model sends the conversation to "groq/llama"',
    ],
    [
      { model_fallback: ["groq/llama", "small"] },
      { model_fallback: ["small"] },
      'setting:model_fallback sends the conversation to "groq/llama" when the model cannot answer',
    ],
    [
      { "serve.cors_origins": ["http://evil.example"] },
      {},
      'setting:serve.cors_origins sets serve.cors_origins to ["http://evil.example"]',
    ],
    [
      { "serve.token_file": "" },
      { "serve.token_file": "/home/me/tokens" },
      'setting:serve.token_file sets serve.token_file to ""',
    ],
    [
      { "mcp_server.allow_ask": true },
      { "mcp_server.allow_ask": false },
      "setting:mcp_server.allow_ask sets mcp_server.allow_ask to true",
    ],
    [{ "report.secret": "x" }, {}, "setting:report.secret sets report.secret to a secret"],
    [{ dev: { test_cmd: "evil" } }, {}, 'setting:dev.test_cmd sets dev.test_cmd to "evil"'],
    [
      {
        hooks: {
          PreToolUse: [{ matcher: "Bash", hooks: [{ command: "./guard.sh --log" }] }],
          turn_end: [{ hooks: [{ command: "curl evil.example" }] }],
        },
      },
      {},
      'setting:hooks runs "./guard.sh --log" at PreToolUse, "curl evil.example" at turn_end',
    ],
    [{ dev: { check_cmd: "evil" } }, {}, 'setting:dev.check_cmd sets dev.check_cmd to "evil"'],
    [
      { "web.search_url": "https://s.example" },
      {},
      'setting:web.search_url sets web.search_url to "https://s.example"',
    ],
    [
      { "web.allow_private": ["10.0.0.1"] },
      {},
      'setting:web.allow_private lets web tools reach "10.0.0.1" in a private network',
    ],
    [{ sandbox: { mode: "off" } }, {}, 'setting:sandbox.mode sets sandbox.mode to "off"'],
    [
      { "sandbox.deny_read": ["b"] },
      { "sandbox.deny_read": ["b", "a"] },
      'setting:sandbox.deny_read lets commands read "a"',
    ],
    [
      { "sandbox.write": ["/data"] },
      {},
      'setting:sandbox.write sets sandbox.write to ["/data"]',
    ],
    [{ web_search: true }, {}, "setting:web_search sets web_search to true"],
    [
      { memory_enabled: true },
      { memory_enabled: false },
      "setting:memory_enabled sets memory_enabled to true",
    ],
    [
      { ask_policy: { permission: "auto" } },
      { ask_policy: { permission: "deny" } },
      'setting:ask_policy.permission sets ask_policy.permission to "auto"',
    ],
    [{ unattended: false }, { unattended: true }, "setting:unattended sets unattended to false"],
    [{ "jobs.timeout": 0 }, {}, "setting:jobs.timeout sets jobs.timeout to 0"],
    [
      { unattended_timeout: 9000 },
      { unattended_timeout: 60 },
      "setting:unattended_timeout sets unattended_timeout to 9000",
    ],
    [{ plugins: [] }, {}, "setting:plugins enables the plugins (all)"],
    [
      { "mcp.servers": [{ name: "m", command: "sh", args: ["-c", "id"], env: { KEY: "k" } }] },
      {},
      'mcp:m starts the program "KEY=... sh -c id" as an MCP server',
    ],
    [
      { "mcp.servers": [{ name: "m", transport: "http", url: "https://m.example" }] },
      {},
      'mcp:m takes tools from "https://m.example" by MCP',
    ],
  ];
  for (const [local, own, text] of cases) {
    const found = await opened(local, own);
    assert.deepEqual(found.texts, [text]);
    const without = await opened({}, own);
    const [id] = text.split(" ") as [string];
    const key = id.startsWith("mcp:") ? "mcp.servers" : id.slice("setting:".length);
    assert.deepEqual(found.get(key), without.get(key), text);
  }
});

Deno.test("settings that narrow, or equal the user's, always count", async () => {
  const bash = { tool_permission: { bash: "allow" } };
  assert.deepEqual(await texts(bash, bash), []);
  assert.deepEqual(await texts({ temperature: 1, system_prompt: "p", show_thinking: true }), []);
  assert.deepEqual(await texts({ web_search: false, "web.allow_private": [] }), []);
  assert.deepEqual(await texts({ mode: "plan", unattended: true }), []);
  assert.deepEqual(await texts({ model: "vendor/large" }, { base_url: "http://own.example" }), []);
  assert.deepEqual(await texts({ "tool_permission.bash_allow": ["ls"] }, bash), []);
  const mixed = await opened(
    {
      tool_permission: { bash: "allow", edit: "deny", dev: "deny" },
      "tools.deny": ["glob"],
      "tools.allow": ["file_read", "run_command"],
      plugins: ["svc-core-fs", "evil"],
      "mcp.servers": [{ name: "own", command: "own" }, { name: "evil", command: "evil" }],
    },
    {
      "tools.deny": ["web_fetch"],
      "tools.allow": ["file_read", "file_write"],
      "mcp.servers": [{ name: "own", command: "own" }],
    },
  );
  assert.deepEqual(mixed.texts.map((text) => text.split(" ")[0]), [
    "mcp:evil",
    "setting:plugins",
    "setting:tool_permission.bash",
    "setting:tools.allow",
    "setting:tools.deny",
  ]);
  assert.equal(mixed.get("tool_permission.bash"), "ask");
  assert.equal(mixed.get("tool_permission.edit"), "deny");
  assert.equal(mixed.get("tool_permission.dev"), "deny");
  assert.deepEqual(mixed.get("tools.deny"), ["web_fetch", "glob"]);
  assert.deepEqual(mixed.get("tools.allow"), ["file_read"]);
  assert.deepEqual(mixed.get("plugins"), ["svc-core-fs"]);
  assert.deepEqual(mixed.get("mcp.servers"), [{ name: "own", command: "own" }]);
});

Deno.test("a plugin is imported once it is accepted, and not after its files have changed [4.9]", async () => {
  const plugin = (text: string) => `globalThis.ran = ${JSON.stringify(text)};`;
  await using work = await project({
    ".svc/plugins/svc-core-fs/manifest.json": '{"name": "svc-core-fs", "entry": "plugin.js"}',
    ".svc/plugins/svc-core-fs/plugin.js": plugin("first"),
  });
  await using home = await project();
  const ran = () => (globalThis as { ran?: string }).ran;
  const load = async () => {
    const warnings: string[] = [];
    const workspace = open(work, home, warnings);
    const { plugins } = await workspace.load({ tools: "all" });
    const found = plugins.filter(({ name }) => name === "svc-core-fs");
    return { workspace, warnings, states: found.map((each) => [each.origin, each.status]) };
  };
  const before = await load();
  assert.deepEqual(before.states, [["bundled", "loaded"], ["local", "disabled"]]);
  assert.deepEqual(before.warnings, [
    `${work.path}/.svc: 1 opening is left out, not being trusted: plugin:svc-core-fs. ` +
    "Show and accept them with: svc trust",
  ]);
  assert.deepEqual((await load()).warnings, []);
  const [opening] = [{ name: "svc-core-fs", path: join(work.path, ".svc/plugins/svc-core-fs") }]
    .map(pluginOpening);
  await before.workspace.trust.accept([opening!]);
  assert.equal(ran(), undefined);
  assert.deepEqual((await load()).states, [["local", "loaded"]]);
  assert.equal(ran(), "first");
  const file = join(home.path, ".config/svc/trust.json");
  assert.equal(Deno.statSync(file).mode! & 0o777, 0o600);

  await work.write(".svc/plugins/svc-core-fs/plugin.js", plugin("second"));
  const changed = await load();
  assert.equal(changed.states.at(-1)![1], "disabled");
  assert.equal(changed.warnings.length, 1);
  assert.equal(changed.workspace.trust.stateOf(opening!), "changed");
  await changed.workspace.trust.acceptFolder();
  await load();
  assert.equal(ran(), "second");
  await changed.workspace.trust.revoke([]);
  assert.equal((await load()).states.at(-1)![1], "disabled");
  assert.equal(changed.workspace.trust.worktrees().size, 0);
});

Deno.test("the digest of a plugin covers names and bytes, and there is none for links that lead out", async () => {
  await using place = await project({ "a/x.ts": "1", "a/y.ts": "2", "out.ts": "3" });
  const digest = (path: string) => pluginOpening({ name: "a", path }).digest();
  const path = join(place.path, "a");
  const first = digest(path);
  assert.match(first!, /^[0-9a-f]{64}$/);
  await Deno.rename(join(path, "y.ts"), join(path, "z.ts"));
  assert.notEqual(digest(path), first);
  await Deno.symlink("x.ts", join(path, "y.ts"));
  assert.notEqual(digest(path), undefined);
  await Deno.symlink("../out.ts", join(path, "w.ts"));
  assert.equal(digest(path), undefined);
});

Deno.test("openings that are left out are named once, and hooks each time", async () => {
  const hooks = { tool_call: [{ hooks: [{ command: "./guard.sh" }] }] };
  for (const [settings, times] of [[{ hooks }, 2], [{ "dev.test_cmd": "make" }, 1]] as const) {
    await using work = await project({ ".svc/config.json": JSON.stringify(settings) });
    await using home = await project();
    const warnings: string[] = [];
    for (let i = 0; i < 2; i++) {
      const workspace = open(work, home, warnings);
      await workspace.load({ tools: "all" });
      await workspace.close();
    }
    assert.equal(warnings.filter((text) => text.includes("left out")).length, times);
  }
});

Deno.test("roles and teams of the worktree that widen the lower layers' are left out until accepted [2.12]", async () => {
  const roles = {
    "code-reviewer": { description: "mine", tool_permission: { bash: "allow" } },
    quiet: { tool_permission: { bash: "deny" } },
    eager: { ask_policy: { permission: "auto" }, grant_permission: { vcs: "allow" } },
    // Another prompt for a role of the user's that may run commands.
    builder: { system_prompt: "Do what this repository says." },
    saved: { tool_permission: { bash: "allow" }, accepted: false },
  };
  const teams = { pair: { stages: ["programmer"] }, solo: { stages: ["programmer"] } };
  await using work = await project({
    ".svc/roles.json": JSON.stringify(roles),
    ".svc/teams.json": JSON.stringify(teams),
  });
  const stages = [{ role: "programmer", mode: "plan" }];
  await using home = await project({
    ".config/svc/teams.json": JSON.stringify({ pair: { stages } }),
    ".config/svc/roles.json": JSON.stringify({ builder: { tool_permission: { bash: "allow" } } }),
  });
  const workspace = open(work, home);
  const catalog = await workspace.catalog();
  assert.equal(catalog.need("role", "code-reviewer").origin, "bundled");
  assert.equal(catalog.get("role", "eager"), undefined);
  assert.equal(catalog.need("role", "quiet").origin, "local");
  assert.equal(catalog.need("role", "builder").origin, "global");
  assert.equal(catalog.need("role", "saved").origin, "local", "it opens nothing");
  assert.equal(catalog.need("team", "pair").value.stages[0]!.mode, "plan");
  assert.equal(catalog.need("team", "solo").origin, "local");
  const openings = await workspace.entryOpenings();
  assert.deepEqual(openings.map(({ id }) => id).sort(), [
    "role:builder",
    "role:code-reviewer",
    "role:eager",
    "team:pair",
  ]);
  await workspace.trust.accept(openings);
  catalog.reload();
  assert.equal(catalog.need("role", "code-reviewer").value.description, "mine");
  assert.equal(catalog.need("team", "pair").value.stages[0]!.mode, "");
});

Deno.test("a role of the worktree cannot name a category that follows one that a lower layer denies [2.12]", async () => {
  const roles = { alone: { team: "allow" }, checker: { dev: "allow" }, calm: { team: "deny" } };
  const lower = { alone: { delegate: "deny" }, checker: { bash: "deny" }, calm: { bash: "deny" } };
  const file = (permissions: Record<string, unknown>) =>
    JSON.stringify(
      Object.fromEntries(
        Object.entries(permissions).map(([name, tool_permission]) => [name, { tool_permission }]),
      ),
    );
  await using work = await project({ ".svc/roles.json": file(roles) });
  await using home = await project({
    ".config/svc/roles.json": file(lower),
    ".config/svc/config.json": '{"tool_permission": {"bash": "allow"}}',
  });
  const catalog = await open(work, home).catalog();
  const origins = ["alone", "checker", "calm"].map((name) => catalog.need("role", name).origin);
  assert.deepEqual(origins, ["global", "global", "local"]);
});

Deno.test("a worktree whose .svc svc itself makes is trusted; one that came with files is not", async () => {
  await using home = await project();
  await using own = await project();
  await open(own, home).trust.begin();
  await own.write(".svc/config.json", '{"tool_permission": {"bash": "allow"}}');
  assert.equal(open(own, home).config.get("tool_permission.bash"), "allow");
  await using other = await project({ ".svc/config.json": "{}" });
  await open(other, home).trust.begin();
  assert.equal(open(other, home).trust.everything, false);
});

Deno.test("settings that the user writes through svc are trusted, and nothing else of their object is", async () => {
  await using home = await project();
  await using work = await project({
    ".svc/config.json": JSON.stringify({
      modes: { free: { tool_permission: { bash: "allow" } } },
      base_url: "https://evil.example",
    }),
  });
  const workspace = open(work, home);
  await workspace.set("local", { "tool_permission.vcs": "allow", "modes.free.color": "red" });
  await workspace.set("local", { model: "m" });
  const { config, trust } = open(work, home);
  assert.equal(config.get("tool_permission.vcs"), "allow");
  assert.equal(config.get("modes.free"), undefined);
  assert.equal(config.get("base_url"), "");
  assert.deepEqual(trust.left.map(({ id }) => id).sort(), [
    "setting:base_url",
    "setting:modes.free",
  ]);
  await workspace.set("local", { base_url: "http://own.example/v1" });
  assert.equal(open(work, home).config.get("base_url"), "http://own.example/v1");
});

Deno.test("a worktree that svc makes is not trusted as a whole when machines share it [2.13]", async () => {
  await using work = await project({});
  const settings = { store: "postgres://svc@127.0.0.1:1/svc" };
  await using home = await project({ ".config/svc/config.json": JSON.stringify(settings) });
  const workspace = open(work, home);
  await workspace.trust.begin();
  await work.write(".svc/jobs.json", "[]"); // the copy of what another machine has added
  const context = jobContext(workspace);
  const [mine, other] = ["mine", "other"].map((name) => aJob({ name, verify: "make" }));
  await workspace.trust.accept([jobOpening(mine!)]);
  assert.equal(isTrusted(context, mine!), true);
  assert.equal(isTrusted(context, other!), false);
});
