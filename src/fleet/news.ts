import type { Status } from "./states.ts";

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
