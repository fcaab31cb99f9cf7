import type * as z from "zod/mini";
import type { Workspace } from "../engine/workspace.ts";
import type { JobContext } from "../jobs/context.ts";
import { readJson } from "./body.ts";
import { HttpError } from "./http_error.ts";
import type { JobRuns } from "./job_runs.ts";
import type { McpMount } from "./mcp_mount.ts";
import type { Metrics } from "./metrics.ts";
import type { Turns } from "./turns.ts";

/** What the routes of one server share. */
export interface ServerContext {
  workspace: Workspace;
  turns: Turns;
  metrics: Metrics;
  jobs: JobContext;
  jobRuns: JobRuns;
  /** Where MCP is served. */
  mcp?: McpMount;
}

/** What a route answers to. */
export interface RouteRequest extends ServerContext {
  request: Request;
  /** What stands for `:name` in the path. */
  params: Record<string, string>;
}

/** One route, and what the OpenAPI document says of it. */
export interface Route {
  method: "GET" | "POST";
  /** Parameters as `:name`. */
  path: string;
  summary: string;
  /** Of its JSON body; left out: it takes none. */
  body?: z.ZodMiniType;
  /** Of the answer with status 200: a schema of its JSON, or another media type. */
  answers: z.ZodMiniType | string;
  /** Statuses of its own errors, and when. */
  errors?: Record<number, string>;
  handle(request: RouteRequest): Response | Promise<Response>;
}

/**
 * The checked body of a request.
 *
 * @param required the field without which nothing can be done
 * @throws HttpError, see {@linkcode readJson}; 400 when the body does not fit
 */
export async function body<T extends z.ZodMiniType>(
  { request, workspace: { config, clock } }: RouteRequest,
  schema: T,
  required: string,
): Promise<z.infer<T>> {
  const value = await readJson(request, {
    max: config.get("serve.max_body"),
    timeout: config.get("serve.body_timeout"),
    clock,
  });
  const { success, data, error } = schema.safeParse(value);
  if (success) return data;
  const field = String(error.issues[0]?.path[0]);
  if (error.issues.some(({ path }) => path[0] === required)) {
    throw new HttpError(400, `missing "${required}"`);
  }
  throw new HttpError(400, `wrong "${field}"`);
}
