import { type AgentView, fleetOverview, type Overview } from "../../fleet/overview.ts";
import { systemClock } from "../../platform/clock.ts";
import { terminalColumns } from "../../platform/terminal.ts";
import type { FleetContext } from "./context.ts";
import { relative, table } from "../table.ts";

/** Milliseconds between two looks of `--watch`. */
const WATCH = 2000;

/** `fleet status`: the value for programs and the table for people. */
export async function fleetStatus(context: FleetContext): Promise<[value: Overview, text: string]> {
  const { paths, roster, warn, io } = context;
  const overview = await fleetOverview(paths.state, roster, systemClock, warn);
  const width = io.isTerminal("out") ? terminalColumns() ?? 80 : Infinity;
  return [overview, statusText(overview, systemClock.now(), width)];
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

/** The one-glance table (specification 4.6), below the line to read when there is time for one. */
export function statusText({ supervisor, agents }: Overview, now: number, width: number): string {
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
  const healthy = agents.filter(({ state, healthy }) => state === "running" && healthy).length;
  const wanted = agents.filter(({ enabled }) => enabled).length;
  const crashed = agents.filter(({ state }) => state === "crashed").map(({ name }) => name);
  const summary = [
    supervisor === null
      ? "no supervisor (svc fleet up)"
      : `supervisor: process ${supervisor.pid}, started ${ago(supervisor.since, now)}`,
    `${healthy} of ${wanted} healthy`,
    ...(crashed.length === 0 ? [] : [`crashed: ${crashed.join(", ")}`]),
  ].join("; ");
  return `${summary}\n${agents.length === 0 ? "" : `\n${table([head, ...rows], width)}`}`;
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
