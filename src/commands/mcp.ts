import { argument, command, constant } from "@optique/core/primitives";
import { object, or } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { nearest, SvcError, usageError } from "../platform/error.ts";
import { stripControl } from "../platform/terminal.ts";
import { runTool } from "../tools/execute.ts";
import { defineCommand, outputOption, pathOption, text } from "./command.ts";
import { type Io, toJson } from "./io.ts";
import { openWorkspace } from "./workspace.ts";
import { nameOf } from "./names.ts";

const name = argument(nameOf("servers"));

export const list = command(
  "list",
  object({ action: constant("list"), output: outputOption, path: pathOption }),
  { description: text("List the servers of the setting mcp.servers and their states.") },
);

export const connect = command(
  "connect",
  object({
    action: constant("connect"),
    name: optional(name),
    output: outputOption,
    path: pathOption,
  }),
  { description: text("Connect one server, or all, and list its tools.") },
);

const disconnect = command(
  "disconnect",
  object({ action: constant("disconnect"), name, path: pathOption }),
  { description: text("Disconnect a server; its tools are removed with the next prompt.") },
);

/** `/mcp` (specification 4.7): the MCP servers whose tools are imported. */
export const mcpServers = defineCommand({
  parser: command("mcp", or(list, connect, disconnect), {
    description: text("List, connect and disconnect MCP servers."),
  }),
  bare: "list",
  examples: ["svc mcp list", "svc mcp connect everything"],
  run: controlServers,
});

/** Calls the tool `mcp_<action>` for the operator. */
export async function controlServers(
  { action, name, output = "text", path }: {
    action: "list" | "connect" | "disconnect";
    name?: string;
    output?: "text" | "json";
    path: string;
  },
  io: Io,
): Promise<number> {
  const workspace = openWorkspace(path, io);
  const { config, clock, guard, tools } = workspace;
  const wanted = `mcp_${action}`;
  await workspace.load({ tools: [wanted] });
  const tool = tools.find(wanted);
  if (tool === undefined) {
    throw new SvcError("no_mcp", "The plugin svc-core-mcp is not loaded.", {
      hint: "It is a bundled one; add it to the setting plugins.",
    });
  }
  const servers = config.get("mcp.servers").map(({ name }) => name);
  if (name !== undefined && !servers.includes(name)) throw unknownServer(name, servers);
  if (servers.length === 0 && output === "text") {
    io.note("No MCP server is configured (setting mcp.servers).");
  }
  const interrupt = io.onInterrupt();
  const { signal } = interrupt;
  try {
    const result = await runTool(tool, name === undefined ? {} : { name }, {
      config,
      paths: guard.callPaths([]),
      signal,
      session: "",
      key: (name, address) => workspace.key(name, address),
      run: (request) => workspace.sandbox.run(request, signal),
    }, { max_result_chars: 0, clock, mask: (text) => workspace.mask(text) });
    if (output === "json") io.out(toJson(await tools.stateOf(tools.owner(wanted)), 2) + "\n");
    else if (servers.length > 0) io.out(`${stripControl(result.output)}\n`);
    if (signal.aborted) return 130;
    return result.is_error ? 1 : 0;
  } finally {
    interrupt.release();
    if (workspace !== io.live) await workspace.close();
  }
}

function unknownServer(name: string, servers: string[]): SvcError {
  const guess = nearest(name, servers);
  return usageError(
    "unknown_server",
    `There is no MCP server ${JSON.stringify(name.slice(0, 80))}.`,
    guess === undefined ? "See them with: svc mcp list" : `Did you mean "${guess}"?`,
  );
}
