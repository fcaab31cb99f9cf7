import assert from "node:assert/strict";
import fc from "fast-check";
import type { TurnEvent } from "../../../src/engine/events.ts";
import type { Action, ChatMessage, ProviderClass, StreamEvent } from "../../../src/plugins/api.ts";
import type { ConfirmAnswer, Operator } from "../../../src/policy/operator.ts";
import { agent, collect } from "../../support/agent.ts";
import { tool } from "../../support/tool.ts";

const CATEGORIES = ["edit", "bash", "odd"] as const;
type Category = typeof CATEGORIES[number];
type CategoryActions = Partial<Record<Category, Action>>;
type Ruling = { granted: boolean; scope: ConfirmAnswer["scope"]; by: string };

/** What an agent does in one round; `delegate` is the place of a child. */
type Deed = { use: Category } | { request: Category } | { delegate: number };

interface Node {
  tool_permission: CategoryActions;
  grant_permission: CategoryActions | undefined;
  ask_policy: { permission: "auto" | "human" | "deny" } | undefined;
  deeds: Deed[];
  children: Node[];
}

const action = fc.constantFrom<Action>("allow", "ask", "deny");
const open = fc.constantFrom<Action>("allow", "allow", "allow", "ask", "deny");
const category = fc.constantFrom(...CATEGORIES);
const categoryActions = fc.dictionary(category, action) as fc.Arbitrary<CategoryActions>;
/** The calls of one reply: a grant is requested and used, maybe once too often, with a sub-agent in between. */
const deeds = fc.array(
  fc.oneof(
    { weight: 1, arbitrary: category.map((use): Deed[] => [{ use }]) },
    { weight: 1, arbitrary: fc.nat(1).map((delegate): Deed[] => [{ delegate }]) },
    {
      weight: 3,
      arbitrary: fc.tuple(category, fc.subarray([0, 1, 2])).map(([each, parts]): Deed[] => [
        { request: each },
        ...parts.map((part): Deed => part === 0 ? { delegate: 0 } : { use: each }),
      ]),
    },
  ),
  { minLength: 1, maxLength: 4 },
).map((goes) => goes.flat());
/** Trees of at most so many levels: left to chance, a tree can outgrow the memory. */
function trees(levels: number): fc.Arbitrary<Node> {
  return fc.record({
    tool_permission: categoryActions,
    grant_permission: fc.option(categoryActions, { nil: undefined }),
    ask_policy: fc.option(
      fc.record({ permission: fc.constantFrom("auto", "auto", "human", "deny") }),
      { nil: undefined },
    ) as fc.Arbitrary<Node["ask_policy"]>,
    deeds,
    children: levels === 1 ? fc.constant([]) : fc.array(trees(levels - 1), { maxLength: 2 }),
  });
}

const tree = trees(4);
const world = fc.record({
  tree,
  config: fc.record({
    tool_permission: fc.record({ edit: open, bash: open, odd: open }),
    "tools.deny": fc.oneof(
      { weight: 3, arbitrary: fc.constant<string[]>([]) },
      { weight: 1, arbitrary: category.map((each) => [`do_${each}`]) },
    ),
  }),
  rulings: fc.array(
    fc.record({
      granted: fc.boolean(),
      scope: fc.constantFrom("once", "always"),
      by: fc.constantFrom("operator", "operator", "--yes"),
    }) as fc.Arbitrary<Ruling>,
    { minLength: 1, maxLength: 6 },
  ),
});

/** The nodes of a tree, each with those above it, and under the name of its role. */
function* named(node: Node, above: Node[] = [], name = "n"): Generator<[string, Node, Node[]]> {
  yield [name, node, above];
  for (const [i, child] of node.children.entries()) {
    yield* named(child, [...above, node], `${name}${i}`);
  }
}

/** A model that does the deeds of the role in whose prompt it is told its name, one a round. */
function stub(nodes: Map<string, { node: Node }>): ProviderClass {
  let calls = 0;
  return class {
    static DEFAULT_BASE_URL = "http://stub.invalid";
    static DEFAULT_MODEL = "stub";
    static HOST_PATTERNS = [];
    static ECHO_REASONING = false;
    name = "stub";
    model = "stub";
    base_url = "";
    session_id = "";
    echo_reasoning = false;
    async *chat(messages: ChatMessage[]): AsyncGenerator<StreamEvent> {
      const name = /I am (n\d*)\./.exec(messages[0]!.content!)![1]!;
      const since = messages.findLastIndex(({ role }) => role === "user");
      const done = messages.slice(since).filter(({ role }) => role === "assistant").length;
      const { node } = nodes.get(name)!;
      const deed = node.deeds[done];
      if (deed === undefined) yield { type: "token", content: "done" };
      else {
        const id = `c${++calls}`;
        const [tool, args] = callOf(deed, name, id);
        yield {
          type: "tool_calls",
          tool_calls: [{
            id,
            type: "function",
            function: { name: tool, arguments: JSON.stringify(args) },
          }],
        };
      }
      yield { type: "done", reason: deed === undefined ? "stop" : "tool_calls", usage: {} };
    }
    chat_nonstreaming = () => Promise.resolve("");
    list_models = () => Promise.resolve([]);
    check_connection = () => Promise.resolve({ ok: true, message: "" });
  };
}

