import { fileURLToPath } from "node:url";
import { Workspace } from "../../../src/engine/workspace.ts";
import type { Clock } from "../../../src/platform/clock.ts";
import type { ToolDefinition } from "../../../src/plugins/api.ts";
import { type Project, project } from "../../../tests/support/project.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";

export const BAD_SERVER = fileURLToPath(new URL("bad_server.ts", import.meta.url));

/** An entry of `mcp.servers` for one of the servers that misbehave. */
export function bad(kind: string, more: Record<string, unknown> = {}, file = ""): Entry {
  const flags = ["--no-prompt", "--no-config", "--allow-write", "--allow-env"];
  return {
    name: kind,
    command: Deno.execPath(),
    args: ["run", ...flags, BAD_SERVER, kind, file],
    ...more,
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
