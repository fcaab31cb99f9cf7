import type { Clock } from "../platform/clock.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { AgentProcess } from "./agent_process.ts";
import { type PortRange, reservePort } from "./ports.ts";
import { probeHealth, probeVersion } from "./probe.ts";
import type { Definition } from "./roster.ts";
import type { AgentSnapshot, FleetPlaces } from "./snapshot.ts";
import { type Action, initialStatus, type Status, transition, type Trigger } from "./states.ts";

/** What all agents of a fleet have in common. */
export interface AgentSettings {
  /** The absolute path of an agent's folder. */
  dir: (definition: Definition) => string;
  svc: readonly string[];
  ports: PortRange;
  /** Folder that all fleets of a user share, where ports are held. */
  reservations: string;
  /** Milliseconds. */
  sweep: number;
  unhealthy_threshold: number;
  /** Milliseconds. */
  grace: number;
  clock: SteadyClock;
  say: (line: string) => void;
  places: FleetPlaces;
}

/** What the supervisor tells an agent in a sweep. */
export interface Surroundings {
  /** The supervisor is ending. */
  ending: boolean;
  may_start: boolean;
  /** Ports of all agents. */
  taken: ReadonlySet<number>;
  /** Ports that some agent prefers. */
  wanted: ReadonlySet<number>;
}

/** Milliseconds after which an agent that does not come up keeps no other from starting. */
const START_TURN = 10_000;
/** Milliseconds between two probes of an agent that is starting. */
const EAGER = 200;

/** One agent under supervision: its definition, its status, and its process if there is one. */
export class Agent {
  readonly name: string;
  readonly #settings: AgentSettings;
  /** Undefined: it is not in the roster any more. */
  definition: Definition | undefined;
  process: AgentProcess | undefined;
  #status: Status;
  #launched = "";
  #action: Action | undefined;
  #probing = false;
  #probed: { process: AgentProcess; error: string | undefined } | undefined;
  #probe_at = 0;

  constructor(name: string, settings: AgentSettings) {
    this.name = name;
    this.#settings = settings;
    this.#status = initialStatus(settings.clock.now());
  }

  get enabled(): boolean {
    return this.definition?.enabled ?? false;
  }

  /** Gives it another definition; a process that was started with another command begins anew. */
  define(definition: Definition | undefined): void {
    this.definition = definition;
    const differs = definition !== undefined && launchOf(definition) !== this.#launched;
    if (differs && this.process !== undefined && this.#launched !== "") {
      if (this.#status.state === "running") this.#settings.say(`${this.name}: has been redefined`);
      this.restart();
    }
  }

  /** Stops it if it runs, and forgets all failures: the next sweep starts it. */
  restart(): void {
    this.#apply({ type: "restart" });
  }

  /** Goes on from where an earlier supervisor was, with the process that it has left. */
  async restore(before: AgentSnapshot | undefined, found: AgentProcess | undefined): Promise<void> {
    const now = this.#settings.clock.now();
    const { state, restarts = 0, failures = 0, error = "", launched = "" } = before ?? {};
    const kept = { ...initialStatus(now), restarts, failures, error };
    if (found === undefined) {
      if (state === "crashed") this.#status = { ...kept, state };
      return;
    }
    const since = Date.parse(before?.since ?? "") || now;
    this.process = found;
    this.#launched = launched || (this.definition ? launchOf(this.definition) : "");
    this.#status = { ...kept, state: "running", since, healthy: true };
    const doubt = await this.#doubt(found);
    this.#settings.say(
      `${this.name}: found running, pid ${found.pid}, port ${found.port}` +
        (doubt === undefined ? "" : `; but ${doubt}`),
    );
    // Whoever runs, but is not there for its callers, is replaced. It is not joined by a second one.
    while (doubt !== undefined && this.#status.state === "running") {
      this.#apply({ type: "probed", error: doubt });
    }
  }

  /** Looks after it once. */
  async sweep(around: Surroundings): Promise<void> {
    if (this.process?.exit !== undefined) {
      const { exit } = this.process;
      this.process.forget();
      this.process = undefined;
      this.#apply({ type: "exited", error: exit });
    }
    this.#takeProbe();
    this.#apply({ type: "sweep", enabled: this.enabled && !around.ending });
    const action = this.#action;
    this.#action = undefined;
    if (action === "interrupt") await this.process?.interrupt();
    else if (action === "kill") await this.process?.kill();
    else if (action === "spawn" && around.may_start) this.#spawn(around);
    this.#startProbe();
  }

  /** Whether it has been started just now. */
  starting(): boolean {
    const { state, healthy, since } = this.#status;
    return state === "running" && !healthy && this.#settings.clock.now() - since < START_TURN;
  }

