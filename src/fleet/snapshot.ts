import { join } from "node:path";
import * as z from "zod/mini";
import type { Clock } from "../platform/clock.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import { STATES } from "./states.ts";

/** The paths of a fleet's files in the worktree's `.svc`. */
export class FleetPaths {
  /** The runtime snapshot (specification 2.8). */
  readonly snapshot: string;
  /** Locked by the one supervisor while it runs. */
  readonly lock: string;
  /** Output of a detached supervisor. */
  readonly log: string;
  /** Process records of the agents, and restart requests. */
  readonly folder: string;
  readonly #logs: string;

  constructor(state: string) {
    this.snapshot = join(state, "fleet.state.json");
    this.lock = join(state, "fleet.lock");
    this.folder = join(state, "fleet");
    this.#logs = join(state, "logs");
    this.log = join(this.#logs, "fleet.log");
  }

  logOf(name: string): string {
    return join(this.#logs, `${name}.log`);
  }

  /** The record that an agent's process writes before it executes the agent's program. */
  recordOf(name: string): string {
    return join(this.folder, `${name}.pid`);
  }

  /** A file that exists while a restart of the agent is requested. */
  requestOf(name: string): string {
    return join(this.folder, `${name}.restart`);
  }
}

/** The names of a folder's files with `suffix`, without it; none when there is no folder. */
export function namesIn(folder: string, suffix: string): string[] {
  try {
    return [...Deno.readDirSync(folder)].map(({ name }) => name)
      .filter((name) => name.endsWith(suffix))
      .map((name) => name.slice(0, -suffix.length)).sort();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}

const count = z._default(z.int().check(z.gte(0)), 0);
const text = z._default(z.string(), "");
const numberOrNone = z.pipe(
  z._default(z.nullable(z.int()), null),
  z.transform((value): number | null => value || null),
);

/** An agent as of the supervisor's last sweep (specification 2.8, 4.6). */
const agentSnapshot = z.object({
  name: z.string(),
  dir: text,
  enabled: z._default(z.boolean(), true),
  state: z.enum(STATES),
  /** Whether it has answered a health probe since its start. */
  healthy: z._default(z.boolean(), false),
  /** Health probes that failed in a row. */
  failed_probes: count,
  port: numberOrNone,
  pid: numberOrNone,
  /** When it entered this state, ISO 8601. */
  since: text,
  /** Automatic restarts. */
  restarts: count,
  /** Failures that count against `max_restarts`. */
  failures: count,
  /** When it is restarted; empty unless it waits for that. */
  retry_at: text,
  /** The last error. */
  error: text,
  /** The parts of its definition that the process was started with. */
  launched: text,
});
export type AgentSnapshot = z.infer<typeof agentSnapshot>;

const snapshot = z.object({
  supervisor: z._default(
    z.nullable(z.object({ pid: z.int(), started: z.string(), since: text })),
    null,
  ),
  agents: z._default(z.union([z.record(z.string(), z.unknown()), z.array(z.unknown())]), {}),
});

/** The content of the snapshot file. */
export interface Snapshot {
  /** Null: it has ended regularly. */
  supervisor: { pid: number; started: string; since: string } | null;
  agents: AgentSnapshot[];
}

/** `.svc/fleet.state.json`. Only the supervisor writes it, and only when something has changed. */
export class SnapshotFile {
  readonly #file: RegistryFile;
  #written = "";

  constructor(path: string, clock: Clock, warn: (message: string) => void) {
    this.#file = new RegistryFile(path, clock, warn, (value) => snapshot.safeParse(value).success);
  }

  /** The snapshot; empty when the file is missing or invalid. */
  read(): Snapshot {
    const { data } = snapshot.safeParse(this.#file.read() ?? {});
    const agents = Object.values(data?.agents ?? {}).flatMap((entry) => {
      const { success, data } = agentSnapshot.safeParse(entry);
      return success ? [data] : [];
    });
    return { supervisor: data?.supervisor ?? null, agents };
  }

  async write(next: Snapshot): Promise<void> {
    const text = JSON.stringify(next);
    if (text === this.#written) return;
    await this.#file.update(() => stored(next));
    this.#written = text;
  }
}

/** The snapshot as it is stored: also with the field names of the program that wrote this file before svc. */
function stored({ supervisor, agents }: Snapshot) {
  return {
    supervisor,
    supervisor_pid: supervisor?.pid ?? 0,
    supervisor_started_at: supervisor?.since ?? "",
    agents: Object.fromEntries(agents.map((agent) => [agent.name, {
      ...agent,
      port: agent.port ?? 0,
      pid: agent.pid ?? 0,
      status: statusOf(agent),
      started_at: agent.state === "running" ? agent.since : "",
      next_restart_at: agent.retry_at,
      last_error: agent.error,
      consecutive_unhealthy: agent.failed_probes,
    }])),
  };
}

function statusOf({ state, enabled, healthy, failed_probes }: AgentSnapshot): string {
  if (state === "down" || state === "stopping") return enabled ? "stopped" : "disabled";
  if (state !== "running") return state;
  return failed_probes > 0 ? "unhealthy" : healthy ? "healthy" : "starting";
}
