import { resolve } from "node:path";
import { type Clock, timestamp } from "../platform/clock.ts";
import { errorMessage } from "../platform/error.ts";
import { tryRemove } from "../platform/files.ts";
import { ownIdentity, rotateLog } from "../platform/detached.ts";
import { Agent, type AgentSettings, SteadyClock } from "./agent.ts";
import { AgentProcess } from "./agent_process.ts";
import { type Definition, type Listing, type Roster, UNTRUSTED_COMMAND } from "./roster.ts";
import { type AgentSnapshot, FleetPaths, namesIn, SnapshotFile } from "./snapshot.ts";

export interface SupervisorOptions extends Omit<AgentSettings, "clock" | "dir" | "paths"> {
  /** Real absolute path. */
  worktree: string;
  /** `<worktree>/.svc` */
  state: string;
  roster: Roster;
  clock: Clock;
  warn: (message: string) => void;
}

/** Milliseconds between two sweeps while agents start or stop. */
const BUSY = 200;
/** Milliseconds between two checks of the log sizes. */
const ROTATION = 15_000;
/** Milliseconds by which a sweep may be late on a busy machine. */
const PAUSE = 30_000;
/** Agents that start at once at most; more would only slow each other down. */
const STARTING = 2 * navigator.hardwareConcurrency;

/** Keeps the agents of a roster running (specification 3.4, 4.6). The caller holds the fleet's lock. */
export class Supervisor {
  readonly #options: SupervisorOptions;
  readonly #paths: FleetPaths;
  readonly #snapshot: SnapshotFile;
  readonly #clock: SteadyClock;
  readonly #agents = new Map<string, Agent>();
  #supervisor: { pid: number; started: string; since: string } | null = null;
  #listing: Listing | undefined;
  /** Names of the agents whose command is not trusted. */
  readonly #untrusted = new Set<string>();
  #rotated = 0;
  /** The error of the last write of the snapshot; empty when it succeeded. */
  #unsaved = "";
  #ending = false;

  constructor(options: SupervisorOptions) {
    this.#options = options;
    this.#clock = new SteadyClock(options.clock, options.sweep + PAUSE);
    this.#paths = new FleetPaths(options.state);
    this.#snapshot = new SnapshotFile(this.#paths.snapshot, options.clock, options.warn);
  }

