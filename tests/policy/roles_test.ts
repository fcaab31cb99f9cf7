import fc from "fast-check";
import assert from "node:assert/strict";
import type { Action } from "../../src/plugins/api.ts";
import { actionOf, Policy } from "../../src/policy/policy.ts";
import { type CategoryActions, narrow, narrowByMode } from "../../src/policy/roles.ts";
import type { PolicySettings } from "../../src/policy/settings.ts";
import { ACTIONS, config, settings, site, tool } from "./support.ts";

const CATEGORIES = ["read", "edit", "bash", "vcs", "delegate", "team", "odd"];
const RANK: Action[] = ["deny", "ask", "allow"];

const action = fc.constantFrom(...ACTIONS);
const configured = fc.dictionary(fc.constantFrom(...CATEGORIES), action) as fc.Arbitrary<
  Record<string, Action>
>;
const categoryActions: fc.Arbitrary<CategoryActions> = configured;
const anySettings: fc.Arbitrary<PolicySettings> = fc.record({
  actions: configured,
  bash_allow: fc.constantFrom<string[]>([], ["ls"], ["git status", "ls"]),
  allow: fc.constantFrom<string[]>([], ["t"], ["other"]),
  deny: fc.constantFrom<string[]>([], ["t"]),
}).map((given) => ({ mode: "build", read_only: false, warnings: [], ...given }));
const tools = fc.record({
  permission: fc.constantFrom(...CATEGORIES),
  confirm: fc.constantFrom(undefined, false as const),
  refined: fc.option(action, { nil: undefined }),
}).map(({ refined, ...given }) =>
  tool({ name: "t", ...given, ...(refined ? { permission_fn: () => refined } : {}) })
);
const args = fc.constantFrom(
  {},
  { command: "ls -l" },
  { command: "rm x" },
  { command: "ls; rm x" },
  { path: "src" },
  { path: "/etc/passwd" },
);

Deno.test("property: role permissions never allow a call that the settings do not", () => {
  using place = site();
  fc.assert(
    fc.property(anySettings, categoryActions, tools, args, (given, role, one, call) => {
      const decide = (by: PolicySettings) =>
        RANK.indexOf(new Policy(by, place.guard, config()).resolve(one, call).action);
      const narrowed = narrow(given, role);
      assert.ok(decide(narrowed) <= decide(given));
      if (role[one.permission] === "deny") assert.equal(decide(narrowed), 0);
      const twice = narrow(narrow(given, role), role);
      assert.deepEqual(twice, narrowed, "a second application changes nothing");
    }),
    { numRuns: 2000 },
  );
});

Deno.test("the delegate action of a role counts for team too, unless the role sets that [4.8, 5.3]", () => {
  const team = (role: CategoryActions, actions: Record<string, Action> = { delegate: "allow" }) =>
    actionOf(narrow(settings({ actions }), role), "team");
  assert.equal(team({ delegate: "deny" }), "deny");
  assert.equal(team({ delegate: "deny" }, { delegate: "allow", team: "allow" }), "deny");
  assert.equal(team({ delegate: "deny", team: "allow" }), "allow");
  assert.equal(team({ team: "allow" }, { delegate: "deny" }), "deny");
});

Deno.test("role permissions deny and never allow more [5.3]", () => {
  const cases: [set: Action, role: Action, expected: Action][] = [
    ["allow", "deny", "deny"],
    ["allow", "ask", "ask"],
    ["ask", "allow", "ask"],
    ["deny", "allow", "deny"],
    ["ask", "deny", "deny"],
  ];
  for (const [set, role, expected] of cases) {
    const narrowed = narrow(settings({ actions: { vcs: set } }), { vcs: role });
    assert.equal(actionOf(narrowed, "vcs"), expected, `${set} under ${role}`);
  }
  assert.equal(actionOf(narrow(settings(), { unheard: "allow" }), "unheard"), "ask");
});

Deno.test("an unlisted command stays denied when the role asks for bash", () => {
  using place = site();
  const given = settings({ actions: { bash: "allow" }, bash_allow: ["ls"] });
  const policy = new Policy(narrow(given, { bash: "ask" }), place.guard, config());
  const run = tool({ name: "run_command", permission: "bash", path_arg: [] });
  assert.equal(policy.resolve(run, { command: "rm x" }).action, "deny");
});

const modes = {
  lists: { tool_permission: { bash: "allow", bash_allow: ["git status", "ls"] } },
  asks: { tool_permission: { bash: "ask", bash_allow: ["git status -s", "ls"] } },
  tools: { tools: { allow: ["grep", "bash"], deny: ["glob"] } },
};
const under = (mode: string, given: Parameters<typeof settings>[0]) =>
  narrowByMode(settings(given), config({ modes }), mode);

Deno.test("no mode changes nothing, and plan denies edit and bash [5.3]", () => {
  const given = settings({ actions: { edit: "allow", bash: "ask", web: "deny" } });
  assert.equal(narrowByMode(given, config(), ""), given);
  const plan = narrowByMode(given, config(), "plan");
  assert.deepEqual(plan.actions, { ...given.actions, edit: "deny", bash: "deny", dev: "deny" });
  assert.equal(plan.mode, "plan");
});

Deno.test("a mode opens no category and narrows the lists of tools", () => {
  const { actions } = under("lists", { actions: { bash: "deny" } });
  assert.equal(actions.bash, "deny");
  const wide = under("tools", { allow: [], deny: ["web_fetch"] });
  assert.deepEqual([wide.allow, wide.deny], [["grep", "bash"], ["web_fetch", "glob"]]);
  assert.deepEqual(under("tools", { allow: ["grep", "edit"] }).allow, ["grep"]);
  // Not the empty list, which allows all tools.
  assert.deepEqual(under("tools", { allow: ["run_command"] }).allow, [""]);
});

Deno.test("of two bash_allow lists, the commands that both allow remain", () => {
  const bash = (mode: string, action: "allow" | "ask", bash_allow: string[]) => {
    const { actions, bash_allow: kept } = under(mode, { actions: { bash: action }, bash_allow });
    return [actions.bash, ...kept];
  };
  assert.deepEqual(bash("lists", "allow", []), ["allow", "git status", "ls"]);
  assert.deepEqual(bash("lists", "allow", ["git", "make"]), ["allow", "git status"]);
  assert.deepEqual(bash("lists", "allow", ["make"]), ["deny"]);
  assert.deepEqual(bash("lists", "ask", []), ["deny"]);
  assert.deepEqual(bash("lists", "ask", ["ls -l"]), ["allow", "ls -l"]);
  assert.deepEqual(bash("asks", "ask", ["git status"]), ["ask", "git status -s"]);
  assert.deepEqual(bash("asks", "ask", ["make"]), ["ask"]);
  assert.deepEqual(bash("asks", "allow", ["make"]), ["deny"]);
  assert.deepEqual(bash("asks", "allow", ["ls"]), ["allow", "ls"]);
});
