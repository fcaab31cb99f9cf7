import assert from "node:assert/strict";
import fc from "fast-check";
import type { Action } from "../../src/plugins/api.ts";
import {
  type Authority,
  authorityUnder,
  type CategoryActions,
  clamped,
  type RolePermissions,
} from "../../src/policy/roles.ts";
import { authorize, Grants } from "../../src/policy/gate.ts";
import { narrowByMode } from "../../src/policy/roles.ts";
import type { Operator } from "../../src/policy/operator.ts";
import { actionOf, Policy } from "../../src/policy/policy.ts";
import type { PolicySettings } from "../../src/policy/settings.ts";
import { ACTIONS, config, settings, site, tool } from "./support.ts";

const CATEGORIES = ["read", "edit", "bash", "dev", "vcs", "odd"];
const RANK: Action[] = ["deny", "ask", "allow"];
const lowest = (...actions: (Action | undefined)[]) =>
  RANK.find((action) => actions.includes(action))!;

/** Modes that stages of teams may have. */
const MODES = {
  shut: { tool_permission: { read: "deny", odd: "ask" } },
  open: { tool_permission: { bash: "allow", vcs: "allow" } },
  lists: { tool_permission: { bash: "allow", bash_allow: ["ls -l"] } },
  asks: { tool_permission: { bash: "ask", bash_allow: ["rm"] } },
  few: { tools: { allow: ["t"] } },
  none: { tools: { allow: ["nothing"], deny: ["alias"] } },
};

interface Node {
  role: RolePermissions;
  /** What narrows a stage of a team; empty for an agent that is none, or a stage without one. */
  mode: string;
  children: Node[];
}

const action = fc.constantFrom(...ACTIONS);
const carve = fc.dictionary(fc.constantFrom(...CATEGORIES), action) as fc.Arbitrary<
  CategoryActions
>;
/** Trees of at most so many levels: left to chance, a tree can outgrow the memory. */
function trees(levels: number): fc.Arbitrary<Node> {
  return fc.record({
    role: fc.record({
      tool_permission: carve,
      grant_permission: fc.option(carve, { nil: undefined }),
    }),
    mode: fc.constantFrom("", "", "plan", ...Object.keys(MODES)),
    children: levels === 1
      ? fc.constant([])
      : fc.array(trees(levels - 1), { maxLength: 3, size: "xsmall" }),
  });
}

const tree = trees(5);
const given: fc.Arbitrary<PolicySettings> = fc.record({
  actions: carve,
  bash_allow: fc.constantFrom<string[]>([], ["ls"]),
  allow: fc.constantFrom<string[]>([], ["t"], ["other"]),
  deny: fc.constantFrom<string[]>([], ["t"], ["alias"]),
}).map((some) => ({ mode: "build", warnings: [], ...some }));
const tools = fc.record({
  permission: fc.constantFrom(...CATEGORIES),
  refined: fc.option(action, { nil: undefined }),
}).map(({ permission, refined }) =>
  tool({
    name: "t",
    aliases: ["alias"],
    permission,
    ...(refined ? { permission_fn: () => refined } : {}),
  })
);
const calls = fc.constantFrom({}, { command: "ls -l" }, { command: "rm x" }, { path: "src" });

/** Says yes to everything, for good. */
const willing: Operator = {
  confirm: () => Promise.resolve({ granted: true, scope: "always", by: "operator" }),
  ask: () => Promise.resolve(undefined),
};

/** Every agent of a tree with its authority and those of the agents above it, the root's first. */
function* walk(
  ceiling: PolicySettings,
  { role, mode, children }: Node,
  above: Above[] = [],
): Generator<Above & { above: Above[] }> {
  const authority = authorityUnder(narrowByMode(ceiling, config({ modes: MODES }), mode), role);
  const self = { role, mode, authority };
  yield { ...self, above };
  for (const child of children) yield* walk(authority.ceiling, child, [...above, self]);
}

function withoutModes({ role, children }: Node): Node {
  return { role, mode: "", children: children.map(withoutModes) };
}

interface Above {
  role: RolePermissions;
  mode: string;
  authority: Authority;
}