  /** Whether something about it will change before long. */
  busy(): boolean {
    const { state, retry_at, error } = this.#status;
    return this.starting() || state === "stopping" || this.#action !== undefined ||
      (state === "down" && this.enabled && error === "") ||
      (state === "restarting" && retry_at - this.#settings.clock.now() < this.#settings.sweep);
  }

  /** Whether nothing of it runs. */
  gone(): boolean {
    return this.process === undefined && this.#status.state === "down";
  }

  snapshot(): AgentSnapshot {
    const { state, healthy, failed_probes, restarts, failures, error } = this.#status;
    return {
      name: this.name,
      dir: this.definition?.dir ?? "",
      enabled: this.enabled,
      state,
      healthy,
      failed_probes,
      port: this.process?.port ?? null,
      pid: this.process?.pid ?? null,
      since: this.#timeText(this.#status.since),
      restarts,
      failures,
      retry_at: state === "restarting" ? this.#timeText(this.#status.retry_at) : "",
      error,
      launched: this.#launched,
    };
  }

  #timeText(time: number): string {
    return new Date(this.#settings.clock.shown(time)).toISOString();
  }

  #spawn({ taken, wanted }: Surroundings): void {
    const definition = this.definition!;
    const { ports, svc, places, clock, reservations } = this.#settings;
    const found = reservePort(ports, {
      prefer: definition.prefer_port,
      taken,
      wanted,
      folder: reservations,
    });
    if (found === undefined) {
      this.#apply({ type: "blocked", error: `no free port from ${ports.first} to ${ports.last}` });
      return;
    }
    this.#launched = launchOf(definition);
    this.#probe_at = clock.now() + EAGER;
    try {
      const dir = this.#settings.dir(definition);
      this.process = AgentProcess.launch({ definition, dir, port: found, svc, places });
      this.#apply({ type: "spawned" });
    } catch (error) {
      found.release();
      if (error instanceof SvcError && error.code === "detached_record") { // such as on a full disk
        this.#apply({ type: "blocked", error: error.message });
        return;
      }
      this.#apply({ type: "spawned" });
      this.#apply({ type: "exited", error: errorMessage(error) });
    }
  }

  #startProbe(): void {
    const { clock, sweep } = this.#settings;
    const { process } = this;
    if (process === undefined || this.#status.state !== "running" || this.#probing) return;
    const now = clock.now();
    if (now < this.#probe_at) return;
    this.#probe_at = now + (this.#status.healthy ? sweep : Math.min(EAGER, sweep));
    this.#probing = true;
    probeHealth(process.port, clock).then((error) => {
      this.#probed = { process, error };
      this.#probing = false;
    });
  }

  #takeProbe(): void {
    const probed = this.#probed;
    this.#probed = undefined;
    if (probed === undefined || probed.process !== this.process) return; // of the one before
    this.#apply({ type: "probed", error: probed.error });
  }

  #doubt({ port }: AgentProcess): Promise<string | undefined> {
    const own = this.definition?.command !== undefined;
    return probeVersion(port, this.#settings.clock, { own });
  }

  #apply(trigger: Trigger): void {
    const { unhealthy_threshold, grace, clock } = this.#settings;
    const max_restarts = this.definition?.max_restarts ?? 0;
    const policy = { max_restarts, unhealthy_threshold, grace };
    const before = this.#status;
    const { status, action } = transition(before, trigger, { now: clock.now(), policy });
    this.#status = status;
    if (action !== undefined) this.#action = action;
    this.#tell(before);
  }

  #tell(before: Status): void {
    const news = newsOf(this.#status, before, this.process);
    if (news !== "") this.#settings.say(`${this.name}: ${news}`);
  }
}

/** What of a definition only another process can take up. */
function launchOf({ dir, command, prefer_port }: Definition): string {
  return JSON.stringify([dir, command ?? null, prefer_port ?? null]);
}

/** What has happened to an agent that is worth a line; empty: nothing. */
export function newsOf(
  now: Status,
  before: Status,
  process: { pid: number; port: number } | undefined,
): string {
  if (now.state !== before.state) return arrival(now, process);
  if (now.state === "running") return now.healthy && !before.healthy ? "is healthy" : "";
  return now.error === before.error ? "" : now.error;
}

/** How it came into its state. */
function arrival(
  { state, error, next, retry_at, since, failures }: Status,
  process: { pid: number; port: number } | undefined,
): string {
  const again = `again in ${Math.max(0, Math.round((retry_at - since) / 1000))} s`;
  switch (state) {
    case "running":
      return process === undefined ? "" : `started, pid ${process.pid}, port ${process.port}`;
    case "stopping":
      return next === "down" ? "is told to stop" : `${error}; is told to stop`;
    case "restarting":
      return `${error}; ${again}`;
    case "crashed":
      return `${error}; crashed after ${failures} failures, until it is restarted`;
    case "down":
      return "is down";
  }
}

/**
 * A clock that goes on only while it is looked at: what its source jumps, forwards or back, is left out. So
 * neither a machine that slept, nor a supervisor that was stopped, nor a corrected clock uses up an
 * agent's time to start, or makes it wait for hours.
 */
export class SteadyClock implements Clock {
  readonly #source: Clock;
  readonly #longest: number;
  #seen: number;
  #jumped = 0;

  /** @param longest milliseconds between two looks beyond which it was a jump */
  constructor(source: Clock, longest: number) {
    this.#source = source;
    this.#longest = longest;
    this.#seen = source.now();
  }

  now(): number {
    const now = this.#source.now();
    const passed = now - this.#seen;
    this.#seen = now;
    if (passed < 0 || passed > this.#longest) this.#jumped += passed;
    return now - this.#jumped;
  }

  sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return this.#source.sleep(ms, signal);
  }

  /** What the source would call this clock's time. */
  shown(time: number): number {
    return time + this.#jumped;
  }
}
