import { join } from "node:path";

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
