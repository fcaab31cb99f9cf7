import type { Workspace } from "../engine/workspace.ts";
import type { McpEndpoint } from "../mcp/http.ts";

/** MCP of one server: made with the first request, since most servers never get one. */
export class McpMount {
  readonly #workspace: Workspace;
  #endpoint: Promise<McpEndpoint> | undefined;

  constructor(workspace: Workspace) {
    this.#workspace = workspace;
  }

  /** Answers one request with its parsed body. */
  async handle(request: Request, body: unknown): Promise<Response> {
    this.#endpoint ??= import("../mcp/http.ts").then(({ mcpEndpoint }) =>
      mcpEndpoint(this.#workspace)
    );
    return await (await this.#endpoint).handle(request, body);
  }

  /** Resolves when no call runs. */
  async idle(): Promise<void> {
    await (await this.#endpoint)?.idle();
  }

  /** Cancels the calls that run. */
  async cancelAll(): Promise<void> {
    (await this.#endpoint)?.cancel();
  }

  /** Ends the streams that are open. */
  async close(): Promise<void> {
    await (await this.#endpoint)?.close();
  }
}
