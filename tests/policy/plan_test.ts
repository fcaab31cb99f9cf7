import assert from "node:assert/strict";
import type { Action, ToolDefinition } from "../../src/plugins/api.ts";
import { authorize } from "../../src/policy/gate.ts";
import { Grants } from "../../src/policy/grants.ts";
import { headlessOperator } from "../../src/policy/operator.ts";
import { isOffered, Policy } from "../../src/policy/policy.ts";
import { authorityUnder, childAuthority, narrowByMode } from "../../src/policy/roles.ts";
import { policySettings } from "../../src/policy/settings.ts";
import { catalogTool } from "../../src/engine/tools/catalog.ts";
import { CORE_TOOLS } from "../../src/engine/tools/core.ts";
import { config, settings, site, tool, under } from "./support.ts";

const CATEGORIES = ["read", "list", "edit", "bash", "web", "vcs", "dev", "mcp", "catalog", "own"];
const OPEN = Object.fromEntries(CATEGORIES.map((name): [string, Action] => [name, "allow"]));
const PLAN = policySettings(
  config({
    tool_permission: { ...OPEN, bash_allow: ["touch"] },
    modes: { plan: { tool_permission: { ...OPEN, bash_allow: ["touch"] } } },
  }),
  "plan",
);

Deno.test("plan mode denies every call that may change something, whatever is set [5.3]", async () => {
  using at = site();
  const policy = new Policy(PLAN, at.guard, config());
  const decide = async (given: Partial<ToolDefinition>, args = { command: "touch x" }) => {
    const each = tool({ path_arg: undefined, ...given });
    const { granted } = await authorize({
      tool: each,
      args,
      policy,
      operator: headlessOperator(true), // --yes
      grants: new Grants(),
      guard: at.guard,
      preview: () => Promise.resolve(""),
      run: 1,
      session: "s",
      signal: new AbortController().signal,
    });
    assert.ok(!granted || policy.offers(each));
    return granted;
  };
  for (const permission of ["edit", "bash", "vcs", "dev", "mcp", "catalog", "own"]) {
    for (const confirm of [undefined, false] as const) {
      assert.equal(await decide({ permission, confirm }), false, permission);
      assert.equal(await decide({ permission, confirm, permission_fn: () => "allow" }), false);
    }
  }
  for (const permission of ["read", "list", "web"]) {
    assert.equal(await decide({ permission }), true, permission);
    assert.equal(await decide({ permission, read_only: false }), false, permission);
  }
  for (const permission of ["vcs", "mcp", "own"]) {
    assert.equal(await decide({ permission, read_only: true }), true, permission);
    const judged = {
      permission,
      read_only: ({ command }: { command?: string }) => command === "ls",
    };
    assert.equal(await decide(judged), false);
    assert.equal(await decide(judged, { command: "ls" }), true);
    const throws = (): boolean => {
      throw new Error("no");
    };
    assert.equal(await decide({ permission, read_only: throws }), false);
    assert.equal(await decide({ permission, read_only: "yes" as unknown as boolean }), false);
  }
  for (const permission of ["edit", "bash", "dev"]) {
    assert.equal(await decide({ permission, read_only: true }), false, permission);
  }
});

Deno.test("plan mode looks at the catalog and saves nothing", () => {
  using at = site();
  const policy = new Policy(PLAN, at.guard, config());
  const catalog = catalogTool as unknown as ToolDefinition;
  const action = (name: string) => policy.resolve(catalog, { action: name, name: "x" }).action;
  assert.deepEqual(["list", "show", "reload"].map(action), ["allow", "allow", "allow"]);
  assert.deepEqual(["save", "remove", "Save", ""].map(action), ["deny", "deny", "deny", "deny"]);
  for (const each of CORE_TOOLS) assert.ok(policy.offers(each as unknown as ToolDefinition));
});

Deno.test("agents under a plan root, stages in plan mode and permission grants stay within plan", () => {
  using at = site();
  const commit = tool({ permission: "vcs", path_arg: undefined });
  const role = { tool_permission: OPEN, grant_permission: OPEN };
  const root = authorityUnder(under(PLAN), role);
  const child = childAuthority(config(), root, role);
  const grandchild = childAuthority(config(), child, role);
  const open = settings({ actions: OPEN });
  const staged = childAuthority(config(), authorityUnder(under(open), role), role, "plan");
  const below = childAuthority(config(), staged, role, "build");
  for (const { own, limit, ceiling } of [root, child, grandchild, staged, below]) {
    for (const each of [own, limit, ceiling]) {
      assert.equal(each.read_only, true);
      assert.equal(isOffered(each, commit), false);
      const policy = new Policy(own, at.guard, config(), limit);
      assert.equal(policy.resolve(commit, { other: "x" }, true).action, "deny");
    }
  }
  assert.equal(narrowByMode(open, config({ modes: { own: {} } }), "own").read_only, false);
});