function callOf(deed: Deed, name: string, id: string): [string, Record<string, unknown>] {
  if ("use" in deed) return [`do_${deed.use}`, { id }];
  if ("delegate" in deed) return ["delegate", { role: `${name}${deed.delegate}`, task: "t" }];
  return ["ask", { question: "may I?", kind: "permission", permission: deed.request }];
}

const RANK: Action[] = ["deny", "ask", "allow"];
const least = (...actions: (Action | undefined)[]) => RANK.find((each) => actions.includes(each))!;

/** The action of a person's role under a limit: its `allow` opens `ask`, unless an ancestor asks. */
function under(limit: Action, set: Action | undefined, closed: boolean): Action {
  return set === "allow" && limit === "ask" && !closed ? "allow" : least(limit, set);
}

/**
 * Reads the stream as it comes, and holds each call that ran against what the tree allows: worked out here
 * from the role permissions alone, without code of the policy.
 */
function judge(
  { config }: { config: { tool_permission: Record<Category, Action>; "tools.deny": string[] } },
  nodes: Map<string, { node: Node; above: Node[] }>,
  confirmed: Set<string>,
) {
  const roles = new Map([[1, "n"]]);
  const grants = new Map<string, "once" | "always">(); // by run and category, for one turn of the run
  const asked = new Map<number, Category>();
  const tally = { ran: 0, byGrant: 0, refused: 0, deep: 0 };
  const see = (event: TurnEvent) => {
    if (event.type === "run_started") {
      roles.set(event.run, event.role);
      for (const each of CATEGORIES) grants.delete(`${event.run} ${each}`);
    }
    if (event.type === "tool_call" && event.name === "ask") {
      asked.set(event.run, event.arguments.permission);
    }
    if (event.type !== "tool_result") return;
    if (event.name === "ask") {
      const key = `${event.run} ${asked.get(event.run)}`;
      if (event.output.startsWith("Granted: your next")) grants.set(key, "once");
      if (event.output.startsWith("Granted: calls")) grants.set(key, "always");
    }
    const category = CATEGORIES.find((each) => event.name === `do_${each}`);
    if (category === undefined) return;
    if (event.output !== "ran") return void tally.refused++;
    tally.ran++;
    assert.ok(!config["tools.deny"].includes(event.name), "a denied tool ran");
    const { node, above } = nodes.get(roles.get(event.run)!)!;
    tally.deep = Math.max(tally.deep, above.length);
    let limit = config.tool_permission[category];
    let closed = false;
    for (const { tool_permission, grant_permission } of above) {
      const set = grant_permission?.[category] ?? tool_permission[category];
      limit = under(limit, set, closed);
      closed ||= set === "ask";
    }
    assert.notEqual(limit, "deny", "a call ran that the ceiling of an ancestor forbids");
    if (under(limit, node.tool_permission[category], closed) === "allow") return;
    if (confirmed.has(event.id)) return; // the operator approved this very call
    const key = `${event.run} ${category}`;
    assert.ok(grants.has(key), "a call ran without a grant");
    tally.byGrant++;
    if (grants.get(key) === "once") grants.delete(key);
  };
  return { see, tally };
}

/** Answers as ruled, in turn; notes which calls it let through, each by itself. */
function rulingOperator(rulings: Ruling[], confirmed: Set<string>): Operator {
  let next = 0;
  return {
    confirm({ tool, input }) {
      const ruling = rulings[next++ % rulings.length]!;
      if (tool === "ask") return Promise.resolve(ruling);
      if (ruling.granted) confirmed.add(input.id);
      return Promise.resolve({ ...ruling, scope: "once" });
    },
    ask: () => Promise.resolve(undefined),
  };
}

Deno.test("property: in a whole tree of agents no call runs that a ceiling or a list denies, and a grant for one call is used once, by the agent that asked", async () => {
  const total = { ran: 0, byGrant: 0, refused: 0, deep: 0 };
  await fc.assert(
    fc.asyncProperty(world, async ({ tree, config, rulings }) => {
      const nodes = new Map(
        [...named(tree)].map(([name, node, above]) => [name, { node, above }] as const),
      );
      const roles = Object.fromEntries(
        [...nodes].map(([name, { node: { deeds: _, children: __, ...role } }]) => [
          name,
          { ...role, system_prompt: `I am ${name}.` },
        ]),
      );
      const confirmed = new Set<string>();
      await using it = await agent([], {
        files: { ".svc/roles.json": JSON.stringify(roles) },
        config,
        role: "n",
        operator: rulingOperator(rulings, confirmed),
        headless: false,
      });
      it.workspace.providers.register("stub", stub(nodes), { bundled: false, owner: "test" });
      it.workspace.config.override("provider", "stub");
      for (const each of CATEGORIES) {
        const named = tool({
          name: `do_${each}`,
          permission: each,
          parameters: { type: "object", properties: { id: { type: "string" } } },
          handler: () => "ran",
        });
        it.workspace.tools.register(named, "test");
      }
      const { see, tally } = judge({ config }, nodes, confirmed);
      const { events } = await collect((await it.prepare()).open(it.session).turn("go"));
      for (const event of events) see(event);
      for (const key of ["ran", "byGrant", "refused"] as const) total[key] += tally[key];
      total.deep = Math.max(total.deep, tally.deep);
    }),
    { numRuns: 150 },
  );
  const { ran, byGrant, refused, deep } = total;
  assert.ok(ran > 20 && byGrant > 5 && refused > 20 && deep > 0, JSON.stringify(total));
});
