import assert from "node:assert/strict";
import type { ToolDefinition } from "../../src/plugins/api.ts";
import { report, unusable } from "../../src/policy/deno_permissions.ts";
import type { PolicySettings } from "../../src/policy/settings.ts";
import { settings, tool } from "./support.ts";

const no = { yes: false };
const bash = tool({ name: "run_command", permission: "bash" });

Deno.test("each category is reported with its action, its Deno permission and the state of that", () => {
  const given = settings({ actions: { edit: "deny", ask: "allow" } });
  const rows = report(given, [bash, tool({ permission: "mcp" }), tool({ permission: "deploy" })]);
  const state = (name: Deno.PermissionName) => Deno.permissions.querySync({ name }).state;
  const row = (category: string, action: string, name?: Deno.PermissionName) => ({
    category,
    action,
    permission: name ?? "",
    state: name === undefined ? "" : state(name),
  });
  assert.deepEqual(rows, [
    row("read", "allow", "read"),
    row("list", "allow", "read"),
    row("edit", "deny", "write"),
    row("bash", "ask", "run"),
    row("ask", "allow"),
    row("mcp", "ask", "net"),
    row("mcp", "ask", "run"),
    row("deploy", "ask"),
    row("(svc)", "allow", "read"),
    row("(svc)", "allow", "write"),
    row("(svc)", "allow", "net"),
  ]);
});

Deno.test("run is given up exactly when no call of the run could use it", () => {
  const allow = { actions: { bash: "allow" as const } };
  const cases: [string, boolean, Partial<PolicySettings>, ToolDefinition[], boolean][] = [
    ["no tools", false, {}, [], false],
    ["tools that run nothing", false, {}, [tool(), tool({ permission: "read" })], false],
    ["ask without --yes", false, {}, [bash], false],
    ["ask with --yes", true, {}, [bash], true],
    ["allow", true, allow, [bash], false],
    ["a denied category, even with --yes", false, { actions: { bash: "deny" } }, [bash], true],
    ["a tool that tools.deny names", false, { ...allow, deny: ["run_command"] }, [bash], true],
    ["a tool that tools.allow leaves out", false, { ...allow, allow: ["grep"] }, [bash], true],
    ["bash_allow", true, { bash_allow: ["ls"] }, [bash], false],
    [
      "bash_allow of a denied category",
      false,
      { actions: { bash: "deny" }, bash_allow: ["ls"] },
      [bash],
      false,
    ],
    ["a resolver", true, {}, [tool({ permission: "vcs", permission_fn: () => "allow" })], false],
    [
      "a resolver of a denied category",
      false,
      { actions: { vcs: "deny" } },
      [tool({ permission: "vcs", permission_fn: () => "allow" })],
      false,
    ],
    ["a tool that never asks", true, {}, [tool({ permission: "vcs", confirm: false })], false],
    ["vcs", true, { actions: { vcs: "allow" } }, [tool({ permission: "vcs" })], false],
    ["dev", true, { actions: { dev: "allow" } }, [tool({ permission: "dev" })], false],
    ["an MCP server may be a program", true, { actions: { mcp: "allow" } }, [
      tool({ permission: "mcp" }),
    ], false],
    ["a category nobody knows", true, { actions: { deploy: "allow" } }, [
      tool({ permission: "deploy" }),
    ], false],
    ["a category nobody knows, asked for", false, {}, [tool({ permission: "deploy" })], false],
  ];
  for (const [what, kept, given, tools, yes] of cases) {
    const given_up = unusable(settings(given), tools, { yes });
    assert.equal(!given_up.includes("run"), kept, what);
  }
});

Deno.test("before external plugins are imported, what the settings refuse to every tool is given up", () => {
  const refused = { bash: "deny", vcs: "ask", dev: "deny", mcp: "ask" } as const;
  const cases: [string, boolean, Partial<PolicySettings>, boolean?][] = [
    ["no category that runs programs is open", false, { actions: refused }],
    ["bash_allow of a denied category", false, { actions: refused, bash_allow: ["ls"] }],
    ["bash_allow", true, { actions: { ...refused, bash: "ask" }, bash_allow: ["ls"] }],
    ["a category that no loaded tool has", true, { actions: { ...refused, mcp: "allow" } }],
    ["a category nobody knows", true, { actions: { ...refused, deploy: "allow" } }],
    ["a category nobody knows, asked for", false, { actions: { ...refused, deploy: "ask" } }],
    ["every ask is approved", true, { actions: refused }, true],
  ];
  for (const [what, kept, given, yes = false] of cases) {
    const names = unusable(settings(given), [tool()], { yes, external: true });
    assert.equal(!names.includes("run"), kept, what);
  }
  const bundled = tool({ permission: "vcs", permission_fn: () => "allow" });
  const names = unusable(settings({ actions: refused }), [bundled], { yes: false, external: true });
  assert.ok(!names.includes("run"), "a bundled tool may allow its call");
});

Deno.test("what svc needs itself is never given up", () => {
  for (const name of unusable(settings({ deny: ["file_write"] }), [tool()], no)) {
    assert.ok(!["read", "write", "net", "env", "import"].includes(name), name);
  }
});

Deno.test("a process that gave up what it cannot use does not get it back", () => {
  const module = new URL("../../src/policy/deno_permissions.ts", import.meta.url).href;
  const code = `
    import { unusableUnder } from ${JSON.stringify(module)};
    const settings = { mode: "plan", actions: {}, bash_allow: [], allow: [], deny: [], warnings: [] };
    const state = () => ["run", "sys", "read"].map((name) =>
      Deno.permissions.querySync({ name }).state);
    const before = state();
    for (const name of unusableUnder({ own: settings, ceiling: settings }, [], { yes: false })) {
      Deno.permissions.revokeSync({ name });
    }
    let ran = true;
    try {
      new Deno.Command("true").outputSync();
    } catch (error) {
      ran = !(error instanceof Deno.errors.NotCapable);
    }
    console.log(JSON.stringify({ before, after: state(), ran }));`;
  const script = Deno.makeTempFileSync({ suffix: ".mjs" });
  try {
    Deno.writeTextFileSync(script, code);
    const { code: exit, stdout, stderr } = new Deno.Command(Deno.execPath(), {
      args: ["run", "--no-prompt", "--allow-run", "--allow-sys", "--allow-read", script],
    }).outputSync();
    assert.equal(exit, 0, new TextDecoder().decode(stderr));
    assert.deepEqual(JSON.parse(new TextDecoder().decode(stdout)), {
      before: ["granted", "granted", "granted"],
      after: ["prompt", "prompt", "granted"],
      ran: false,
    });
  } finally {
    Deno.removeSync(script);
  }
});
