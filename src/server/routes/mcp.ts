import { readJson } from "../body.ts";
import { HttpError } from "../http_error.ts";
import type { Route } from "../route.ts";

/** `POST /mcp` (specification 4.1, 4.2): one JSON-RPC 2.0 request. */
export const mcp: Route[] = [{
  method: "POST",
  path: "/mcp",
  summary:
    "The Model Context Protocol, stateless: one JSON-RPC 2.0 request of revision 2026-07-28, or of an " +
    "earlier one. The answer is JSON, or an event stream when there are notifications.",
  answers: "application/json",
  errors: { 400: "no JSON-RPC request, or one that breaks the protocol" },
  async handle({ mcp, request, workspace: { config, clock } }) {
    const limits = {
      max: config.get("serve.max_body"),
      timeout: config.get("serve.body_timeout"),
      clock,
    };
    let body: unknown;
    try {
      body = await readJson(request, limits);
    } catch (error) {
      if (error instanceof HttpError && error.message === "invalid JSON body") return unreadable();
      throw error;
    }
    return await mcp!.handle(request, body);
  },
}];

/** What JSON-RPC answers where there is no request to answer. */
function unreadable(): Response {
  const error = { code: -32700, message: "Parse error: the body must be one JSON object." };
  return Response.json({ jsonrpc: "2.0", id: null, error }, { status: 400 });
}
