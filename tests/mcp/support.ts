import { Client } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { commandLine, processOptions } from "../support/program.ts";

/** The program as an MCP server on its standard streams, for third-party clients. */
export function serverParameters(cwd: string): {
  command: string;
  args: string[];
  cwd: string;
  env: Record<string, string>;
  stderr: "pipe";
} {
  const [command, ...args] = commandLine(["mcp"]);
  const env = processOptions({ cwd }).env as Record<string, string>;
  return { command: command!, args, cwd, env, stderr: "pipe" };
}

/** A client of the current generation, connected to `svc mcp` in a worktree. */
export async function connected(
  cwd: string,
  mode: "auto" | "legacy" | { pin: string } = "auto",
): Promise<Client & AsyncDisposable> {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode } });
  await client.connect(new StdioClientTransport(serverParameters(cwd)));
  return Object.assign(client, { [Symbol.asyncDispose]: () => client.close() });
}

/** The text of a result whose blocks are all text. */
export function textOf(result: object): string {
  const { content } = result as { content: { text: string }[] };
  return content.map(({ text }) => text).join("\n");
}
