import * as z from "zod/mini";
import { VERSION } from "../platform/environment.ts";
import type { Route } from "./route.ts";
import { errorResponse } from "./schemas.ts";

/** The OpenAPI 3.1 document of these routes, generated from what they check and answer with. */
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
    security: [{ token: [] }, {}], // a server without tokens asks for none
  };
}

function operation({ path, summary, body, answers, errors = {} }: Route): Record<string, unknown> {
  const parameters = Array.from(path.matchAll(/:(\w+)/g), ([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: { type: "string" },
  }));
  const ok = typeof answers === "string"
    ? { [answers]: { schema: { type: "string" } } }
    : json(answers, "output");
  const responses = Object.entries({ ...body && TAKES_BODY, ...errors }).map(([status, when]) => [
    status,
    { description: when, content: json(errorResponse, "output") },
  ]);
  return {
    summary,
    ...parameters.length === 0 ? {} : { parameters },
    ...body && { requestBody: { required: true, content: json(body, "input") } },
    responses: { 200: { description: "done", content: ok }, ...Object.fromEntries(responses) },
  };
}

/** What any route with a body may answer. */
const TAKES_BODY = { 408: "the body took too long to arrive", 413: "the body is too large" };

function json(schema: z.ZodMiniType, io: "input" | "output"): Record<string, unknown> {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return { "application/json": { schema: described } };
}
