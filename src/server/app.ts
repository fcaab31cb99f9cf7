import { Hono } from "hono";
import { HttpError, httpError } from "./http_error.ts";
import { openApi } from "./openapi.ts";
import type { Callers } from "./callers.ts";
import type { RateLimit } from "./rate_limit.ts";
import type { Route, ServerContext } from "./route.ts";
import { asks } from "./routes/asks.ts";
import { chat } from "./routes/chat.ts";
import { jobs } from "./routes/jobs.ts";
import { mcp } from "./routes/mcp.ts";
import { sessions } from "./routes/sessions.ts";
import { status } from "./routes/status.ts";
import type { Tokens } from "./tokens.ts";

/** Who may use the server, and how often. */
export interface Admission {
  callers: Callers;
  limit: RateLimit;
  /** Left out: nobody needs a token. */
  tokens?: Tokens;
}

/** Answers one request; `address` is the client's. */
export type Answer = (request: Request, address: string) => Response | Promise<Response>;

const ROUTES: readonly Route[] = [...chat, ...sessions, ...asks, ...jobs, ...status];

/** Everything between a request and its response (specification 4.1, 7.1). */
export function serveApp(context: ServerContext, admission: Admission): Answer {
  const app = new Hono<{ Bindings: { address: string } }>();
  const { callers, limit, tokens } = admission;

  app.use(async (c, next) => {
    const { method, headers } = c.req.raw;
    const origin = callers.check(headers);
    if (origin !== undefined && method === "OPTIONS") return preflight(origin);
    const token = tokens?.find(headers.get("authorization"));
    const wait = limit.take(token === undefined ? c.env.address : `token ${token}`);
    if (wait > 0) throw new HttpError(429, "too many requests", { "retry-after": String(wait) });
    if (tokens !== undefined && token === undefined) {
      throw new HttpError(401, "a valid token is required", { "www-authenticate": "Bearer" });
    }
    await next();
    if (origin !== undefined) {
      c.res.headers.set("access-control-allow-origin", origin);
      c.res.headers.append("vary", "origin");
    }
    return undefined;
  });

  const offered = context.mcp === undefined ? ROUTES : [...ROUTES, ...mcp];
  const routes = [...offered, document([...offered])];
  for (const { method, path, handle } of routes) {
    app.on(method, path, (c) => handle({ ...context, request: c.req.raw, params: c.req.param() }));
  }
  for (const path of new Set(routes.map((route) => route.path))) {
    const methods = routes.filter((route) => route.path === path).map((route) => route.method);
    app.all(path, () => {
      throw new HttpError(405, "method not allowed", { allow: methods.join(", ") });
    });
  }
  app.notFound(() => new HttpError(404, "not found").response());
  app.onError((error) => {
    const answer = httpError(error);
    if (answer.status === 500) context.workspace.warn(`A request failed: ${error.message}`);
    return answer.response();
  });

  return async (request, address) => {
    // Before all else: a probe waits for nothing, and learns nothing but that we are there.
    if (isProbe(request)) return Response.json({ status: "ok" });
    const response = await app.fetch(request, { address });
    context.metrics.response(response.status);
    return response;
  };
}

/** The document describes itself, too. */
function document(described: Route[]): Route {
  const route: Route = {
    method: "GET",
    path: "/openapi.json",
    summary: "This document.",
    answers: "application/json",
    handle: () => Response.json(openApi([...described, route])),
  };
  return route;
}

function isProbe({ method, url }: Request): boolean {
  return method === "GET" && url.endsWith("/health") && new URL(url).pathname === "/health";
}

function preflight(origin: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, POST",
      "access-control-allow-headers":
        "authorization, content-type, mcp-method, mcp-name, mcp-protocol-version",
      "access-control-max-age": "600",
      vary: "origin",
    },
  });
}
