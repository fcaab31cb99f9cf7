import { join } from "node:path";
import * as z from "zod/mini";
import type { Clock } from "../platform/clock.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import { STATES } from "./states.ts";

/** Where a fleet's files lie, below the worktree's `.svc`. */
export class FleetPlaces {
  /** The runtime snapshot (specification 2.8). */
  readonly snapshot: string;
  /** Held by the one supervisor for as long as it lives. */
  readonly lock: string;
  /** What the supervisor says when nobody is there to see it. */
  readonly log: string;
  /** Who runs, and what is asked of the supervisor. */
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

  /** Written by the agent's process itself, before it is the agent. */
  recordOf(name: string): string {
    return join(this.folder, `${name}.pid`);
  }

  /** There while somebody wants the agent restarted. */
  requestOf(name: string): string {
    return join(this.folder, `${name}.restart`);
  }
}

/** The names that files of a folder have before `suffix`; none when there is no folder. */
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

/** An agent as it was at the supervisor's last look (specification 2.8, 4.6). */
const agentSnapshot = z.object({
  name: z.string(),
  dir: text,
  enabled: z._default(z.boolean(), true),
  state: z.enum(STATES),
  /** Whether it has answered its health probes since it was started. */
  healthy: z._default(z.boolean(), false),
  /** Health probes that failed in a row since it last answered one. */
  failed_probes: count,
  port: z._default(z.nullable(z.int()), null),
  pid: z._default(z.nullable(z.int()), null),
  /** When it came into this state. */
  since: text,
  /** How often it was started again by itself. */
  restarts: count,
  /** Failures that count against `max_restarts`. */
  failures: count,
  /** When it is started again; empty: it does not wait for that. */
  retry_at: text,
  /** What went wrong last. */
  error: text,
  /** What of its definition the process was started with. */
  launched: text,
});
export type AgentSnapshot = z.infer<typeof agentSnapshot>;

const snapshot = z.object({
  supervisor: z._default(
    z.nullable(z.object({ pid: z.int(), started: z.string(), since: text })),
    null,
  ),
  agents: z._default(z.array(z.unknown()), []),
});

/** What the supervisor wrote last. */
export interface Snapshot {
  /** Null: it ended in good order. */
  supervisor: { pid: number; started: string; since: string } | null;
  agents: AgentSnapshot[];
}

/** `.svc/fleet.state.json`: written by the supervisor alone, and only when something has changed. */
export class SnapshotFile {
  readonly #file: RegistryFile;
  #written = "";

  constructor(path: string, clock: Clock, warn: (message: string) => void) {
    this.#file = new RegistryFile(path, clock, warn, (value) => snapshot.safeParse(value).success);
  }

  /** Empty when there is none, or it is broken. */
  read(): Snapshot {
    const { data } = snapshot.safeParse(this.#file.read() ?? {});
    const agents = (data?.agents ?? []).flatMap((entry) => {
      const { success, data } = agentSnapshot.safeParse(entry);
      return success ? [data] : [];
    });
    return { supervisor: data?.supervisor ?? null, agents };
  }

  async write(next: Snapshot): Promise<void> {
    const text = JSON.stringify(next);
    if (text === this.#written) return;
    await this.#file.update(() => next);
    this.#written = text;
  }
}
