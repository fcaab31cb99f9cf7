import { Hono } from "hono";
import * as z from "zod/mini";
import { shortened } from "../commands/format.ts";
import type { Clock } from "../platform/clock.ts";
import { type Admission, requireRole, type TokenRole } from "./admission.ts";
import { type ConsoleMount, isConsolePath } from "./console.ts";
import { HttpError, httpError } from "./http.ts";
import type { ServerLog } from "./log.ts";
import type { Metrics } from "./metrics.ts";
import { neededRole, openApi, type Route } from "./route.ts";

/** Characters of a path in the log. */
const PATH = 200;

/** The beginning of the paths whose requests are signed (see `Route.signed`). */
export const SIGNED = "/hooks/";

/** Answers one request; `address` is the client's. */
export type Answer = (request: Request, address: string) => Response | Promise<Response>;

/**
 * Serves routes (specification 4.1, 7.1): admission, dispatch, errors, and `GET /openapi.json` about the
 * routes.
 *
 * @param failed receives the message of an unexpected error, which the client is not told
 */
export function serveApp(
  served: Route[],
  { hosts, limit, tokens, optional }: Admission,
  { metrics, failed, clock, log, console }: {
    metrics: Metrics;
    failed: (message: string) => void;
    clock: Clock;
    log?: ServerLog;
    console?: ConsoleMount;
  },
): Answer {
  const app = new Hono<{ Bindings: { address: string }; Variables: { role?: TokenRole } }>();

  app.use(async (c, next) => {
    const { method, headers } = c.req.raw;
    const shown = console !== undefined && isConsolePath(c.req.path);
    // The forms of the console check their origin, which a proxy may have given another protocol.
    const origin = shown ? undefined : hosts.check(c.req.raw);
    if (shown) hosts.checkHost(c.req.raw);
    if (origin !== undefined && method === "OPTIONS") return preflight(origin);
    const authorization = headers.get("authorization") ?? "";
    const token = tokens?.find(authorization);
    const wait = limit.take(token?.id ?? c.env.address);
    if (wait > 0) throw new HttpError(429, "too many requests", { "retry-after": String(wait) });
    // A browser sends no token: the console has its own sign-in.
    if (shown) return await console.handle(c.req.raw);
    // A proxy may have checked, and passed on, another kind of authorization.
    const needed = !optional || /^bearer\b/i.test(authorization);
    const signed = c.req.path.startsWith(SIGNED);
    if (tokens !== undefined && needed && token === undefined && !signed) throw unauthorized();
    c.set("role", token?.role);
    await next();
    if (origin !== undefined) {
      c.res.headers.set("access-control-allow-origin", origin);
      c.res.headers.append("vary", "origin");
    }
    return undefined;
  });

  const token = tokens === undefined ? "never" : optional ? "approvals" : "always";
  const routes: Route[] = [...served, {
    method: "GET",
    path: "/openapi.json",
    summary: "This document.",
    answers: z.record(z.string(), z.unknown()),
    handle: () => Response.json(openApi(routes, token)),
  }];
  for (const route of routes) {
    const { method, path, approves, handle } = route;
    const needed = neededRole(route);
    app.on(method, path, (c) => {
      const role = c.get("role");
      if (approves && tokens !== undefined && role === undefined) throw unauthorized();
      if (role !== undefined) requireRole(role, needed);
      return handle(c.req.raw, c.req.param(), role !== undefined);
    });
  }
  for (const [path, group] of Map.groupBy(routes, ({ path }) => path)) {
    const allow = group.map(({ method }) => method).join(", ");
    app.all(path, () => {
      throw new HttpError(405, "method not allowed", { allow });
    });
  }
  app.notFound(() => new HttpError(404, "not found").response());
  app.onError((error) => {
    const answer = httpError(error);
    if (answer.status === 500) failed(`A request failed: ${error.message}`);
    return answer.response();
  });

  const open = new Map(routes.filter(({ open }) => open).map((route) => [route.path, route]));
  return async (request, address) => {
    const { method, url } = request;
    const probe = method === "GET" ? open.get(url.slice(url.indexOf("/", 8))) : undefined;
    if (probe !== undefined) return probe.handle(request, {}, false);
    const began = clock.now();
    const response = await app.fetch(request, { address });
    const { status } = response;
    metrics.response(status);
    if (log !== undefined) {
      const path = shortened(URL.parse(url)?.pathname ?? "", PATH);
      const seconds = (clock.now() - began) / 1000;
      const fields = { event: "request", method, path, status, seconds, address };
      log.event(`${method} ${path} ${status} ${seconds} s`, fields);
    }
    return response;
  };
}

function unauthorized(): HttpError {
  return new HttpError(401, "a valid token is required", { "www-authenticate": "Bearer" });
}

function preflight(origin: string): Response {
  return new Response(null, {
    status: 204,
    headers: {
      "access-control-allow-origin": origin,
      "access-control-allow-methods": "GET, POST",
      "access-control-allow-headers":
        "authorization, content-type, idempotency-key, last-event-id, mcp-method, mcp-name, mcp-protocol-version",
      "access-control-max-age": "600",
      vary: "origin",
    },
  });
}
