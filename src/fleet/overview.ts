import type { Clock } from "../platform/clock.ts";
import { readRecord } from "../platform/detached.ts";
import { identifyProcesses, isAlive } from "../platform/process_identity.ts";
import { FleetPlaces } from "./places.ts";
import type { Roster } from "./roster.ts";
import { SnapshotFile } from "./snapshot.ts";
import type { State } from "./states.ts";

/** The fleet as somebody outside of the supervisor sees it. */
export interface Overview {
  /** Null: there is none. */
  supervisor: { pid: number; since: string } | null;
  agents: AgentView[];
}

/** An agent at one glance (specification 4.6). */
export interface AgentView {
  name: string;
  dir: string;
  enabled: boolean;
  port: number | null;
  pid: number | null;
  state: State;
  /** Whether it has answered its health probes since it was started. */
  healthy: boolean;
  /** Whether it has left its last probe unanswered, or nobody probes it. */
  failing: boolean;
  restarts: number;
  error: string;
  since: string;
  retry_at: string;
}

/** What the roster, the snapshot and the processes that are really there come to together. */
export async function fleetOverview(
  state: string,
  roster: Roster,
  clock: Clock,
  warn: (message: string) => void,
): Promise<Overview> {
  const places = new FleetPlaces(state);
  const snapshot = new SnapshotFile(places.snapshot, clock, warn).read();
  const { supervisor } = snapshot;
  const live = supervisor !== null && await isAlive(supervisor);
  const known = new Map(snapshot.agents.map((agent) => [agent.name, agent]));
  const definitions = new Map((roster.read()?.agents ?? []).map((each) => [each.name, each]));
  const names = [...new Set([...definitions.keys(), ...(live ? known.keys() : [])])];

  const records = new Map(names.map((name) => [name, readRecord(places.recordOf(name))]));
  const pids = [...records.values()].flatMap((record) => record?.pid ?? []);
  const processes = await identifyProcesses(pids);
  const agents = names.map((name): AgentView => {
    const agent = known.get(name);
    const definition = definitions.get(name);
    const record = records.get(name);
    const runs = record !== undefined && processes.get(record.pid) === record.started;
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
      error: !live && runs ? "no supervisor looks after it" : agent?.error ?? "",
      since: agent?.since ?? "",
      retry_at: live ? agent?.retry_at ?? "" : "",
    };
  });
  return {
    supervisor: live ? { pid: supervisor.pid, since: supervisor.since } : null,
    agents,
  };
}
