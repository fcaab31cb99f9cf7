import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findPort, type PortRange } from "../../src/fleet/ports.ts";
import { Roster } from "../../src/fleet/roster.ts";
import { type AgentSnapshot, FleetPaths, namesIn } from "../../src/fleet/snapshot.ts";
import { Supervisor, type SupervisorOptions } from "../../src/fleet/supervisor.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import { readRecord, signalProcesses } from "../../src/platform/detached.ts";
import { type Project, project } from "../support/project.ts";
import { TRUSTED } from "../support/trust.ts";

const PROGRAM = fileURLToPath(new URL("../support/fleet_agent.ts", import.meta.url));

/** The command line of an agent of tests. */
export const AGENT = [
  Deno.execPath(),
  "run",
  "--quiet",
  "--no-lock",
  "--allow-net",
  "--allow-env",
  "--allow-read",
  "--allow-write",
  PROGRAM,
];

/** An entry of a roster. */
export interface Entry {
  name: string;
  [field: string]: unknown;
}

/** A fleet in a scratch worktree; whatever it has started ends with it. */
export interface Fleet extends AsyncDisposable {
  project: Project;
  roster: Roster;
  paths: FleetPaths;
  warnings: string[];
  said: string[];
  /** Writes the roster; an agent's folder has its name, and its program is that of tests. */
  write(agents: Entry[]): Promise<void>;
  supervisor(options?: Partial<SupervisorOptions>): Supervisor;
  /** Each start of an agent's program, as `pid port`. */
  starts(name: string): string[];
}

const FILE_PORTS = 250;
/** Ports of this test file alone, below those that the system gives away: the first one is held open. */
let held = holdPorts(10_000);
let next = 1;

/** Ports that nothing listens on. */
export function somePorts(count = 10): PortRange {
  for (;;) {
    if (next + count > FILE_PORTS) {
      // All have been used once; processes that another run has left may listen on some.
      const { port } = held.addr;
      held.close();
      [held, next] = [holdPorts(port + FILE_PORTS), 1];
    }
    const first = held.addr.port + next;
    next += count;
    const ports = Array.from({ length: count }, (_, index) => first + index);
    const free = (port: number) => findPort({ first: port, last: port }, { taken: new Set() });
    if (ports.every(free)) return { first, last: first + count - 1 };
  }
}

function holdPorts(from: number): Deno.TcpListener {
  for (let port = from; port <= 32_500; port += FILE_PORTS) {
    try {
      return Deno.listen({ hostname: "127.0.0.1", port });
    } catch {
      // another test file has this range
    }
  }
  throw new Error("no range of ports is free");
}

export async function fleet(agents: Entry[] = []): Promise<Fleet> {
  const folder = await project();
  const state = join(folder.path, ".svc");
  const paths = new FleetPaths(state);
  const warnings: string[] = [];
  const said: string[] = [];
  const roster = new Roster(state, TRUSTED, (message) => warnings.push(message));
  const ports = somePorts();
  const write = async (agents: Entry[]) => {
    for (const { name } of agents) await folder.write(`${name}/.keep`, "");
    const entries = agents.map((agent) => ({ dir: agent.name, command: AGENT, ...agent }));
    await folder.write(".svc/fleet.json", JSON.stringify({ agents: entries }, null, 2));
  };
  await write(agents);
  return {
    project: folder,
    roster,
    paths,
    warnings,
    said,
    write,
    supervisor: (options = {}) =>
      new Supervisor({
        worktree: folder.path,
        state,
        roster,
        svc: ["false"],
        ports,
        reservations: join(state, "ports"),
        sweep: 2000,
        unhealthy_threshold: 2,
        grace: 5000,
        clock: systemClock,
        warn: (message) => warnings.push(message),
        say: (line) => said.push(line),
        ...options,
      }),
    starts: (name) => {
      try {
        const text = Deno.readTextFileSync(join(folder.path, name, "starts"));
        return text.split("\n").filter((line) => line !== "");
      } catch {
        return [];
      }
    },
    async [Symbol.asyncDispose]() {
      const left = namesIn(paths.folder, ".pid")
        .flatMap((name) => readRecord(paths.recordOf(name)) ?? []);
      await signalProcesses(left, "KILL", { group: true });
      await folder[Symbol.asyncDispose]();
    },
  };
}

/** Sweeps until the agents are as wanted. */
export async function until(
  supervisor: Supervisor,
  wanted: (agents: Record<string, AgentSnapshot>) => boolean,
): Promise<Record<string, AgentSnapshot>> {
  const deadline = Date.now() + 120_000;
  for (;;) {
    await supervisor.sweep();
    const agents = Object.fromEntries(supervisor.agents().map((agent) => [agent.name, agent]));
    if (wanted(agents)) return agents;
    if (Date.now() > deadline) throw new Error(`not so: ${JSON.stringify(agents, null, 1)}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** Whether an agent runs and is healthy. */
export function up(agent: AgentSnapshot | undefined): boolean {
  return agent?.state === "running" && agent.healthy;
}

/** The system's clock, so many times as fast; requests still have a second, for the machine may be busy. */
export function fastClock(speed: number): Clock {
  const start = Date.now();
  return {
    now: () => start + (Date.now() - start) * speed,
    sleep: (ms, signal) => systemClock.sleep(ms === 1500 ? 1000 : ms / speed, signal),
  };
}
