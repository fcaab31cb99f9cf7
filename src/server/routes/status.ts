import * as z from "zod/mini";
import type { Workspace } from "../../engine/workspace.ts";
import { VERSION } from "../../platform/environment.ts";
import { exists } from "../../platform/files.ts";
import { METRICS_TYPE } from "../../platform/metrics_text.ts";
import type { Metrics } from "../metrics.ts";
import type { Route } from "../route.ts";
import type { Turns } from "../turns.ts";

/** The state of the server itself (specification 4.1). */
export function statusRoutes(workspace: Workspace, turns: Turns, metrics: Metrics): Route[] {
  return [
    {
      method: "GET",
      path: "/health",
      summary:
        "Says that the server is there, and with status 503 why it cannot work. Needs no token.",
      open: true,
      answers: z.object({ status: z.string(), error: z.optional(z.string()) }),
      handle() {
        const { worktree } = workspace.paths;
        if (exists(worktree)) return Response.json({ status: "ok" });
        // Without its path, which is no business of a client without a token.
        const error = "the worktree is not there";
        return Response.json({ status: "error", error }, { status: 503 });
      },
    },
    {
      method: "GET",
      path: "/ready",
      summary:
        "Says that the server can work now, and with status 503 that the store does not answer. Needs no token.",
      open: true,
      answers: z.object({ status: z.string(), error: z.optional(z.string()) }),
      async handle() {
        if (workspace.store === undefined || await workspace.store.answers()) {
          return Response.json({ status: "ok" });
        }
        const error = "the store does not answer";
        return Response.json({ status: "error", error }, { status: 503 });
      },
    },
    {
      method: "GET",
      path: "/version",
      summary: "The version of the service.",
      answers: z.object({ version: z.string() }),
      handle: () => Response.json({ version: VERSION }),
    },
    {
      method: "GET",
      path: "/metrics",
      summary: "Counters and gauges in the text format of Prometheus.",
      answers: "text/plain; version=0.0.4",
      async handle() {
        const { running, queued } = turns;
        const sessions = await workspace.sessions.count();
        const memory = Deno.memoryUsage().rss;
        const depth = await (await workspace.store?.open())?.queue.depth();
        const text = metrics.text({ running, queued, sessions, memory, depth });
        return new Response(text, { headers: { "content-type": METRICS_TYPE } });
      },
    },
  ];
}