  /** Supervises until the signal aborts, then stops every agent. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, sweep } = this.#options;
    await this.adopt();
    while (!signal.aborted) {
      await this.sweep();
      await clock.sleep(this.#busy() ? Math.min(BUSY, sweep) : sweep, signal).catch(() => {});
    }
    await this.stop();
  }

  /**
   * Takes over from an earlier supervisor: counters and crashed agents from its snapshot, and running processes
   * whose record proves that they are agents. No process is started.
   */
  async adopt(): Promise<void> {
    this.#supervisor = { ...await ownIdentity(), since: timestamp(this.#options.clock) };
    this.#read();
    const before = new Map(this.#snapshot.read().agents.map((agent) => [agent.name, agent]));
    const names = new Set([...this.#agents.keys(), ...namesIn(this.#paths.folder, ".pid")]);
    await Promise.all([...names].map(async (name) => {
      const process = await AgentProcess.adopt(name, this.#paths);
      const agent = this.#agents.get(name);
      if (agent !== undefined) await agent.restore(before.get(name), process);
      else if (process === undefined) tryRemove(this.#paths.recordOf(name));
      // Removed from the roster, unless the roster or this entry of it cannot be read.
      else if (this.#listing !== undefined && !this.#listing.broken.includes(name)) {
        const gone = new Agent(name, this.#settings());
        this.#agents.set(name, gone);
        await gone.restore(before.get(name), process);
      }
    }));
    await this.#save();
  }

  /** Handles every agent once, without waiting for any. */
  async sweep(): Promise<void> {
    this.#read();
    this.#handleRequests();
    const agents = [...this.#agents.values()];
    await AgentProcess.checkAdopted(agents.flatMap(({ process }) => process ?? []));
    const taken = new Set(agents.flatMap(({ process }) => process?.port ?? []));
    const wanted = new Set(agents.flatMap(({ definition }) => definition?.prefer_port ?? []));
    const kept = new Set(agents.flatMap(({ port }) => port ?? []));
    let starting = agents.filter((agent) => agent.starting()).length;
    for (const agent of agents) {
      const before = agent.process;
      const may_start = starting < STARTING;
      await agent.sweep({ ending: this.#ending, may_start, taken, wanted, kept });
      if (agent.process !== undefined && agent.process !== before) {
        starting++;
        taken.add(agent.process.port);
      }
      if (agent.definition === undefined && agent.gone()) this.#agents.delete(agent.name);
    }
    this.#rotate();
    await this.#save();
  }

  /** Stops every agent with SIGINT, and with SIGKILL after the grace period. */
  async stop(): Promise<void> {
    this.#ending = true;
    for (;;) {
      await this.sweep();
      if ([...this.#agents.values()].every((agent) => agent.gone())) break;
      await this.#options.clock.sleep(BUSY);
    }
    this.#supervisor = null;
    await this.#save();
  }

  /** The current status of all agents, in the order of the roster. */
  agents(): AgentSnapshot[] {
    return [...this.#agents.values()].map((agent) => agent.snapshot());
  }

  #busy(): boolean {
    return [...this.#agents.values()].some((agent) => agent.busy());
  }

  /** Applies the current roster. A roster that cannot be read changes nothing. */
  #read(): void {
    const listing = this.#options.roster.read();
    if (listing === undefined) return;
    this.#listing = listing;
    for (const definition of listing.agents) {
      this.#warnUntrusted(definition);
      let agent = this.#agents.get(definition.name);
      if (agent === undefined) {
        agent = new Agent(definition.name, this.#settings());
        this.#agents.set(definition.name, agent);
      }
      agent.define(definition);
    }
    const names = new Set([...listing.agents.map(({ name }) => name), ...listing.broken]);
    for (const [name, agent] of this.#agents) {
      if (!names.has(name)) agent.define(undefined);
    }
  }

  #warnUntrusted({ name, untrusted }: Definition): void {
    if (untrusted && !this.#untrusted.has(name)) {
      this.#options.warn(`The agent ${name} is not started: ${UNTRUSTED_COMMAND}.`);
    }
    if (untrusted) this.#untrusted.add(name);
    else this.#untrusted.delete(name);
  }

  #handleRequests(): void {
    for (const name of namesIn(this.#paths.folder, ".restart")) {
      // A request that cannot be removed would restart the agent with every sweep, so it is ignored.
      if (tryRemove(this.#paths.requestOf(name))) this.#agents.get(name)?.restart();
    }
  }

  #settings(): AgentSettings {
    const { worktree, svc, serve, ports, reservations, sweep, unhealthy_threshold, grace, say } =
      this.#options;
    return {
      dir: (definition) => resolve(worktree, definition.dir),
      svc,
      serve,
      ports,
      reservations,
      sweep,
      unhealthy_threshold,
      grace,
      clock: this.#clock,
      say,
      paths: this.#paths,
    };
  }

  #rotate(): void {
    const now = this.#clock.now();
    if (now - this.#rotated < ROTATION) return;
    this.#rotated = now;
    const logs = [...this.#agents.keys()].map((name) => this.#paths.logOf(name));
    for (const log of [this.#paths.log, ...logs]) {
      try {
        rotateLog(log);
      } catch (error) {
        this.#options.warn(`${log} cannot be rotated: ${errorMessage(error)}`);
      }
    }
  }

  /** A failed write, such as on a full disk, does not stop the supervision and is warned about once. */
  async #save(): Promise<void> {
    let problem = "";
    try {
      await this.#snapshot.write({ supervisor: this.#supervisor, agents: this.agents() });
    } catch (error) {
      problem = errorMessage(error);
    }
    if (problem !== "" && problem !== this.#unsaved) this.#options.warn(problem);
    this.#unsaved = problem;
  }
}
