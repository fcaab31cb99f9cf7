import type { ToolArguments, ToolDefinition } from "../../../src/plugins/api.ts";
import type { Connection } from "./connection.ts";
import type { Servers } from "./servers.ts";

/** `mcp_connect`, `mcp_list` and `mcp_disconnect` (specification 4.8). */
export function controlTools(servers: Servers): ToolDefinition[] {
  const name = { type: "string", description: "Name of the server." };
  const common = {
    permission: "mcp",
    key_arg: "name",
    read_only: true,
    needs_setting: "mcp.servers",
  };
  return [
    {
      ...common,
      name: "mcp_connect",
      description:
        "Connect a configured MCP server, or all, and list its tools, which can be called from " +
        "the next prompt on.",
      parameters: { type: "object", properties: { name } },
      handler: async (args) => {
        const chosen = await choose(servers, args);
        await Promise.all(chosen.map((each) => each.ready(true)));
        const failed = chosen.filter(({ state }) => state !== "connected");
        const others = chosen.filter(({ state }) => state === "connected");
        const text = [...failed, ...others].map(withTools).join("\n") || NONE;
        return failed.length > 0 ? `Error: ${text}` : text;
      },
    },
    {
      ...common,
      name: "mcp_list",
      description: "List the configured MCP servers, their state and tools.",
      parameters: { type: "object", properties: { name } },
      handler: async (args) => {
        const chosen = await choose(servers, args);
        return chosen.map(args.name === undefined ? line : withTools).join("\n") || NONE;
      },
    },
    {
      ...common,
      name: "mcp_disconnect",
      description: "Disconnect an MCP server. Its tools are gone with the next prompt.",
      parameters: { type: "object", properties: { name }, required: ["name"] },
      handler: async (args) => {
        const [connection] = await choose(servers, args);
        await connection!.leave();
        return `${connection!.settings.name} is disconnected`;
      },
    },
  ];
}

const NONE = "No MCP server is configured (setting mcp.servers).";

async function choose(servers: Servers, { name }: ToolArguments): Promise<Connection[]> {
  const all = await servers.list();
  if (name === undefined) return all;
  const found = all.filter(({ settings }) => settings.name === name);
  if (found.length > 0) return found;
  const names = all.map(({ settings }) => settings.name).join(", ") || "none";
  throw new Error(`there is no MCP server "${name}" in the configuration; there is: ${names}`);
}

function line({ settings, state, problem, tools, revision, skipped }: Connection): string {
  const { name, transport, prefix } = settings;
  const how = state === "connected"
    ? `connected (${transport}, ${revision}), ${count(tools.length)} under ${prefix}.`
    : state === "failed"
    ? `failed (${transport}): ${problem}`
    : `${state} (${transport})`;
  const left = skipped.length > 0 ? `; left out: ${skipped.slice(0, 10).join(", ")}` : "";
  return `${name}  ${how}${state === "connected" ? left : ""}`;
}

function withTools(connection: Connection): string {
  const tools = connection.tools.map(({ name, short }) => `  ${name}  ${short}`);
  return [line(connection), ...tools].join("\n");
}

function count(tools: number): string {
  return tools === 1 ? "1 tool" : `${tools} tools`;
}
