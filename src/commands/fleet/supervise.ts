import { join } from "node:path";
import { lastLine } from "../../fleet/logs.ts";
import { portRange } from "../../fleet/ports.ts";
import type { Roster } from "../../fleet/roster.ts";
import { type FleetPaths, SnapshotFile } from "../../fleet/snapshot.ts";
import {
  type AgentView,
  fleetOverview,
  type Overview,
  startStatusServer,
} from "../../fleet/status.ts";
import { Supervisor } from "../../fleet/supervisor.ts";
import { systemClock } from "../../platform/clock.ts";
import { launchDetached, ownCommand, signalProcesses } from "../../platform/detached.ts";
import { SvcError, usageError } from "../../platform/error.ts";
import { tryHold } from "../../platform/files.ts";
import type { Trust } from "../../policy/trust.ts";
import type { Paths } from "../../platform/environment.ts";
import { type ListIo, listText, relative, shortened } from "../format.ts";
import type { Io } from "../io.ts";
import { type LogFormat, logLine } from "../log.ts";

/** The files and streams of every fleet command. */
export interface FleetContext {
  paths: Paths;
  files: FleetPaths;
  roster: Roster;
  trust: Trust;
  io: Io;
  warn: (message: string) => void;
}

interface UpOptions {
  detach: boolean;
  port?: number;
  /** Seconds. */
  sweep: number;
  unhealthy_threshold: number;
  log: LogFormat;
  /** Seconds. */
  grace: number;
}

/** Milliseconds between two checks of another process. */
const LOOK = 100;

/** `fleet up`: supervises until interrupted, here or in the background. */
export async function fleetUp(context: FleetContext, options: UpOptions): Promise<number> {
  const { io, files, roster } = context;
  const hold = tryHold(files.lock);
  if (hold === undefined) {
    const pid = supervisorOf(context)?.pid;
    throw usageError(
      "fleet_is_up",
      `A supervisor is at work here already${pid === undefined ? "" : `: process ${pid}`}.`,
      "See its state with: svc fleet status",
    );
  }
  if (options.detach) {
    hold.release();
    return await detach(context, options);
  }
  try {
    const supervisor = supervisorFor(context, options);
    const server = options.port === undefined
      ? undefined
      : startStatusServer(options.port, () => supervisor.agents());
    const interrupt = io.onInterrupt();
    if (server !== undefined) {
      say(context, options.log)(`listening on http://127.0.0.1:${server.port}`);
    }
    if (roster.read()?.agents.length === 0) {
      io.note("The fleet is empty; see: svc fleet init --help");
    }
    await supervisor.run(interrupt.signal);
    await server?.stop();
    interrupt.release();
    return 0;
  } finally {
    hold.release();
  }
}

/** `fleet down`: stops the supervisor and its agents, and agents of a supervisor that is gone. */
export async function fleetDown(context: FleetContext): Promise<number> {
  const { io, files } = context;
  let hold = tryHold(files.lock);
  if (hold === undefined) {
    const supervisor = supervisorOf(context);
    const [signalled] = supervisor === undefined ? [] : await signalProcesses([supervisor], "TERM");
    if (signalled === undefined) {
      throw new SvcError(
        "no_supervisor",
        "The supervisor cannot be found, but it holds its lock.",
        {
          hint: `Try again, or stop the process that has ${files.lock} open.`,
        },
      );
    }
    io.note(`the supervisor, process ${signalled}, stops its agents`);
    const interrupt = io.onInterrupt();
    try {
      while ((hold = tryHold(files.lock)) === undefined) {
        await systemClock.sleep(LOOK, interrupt.signal);
      }
    } finally {
      interrupt.release();
    }
  }
  try {
    const options = { sweep: 2, unhealthy_threshold: 2, grace: 35, log: "text" as const };
    const leftovers = supervisorFor(context, options);
    await leftovers.adopt();
    await leftovers.stop();
  } finally {
    hold.release();
  }
  io.out("The fleet is down.\n");
  return 0;
}

