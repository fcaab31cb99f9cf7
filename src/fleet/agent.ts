import type { Clock } from "../platform/clock.ts";
import { errorMessage, SvcError } from "../platform/error.ts";
import { AgentProcess } from "./agent_process.ts";
import { type PortRange, reservePort } from "./ports.ts";
import { probeHealth, probeVersion } from "./probe.ts";
import type { Definition } from "./roster.ts";
import type { AgentSnapshot, FleetPaths } from "./snapshot.ts";
import { type Action, initialStatus, type Status, transition, type Trigger } from "./states.ts";

/** Settings that all agents of a fleet share. */
export interface AgentSettings {
  /** The absolute path of an agent's folder. */
  dir: (definition: Definition) => string;
  /** The command line of svc itself. */
  svc: readonly string[];
  /** More arguments of their `svc serve`. */
  serve?: readonly string[];
  ports: PortRange;
  /** Folder that all fleets of a user share, where ports are held. */
  reservations: string;
  /** Milliseconds between two sweeps. */
  sweep: number;
  unhealthy_threshold: number;
  /** Milliseconds that an agent has to end its turns before it is killed. */
  grace: number;
  clock: SteadyClock;
  /** Receives one line about each event. */
  say: (line: string) => void;
  paths: FleetPaths;
}

/** The state of the fleet that an agent needs to know in a sweep. */
export interface SweepContext {
  /** Whether the supervisor is stopping. */
  ending: boolean;
  /** Whether another process may be started in this sweep. */
  may_start: boolean;
  /** Ports that agents use; an agent removes that of its process when it has ended. */
  taken: Set<number>;
  /** Ports that the roster gives to agents. */
  wanted: ReadonlySet<number>;
  /** Ports that agents had last. */
  kept: ReadonlySet<number>;
}

/** Milliseconds for which an agent that is not yet healthy counts as starting. */
const START_TURN = 10_000;
/** Milliseconds between two probes of an agent that is starting. */
const EAGER = 200;

/** One supervised agent: its definition, its status, and its process if it has one. */
export class Agent {
  readonly name: string;
  readonly #settings: AgentSettings;
  /** Undefined: the agent was removed from the roster. */
  definition: Definition | undefined;
  process: AgentProcess | undefined;
  /** The port of the process or of the last one; the next process gets it again if it can. */
  port: number | undefined;
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

  /** Sets the definition. A process that was started with another folder, command or port is restarted. */
  define(definition: Definition | undefined): void {
    this.definition = definition;
    const differs = definition !== undefined && launchOf(definition) !== this.#launched;
    if (differs && this.process !== undefined && this.#launched !== "") {
      if (this.#status.state === "running") this.#settings.say(`${this.name}: has been redefined`);
      this.restart();
    }
  }

  /** Stops the process if it runs, and resets the failures. The next sweep starts the agent. */
  restart(): void {
    this.#apply({ type: "restart" });
  }

  /** Continues from the state of an earlier supervisor, with the process that it left. */
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
    this.port = found.port;
    this.#launched = launched || (this.definition ? launchOf(this.definition) : "");
    this.#status = { ...kept, state: "running", since, healthy: true };
    const doubt = await this.#doubt(found);
    this.#settings.say(
      `${this.name}: found running, pid ${found.pid}, port ${found.port}` +
        (doubt === undefined ? "" : `; but ${doubt}`),
    );
    // A process that runs but does not answer is replaced; a second one is never started next to it.
    while (doubt !== undefined && this.#status.state === "running") {
      this.#apply({ type: "probed", error: doubt });
    }
  }

  /** Handles the exit and the probe results of the process, and starts or stops it. */
  async sweep(context: SweepContext): Promise<void> {
    if (this.process?.exit !== undefined) {
      const { exit, port } = this.process;
      this.process.forget();
      context.taken.delete(port);
      this.process = undefined;
      this.#apply({ type: "exited", error: exit });
    }
    this.#applyProbe();
    this.#apply({ type: "sweep", enabled: this.enabled && !context.ending });
    const action = this.#action;
    this.#action = undefined;
    if (action === "interrupt") await this.process?.interrupt();
    else if (action === "kill") await this.process?.kill();
    else if (action === "spawn" && context.may_start) this.#spawn(context);
    this.#startProbe();
  }

  /** Whether the process was started less than ten seconds ago and is not yet healthy. */
  starting(): boolean {
    const { state, healthy, since } = this.#status;
    return state === "running" && !healthy && this.#settings.clock.now() - since < START_TURN;
  }

  /** Whether the next sweep should come soon. */
  busy(): boolean {
    const { state, retry_at, error } = this.#status;
    return this.starting() || state === "stopping" || this.#action !== undefined ||
      (state === "down" && this.enabled && error === "") ||
      (state === "restarting" && retry_at - this.#settings.clock.now() < this.#settings.sweep);
  }

  /** Whether the agent is down and has no process. */
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

  #spawn({ taken, wanted, kept }: SweepContext): void {
    const definition = this.definition!;
    const { ports, svc, serve, paths, clock, reservations } = this.#settings;
    const last = this.port === undefined || wanted.has(this.port) ? undefined : this.port;
    const found = reservePort(ports, {
      prefer: definition.prefer_port ?? last,
      taken,
      wanted: new Set([...wanted, ...kept]),
      folder: reservations,
    });
    if (found === undefined) {
      this.#apply({ type: "blocked", error: `no free port from ${ports.first} to ${ports.last}` });
      return;
    }
    this.port = found.port;
    this.#launched = launchOf(definition);
    this.#probe_at = clock.now() + EAGER;
    try {
      const dir = this.#settings.dir(definition);
      this.process = AgentProcess.launch({ definition, dir, port: found, svc, serve, paths });
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

  #applyProbe(): void {
    const probed = this.#probed;
    this.#probed = undefined;
    if (probed === undefined || probed.process !== this.process) return; // a result about the process before
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
    this.#report(before);
  }

  #report(before: Status): void {
    const line = logLine(this.#status, before, this.process);
    if (line !== "") this.#settings.say(`${this.name}: ${line}`);
  }
}

/** The parts of a definition that need a restart when they change. */
function launchOf({ dir, command, prefer_port }: Definition): string {
  return JSON.stringify([dir, command ?? null, prefer_port ?? null]);
}

/** The log line about a change of an agent; empty when there is nothing to report. */
function logLine(
  now: Status,
  before: Status,
  process: { pid: number; port: number } | undefined,
): string {
  if (now.state !== before.state) return stateLine(now, process);
  if (now.state === "running") return now.healthy && !before.healthy ? "is healthy" : "";
  return now.error === before.error ? "" : now.error;
}

/** The log line about the state that an agent has entered. */
function stateLine(
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
 * A clock that ignores jumps of its source, forwards or backwards. The time for which the machine slept or
 * the supervisor was stopped, and corrections of the system clock, count neither against an agent's time to
 * start nor as its backoff.
 */
export class SteadyClock implements Clock {
  readonly #source: Clock;
  readonly #longest: number;
  #seen: number;
  #jumped = 0;

  /** @param longest milliseconds between two calls of `now`; a longer time is a jump */
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

  /** Converts a time of this clock to a time of the source. */
  shown(time: number): number {
    return time + this.#jumped;
  }
}
