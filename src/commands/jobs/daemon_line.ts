import type { DaemonState } from "../../jobs/daemon_state.ts";
import { moment } from "../table.ts";

/** The scheduler in one line. */
export function daemonLine(running: DaemonState | undefined, now: number): string {
  if (running === undefined) return "scheduler: none runs in this worktree (svc jobs daemon)";
  const { pid, since, last_tick, tick, busy, detached } = running;
  return [
    `scheduler: process ${pid}${detached ? " in the background" : ""}`,
    `since ${moment(since, now)}`,
    `last tick ${moment(last_tick, now)}, every ${tick} s`,
    ...(busy.length === 0 ? [] : [`running ${busy.join(", ")}`]),
  ].join("; ");
}
