import * as z from "zod/mini";
import type { Clock } from "../platform/clock.ts";
import { RegistryFile } from "../platform/registry_file.ts";
import { STATES } from "./states.ts";

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
