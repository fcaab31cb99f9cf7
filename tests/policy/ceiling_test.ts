import fc from "fast-check";
import assert from "node:assert/strict";
import type { Action } from "../../src/plugins/api.ts";
import { authorize, Grants } from "../../src/policy/gate.ts";
import type { Operator } from "../../src/policy/operator.ts";
import { actionOf, Policy } from "../../src/policy/policy.ts";
import {
  type Authority,
  authorityUnder,
  type CategoryActions,
  clamped,
  narrowByMode,
  type RolePermissions,
} from "../../src/policy/roles.ts";
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
  /** The mode of a stage; empty for other agents and a stage without one. */
  mode: string;
  children: Node[];
}

const action = fc.constantFrom(...ACTIONS);
const categoryActions = fc.dictionary(fc.constantFrom(...CATEGORIES), action) as fc.Arbitrary<
  CategoryActions
>;
/** Trees of at most `levels` levels: unbounded trees can exhaust the memory. */
function trees(levels: number): fc.Arbitrary<Node> {
  return fc.record({
    role: fc.record({
      tool_permission: categoryActions,
      grant_permission: fc.option(categoryActions, { nil: undefined }),
    }),
    mode: fc.constantFrom("", "", "plan", ...Object.keys(MODES)),
    children: levels === 1
      ? fc.constant([])
      : fc.array(trees(levels - 1), { maxLength: 3, size: "xsmall" }),
  });
}

const tree = trees(5);
const given: fc.Arbitrary<PolicySettings> = fc.record({
  actions: categoryActions,
  bash_allow: fc.constantFrom<string[]>([], ["ls"]),
  allow: fc.constantFrom<string[]>([], ["t"], ["other"]),
  deny: fc.constantFrom<string[]>([], ["t"], ["alias"]),
}).map((some) => ({ mode: "build", read_only: false, warnings: [], ...some }));
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

/** Approves everything with `always`. */
const willing: Operator = {
  confirm: () => Promise.resolve({ granted: true, scope: "always", by: "operator" }),
  ask: () => Promise.resolve(undefined),
};

/** Every agent of a tree with its authority and its ancestors, the root first. */
function* walk(
  ceiling: PolicySettings,
  { role, mode, children }: Node,
  ancestors: Ancestor[] = [],
): Generator<Ancestor & { ancestors: Ancestor[] }> {
  const authority = authorityUnder(narrowByMode(ceiling, config({ modes: MODES }), mode), role);
  const self = { role, mode, authority };
  yield { ...self, ancestors };
  for (const child of children) yield* walk(authority.ceiling, child, [...ancestors, self]);
}

function withoutModes({ role, children }: Node): Node {
  return { role, mode: "", children: children.map(withoutModes) };
}

interface Ancestor {
  role: RolePermissions;
  mode: string;
  authority: Authority;
}

/** The settings of a mode when everything else is allowed. */
function modeAlone(mode: string): PolicySettings {
  const all = Object.fromEntries(CATEGORIES.map((category) => [category, "allow" as const]));
  return narrowByMode(settings({ actions: all }), config({ modes: MODES }), mode);
}

Deno.test("property: with every approval given, no agent or stage runs a call that a ceiling of its ancestors denies, or a denied tool", async () => {
  using place = site();
  let ran = 0;
  let staged = 0;
  let deepest = 0;
  await fc.assert(
    fc.asyncProperty(given, tree, tools, calls, async (root, top, one, args) => {
      const decide = (by: PolicySettings) =>
        new Policy(by, place.guard, config()).resolve(one, args);
      for (const { mode, authority, ancestors } of walk(root, top)) {
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
        deepest = Math.max(deepest, ancestors.length);
        const modes = [mode, ...ancestors.map((each) => each.mode)].filter((each) => each !== "");
        if (granted && modes.length > 0) staged++;
        const ceilings = [
          root,
          ...ancestors.map((each) => each.authority.ceiling),
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
  assert.ok(ran > 30, "the property is tested on enough calls");
  assert.ok(staged > 20, "and on enough stages");
});

Deno.test("property: an agent has the strictest of the settings, its role and the ceilings of its ancestors", () => {
  fc.assert(
    fc.property(given.filter(({ bash_allow }) => bash_allow.length === 0), tree, (root, top) => {
      for (const { role, authority, ancestors } of walk(root, withoutModes(top))) {
        for (const category of CATEGORIES) {
          const handed = ancestors.map(({ role: { tool_permission, grant_permission } }) =>
            grant_permission?.[category] ?? tool_permission[category]
          );
          const least = lowest(actionOf(root, category), role.tool_permission[category], ...handed);
          const own = actionOf(authority.own, category);
          // An action of bash also narrows dev, where dev has none.
          if (category === "dev") assert.ok(RANK.indexOf(own) <= RANK.indexOf(least));
          else assert.equal(own, least);
        }
      }
    }),
    { numRuns: 1000 },
  );
});

Deno.test("grant_permission sets the ceiling of sub-agents, and other categories follow the role", () => {
  const leader = {
    tool_permission: { bash: "deny", web: "deny" },
    grant_permission: { bash: "allow" },
  };
  const root = settings({ actions: { bash: "allow", web: "allow" } });
  const { own, ceiling } = authorityUnder(root, leader as RolePermissions);
  assert.equal(actionOf(own, "bash"), "deny");
  assert.equal(actionOf(ceiling, "bash"), "allow");
  assert.equal(actionOf(ceiling, "web"), "deny");
  const narrower = authorityUnder(root, { tool_permission: {}, grant_permission: { bash: "ask" } });
  assert.equal(actionOf(narrower.own, "bash"), "allow");
  assert.equal(actionOf(narrower.ceiling, "bash"), "ask");
});

Deno.test("clamped lists only the categories in which a role gets less than it requests", () => {
  const requested: RolePermissions = {
    tool_permission: { edit: "allow", bash: "allow", vcs: "deny", odd: "ask" },
  };
  const { own } = authorityUnder(settings({ actions: { odd: "deny" } }), requested);
  assert.deepEqual(clamped(own, requested), ["bash (ask)", "odd (deny)"]);
});