/** Starts the supervisor in the background; returns once it runs. */
async function detach(context: FleetContext, options: UpOptions): Promise<number> {
  const { io, files, paths } = context;
  const { port, sweep, unhealthy_threshold, grace, log } = options;
  const { pid, ended } = launchDetached({
    command: [
      ...ownCommand(io.environment),
      ...["fleet", "up", "--path", paths.worktree, "--sweep", `${sweep}`],
      ...["--unhealthy-threshold", `${unhealthy_threshold}`, "--grace", `${grace}`, "--log", log],
      ...context.trust.all ? ["--trust"] : [],
      ...port === undefined ? [] : ["--port", `${port}`],
    ],
    cwd: paths.worktree,
    log: files.log,
    record: join(paths.state, "fleet.pid"),
  });
  let code: number | undefined;
  ended.then((ended) => code = ended);
  while (supervisorOf(context)?.pid !== pid) {
    if (code !== undefined) {
      throw new SvcError("fleet_up", `The supervisor ended at once: ${lastLine(files.log)}`, {
        hint: `Its log: ${files.log}`,
      });
    }
    await systemClock.sleep(LOOK);
  }
  io.out(`The supervisor is at work: process ${pid}. Its log: ${files.log}\n`);
  return 0;
}

function supervisorFor(
  context: FleetContext,
  { sweep, unhealthy_threshold, grace, log }: Omit<UpOptions, "detach">,
): Supervisor {
  const { paths, roster, io, warn } = context;
  return new Supervisor({
    worktree: paths.worktree,
    state: paths.state,
    roster,
    svc: ownCommand(io.environment),
    serve: log === "json" ? ["--log", "json"] : [],
    ports: portRange(io.environment.get("SVC_FLEET_PORT")),
    reservations: join(paths.user, "fleet-ports"),
    sweep: sweep * 1000,
    unhealthy_threshold,
    grace: grace * 1000,
    clock: systemClock,
    warn,
    say: say(context, log),
  });
}

/** Prints the lines of the log; the notes of a JSON log have their time already. */
function say({ io }: FleetContext, format: LogFormat): (line: string) => void {
  return (line) => {
    const message = shortened(line, 400);
    io.note(format === "json" ? message : logLine("text", systemClock, message));
  };
}

function supervisorOf({ files, warn }: FleetContext) {
  return new SnapshotFile(files.snapshot, systemClock, warn).read().supervisor ?? undefined;
}

/** Milliseconds between two updates of `--watch`. */
const WATCH = 2000;

/** `fleet status`: the value for programs and the table for people. */
export async function fleetStatus(context: FleetContext): Promise<[value: Overview, text: string]> {
  const { paths, roster, warn, io } = context;
  const overview = await fleetOverview(paths.state, roster, systemClock, warn);
  return [overview, statusText(overview, systemClock.now(), io)];
}

/** Shows the status again and again, until interrupted. */
export async function watchStatus(
  context: FleetContext,
  print: (value: unknown, text: string) => void,
): Promise<void> {
  const { io } = context;
  const interrupt = io.onInterrupt();
  const screen = io.isTerminal("out");
  try {
    while (!interrupt.signal.aborted) {
      const [value, text] = await fleetStatus(context);
      if (screen) io.out("\x1b[H\x1b[2J");
      print(value, text);
      await systemClock.sleep(WATCH, interrupt.signal).catch(() => {});
    }
  } finally {
    interrupt.release();
  }
}

/** A summary line and the table of agents (specification 4.6). */
export function statusText({ supervisor, agents }: Overview, now: number, io: ListIo): string {
  const rows = agents.map((agent) => [
    agent.name,
    agent.enabled ? "yes" : "no",
    agent.port === null ? "-" : String(agent.port),
    agent.pid === null ? "-" : String(agent.pid),
    stateText(agent, now),
    String(agent.restarts),
    agent.error,
  ]);
  const head = ["AGENT", "ENABLED", "PORT", "PID", "STATE", "RESTARTS", "ERROR"];
  const enabled = agents.filter(({ enabled }) => enabled);
  const healthy = enabled.filter(({ state, healthy }) => state === "running" && healthy).length;
  const crashed = agents.filter(({ state }) => state === "crashed").map(({ name }) => name);
  const summary = [
    supervisor === null
      ? "no supervisor (svc fleet up)"
      : `supervisor: process ${supervisor.pid}, started ${ago(supervisor.since, now)}`,
    `${healthy} of ${enabled.length} healthy`,
    ...(crashed.length === 0 ? [] : [`crashed: ${crashed.join(", ")}`]),
  ].join("; ");
  return `${summary}\n${
    agents.length === 0 ? "" : `\n${listText(io, head, rows, { always: true })}`
  }`;
}

function stateText({ state, healthy, failing, retry_at }: AgentView, now: number): string {
  if (state === "restarting") return `restarting ${relative(Date.parse(retry_at) || now, now)}`;
  if (state !== "running") return state;
  if (!healthy) return "running (starting)";
  return failing ? "running (failing)" : "running";
}

function ago(time: string, now: number): string {
  const at = Date.parse(time);
  return Number.isNaN(at) ? "?" : relative(at, now);
}
