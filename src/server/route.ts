import * as z from "zod/mini";
import { VERSION } from "../platform/environment.ts";
import type { TokenRole } from "./admission.ts";

/** One route: what it takes and answers, how it does that, and its entry in the OpenAPI document. */
export interface Route {
  method: "GET" | "POST";
  /** With parameters written as `:name`. */
  path: string;
  summary: string;
  /** The JSON Schemas of the path's parameters, by name. `handle` checks them, since it has the error. */
  params?: Record<string, JsonSchema>;
  /** The headers that it reads, and what they mean. */
  headers?: Record<string, { description: string; pattern?: string }>;
  /** Schema of the query (see `readQuery`); left out: it is ignored. */
  query?: z.ZodMiniObject;
  /** Schema of the JSON body; left out: the route takes none. */
  body?: z.ZodMiniType;
  /** The answer with status 200: a schema of its JSON, or another media type. */
  answers: z.ZodMiniType | string;
  /** Whether it answers what it accepts with 202, and the same body. Default: no. */
  accepts?: true;
  /** The events of that answer where it can be an event stream instead. Default: it cannot. */
  streams?: string;
  /** The role that the token of a request must have. Default: `read` for GET, `operate` for POST. */
  role?: TokenRole;
  /** Whether it gives an approval, which needs a token on a server that has one. Default: no. */
  approves?: true;
  /** Whether its requests bear a signature, which `handle` checks, and need no token. Default: no. */
  signed?: true;
  /** Whether it is answered before admission: without a token, from any host, at any rate. Default: no. */
  open?: true;
  /** The other statuses of this route, and when it answers them. An answer below 400 has no body. */
  statuses?: Record<number, string>;
  /** Schema of the body of its own errors. Default: `{"error": <string>}`. */
  errors?: z.ZodMiniType;
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

/** The role that a request of this route needs. */
export function neededRole({ method, role }: Route): TokenRole {
  return role ?? (method === "GET" ? "read" : "operate");
}

type JsonSchema = Record<string, unknown>;

/** The errors of every route that admission guards (see `serveApp`). */
const ADMISSION_ERRORS = {
  401: "a valid token is required",
  403: "the host, the origin, or the role of the token is not allowed",
  405: "the path has no such method",
  429: "too many requests",
};
/** The errors of every route with a body (see `readBody`). */
const BODY_ERRORS = {
  400: "the body is not a JSON object, or broke off",
  408: "the body took too long to arrive",
  413: "the body is too large",
};

const errorBody = z.object({ error: z.string() });

/**
 * The OpenAPI 3.1 document of some routes, generated from their definitions.
 *
 * @param token which requests need a token: all; those that give an approval; none
 */
export function openApi(
  routes: readonly Route[],
  token: "always" | "approvals" | "never",
): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    const path = route.path.replaceAll(/:(\w+)/g, "{$1}");
    const needed = token === "always" || token === "approvals" && route.approves === true;
    const bearer = { token: [neededRole(route)] };
    const security = route.open || route.signed ? [] : needed ? [bearer] : [bearer, {}];
    (paths[path] ??= {})[route.method.toLowerCase()] = { ...operation(route), security };
  }
  return {
    openapi: "3.1.0",
    info: { title: "svc", version: VERSION },
    paths,
    components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
  };
}

function operation(route: Route): Record<string, unknown> {
  const { summary, params = {}, headers = {}, query, body, answers } = route;
  const { accepts, streams, open, statuses = {}, errors } = route;
  const parameters = Object.entries(params).map(([name, schema]) => (
    { name, in: "path", required: true, schema }
  ));
  const content = {
    ...typeof answers === "string"
      ? { [answers]: { schema: { type: "string" } } }
      : json(answers, "output"),
    ...streams && { "text/event-stream": { schema: { description: streams } } },
  };
  return {
    summary,
    parameters: [
      ...parameters,
      ...query === undefined ? [] : queryParameters(query),
      ...Object.entries(headers).map(([name, { description, pattern }]) => (
        { name, in: "header", description, schema: { type: "string", ...pattern && { pattern } } }
      )),
    ],
    ...body && { requestBody: { required: true, content: json(body, "input") } },
    responses: {
      200: { description: "done", content },
      ...accepts && { 202: { description: "accepted", content } },
      ...otherResponses([
        [open ? {} : ADMISSION_ERRORS, errorBody],
        [body === undefined ? {} : BODY_ERRORS, errorBody],
        [statuses, errors ?? errorBody],
      ]),
    },
  };
}

function queryParameters(query: z.ZodMiniObject): Record<string, unknown>[] {
  const { properties = {} } = z.toJSONSchema(query, { io: "input" });
  return Object.entries(properties).map(([name, schema]) => ({ name, in: "query", schema }));
}

/** The responses of some statuses: when each is answered, and the schema of its body. */
function otherResponses(
  sources: [when: Record<number, string>, body: z.ZodMiniType][],
): Record<string, unknown> {
  const all = sources.flatMap(([when, body]) =>
    Object.entries(when).map(([status, description]) => ({ status, description, body }))
  );
  const responses = Array.from(Map.groupBy(all, ({ status }) => status), ([status, same]) => {
    const description = same.map(({ description }) => description).join("; ");
    const [body, ...more] = new Set(same.map(({ body }) => body));
    const content = json(more.length === 0 ? body! : z.union([body!, ...more]), "output");
    return [status, { description, ...Number(status) >= 400 && { content } }];
  });
  return Object.fromEntries(responses);
}

function json(schema: z.ZodMiniType, io: "input" | "output"): Record<string, unknown> {
  const { $schema: _, ...described } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return { "application/json": { schema: described } };
}
