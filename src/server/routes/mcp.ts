import * as z from "zod/mini";
import type { Workspace } from "../../engine/workspace.ts";
import type { McpEndpoint } from "../../mcp/server.ts";
import { HttpError, readJson } from "../http.ts";
import type { Route } from "../route.ts";
import type { Turns } from "../turns.ts";

const jsonRpcRequest = z.strictObject({
  jsonrpc: z.literal("2.0"),
  /** Left out in a notification. */
  id: z.optional(z.union([z.string(), z.int()])),
  method: z.string(),
  params: z.optional(z.record(z.string(), z.unknown())),
});
const jsonRpcError = z.object({
  jsonrpc: z.literal("2.0"),
  /** That of the request, whatever it is. */
  id: z.optional(z.unknown()),
  error: z.object({ code: z.int(), message: z.string(), data: z.optional(z.unknown()) }),
});
const jsonRpcResult = z.object({
  jsonrpc: z.literal("2.0"),
  id: z.unknown(),
  result: z.record(z.string(), z.unknown()),
});

/** `POST /mcp` (specification 4.1, 4.2): one JSON-RPC 2.0 request. */
export function mcpRoutes(workspace: Workspace, mcp: McpMount): Route[] {
  return [{
    method: "POST",
    path: "/mcp",
    summary:
      "The Model Context Protocol, stateless: one JSON-RPC 2.0 request of revision 2026-07-28, or of an " +
      "earlier one. The answer is JSON, or an event stream when there are notifications.",
    body: jsonRpcRequest,
    answers: z.union([jsonRpcResult, jsonRpcError]),
    streams: "Server-sent events: each has a JSON-RPC message as its data; the result comes last.",
    statuses: {
      202: "a notification was taken",
      400: "no JSON-RPC request, or one that breaks the protocol",
      404: "the method is unknown",
      406: "the client does not accept both JSON and event streams",
      415: "the body is not application/json",
    },
    errors: jsonRpcError,
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
      return await mcp.handle(acceptingBoth(request), body, authenticated);
    },
  }];
}

/** A request of a client that accepts anything, in the words that the protocol requires. */
function acceptingBoth(request: Request): Request {
  const { url, method, headers: given, signal } = request;
  if (!(given.get("accept") ?? "*/*").includes("*/*")) return request;
  const headers = new Headers(given);
  headers.set("accept", "application/json, text/event-stream");
  return new Request(url, { method, headers, signal });
}

/** The JSON-RPC answer to a body that holds no request. */
function parseError(): Response {
  const error = { code: -32700, message: "Parse error: the body must be one JSON object." };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 400 });
}

/** The MCP endpoint of one server. It is made with the first request, since most servers get none. */
export class McpMount {
  readonly #workspace: Workspace;
  readonly #turns: Turns;
  #endpoint: Promise<McpEndpoint> | undefined;

  constructor(workspace: Workspace, turns: Turns) {
    this.#workspace = workspace;
    this.#turns = turns;
  }

  /** Answers one request with its parsed body. */
  async handle(request: Request, body: unknown, authenticated: boolean): Promise<Response> {
    this.#endpoint ??= import("../../mcp/server.ts").then(({ mcpEndpoint }) =>
      mcpEndpoint(this.#workspace, async (call) => {
        const { result, cut } = await this.#turns.run(call);
        if (cut !== undefined) throw cut;
        return result;
      })
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
