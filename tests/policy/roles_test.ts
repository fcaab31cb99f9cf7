import assert from "node:assert/strict";
import fc from "fast-check";
import type { Action } from "../../src/plugins/api.ts";
import { type CategoryActions, narrow } from "../../src/policy/roles.ts";
import { actionOf, Policy } from "../../src/policy/policy.ts";
import type { PolicySettings } from "../../src/policy/settings.ts";
import { ACTIONS, config, settings, site, tool } from "./support.ts";

const CATEGORIES = ["read", "edit", "bash", "vcs", "odd"];
const RANK: Action[] = ["deny", "ask", "allow"];

const action = fc.constantFrom(...ACTIONS);
const carves = fc.dictionary(fc.constantFrom(...CATEGORIES), action) as fc.Arbitrary<
  CategoryActions
>;
const anySettings: fc.Arbitrary<PolicySettings> = fc.record({
  actions: carves,
  bash_allow: fc.constantFrom<string[]>([], ["ls"], ["git status", "ls"]),
  allow: fc.constantFrom<string[]>([], ["t"], ["other"]),
  deny: fc.constantFrom<string[]>([], ["t"]),
}).map((given) => ({ mode: "build", warnings: [], ...given }));
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

Deno.test("no call is decided more freely under a carve than without it", () => {
  using place = site();
  fc.assert(
    fc.property(anySettings, carves, tools, args, (given, carve, one, call) => {
      const decide = (by: PolicySettings) =>
        RANK.indexOf(new Policy(by, place.guard, config()).resolve(one, call).action);
      const narrowed = narrow(given, carve);
      assert.ok(decide(narrowed) <= decide(given));
      if (carve[one.permission] === "deny") assert.equal(decide(narrowed), 0);
      const twice = narrow(narrow(given, carve), carve);
      assert.deepEqual(twice, narrowed, "a carve says nothing new the second time");
    }),
    { numRuns: 2000 },
  );
});

Deno.test("a carve closes and never opens", () => {
  const cases: [set: Action, carve: Action, expected: Action][] = [
    ["allow", "deny", "deny"],
    ["allow", "ask", "ask"],
    ["ask", "allow", "ask"],
    ["deny", "allow", "deny"],
    ["ask", "deny", "deny"],
  ];
  for (const [set, carve, expected] of cases) {
    const narrowed = narrow(settings({ actions: { vcs: set } }), { vcs: carve });
    assert.equal(actionOf(narrowed, "vcs"), expected, `${set} under ${carve}`);
  }
  assert.equal(actionOf(narrow(settings(), { unheard: "allow" }), "unheard"), "ask");
});

Deno.test("what a bash list bars stays barred when the carve asks", () => {
  using place = site();
  const given = settings({ actions: { bash: "allow" }, bash_allow: ["ls"] });
  const policy = new Policy(narrow(given, { bash: "ask" }), place.guard, config());
  const run = tool({ name: "run_command", permission: "bash", path_arg: [] });
  assert.equal(policy.resolve(run, { command: "rm x" }).action, "deny");
});
