import assert from "node:assert/strict";
import { Workspace } from "../../../src/engine/workspace.ts";
import type { WireTool } from "../../../src/plugins/api.ts";
import { prepareCall } from "../../../src/tools/prepare.ts";
import { agent } from "../../support/agent.ts";
import { say } from "../../support/backend.ts";
import { project } from "../../support/project.ts";
import { trusting } from "../../support/trust.ts";

interface Row {
  category: string;
  required?: string[];
  others?: string[];
  aliases?: string[];
  /** Other spelling of a parameter: its name. */
  spellings?: Record<string, string>;
}

const GIT = ["status", "diff", "log", "branch", "show", "rev_parse"];
const DEV: Row = { category: "dev", others: ["target", "cwd", "timeout"] };
const AGENT = ["skills", "resume", "context"];

/** The tools of specification 4.8: category, parameters, aliases. */
const TABLE: Record<string, Row> = {
  file_read: {
    category: "read",
    required: ["path"],
    others: ["offset", "limit"],
    aliases: ["read_file", "read", "view"],
    spellings: { file: "path" },
  },
  list_dir: { category: "list", required: ["path"], others: ["depth"], aliases: ["ls"] },
  file_write: {
    category: "edit",
    required: ["path", "content"],
    others: ["mode"],
    aliases: ["write_file", "write"],
  },
  file_edit: {
    category: "edit",
    required: ["path"],
    others: ["old", "new", "count", "edits"],
    aliases: ["edit"],
    spellings: { old_text: "old", new_text: "new" },
  },
  apply_patch: {
    category: "edit",
    required: ["input"],
    aliases: ["applypatch"],
    spellings: { patch: "input" },
  },
  glob: { category: "list", required: ["pattern"], others: ["path"] },
  grep: {
    category: "read",
    required: ["pattern"],
    others: ["path", "glob"],
    aliases: ["find"],
    spellings: { query: "pattern" },
  },
  run_command: {
    category: "bash",
    required: ["command"],
    others: ["cwd", "timeout", "background"],
    aliases: ["bash", "exec"],
    spellings: { cmd: "command" },
  },
  command_output: {
    category: "bash",
    required: ["id"],
    others: ["wait_for", "port", "timeout"],
  },
  command_stop: { category: "bash", required: ["id"] },
  git: {
    category: "vcs",
    required: ["operation"],
    others: ["path", "limit", "staged", "rev", "cwd"],
    aliases: GIT.map((operation) => `git_${operation}`),
  },
  git_commit: {
    category: "vcs",
    required: ["operation"],
    others: ["message", "path", "all", "cwd"],
    aliases: ["commit"],
  },
  code_test: DEV,
  code_lint: DEV,
  code_format: DEV,
  web_search: { category: "web", required: ["query"], others: ["num"], aliases: ["search"] },
  web_fetch: { category: "web", required: ["url"], aliases: ["open", "fetch_page"] },
  ask: {
    category: "ask",
    required: ["question"],
    others: ["context", "options", "target", "kind", "permission"],
  },
  delegate: {
    category: "delegate",
    required: ["role", "task"],
    others: AGENT,
    spellings: { type: "role" },
  },
  team: {
    category: "team",
    required: ["name", "task"],
    others: AGENT,
    spellings: { team: "name" },
  },
  handoff: { category: "handoff", others: ["target", "done"] },
  plan: { category: "plan", required: ["steps"] },
  catalog: { category: "catalog", required: ["action"], others: ["kind", "name"] },
  mcp_connect: { category: "mcp", others: ["name"] },
  mcp_list: { category: "mcp", others: ["name"] },
  mcp_disconnect: { category: "mcp", required: ["name"] },
};

Deno.test("every tool has the category, parameters and aliases of the specification, and there is no other [1, 4.8]", async (t) => {
  await using place = await project();
  const workspace = Workspace.open({
    path: place.path,
    environment: { home: place.path, cwd: place.path, get: trusting },
  });
  await workspace.load({ tools: "all" });
  const { tools } = workspace;
  try {
    assert.deepEqual(tools.list().map(({ name }) => name).sort(), Object.keys(TABLE).sort());
    const offered = tools.schema(() => true).map((each) => each.function.name);
    assert.deepEqual(offered.sort(), Object.keys(TABLE).sort(), "models see no alias");
    for (const [name, row] of Object.entries(TABLE)) {
      await t.step(name, () => {
        const { required = [], others = [], aliases = [], spellings = {} } = row;
        const found = tools.find(name)!;
        assert.equal(found.permission, row.category);
        assert.deepEqual([...found.parameters.required ?? []].sort(), [...required].sort());
        const declared = Object.keys(found.parameters.properties);
        const wanted = [...required, ...others];
        assert.deepEqual(wanted.filter((each) => !declared.includes(each)), []);
        if (name !== "catalog") { // which declares the fields of each kind of entry too
          assert.deepEqual(declared.sort(), wanted.sort());
        }
        for (const alias of aliases) assert.equal(tools.find(alias)?.name, name, alias);
        for (const [other, parameter] of Object.entries(spellings)) {
          const args = Object.fromEntries(required.map((each) => [each, `its ${each}`]));
          const { [parameter]: value, ...rest } = args;
          const prepared = prepareCall(tools, () => true, {
            name,
            arguments: JSON.stringify({ ...rest, [other]: value, undeclared: 1, ...nulls(others) }),
          });
          assert.ok(prepared.ok, JSON.stringify(prepared));
          assert.deepEqual(prepared.args, args);
        }
      });
    }
    for (const operation of GIT) {
      const prepared = prepareCall(tools, () => true, {
        name: `git_${operation}`,
        arguments: "{}",
      });
      assert.deepEqual(prepared.ok && [prepared.tool.name, prepared.args], ["git", { operation }]);
    }
  } finally {
    await workspace.close();
  }
});

Deno.test("the tools of a request take 10,600 bytes, and each array says what is in it", async () => {
  const schemas = async (config: Record<string, unknown>) => {
    await using it = await agent([say("ok")], { config });
    await it.turn("go");
    return it.backend.chats[0].tools as WireTool[];
  };
  const tools = await schemas({});
  const bytes = new TextEncoder().encode(JSON.stringify(tools)).length;
  assert.ok(bytes <= 10_600, `${bytes} bytes`);
  for (const { function: { name, parameters } } of tools) {
    for (const [parameter, { type, items }] of Object.entries(parameters.properties)) {
      assert.ok(type !== "array" || typeof items === "object", `${name}.${parameter}`);
    }
  }
  const names = (list: WireTool[]) => list.map((tool) => tool.function.name);
  const servers = await schemas({ "mcp.servers": [{ name: "none", command: "none" }] });
  const more = names(servers).filter((name) => !names(tools).includes(name));
  assert.deepEqual(more, ["mcp_connect", "mcp_list", "mcp_disconnect"]);
});

function nulls(names: string[]): Record<string, null> {
  return Object.fromEntries(names.map((name) => [name, null]));
}
