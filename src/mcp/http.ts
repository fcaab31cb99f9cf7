import { createMcpHandler } from "@modelcontextprotocol/server";
import type { Workspace } from "../engine/workspace.ts";
import { errorMessage } from "../platform/error.ts";
import { mcpServer } from "./server.ts";
import { McpTools } from "./tools.ts";

/** MCP over HTTP (specification 4.2), stateless: one JSON-RPC message in each request, of any protocol revision. */
export interface McpEndpoint {
  /** Answers one `POST`; `body` is its parsed content. */
  handle(request: Request, body: unknown): Promise<Response>;
  /** Resolves when no call runs or waits. */
  idle(): Promise<void>;
  /** Cancels the running calls. */
  cancel(): void;
  /** Closes the open streams. */
  close(): Promise<void>;
}

export function mcpEndpoint(workspace: Workspace): McpEndpoint {
  const tools = new McpTools(workspace);
  const over = new AbortController();
  const handler = createMcpHandler(() => mcpServer(workspace, tools, over.signal), {
    maxSubscriptions: 16,
    onerror: (error) => workspace.warn(`A request to /mcp failed: ${errorMessage(error)}`),
  });
  return {
    handle: (request, parsedBody) => handler.fetch(request, { parsedBody }),
    idle: () => tools.idle(),
    cancel: () => over.abort(new DOMException("The server is stopping.", "AbortError")),
    close: () => handler.close(),
  };
}
