import fc from "fast-check";
import assert from "node:assert/strict";
import type { Action } from "../../src/plugins/api.ts";
import { authorize } from "../../src/policy/gate.ts";
import { Grants } from "../../src/policy/grants.ts";
import type { Operator } from "../../src/policy/operator.ts";
import { actionOf, Policy } from "../../src/policy/policy.ts";
import {
  type Authority,
  authorityUnder,
  type CategoryActions,
  type Ceiling,
  childAuthority,
  clamped,
  narrowByMode,
  openActions,
  openingObjection,
  type RoleOrigin,
  type RolePermissions,
  rootCeiling,
} from "../../src/policy/roles.ts";
import type { PolicySettings } from "../../src/policy/settings.ts";
import { ACTIONS, config, settings, site, tool, under } from "./support.ts";

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
const configured = fc.dictionary(fc.constantFrom(...CATEGORIES), action) as fc.Arbitrary<
  Record<string, Action>
>;
const categoryActions: fc.Arbitrary<CategoryActions> = configured;
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
  actions: configured,
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
  ceiling: Ceiling,
  { role, mode, children }: Node,
  ancestors: Ancestor[] = [],
): Generator<Ancestor & { ancestors: Ancestor[] }> {
  const authority = childAuthority(config({ modes: MODES }), ceiling, role, mode);
  const self = { role, mode, authority };
  yield { ...self, ancestors };
  for (const child of children) yield* walk(authority, child, [...ancestors, self]);
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

Deno.test("property: with every approval given, no agent or stage runs a call that a ceiling of its ancestors denies, or a denied tool [5.3]", async () => {
  using place = site();
  let ran = 0;
  let staged = 0;
  let deepest = 0;
  await fc.assert(
    fc.asyncProperty(given, tree, tools, calls, async (root, top, one, args) => {
      const decide = (by: PolicySettings) =>
        new Policy(by, place.guard, config()).resolve(one, args);
      for (const { mode, authority, ancestors } of walk(under(root), top)) {
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

Deno.test("property: an agent has the strictest of the settings, its role and the ceilings of its ancestors [5.3]", () => {
  fc.assert(
    fc.property(given.filter(({ bash_allow }) => bash_allow.length === 0), tree, (root, top) => {
      for (const { role, authority, ancestors } of walk(under(root), withoutModes(top))) {
        for (const category of CATEGORIES) {
          const handed = ancestors.map(({ role: { tool_permission, grant_permission } }) =>
            grant_permission?.[category] ?? tool_permission[category]
          );
          const least = lowest(
            actionOf(root, category),
            role.tool_permission[category] as Action,
            ...handed as Action[],
          );
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

Deno.test("grant_permission sets the ceiling of sub-agents, and other categories follow the role [2.12, 5.3]", () => {
  const leader = {
    tool_permission: { bash: "deny", web: "deny" },
    grant_permission: { bash: "allow" },
  };
  const root = settings({ actions: { bash: "allow", web: "allow" } });
  const { own, ceiling } = authorityUnder(under(root), leader as RolePermissions);
  assert.equal(actionOf(own, "bash"), "deny");
  assert.equal(actionOf(ceiling, "bash"), "allow");
  assert.equal(actionOf(ceiling, "web"), "deny");
  const narrower = authorityUnder(under(root), {
    tool_permission: {},
    grant_permission: { bash: "ask" },
  });
  assert.equal(actionOf(narrower.own, "bash"), "allow");
  assert.equal(actionOf(narrower.ceiling, "bash"), "ask");
});

Deno.test("clamped lists only the categories in which a role gets less than it requests", () => {
  const requested: RolePermissions = {
    tool_permission: { edit: "allow", bash: "allow", vcs: "deny", odd: "ask" },
  };
  const { own } = authorityUnder(under(settings({ actions: { odd: "deny" } })), requested);
  assert.deepEqual(clamped(own, requested), [["bash", "ask"], ["odd", "deny"]]);
});

/** The authors of the roles of a tree, by a random number for each agent. */
const ORIGINS: RoleOrigin[] = ["bundled", "plugin", "global", "local", "saved"];

/** The tree with the `open` of each role's author. */
function resolved({ role, mode, children }: Node, seed: number, sandboxed: boolean): Node {
  const origin = ORIGINS[seed % ORIGINS.length]!;
  const origins = Object.fromEntries(CATEGORIES.map((category) => [category, origin]));
  const open = (actions: CategoryActions) => openActions(actions, origins, sandboxed);
  return {
    role: {
      tool_permission: open(role.tool_permission),
      grant_permission: role.grant_permission && open(role.grant_permission),
      accepted: origin !== "saved",
    },
    mode,
    children: children.map((child, at) => resolved(child, seed * 7 + at + 1, sandboxed)),
  };
}

/** Whether a role opens a category, itself or by what `dev` follows. */
function opens(actions: CategoryActions = {}, category: string): boolean {
  return actions[category] === "open" || (category === "dev" && actions.bash === "open");
}

const seeds = fc.nat(1000);

Deno.test("property: an agent is above the configuration only where a person's role, or the sandbox, has opened the category", () => {
  let openings = 0;
  fc.assert(
    fc.property(given, tree, seeds, fc.boolean(), (root, top, seed, sandboxed) => {
      for (
        const { role, authority, ancestors } of walk(under(root), resolved(top, seed, sandboxed))
      ) {
        for (const category of CATEGORIES) {
          const own = RANK.indexOf(actionOf(authority.own, category));
          const set = RANK.indexOf(actionOf(root, category));
          if (set === 0) assert.equal(own, 0, "a denial of the configuration is final");
          // A mode's list of commands allows no others, where the settings ask for them.
          const listed = category === "bash" && authority.own.bash_allow.length > 0;
          if (own <= set || listed) continue;
          openings++;
          assert.notEqual(role.accepted, false, "a saved role has no more than the configuration");
          assert.ok(
            opens(role.tool_permission, category) ||
              ancestors.some((each) =>
                opens({ ...each.role.tool_permission, ...each.role.grant_permission }, category)
              ),
          );
          assert.ok(
            category !== "bash" || root.bash_allow.length === 0,
            "the list of commands keeps its meaning",
          );
        }
      }
    }),
    { numRuns: 2000 },
  );
  assert.ok(openings > 100);
});

Deno.test("property: the sandbox and the acceptance of roles never take a permission away", () => {
  fc.assert(
    fc.property(given, tree, seeds, (root, top, seed) => {
      const [closed, open] = [false, true].map((
        sandboxed,
      ) => [...walk(under(root), resolved(top, seed, sandboxed))]);
      for (const [at, { authority }] of closed!.entries()) {
        for (const category of CATEGORIES) {
          for (const part of ["own", "limit", "ceiling", "unopened"] as const) {
            const actions = [authority, open![at]!.authority].map((each) =>
              RANK.indexOf(actionOf(each[part], category))
            );
            assert.ok(actions[0]! <= actions[1]!, `${part} of ${category}`);
          }
        }
      }
    }),
    { numRuns: 2000 },
  );
});

Deno.test("property: no agent has more in a category that an ancestor, a mode or plan mode sets to ask or deny", () => {
  const modes = config({ modes: MODES });
  fc.assert(
    fc.property(given, tree, seeds, fc.boolean(), (root, top, seed, plan) => {
      const mode = plan ? "plan" : "shut";
      const start = rootCeiling(
        { get: (key) => key === "tool_permission" ? root.actions : modes.get(key) },
        mode,
      );
      for (const { role, authority, ancestors } of walk(start, resolved(top, seed, true))) {
        for (const category of CATEGORIES) {
          const own = RANK.indexOf(actionOf(authority.own, category));
          for (const each of ancestors.map((ancestor) => ancestor.role)) {
            const set = { ...each.tool_permission, ...each.grant_permission }[category];
            const list = category === "bash" && authority.own.bash_allow.length > 0;
            if (set === "ask" && !list) assert.ok(own <= 1, `${category} under ask`);
            if (set === "deny") assert.equal(own, 0);
          }
          // An allowed list of commands stays one: with `ask`, further ones could be approved.
          const listed = category === "bash" && authority.own.bash_allow.length > 0;
          if (role.tool_permission[category] === "ask" && !listed) assert.ok(own <= 1);
          if (plan) assert.ok(own <= RANK.indexOf(actionOf(start.ceiling, category)));
        }
        if (!plan) assert.notEqual(actionOf(authority.own, "odd"), "allow");
      }
    }),
    { numRuns: 1000 },
  );
});

Deno.test("the author of a role decides whether its allow opens what is set to ask", () => {
  const cases: [RoleOrigin, string, sandboxed: boolean, opens: boolean][] = [
    ["bundled", "bash", true, true],
    ["bundled", "bash", false, false],
    ["plugin", "dev", true, true],
    ["plugin", "vcs", false, false],
    ["bundled", "mcp", true, false],
    ["plugin", "odd", true, false],
    ["global", "bash", false, true],
    ["local", "mcp", false, true],
    ["saved", "bash", true, false],
    ["saved", "edit", true, false],
  ];
  for (const [origin, category, sandboxed, expected] of cases) {
    const objection = openingObjection(category, origin, sandboxed);
    assert.equal(objection === "", expected, `${origin} ${category} ${sandboxed}`);
  }
});

Deno.test("a role under a root without one opens ask, and nothing that is denied, listed or closed", () => {
  const programmer = { tool_permission: { bash: "open", vcs: "open" } } as const;
  const own = (given: Parameters<typeof settings>[0], ...above: RolePermissions[]) => {
    let authority: Ceiling = under(settings(given));
    for (const role of above) authority = childAuthority(config(), authority, role);
    const { own } = childAuthority(config(), authority, programmer);
    return ["bash", "dev", "vcs"].map((category) => actionOf(own, category)).join(" ");
  };
  assert.equal(own({}), "allow allow allow");
  assert.equal(own({ actions: { bash: "deny", vcs: "deny" } }), "deny deny deny");
  assert.equal(own({ bash_allow: ["ls"] }), "ask ask allow");
  assert.equal(own({ actions: { dev: "ask" } }), "allow ask allow");
  assert.equal(own({}, { tool_permission: { bash: "ask" } }), "ask ask allow");
  assert.equal(
    own({}, { tool_permission: {}, grant_permission: { bash: "ask" } }),
    "ask ask allow",
  );
  assert.equal(own({}, { tool_permission: { bash: "deny" } }), "deny deny allow");
  const leader: RolePermissions = {
    tool_permission: { bash: "deny" },
    grant_permission: { bash: "open" },
  };
  assert.equal(own({}, leader), "allow allow allow");
  assert.equal(own({}, { tool_permission: {} }), "allow allow allow");
});

Deno.test("a role that sets delegate to ask closes team for its sub-agents, and so does a mode [4.8, 5.3]", () => {
  const opener: RolePermissions = { tool_permission: { team: "open" } };
  const base = config({ tool_permission: { delegate: "ask" }, modes: {} });
  const root = rootCeiling(base, "build");
  assert.equal(actionOf(childAuthority(base, root, opener).own, "team"), "allow");
  const asking = childAuthority(base, root, { tool_permission: { delegate: "ask" } });
  assert.equal(actionOf(childAuthority(base, asking, opener).own, "team"), "ask");
  const modes = { modes: { careful: { tool_permission: { delegate: "ask" } } } };
  const staged = config({ tool_permission: { delegate: "ask" }, ...modes });
  const { own } = childAuthority(staged, rootCeiling(staged, "build"), opener, "careful");
  assert.equal(actionOf(own, "team"), "ask");
});

Deno.test("a saved role has what the configuration allows, under a ceiling that a role has opened too", () => {
  const leader: RolePermissions = { tool_permission: {}, grant_permission: { bash: "open" } };
  const lead = authorityUnder(under(settings()), leader);
  assert.equal(actionOf(childAuthority(config(), lead).own, "bash"), "allow");
  const saved = { tool_permission: { bash: "allow" }, accepted: false } as const;
  const { own, limit, ceiling } = childAuthority(config(), lead, saved);
  assert.deepEqual([own, limit, ceiling].map((each) => actionOf(each, "bash")), [
    "ask",
    "ask",
    "ask",
  ]);
});
