import { nearest, SvcError, usageError } from "../platform/error.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import type { ToolArguments, ToolDefinition } from "../plugins/api.ts";
import { runTool } from "../tools/execute.ts";
import { listText, printLists } from "./format.ts";
import { defineCommand, outputOption, pathOption } from "./command.ts";
import { type Io, toJson } from "./io.ts";
import { openWorkspace } from "./workspace.ts";
import { nameOf } from "./names.ts";
import { argument, command, optional } from "./options.ts";

const name = argument(nameOf("servers"));

export const list = command(
  "list",
  { action: "list", output: outputOption, path: pathOption },
  "List the servers of the setting mcp.servers: what each connects to, its tools, or its problem.",
);

export const connect = command("connect", {
  action: "connect",
  name: optional(name),
  output: outputOption,
  path: pathOption,
}, "Connect one server, or all, and list its tools.");

export const login = command(
  "login",
  { action: "login", name, path: pathOption },
  "Log in to a server over HTTP with a browser; the login is kept for the server's address.",
);

export const logout = command(
  "logout",
  { action: "logout", name, path: pathOption },
  "Forget the login to a server.",
);

const disconnect = command(
  "disconnect",
  { action: "disconnect", name, path: pathOption },
  "Disconnect a server; its tools are removed with the next prompt.",
);

/** `/mcp` (specification 4.7): the MCP servers whose tools are imported. */
export const mcpServers = defineCommand({
  parser: command("mcp", [list, connect, disconnect], "List, connect and disconnect MCP servers."),
  bare: "list",
  examples: ["svc mcp list", "svc mcp connect everything"],
  run: controlServers,
});

/** Milliseconds that `svc mcp list` waits for the servers. */
const PATIENCE = 10_000;

/** Calls the tool `mcp_<action>` for the operator; a list outside of a session connects the servers first. */
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
  const { config, clock, guard, tools, trust } = workspace;
  const wanted = `mcp_${action}`;
  await workspace.load({ tools: [wanted] });
  const tool = tools.find(wanted);
  if (tool === undefined) {
    throw noPlugin();
  }
  const servers = config.get("mcp.servers").map(({ name }) => name);
  if (name !== undefined && !servers.includes(name)) throw unknownServer(name, servers);
  const left = trust.left.map(({ id }) => id).filter((id) => id.startsWith("mcp:"));
  if (output === "text" && left.length > 0) {
    io.note(`Left out, not being trusted: ${left.join(", ")}. Accept with: svc trust`);
  } else if (output === "text" && servers.length === 0) {
    io.note("No MCP server is configured (setting mcp.servers).");
  }
  const interrupt = io.onInterrupt();
  const { signal } = interrupt;
  const call = (tool: ToolDefinition, args: ToolArguments = {}) =>
    runTool(tool, args, {
      config,
      paths: guard.callPaths([]),
      signal,
      session: "",
      key: (name, address) => workspace.key(name, address),
      run: (request) => workspace.sandbox.run(request, signal),
    }, { max_result_chars: 0, clock, mask: (text) => workspace.mask(text) });
  try {
    if (action === "list") {
      if (workspace !== io.live) {
        const enough = new AbortController();
        const either = AbortSignal.any([enough.signal, signal]);
        const late = clock.sleep(PATIENCE, either).catch(() => {});
        await Promise.race([late, call(tools.find("mcp_connect")!)]);
        enough.abort();
      }
      const states = await tools.stateOf(tools.owner(wanted)) as ServerState[];
      if (output === "json") io.out(toJson(states, 2) + "\n");
      else printLists(io, listText(io, ["SERVER", "STATE", "TRANSPORT", "TOOLS"], states.map(row)));
      return signal.aborted ? 130 : 0;
    }
    const result = await call(tool, name === undefined ? {} : { name });
    if (output === "json") io.out(toJson(await tools.stateOf(tools.owner(wanted)), 2) + "\n");
    else if (servers.length > 0) io.out(`${stripControl(result.output)}\n`);
    if (signal.aborted) return 130;
    return result.is_error ? 1 : 0;
  } finally {
    interrupt.release();
    if (workspace !== io.live) await workspace.close();
  }
}

/**
 * Logs the operator in to a server, or forgets the login.
 *
 * @param pasted lines that the operator types
 */
export async function serverLogin(
  { action, name, path }: { action: "login" | "logout"; name: string; path: string },
  io: Io,
  pasted: AsyncIterable<string>,
): Promise<number> {
  const workspace = openWorkspace(path, io);
  const interrupt = io.onInterrupt();
  try {
    const { config, tools } = workspace;
    await workspace.load({ tools: ["mcp_list"] });
    const source = tools.sourceOf(tools.owner("mcp_list"));
    if (source?.login === undefined || source.logout === undefined) throw noPlugin();
    const servers = config.get("mcp.servers").map(({ name }) => name);
    if (!servers.includes(name)) throw unknownServer(name, servers);
    const remark = (text: string) => io.note(workspace.mask(text));
    const { signal } = interrupt;
    if (action === "logout") {
      const was = await source.logout(name, { remark, signal });
      io.note(was ? `Logged out of ${name}.` : `There is no login to ${name}.`);
      return 0;
    }
    const required = await source.login(name, {
      show(address) {
        io.note("Open this address in a browser and log in there:");
        io.out(`${address}\n`);
        io.note("If the browser runs on another machine, paste the address here that it ends at.");
      },
      pasted,
      remark,
      signal,
    });
    io.note(required ? `Logged in to ${name}.` : `${name} requires no login.`);
    return 0;
  } catch (error) {
    if (interrupt.signal.aborted) return 130;
    if (error instanceof SvcError) throw error;
    const why = workspace.mask((error as Error).message).replace(/\.$/, "");
    throw new SvcError("login_failed", `There is no login to ${name}: ${why}.`);
  } finally {
    interrupt.release();
    await workspace.close();
  }
}

function noPlugin(): SvcError {
  return new SvcError("no_mcp", "The plugin svc-core-mcp is not loaded.", {
    hint: "It is a bundled one; add it to the setting plugins.",
  });
}

/** What the source of the tools says of a server. */
interface ServerState {
  name: string;
  transport: string;
  prefix: string;
  state: string;
  problem: string;
  revision: string;
  tools: unknown[];
  skipped: string[];
}

function row({ name, transport, prefix, state, problem, revision, tools, skipped }: ServerState) {
  const found = `${tools.length} ${tools.length === 1 ? "tool" : "tools"} under ${prefix}`;
  const about = state === "connected"
    ? found + (skipped.length === 0 ? "" : `; left out: ${skipped.slice(0, 10).join(", ")}`)
    : state === "starting"
    ? `no answer yet; its own time limit has: svc mcp connect ${name}`
    : problem;
  return [name, state, revision === "" ? transport : `${transport}, ${revision}`, about]
    .map(oneLine);
}

function unknownServer(name: string, servers: string[]): SvcError {
  const guess = nearest(name, servers);
  return usageError(
    "unknown_server",
    `There is no MCP server ${JSON.stringify(name.slice(0, 80))}.`,
    guess === undefined ? "See them with: svc mcp list" : `Did you mean "${guess}"?`,
  );
}
