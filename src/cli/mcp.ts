import { defineCommand, pathOption, trustOption } from "../commands/command.ts";
import { connect, controlServers, list, login, logout, serverLogin } from "../commands/mcp.ts";
import { openShared } from "../commands/workspace.ts";
import { authorityOf } from "../engine/agents.ts";
import { withdrawFirst, withdrawFor } from "../engine/start.ts";
import { command } from "../commands/options.ts";

const serve = command(
  "serve",
  { action: "serve", trust: trustOption, path: pathOption },
  "Serve an MCP client on standard input and output (the default).",
);

/** `svc mcp` (specification 4.4): an MCP server on standard input and output; list and connect others. */
export const mcp = defineCommand({
  parser: command(
    "mcp",
    [serve, list, connect, login, logout],
    "Serve tools and sessions of a worktree to an MCP client on standard input and output; or list, " +
      "connect and log in to the MCP servers whose tools are imported.",
  ),
  bare: "serve",
  examples: ["svc mcp --path ~/notes", "svc mcp list", "svc mcp connect everything"],
  async run(values, io) {
    if (values.action === "login" || values.action === "logout") {
      return await serverLogin(values, io, typedLines());
    }
    if (values.action !== "serve") return await controlServers(values, io);
    const workspace = await openShared(values.path, io, { unattended: true }, values.trust);
    const interrupt = io.onInterrupt();
    try {
      await workspace.store?.follow();
      const yes = workspace.config.get("mcp_server.allow_ask");
      await workspace.load({ tools: "all" }, withdrawFirst(workspace, yes));
      await withdrawFor(workspace, authorityOf(workspace.config), { yes });
      // A plugin that prints must not write into the protocol.
      // deno-lint-ignore no-console
      for (const level of ["log", "info", "debug"] as const) console[level] = console.error;
      const { serveMcpStdio } = await import("../mcp/stdio.ts");
      await serveMcpStdio({
        workspace,
        input: Deno.stdin.readable,
        output: Deno.stdout.writable,
        signal: interrupt.signal,
      });
    } finally {
      await workspace.close(interrupt.signal);
      interrupt.release();
    }
    return 0;
  },
});

/** The lines of standard input, which is read while a browser may answer. */
async function* typedLines(): AsyncGenerator<string> {
  let rest = "";
  for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
    const lines = (rest + text).split("\n");
    rest = lines.pop()!;
    yield* lines;
  }
  yield rest;
}
