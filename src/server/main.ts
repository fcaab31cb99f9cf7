import { authorityOf } from "../engine/agents/agent.ts";
import { command, constant, option } from "@optique/core/primitives";
import { object, or } from "@optique/core/constructs";
import { optional } from "@optique/core/modifiers";
import { integer, string } from "@optique/core/valueparser";
import { defineCommand, text } from "../commands/command.ts";
import type { Io } from "../commands/io.ts";
import { pathOption } from "../commands/command.ts";
import { openWorkspace } from "../commands/workspace.ts";
import { errorMessage, usageError } from "../platform/error.ts";
import { withdrawUnusable } from "../policy/deno_permissions.ts";
import { makeToken } from "./admission.ts";
import { startServer } from "./server.ts";

const HOST = "127.0.0.1";
const PORT = 8787;

const listen = command(
  "listen",
  object({
    action: constant("listen"),
    host: optional(option("--host", string({ metavar: "HOST" }), {
      description: text("The address to listen on; default: 127.0.0.1."),
    })),
    port: optional(option("--port", integer({ min: 0, max: 65535, metavar: "PORT" }), {
      description: text("The port; 0 takes a free one. Default: SVC_PORT, or 8787."),
    })),
    insecure: option("--insecure", {
      description: text("Listen beyond this machine without asking for tokens."),
    }),
    path: pathOption,
  }),
  { description: text("Serve until interrupted; what is meant when nothing is named.") },
);

const token = command("token", object({ action: constant("token"), path: pathOption }), {
  description: text("Make a bearer token for the server, and print it."),
});

/** `svc serve` (specification 4.1): the HTTP API. */
export const serve = defineCommand({
  parser: command("serve", or(token, listen), {
    description: text("Serve the agent of a worktree over HTTP until interrupted."),
  }),
  bare: "listen",
  examples: [
    "svc serve",
    "svc serve --port 0 --path ~/notes",
    "svc serve token",
    "svc serve --host 0.0.0.0",
  ],
  async run(values, io) {
    const path = values.path || io.environment.get("SVC_PATH") || "";
    const workspace = openWorkspace(path, io, { unattended: true });
    if (values.action === "token") {
      const { token, note } = await makeToken(workspace);
      io.out(`${token}\n`);
      io.note(note);
      return 0;
    }
    const needs = { tools: "all", providers: "all", roles: "all", skills: "all" } as const;
    const { plugins } = await workspace.load(needs);
    const mcp = plugins.some(({ name, status }) => name === "svc-core-mcp" && status === "loaded");
    const yes = mcp && workspace.config.get("mcp_server.allow_ask"); // MCP clients confirm themselves
    withdrawUnusable(authorityOf(workspace.config), workspace.tools.list(), { yes });
    try {
      workspace.backend();
    } catch (error) {
      io.note(`warning: POST /chat will fail: ${errorMessage(error)}`);
    }
    const server = startServer({
      workspace,
      host: values.host ?? HOST,
      port: values.port ?? portOf(io),
      insecure: values.insecure,
      mcp,
    });
    const interrupt = io.onInterrupt();
    io.note(`listening on ${server.url}`);
    if (!interrupt.signal.aborted) {
      await new Promise((stopped) => interrupt.signal.addEventListener("abort", stopped));
    }
    io.note("stopping: turns that run may finish; another interrupt ends them at once");
    await server.stop();
    await workspace.close();
    interrupt.release();
    return 0;
  },
});

/** `SVC_PORT`, for containers. */
function portOf({ environment }: Io): number {
  const given = environment.get("SVC_PORT") ?? "";
  if (given === "") return PORT;
  if (/^\d{1,5}$/.test(given) && Number(given) <= 65535) return Number(given);
  throw usageError("usage", `SVC_PORT is no port: ${JSON.stringify(given.slice(0, 20))}.`);
}
