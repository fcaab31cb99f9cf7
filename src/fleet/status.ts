import type { Clock } from "../platform/clock.ts";
import { identifyProcesses, type ProcessIdentity, readRecord } from "../platform/detached.ts";
import { errorMessage, usageError } from "../platform/error.ts";
import { tryHold } from "../platform/files.ts";
import { METRICS_TYPE, metricText } from "../platform/metrics_text.ts";
import { type Roster, UNTRUSTED_COMMAND } from "./roster.ts";
import { type AgentSnapshot, FleetPaths, SnapshotFile } from "./snapshot.ts";
import { type State, STATES } from "./states.ts";

/** The fleet as another process than the supervisor sees it. */
export interface Overview {
  /** Null: none runs. */
  supervisor: { pid: number; since: string } | null;
  agents: AgentView[];
}

/** One row of `svc fleet status` (specification 4.6). */
export interface AgentView {
  name: string;
  dir: string;
  enabled: boolean;
  port: number | null;
  pid: number | null;
  state: State;
  /** Whether it has answered a health probe since its start. */
  healthy: boolean;
  /** Whether it has not answered its last probe, or no supervisor probes it. */
  failing: boolean;
  restarts: number;
  error: string;
  since: string;
  retry_at: string;
}

/** Combines the roster, the snapshot and the processes that really run. */
export async function fleetOverview(
  state: string,
  roster: Roster,
  clock: Clock,
  warn: (message: string) => void,
): Promise<Overview> {
  const paths = new FleetPaths(state);
  const snapshot = new SnapshotFile(paths.snapshot, clock, warn).read();
  const { supervisor } = snapshot;
  const known = new Map(snapshot.agents.map((agent) => [agent.name, agent]));
  const definitions = new Map((roster.read()?.agents ?? []).map((each) => [each.name, each]));
  const all = new Set([...definitions.keys(), ...known.keys()]);
  const records = new Map([...all].map((name) => [name, readRecord(paths.recordOf(name))]));
  const pids = [supervisor, ...records.values()].flatMap((process) => process?.pid ?? []);
  const processes = await processesOf(pids);
  const isAlive = ({ pid, started }: ProcessIdentity) =>
    started !== "" && processes?.get(pid) === started;
  const live = supervisor !== null &&
    (processes === undefined ? isLocked(paths.lock) : isAlive(supervisor));
  const names = [...definitions.keys(), ...(live ? known.keys() : [])];
  const agents = [...new Set(names)].map((name): AgentView => {
    const agent = known.get(name);
    const definition = definitions.get(name);
    const record = records.get(name);
    const runs = record !== undefined &&
      (processes === undefined ? live && agent?.state === "running" : isAlive(record));
    const unattended = runs ? "running" : agent?.state === "crashed" ? "crashed" : "down";
    return {
      name,
      dir: definition?.dir ?? agent?.dir ?? "",
      enabled: definition?.enabled ?? false,
      port: runs ? Number(record.note) : null,
      pid: runs ? record.pid : null,
      state: live ? agent?.state ?? "down" : unattended,
      healthy: runs && (agent?.healthy ?? false),
      failing: runs && (!live || (agent?.failed_probes ?? 0) > 0),
      restarts: agent?.restarts ?? 0,
      error: definition?.untrusted
        ? UNTRUSTED_COMMAND
        : !live && runs
        ? "no supervisor looks after it"
        : agent?.error ?? "",
      since: agent?.since ?? "",
      retry_at: live ? agent?.retry_at ?? "" : "",
    };
  });
  return {
    supervisor: live ? { pid: supervisor.pid, since: supervisor.since } : null,
    agents,
  };
}

/** The processes that run; undefined where this process may not start the program that looks at them. */
async function processesOf(pids: number[]): Promise<Map<number, string> | undefined> {
  try {
    return await identifyProcesses(pids);
  } catch (error) {
    if (error instanceof Deno.errors.NotCapable) return undefined;
    throw error;
  }
}

function isLocked(path: string): boolean {
  const lock = tryHold(path);
  lock?.release();
  return lock === undefined;
}

/** The HTTP server of the supervisor itself. */
export interface StatusServer {
  readonly port: number;
  stop(): Promise<void>;
}

/**
 * Serves the status of the agents to programs of this machine: `GET /agents` as JSON, `GET /metrics` in the
 * Prometheus text format, `GET /health`.
 *
 * @param port 0: a free one
 * @throws SvcError `address` (exit 2) when the port cannot be bound
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
  // Prevents DNS rebinding: a page whose name resolves to this address still sends that name.
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
  return new Response(metrics(agents), { headers: { "content-type": METRICS_TYPE } });
}

function problem(status: number, error: string): Response {
  return Response.json({ error }, { status });
}

function metrics(agents: AgentSnapshot[]): string {
  const gauge = { type: "gauge" } as const;
  return [
    metricText(
      { ...gauge, name: "svc_fleet_agents", help: "Agents by state." },
      STATES.map((state) =>
        [`{state="${state}"}`, agents.filter((agent) => agent.state === state).length] as const
      ),
    ),
    metricText(
      {
        ...gauge,
        name: "svc_fleet_agent_up",
        help: "Whether an agent runs and answers its health probes.",
      },
      agents.map(({ name, state, healthy }) =>
        [`{agent="${name}"}`, state === "running" && healthy ? 1 : 0] as const
      ),
    ),
    metricText(
      {
        ...gauge,
        name: "svc_fleet_agent_restarts",
        help: "How often an agent was started again since it was last down.",
      },
      agents.map(({ name, restarts }) => [`{agent="${name}"}`, restarts] as const),
    ),
  ].join("");
}
