import { VERSION } from "../../platform/environment.ts";
import type { Route } from "../route.ts";
import { healthResponse, runsResponse, versionResponse } from "../schemas.ts";

/** What the server says of itself (specification 4.1). */
export const status: Route[] = [
  {
    method: "GET",
    path: "/health",
    summary: "Says that the server is there. Needs no token.",
    answers: healthResponse,
    handle: () => Response.json({ status: "ok" }),
  },
  {
    method: "GET",
    path: "/version",
    summary: "The version of the service.",
    answers: versionResponse,
    handle: () => Response.json({ version: VERSION }),
  },
  {
    method: "GET",
    path: "/runs",
    summary: "The turns that run or wait, then the ones that ended last, the newest first.",
    answers: runsResponse,
    handle: ({ turns }) => Response.json({ runs: turns.list() }),
  },
  {
    method: "GET",
    path: "/metrics",
    summary: "Counters and gauges in the text format of Prometheus.",
    answers: "text/plain; version=0.0.4",
    handle({ metrics, turns: { running, queued }, workspace }) {
      const sessions = workspace.sessions.list().length;
      const memory = Deno.memoryUsage().rss;
      const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
      return new Response(metrics.text({ running, queued, sessions, memory }), { headers });
    },
  },
];
