import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { server } from "../server/support.ts";
import { project } from "../support/project.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The tools that the scenarios call by name, as far as svc can imitate them. */
const TOOLS = `export function register_tools(registry) {
  const tool = (name, parameters, handler) =>
    registry.register({
      name, description: name, permission: "read", parameters: { type: "object", ...parameters }, handler,
    });
  const none = { properties: {} };
  tool("test_simple_text", none, () => "This is a simple text response for testing.");
  tool("test_error_handling", none, () => {
    throw new Error("This tool intentionally returns an error for testing");
  });
  tool("test_tool_with_progress", none, () => new Promise((done) => setTimeout(done, 4200, "done")));
  tool("json_schema_2020_12_tool", {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $defs: { address: { type: "object", properties: { street: { type: "string" } } } },
    properties: { name: { type: "string" }, address: { $ref: "#/$defs/address" } },
    additionalProperties: false,
  }, () => "ok");
}`;

/** A scenario of docs/mcp.md, with the checks that it may fail. */
interface Row {
  applies: boolean;
  /** Ids of checks that do not apply, in a scenario that applies. */
  except: string[];
}

Deno.test("the MCP conformance scenarios that docs/mcp.md lists as applicable pass [4.2]", async () => {
  const rows = table();
  await using out = await project();
  await using at = await server(undefined, {
    mcp: true,
    files: { ".svc/plugins/conformance.ts": TOOLS },
    config: { plugins: [] },
  });
  const listed = [...(await conformance("list", "--server")).matchAll(/^ {2}- ([\w-]+) \[/gm)];
  assert.deepEqual(listed.map(([, name]) => name).sort(), [...rows.keys()].sort());
  await conformance("server", "--url", `${at.http.url}/mcp`, "--suite", "all", "-o", out.path);
  const failed: string[] = [];
  const ran = new Map<string, number>();
  for (const { name: folder } of Deno.readDirSync(out.path)) {
    const scenario = /^server-(.+?)-\d{4}-\d\d-\d\dT/.exec(folder)![1]!;
    const checks: { id: string; status: string }[] = JSON.parse(
      await out.read(`${folder}/checks.json`),
    );
    const { applies, except } = rows.get(scenario)!;
    if (!applies) continue;
    ran.set(scenario, (ran.get(scenario) ?? 0) + checks.length);
    for (const { id, status } of checks) {
      if (status === "FAILURE" && !except.includes(id)) failed.push(`${scenario}: ${id}`);
    }
  }
  assert.deepEqual(failed, []);
  const applicable = [...rows].filter(([, { applies }]) => applies).map(([name]) => name);
  assert.deepEqual([...ran.keys()].sort(), applicable.sort());
});

/** The table of docs/mcp.md: for each scenario "yes" or why not, and the excluded checks. */
function table(): Map<string, Row> {
  const text = Deno.readTextFileSync(`${ROOT}docs/mcp.md`);
  const rows = [...text.matchAll(/^\| `([\w-]+)` +\| (yes|no) +\| (.*?) *\|$/gm)];
  return new Map(rows.map(([, name, applies, why]) => [name!, {
    applies: applies === "yes",
    except: [...why!.matchAll(/`([\w-]+)`/g)].map(([, id]) => id!),
  }]));
}

async function conformance(...args: string[]): Promise<string> {
  const { imports } = JSON.parse(Deno.readTextFileSync(`${ROOT}deno.json`));
  const { stdout } = await new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-read",
      "--allow-write",
      "--allow-net",
      "--allow-env",
      "--allow-sys",
      "--config",
      `${ROOT}deno.json`,
      imports["@modelcontextprotocol/conformance"],
      ...args,
    ],
    stderr: "null",
  }).output();
  return new TextDecoder().decode(stdout);
}
