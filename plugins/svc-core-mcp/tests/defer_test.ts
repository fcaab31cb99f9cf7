import assert from "node:assert/strict";
import { agent, results } from "../../../tests/support/agent.ts";
import { call, say } from "../../../tests/support/backend.ts";
import { found } from "../src/found_tools.ts";
import { bad } from "./support.ts";

const ALLOWED = { tool_permission: { mcp: "allow" } };

Deno.test("tools of a large MCP server are found by words and called, and the tools of requests stay the same [2.10, 4.3]", async () => {
  await using at = await agent([
    call("mcp_find", { query: "t77" }),
    call("mcp_call", { name: "many.t77", arguments: { text: "hi", other: 1 } }),
    call("many.t78", { text: "by name" }),
    call("mcp_call", { name: "many.t9999" }),
    say("done"),
  ], { config: { ...ALLOWED, "mcp.servers": [bad("many"), bad("plain")] } });
  const { events } = await at.turn("go");
  const [first, ...others] = at.backend.chats.map(({ tools }) => tools);
  for (const tools of others) assert.deepEqual(tools, first);
  // deno-lint-ignore no-explicit-any
  const offered = first.map((tool: any) => tool.function.name);
  assert.deepEqual(offered.filter((name: string) => /[.]|mcp_(find|call)/.test(name)), [
    "plain.run",
    "plain.other",
    "mcp_find",
    "mcp_call",
  ]);
  const [listed, ...called] = results(events);
  assert.match(listed!, /^many\.t77: t77\n {2}parameters: .*"text"/);
  assert.deepEqual(called.slice(0, 2), ["said hi", "said by name"]);
  assert.match(called[2]!, /^Error: there is no tool "many\.t9999"/);
  const { permissions, turns } = at.session.document();
  assert.deepEqual(permissions.map(({ tool, decision }) => [tool, decision]).slice(1, 3), [
    ["many.t77", "granted"],
    ["many.t78", "granted"],
  ]);
  const part = turns[0]!.parts.filter((part) => part.type === "tool")[1]!;
  assert.deepEqual([part.name, part.input], ["many.t77", { text: "hi" }]);
});

Deno.test("a call by mcp_call is approved as one of the tool that it names, and denied with it", async () => {
  const asked: string[] = [];
  await using at = await agent([
    call("mcp_find", { query: "t7" }),
    call("mcp_call", { name: "many.t7", arguments: { text: "hi" } }),
    call("mcp_call", { name: "many.t8" }),
    say("done"),
  ], {
    config: { "mcp.servers": [bad("many")], "tools.deny": ["many.t8"] },
    headless: false,
    operator: {
      confirm: ({ tool, input }) => {
        asked.push(`${tool} ${JSON.stringify(input)}`);
        return Promise.resolve({ granted: true, scope: "once", by: "operator" });
      },
      ask: () => Promise.resolve(undefined),
    },
  });
  const { events } = await at.turn("go");
  assert.deepEqual(asked, ['many.t7 {"text":"hi"}']);
  assert.match(results(events)[2]!, /^Error: permission denied/);
});

Deno.test("mcp.defer 0 sends the schemas of all tools [2.10]", async () => {
  await using at = await agent([say("done")], {
    config: { ...ALLOWED, "mcp.defer": 0, "mcp.servers": [bad("many")] },
  });
  await at.turn("go");
  // deno-lint-ignore no-explicit-any
  const offered = at.backend.chats[0].tools.map((tool: any) => tool.function.name);
  assert.equal(offered.filter((name: string) => name.startsWith("many.")).length, 500);
  assert.ok(!offered.includes("mcp_find"));
});

Deno.test("a search ranks names before descriptions and finds other forms of words", () => {
  const tool = (name: string, description: string) => ({
    name,
    description,
    permission: "mcp",
    parameters: { type: "object" as const, properties: {} },
    handler: () => "",
  });
  const tools = [
    tool("hub.list_users", "Lists the people. Issues are elsewhere."),
    tool("hub.createIssue", "Opens a ticket."),
    tool("hub.search_issues", "Searches tickets."),
    tool("hub.merge", "Merges a branch."),
  ];
  const names = (query: string) => found(query, tools).map(({ name }) => name.slice(4));
  assert.deepEqual(names("create an issue")[0], "createIssue");
  assert.deepEqual(names("issues"), ["createIssue", "search_issues", "list_users"]);
  assert.deepEqual(names("merging"), []);
  assert.deepEqual(names("hub.merge")[0], "merge");
  assert.equal(names("").length, 4);
});
