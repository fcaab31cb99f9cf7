import { fileURLToPath } from "node:url";
import { Workspace } from "../../../src/engine/workspace.ts";
import type { Clock } from "../../../src/platform/clock.ts";
import type { LoginStore, ToolDefinition } from "../../../src/plugins/api.ts";
import { type Project, project } from "../../../tests/support/project.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";

export const BAD_SERVER = fileURLToPath(new URL("bad_server.ts", import.meta.url));
const CONFIG = fileURLToPath(new URL("../../../deno.json", import.meta.url));

/** An entry of `mcp.servers` for one of the servers that misbehave. */
export function bad(kind: string, more: Record<string, unknown> = {}, file = ""): Entry {
  const flags = ["--no-prompt", "--no-config", "--allow-read", "--allow-write", "--allow-env"];
  return {
    name: kind,
    command: Deno.execPath(),
    args: ["run", ...flags, BAD_SERVER, kind, file],
    ...more,
  };
}

/** A server from the npm registry, at the version of deno.json. */
export function fromNpm(name: string, ...args: string[]): Entry {
  const { imports } = JSON.parse(Deno.readTextFileSync(CONFIG));
  const flags = ["--allow-read", "--allow-write", "--allow-env", "--allow-sys", "--allow-net"];
  return {
    name: name.replace("server-", ""),
    command: Deno.execPath(),
    args: [
      "run",
      "--no-prompt",
      ...flags,
      "--config",
      CONFIG,
      imports[`@modelcontextprotocol/${name}`],
      ...args,
    ],
    env: { DENO_DIR: Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno` },
  };
}

/** Waits for a line in a file that a server writes. */
export async function until(file: string, line: string): Promise<void> {
  for (;;) {
    const text = await Deno.readTextFile(file).catch(() => "");
    if (text.split("\n").includes(line)) return;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Logins that are kept in memory. */
export function noLogins(): LoginStore {
  const logins = new Map<string, object>();
  return {
    read: (address) => logins.get(address),
    // deno-lint-ignore require-await
    async write(address, login) {
      if (login === undefined) logins.delete(address);
      else logins.set(address, login);
    },
  };
}

export type Entry = Record<string, unknown>;

/** A worktree with MCP servers, whose tools are called without a policy. */
export interface Imported extends AsyncDisposable {
  project: Project;
  workspace: Workspace;
  warnings: string[];
  /** The tools that the next prompt has. */
  tools(): Promise<string[]>;
  tool(name: string): ToolDefinition;
  /** The text of a call. */
  call(name: string, args?: Record<string, unknown>, signal?: AbortSignal): Promise<string>;
}

export async function imported(servers: Entry[], clock?: Clock): Promise<Imported> {
  const place = await project();
  const warnings: string[] = [];
  const environment = {
    home: place.path,
    cwd: place.path,
    get: (name: string) => ["PATH", "HOME"].includes(name) ? Deno.env.get(name) : undefined,
  };
  const workspace = Workspace.open({
    path: place.path,
    environment,
    clock,
    warn: (message) => warnings.push(message),
    overrides: { "mcp.servers": servers },
  });
  await workspace.load({ tools: "all" });
  const { tools } = workspace;
  const { signal: never } = new AbortController();
  return {
    project: place,
    workspace,
    warnings,
    async tools() {
      const registry = await tools.forTurn((category) => category === "mcp", never);
      const own = registry.list().filter(({ name }) => name.includes("."));
      return own.map(({ name }) => name);
    },
    tool: (name) => tools.find(name)!,
    call: async (name, args = {}, signal = never) =>
      await tools.find(name)!.handler(args, toolContext({ worktree: place.path, signal })),
    async [Symbol.asyncDispose]() {
      await workspace.close();
      await place[Symbol.asyncDispose]();
    },
  };
}