/** What a mode of its own says, were all else allowed. */
function modeAlone(mode: string): PolicySettings {
  const all = Object.fromEntries(CATEGORIES.map((category) => [category, "allow" as const]));
  return narrowByMode(settings({ actions: all }), config({ modes: MODES }), mode);
}

Deno.test("property: whoever approves, no agent or stage of a team runs a call that a ceiling above it forbids, or a denied tool", async () => {
  using place = site();
  let ran = 0;
  let staged = 0;
  let deepest = 0;
  await fc.assert(
    fc.asyncProperty(given, tree, tools, calls, async (root, top, one, args) => {
      const decide = (by: PolicySettings) =>
        new Policy(by, place.guard, config()).resolve(one, args);
      for (const { mode, authority, above } of walk(root, top)) {
        const { granted } = await authorize({
          tool: one,
          args,
          policy: new Policy(authority.own, place.guard, config()),
          operator: willing,
          grants: new Grants(),
          guard: place.guard,
          preview: () => Promise.resolve(""),
          run: 1,
          session: "s",
          signal: new AbortController().signal,
        });
        if (granted) ran++;
        deepest = Math.max(deepest, above.length);
        const modes = [mode, ...above.map((each) => each.mode)].filter((each) => each !== "");
        if (granted && modes.length > 0) staged++;
        const ceilings = [
          root,
          ...above.map((each) => each.authority.ceiling),
          ...modes.map(modeAlone),
        ];
        for (const ceiling of ceilings) {
          if (decide(ceiling).action === "deny") assert.equal(granted, false);
          assert.ok(
            RANK.indexOf(decide(authority.own).action) <= RANK.indexOf(decide(ceiling).action),
          );
        }
        if (root.deny.length > 0) assert.equal(granted, false);
      }
    }),
    { numRuns: 1000 },
  );
  assert.ok(deepest > 2);
  assert.ok(ran > 30, "the property is not true for want of calls");
  assert.ok(staged > 20, "nor for want of stages");
});

Deno.test("property: an agent has the least of the settings, its own carve, and what each above hands down", () => {
  fc.assert(
    fc.property(given.filter(({ bash_allow }) => bash_allow.length === 0), tree, (root, top) => {
      for (const { role, authority, above } of walk(root, withoutModes(top))) {
        for (const category of CATEGORIES) {
          const handed = above.map(({ role: { tool_permission, grant_permission } }) =>
            grant_permission?.[category] ?? tool_permission[category]
          );
          const least = lowest(actionOf(root, category), role.tool_permission[category], ...handed);
          const own = actionOf(authority.own, category);
          // What is said of bash closes dev further, where nothing is said of dev.
          if (category === "dev") assert.ok(RANK.indexOf(own) <= RANK.indexOf(least));
          else assert.equal(own, least);
        }
      }
    }),
    { numRuns: 1000 },
  );
});

Deno.test("a role hands down what it grants although it is denied it, and what it is silent on as it has it", () => {
  const leader = {
    tool_permission: { bash: "deny", web: "deny" },
    grant_permission: { bash: "allow" },
  };
  const root = settings({ actions: { bash: "allow", web: "allow" } });
  const { own, ceiling } = authorityUnder(root, leader as RolePermissions);
  assert.equal(actionOf(own, "bash"), "deny");
  assert.equal(actionOf(ceiling, "bash"), "allow");
  assert.equal(actionOf(ceiling, "web"), "deny");
  const stingy = authorityUnder(root, { tool_permission: {}, grant_permission: { bash: "ask" } });
  assert.equal(actionOf(stingy.own, "bash"), "allow");
  assert.equal(actionOf(stingy.ceiling, "bash"), "ask");
});

Deno.test("a role that wants more than it gets is told of those categories alone", () => {
  const wants: RolePermissions = {
    tool_permission: { edit: "allow", bash: "allow", vcs: "deny", odd: "ask" },
  };
  const { own } = authorityUnder(settings({ actions: { odd: "deny" } }), wants);
  assert.deepEqual(clamped(own, wants), ["bash (ask)", "odd (deny)"]);
});
