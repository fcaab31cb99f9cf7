import assert from "node:assert/strict";
import type { Operator } from "../../../src/policy/operator.ts";
import type { Turn } from "../../../src/sessions/schema.ts";
import { agent } from "../../../tests/support/agent.ts";
import { call, say } from "../../../tests/support/backend.ts";
import { project } from "../../../tests/support/project.ts";
import { bad } from "./support.ts";

const ALLOWED = { tool_permission: { mcp: "allow" } };
const granting: Operator = {
  confirm: () => Promise.resolve({ granted: true, scope: "once", by: "operator" }),
  ask: () => Promise.resolve(undefined),
};

/** The MCP tools that a request to the backend offered. */
// deno-lint-ignore no-explicit-any
function offered(body: any): string[] {
  // deno-lint-ignore no-explicit-any
  const names: string[] = body.tools.map((tool: any) => tool.function.name);
  return names.filter((name) => name.includes("."));
}

Deno.test("imported tools are offered from the first prompt, called, logged and audited [1, 2.10, 4.3]", async () => {
  await using at = await agent([call("plain.run", { text: "hi", extra: 1 }), say("done")], {
    config: { ...ALLOWED, "mcp.servers": [bad("plain"), bad("env", { name: "plain" })] },
  });
  const { result } = await at.turn("go");
  assert.equal(result.content, "done");
  assert.deepEqual(offered(at.backend.chats[0]), ["plain.run", "plain.other"]);
  const { turns, permissions } = at.session.document();
  const [part] = toolParts(turns[0]!);
  assert.deepEqual([part?.name, part?.output, part?.input], ["plain.run", "said hi", {
    text: "hi",
  }]);
  assert.deepEqual(
    permissions.map(({ tool, action, decision }) => [tool, action, decision]),
    [["plain.run", "allow", "granted"]],
  );
});

Deno.test("how far a call of an MCP server is comes in events while it runs", async () => {
  await using place = await project();
  const file = `${place.path}/log`;
  await using at = await agent([call("progresses.run", {}), say("done")], {
    config: { ...ALLOWED, "mcp.servers": [bad("progresses", {}, file)] },
  });
  const pieces: string[] = [];
  for await (const event of at.engine.turn("go")) {
    if (event.type !== "tool_output") continue;
    pieces.push(event.content);
    await place.write("log.open", "");
  }
  assert.deepEqual(pieces, ["reading 1/3\n"]);
});

Deno.test("tools of an MCP server that connects during a prompt are available to the next one [4.3]", async () => {
  await using at = await agent([
    call("mcp_disconnect", { name: "plain" }),
    say("off"),
    call("mcp_connect", { name: "plain" }),
    call("plain.run", {}),
    say("too early"),
    call("plain.run", { text: "now" }),
    say("done"),
  ], { config: { ...ALLOWED, "mcp.servers": [bad("plain")] } });
  await at.turn("disconnect");
  assert.deepEqual(
    offered(at.backend.chats[1]),
    ["plain.run", "plain.other"],
    "the prompt keeps its tools",
  );
  await at.turn("connect");
  assert.deepEqual(at.backend.chats.slice(2, 5).map(offered), [[], [], []]);
  const refused = toolParts(at.session.document().turns[1]!)[1];
  assert.match(refused!.output, /^Error: unknown tool "plain\.run"/);
  await at.turn("use it");
  assert.deepEqual(offered(at.backend.chats[5]), ["plain.run", "plain.other"]);
  assert.equal(toolParts(at.session.document().turns[2]!)[0]!.output, "said now");
});

Deno.test("no MCP server is started when no operator can approve calls [4.3]", async () => {
  await using at = await agent([say("no tools")], {
    config: { "mcp.servers": [bad("plain")] },
  });
  await at.turn("go");
  assert.deepEqual(offered(at.backend.chats[0]), []);
  assert.match(await list(at.workspace), /^plain {2}disconnected/);
});

Deno.test("calls of imported tools need approval when there is an operator [4.3]", async () => {
  await using at = await agent([call("plain.run", {}), say("done")], {
    config: { "mcp.servers": [bad("plain")] },
    operator: granting,
    headless: false,
  });
  await at.turn("go");
  const [entry] = at.session.document().permissions;
  assert.deepEqual([entry!.tool, entry!.action, entry!.decision, entry!.granted_by], [
    "plain.run",
    "ask",
    "granted",
    "operator",
  ]);
});

Deno.test("an MCP server that announces changed tools is listed again at the next prompt [4.3]", async () => {
  await using at = await agent([call("changes.run", {}), say("one"), say("two")], {
    config: { ...ALLOWED, "mcp.servers": [bad("changes")] },
  });
  await at.turn("go");
  assert.deepEqual(offered(at.backend.chats[1]), ["changes.run", "changes.other"]);
  await at.turn("go on");
  assert.deepEqual(offered(at.backend.chats[2]), ["changes.run", "changes.new"]);
});

Deno.test("the operator can call an imported tool before the first prompt", async () => {
  await using at = await agent([], { config: { ...ALLOWED, "mcp.servers": [bad("plain")] } });
  const { signal } = new AbortController();
  const typed = { name: "plain.run", arguments: '{"text": "typed"}' };
  const results = [];
  for await (const event of at.engine.call("/tool plain.run", typed, { signal })) {
    if (event.type === "tool_result") results.push(event.output);
  }
  assert.deepEqual(results, ["said typed"]);
});

Deno.test("an MCP server that is removed from the configuration is disconnected at the next prompt [4.3]", async () => {
  await using at = await agent([say("one"), say("two")], {
    config: { ...ALLOWED, "mcp.servers": [bad("plain")] },
  });
  await at.turn("go");
  at.workspace.config.override("mcp.servers", []);
  await at.turn("go on");
  assert.deepEqual(offered(at.backend.chats[1]), []);
});

function toolParts({ parts }: Turn) {
  return parts.filter((part) => part.type === "tool");
}

// deno-lint-ignore no-explicit-any
async function list(workspace: any): Promise<string> {
  return await workspace.tools.find("mcp_list").handler({}, {});
}
