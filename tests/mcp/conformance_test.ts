import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
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
    $defs: {
      address: { $anchor: "addressDef", type: "object", properties: { street: { type: "string" } } },
    },
    properties: {
      name: { type: "string" },
      address: { $ref: "#/$defs/address" },
      billing: { $ref: "#addressDef" },
      contactMethod: { type: "string", enum: ["phone", "email"] },
      phone: { type: "string" },
      email: { type: "string" },
    },
    allOf: [{ anyOf: [{ required: ["phone"] }, { required: ["email"] }] }],
    if: { properties: { contactMethod: { const: "phone" } }, required: ["contactMethod"] },
    then: { required: ["phone"] },
    else: { required: ["email"] },
    additionalProperties: false,
  }, () => "ok");
}`;

/** A scenario of docs/mcp.md, with the checks that it may fail. */
interface Row {
  applies: boolean;
  /** Ids of checks that do not apply, in a scenario that applies. */
  except: string[];
}

Deno.test("the conformance scenarios for MCP clients that docs/mcp.md lists as applicable pass [4.3]", async () => {
  const rows = table("Clients");
  const listed = [...(await conformance("list", "--client")).matchAll(/^ {2}- ([\w/-]+) \[/gm)];
  assert.deepEqual(listed.map(([, name]) => name).sort(), [...rows.keys()].sort());
  const applicable = [...rows].filter(([, { applies }]) => applies).map(([name]) => name);
  const client = [
    ...[Deno.execPath(), "run", "--no-prompt", "--allow-read", "--allow-net", "--allow-env"],
    ...["--allow-sys", "--config", `${ROOT}deno.json`, `${ROOT}tests/mcp/conformance_client.ts`],
  ];
  await using out = await project({
    // The suite starts all of its scenarios. The client of one that does not apply ends at
    // once. Its own limit ends a shell, but waits for the client.
    client: `case $MCP_CONFORMANCE_SCENARIO in ${applicable.join("|")}) exec timeout 25 ${
      client.map((word) => `'${word}'`).join(" ")
    } "$@";; esac`,
  });
  await conformance(
    ...["client", "--suite", "all", "--command", `sh ${out.path}/client`, "-o", `${out.path}/ran`],
  );
  const passed: string[] = [];
  const folders = ["", "auth/"].flatMap((group) =>
    [...Deno.readDirSync(`${out.path}/ran/${group}`)].map(({ name }) => group + name)
  );
  for (const folder of folders) {
    const scenario = /^(.+?)-\d{4}-\d\d-\d\dT/.exec(folder)?.[1] ?? "";
    if (!applicable.includes(scenario)) continue;
    const checks: { id: string; status: string }[] = JSON.parse(
      await out.read(`ran/${folder}/checks.json`),
    );
    const failed = checks.filter(({ status }) => status === "FAILURE").map(({ id }) => id);
    assert.deepEqual(failed, [], scenario);
    if (checks.some(({ status }) => status === "SUCCESS")) passed.push(scenario);
  }
  assert.deepEqual(passed.sort(), applicable.sort());
});

Deno.test("the conformance scenarios for MCP servers that docs/mcp.md lists as applicable pass [4.2]", async () => {
  const rows = table("Servers");
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
  const kept = new Map<string, string>();
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
      if (scenario === "json-schema-2020-12") kept.set(id, status);
    }
  }
  assert.deepEqual(failed, []);
  assert.ok(kept.size >= 7, [...kept.keys()].join());
  assert.deepEqual([...kept].filter(([, status]) => status !== "SUCCESS"), []);
  const applicable = [...rows].filter(([, { applies }]) => applies).map(([name]) => name);
  assert.deepEqual([...ran.keys()].sort(), applicable.sort());
});

Deno.test("calls are checked against allOf, if, then, else and $anchor of a tool's schema [4.2, 7.5]", async () => {
  await using at = await server(undefined, {
    mcp: true,
    files: { ".svc/plugins/conformance.ts": TOOLS },
    config: { plugins: [] },
  });
  const client = new Client({ name: "test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${at.http.url}/mcp`)));
  const call = async (args: Record<string, unknown>) => {
    const { content, isError } = await client.callTool({
      name: "json_schema_2020_12_tool",
      arguments: args,
    });
    const [block] = content as { text: string }[];
    return [isError === true, block!.text.replace(/ Parameters: .*/, "")];
  };
  const missing = (name: string) => `the whole: Instance does not have required property "${name}"`;
  const refused = (why: string) => [true, `Error: json_schema_2020_12_tool: ${why}.`];
  for (
    const [args, expected] of [
      [{ contactMethod: "phone", phone: "1" }, [false, "ok"]],
      [{ contactMethod: "email", email: "a@b" }, [false, "ok"]],
      [{ email: "a@b", billing: { street: "Elm" }, address: { street: "Oak" } }, [false, "ok"]],
      [{ contactMethod: "phone", email: "a@b" }, refused(missing("phone"))],
      [{ contactMethod: "email", phone: "1" }, refused(missing("email"))],
      [
        { name: "nobody" },
        refused(
          `the whole: Instance does not match any subschemas; ${missing("phone")}; ${
            missing("email")
          }`,
        ),
      ],
      [
        { email: "a@b", billing: { street: 3 } },
        refused('/billing/street: Instance type "number" is invalid. Expected "string"'),
      ],
      [
        { email: "a@b", address: "Elm" },
        refused('/address: Instance type "string" is invalid. Expected "object"'),
      ],
    ] as const
  ) assert.deepEqual(await call(args), expected, JSON.stringify(args));
  await client.close();
});

/** A table of docs/mcp.md: for each scenario "yes" or why not, and the excluded checks. */
function table(heading: string): Map<string, Row> {
  const text = Deno.readTextFileSync(`${ROOT}docs/mcp.md`).split(`\n### ${heading}\n`)[1]!
    .split("\n### ")[0]!;
  const rows = [...text.matchAll(/^\| `([\w/-]+)` +\| (yes|no) +\| (.*?) *\|$/gm)];
  return new Map(rows.map(([, name, applies, why]) => [name!, {
    applies: applies === "yes" && !why!.includes("run by hand"),
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
      "--allow-run",
      "--config",
      `${ROOT}deno.json`,
      imports["@modelcontextprotocol/conformance"],
      ...args,
    ],
    stderr: "null",
  }).output();
  return new TextDecoder().decode(stdout);
}
