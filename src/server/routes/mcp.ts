import type { Workspace } from "../../engine/workspace.ts";
import type { McpEndpoint } from "../../mcp/server.ts";
import { HttpError, readJson } from "../http.ts";
import type { Route } from "../route.ts";

/** `POST /mcp` (specification 4.1, 4.2): one JSON-RPC 2.0 request. */
export function mcpRoutes(workspace: Workspace, mcp: McpMount): Route[] {
  return [{
    method: "POST",
    path: "/mcp",
    summary:
      "The Model Context Protocol, stateless: one JSON-RPC 2.0 request of revision 2026-07-28, or of an " +
      "earlier one. The answer is JSON, or an event stream when there are notifications.",
    answers: "application/json",
    errors: { 400: "no JSON-RPC request, or one that breaks the protocol" },
    async handle(request, _, authenticated) {
      let body: unknown;
      try {
        body = await readJson(request, workspace);
      } catch (error) {
        if (error instanceof HttpError && error.message === "invalid JSON body") {
          return parseError();
        }
        throw error;
      }
      return await mcp.handle(request, body, authenticated);
    },
  }];
}

/** The JSON-RPC answer to a body that holds no request. */
function parseError(): Response {
  const error = { code: -32700, message: "Parse error: the body must be one JSON object." };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 400 });
}

/** The MCP endpoint of one server. It is made with the first request, since most servers get none. */
export class McpMount {
  readonly #workspace: Workspace;
  #endpoint: Promise<McpEndpoint> | undefined;

  constructor(workspace: Workspace) {
    this.#workspace = workspace;
  }

  /** Answers one request with its parsed body. */
  async handle(request: Request, body: unknown, authenticated: boolean): Promise<Response> {
    this.#endpoint ??= import("../../mcp/server.ts").then(({ mcpEndpoint }) =>
      mcpEndpoint(this.#workspace)
    );
    return await (await this.#endpoint).handle(request, body, authenticated);
  }

  /** Resolves when no call runs. */
  async idle(): Promise<void> {
    await (await this.#endpoint)?.idle();
  }

  /** Cancels the calls that run. */
  async cancelAll(): Promise<void> {
    (await this.#endpoint)?.cancel();
  }

  /** Closes the streams that are open. */
  async close(): Promise<void> {
    await (await this.#endpoint)?.close();
  }
}
