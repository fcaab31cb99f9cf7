import { errorMessage, usageError } from "../platform/error.ts";
import type { AgentSnapshot } from "./snapshot.ts";
import { type State, STATES } from "./states.ts";

/** The supervisor's own port. */
export interface StatusServer {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * Tells programs of this machine how the agents fare: `GET /agents` as JSON, `GET /metrics` in the text
 * format of Prometheus, `GET /health`. It changes nothing.
 *
 * @param port 0: a free one
 * @throws SvcError `address` (exit 2) when the port cannot be had
 */
export function startStatusServer(port: number, agents: () => AgentSnapshot[]): StatusServer {
  const options = { hostname: "127.0.0.1", port, onListen: () => {} };
  let server: Deno.HttpServer<Deno.NetAddr>;
  try {
    server = Deno.serve(options, (request) => answer(request, agents()));
  } catch (error) {
    throw usageError("address", `Cannot listen on 127.0.0.1:${port}: ${errorMessage(error)}.`);
  }
  return { port: server.addr.port, stop: () => server.shutdown() };
}

function answer(request: Request, agents: AgentSnapshot[]): Response {
  // A page whose name was made to lead here still sends that name.
  if (!/^(localhost|127\.0\.0\.1)(:\d+)?$/i.test(request.headers.get("host") ?? "")) {
    return problem(403, "host not allowed");
  }
  const { pathname } = new URL(request.url);
  if (!["/agents", "/metrics", "/health"].includes(pathname)) return problem(404, "not found");
  if (request.method !== "GET") return problem(405, "method not allowed");
  if (pathname === "/health") return Response.json({ status: "ok" });
  if (pathname === "/agents") {
    return Response.json({ agents: agents.map(({ launched: _, ...agent }) => agent) });
  }
  const headers = { "content-type": "text/plain; version=0.0.4; charset=utf-8" };
  return new Response(metrics(agents), { headers });
}

function problem(status: number, error: string): Response {
  return Response.json({ error }, { status });
}

function metrics(agents: AgentSnapshot[]): string {
  const inState = (state: State) => agents.filter((agent) => agent.state === state).length;
  return [
    "# HELP svc_fleet_agents Agents by state.",
    "# TYPE svc_fleet_agents gauge",
    ...STATES.map((state) => `svc_fleet_agents{state="${state}"} ${inState(state)}`),
    "# HELP svc_fleet_agent_up Whether an agent runs and answers its health probes.",
    "# TYPE svc_fleet_agent_up gauge",
    ...agents.map(({ name, state, healthy }) =>
      `svc_fleet_agent_up{agent="${name}"} ${state === "running" && healthy ? 1 : 0}`
    ),
    "# HELP svc_fleet_agent_restarts How often an agent was started again since it was last down.",
    "# TYPE svc_fleet_agent_restarts gauge",
    ...agents.map(({ name, restarts }) => `svc_fleet_agent_restarts{agent="${name}"} ${restarts}`),
  ].join("\n") + "\n";
}
