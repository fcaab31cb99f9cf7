import * as z from "zod/mini";
import { VERSION } from "../platform/environment.ts";

/** One route: what it takes and answers, how it does that, and its entry in the OpenAPI document. */
export interface Route {
  method: "GET" | "POST";
  /** With parameters written as `:name`. */
  path: string;
  summary: string;
  /** Schema of the JSON body; left out: the route takes none. */
  body?: z.ZodMiniType;
  /** The answer with status 200: a schema of its JSON, or another media type. */
  answers: z.ZodMiniType | string;
  /** Whether it gives an approval, which needs a token on a server that has one. Default: no. */
  approves?: true;
  /** The errors of this route: status, and when it is answered. */
  errors?: Record<number, string>;
  /**
   * @param params the values of the path's parameters
   * @param authenticated whether the request carries a valid token
   */
  handle(
    request: Request,
    params: Record<string, string>,
    authenticated: boolean,
  ): Response | Promise<Response>;
}

/** The errors of every route with a body (see `readBody`). */
const BODY_ERRORS = { 408: "the body took too long to arrive", 413: "the body is too large" };

const errorBody = z.object({ error: z.string() });

/** The OpenAPI 3.1 document of some routes, generated from their definitions. */
export function openApi(routes: readonly Route[]): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    (paths[path] ??= {})[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: "3.1.0",
    info: { title: "svc", version: VERSION },
    paths,
    components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
    security: [{ token: [] }, {}], // a server without tokens requires none
  };
}

function operation(
  { path, summary, body, answers, approves, errors = {} }: Route,
): Record<string, unknown> {
  const parameters = Array.from(path.matchAll(/:(\w+)/g), ([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const ok = typeof answers === "string"
    ? { [answers]: { schema: { type: "string" } } }
    : json(answers, "output");
  const responses = Object.entries({
    ...body && BODY_ERRORS,
    ...approves && { 401: "the server has a token, and the request none" },
    ...errors,
  }).map(([status, when]) => [
    status,
    { description: when, content: json(errorBody, "output") },
  ]);
  return {
    summary,
    ...parameters.length === 0 ? {} : { parameters },
    ...body && { requestBody: { required: true, content: json(body, "input") } },
    responses: { 200: { description: "done", content: ok }, ...Object.fromEntries(responses) },
  };
}

function json(schema: z.ZodMiniType, io: "input" | "output"): Record<string, unknown> {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return { "application/json": { schema: described } };
}
