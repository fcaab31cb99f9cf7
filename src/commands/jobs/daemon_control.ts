import type { Workspace } from "../../engine/workspace.ts";
import { runningDaemon } from "../../jobs/daemon_state.ts";
import { launchDetached } from "../../platform/detached.ts";
import { SvcError, usageError } from "../../platform/error.ts";
import { ownCommand } from "../../platform/executable.ts";
import { readTextIfExists } from "../../platform/files.ts";
import { signalProcesses } from "../../platform/process_identity.ts";
import { type Io, toJson } from "../io.ts";
import { daemonLog, daemonRecord } from "./daemon_places.ts";
import { daemonLine } from "./daemon_line.ts";

/** Milliseconds between two looks at a scheduler that starts or stops. */
const LOOK = 50;
/** Milliseconds beyond its grace that a scheduler may take to stop. */
const STOP_LIMIT = 30_000;

/** `jobs daemon --detach`: returns once the scheduler runs. */
export async function detachDaemon(
  { paths: { state, worktree }, clock }: Workspace,
  { tick, quiet }: { tick: number; quiet: boolean },
  io: Io,
): Promise<number> {
  const running = runningDaemon({ state });
  if (running !== undefined) {
    throw usageError(
      "scheduler_running",
      `The scheduler of this worktree is running already: process ${running.pid}, since ` +
        `${running.since}.`,
      `Stop it with: ${io.program}jobs daemon stop`,
    );
  }
  const log = daemonLog(state);
  const command = [...ownCommand(io.environment), "jobs", "daemon", "--tick", String(tick)];
  const child = launchDetached({
    command: [...command, ...(quiet ? ["--quiet"] : []), "--path", worktree],
    cwd: worktree,
    log,
    record: daemonRecord(state),
  });
  let ended: number | undefined;
  child.ended.then((code) => ended = code);
  while (ended === undefined) {
    const { pid } = runningDaemon({ state }) ?? {};
    if (pid !== undefined) {
      io.note(`The scheduler runs as process ${pid} and logs to ${log}`);
      return 0;
    }
    await clock.sleep(LOOK);
  }
  const said = (readTextIfExists(log) ?? "").trimEnd().split("\n").slice(-5).join("\n");
  throw new SvcError("scheduler_ended", `The scheduler ended with exit code ${ended}: ${said}`, {
    hint: `See its log: ${log}`,
  });
}

/** `jobs daemon stop`: returns once the scheduler has ended. */
export async function stopDaemon(
  { paths: { state }, clock, config }: Workspace,
  io: Io,
): Promise<number> {
  const running = runningDaemon({ state });
  if (running === undefined) {
    io.note("No scheduler runs in this worktree.");
    return 0;
  }
  const { pid } = running;
  const [told] = await signalProcesses([running], "TERM");
  if (told === undefined && runningDaemon({ state })?.pid === pid) {
    throw new SvcError("not_stopped", `The process ${pid} could not be told to stop.`, {
      hint: `Stop it as whoever started it: kill -s TERM ${pid}`,
    });
  }
  if (running.busy.length > 0) io.note(`Waiting for ${running.busy.join(", ")} to finish.`);
  const limit = clock.now() + config.get("jobs.grace") * 1000 + STOP_LIMIT;
  while (runningDaemon({ state })?.pid === pid) {
    if (clock.now() > limit) {
      throw new SvcError("not_stopped", `The scheduler, process ${pid}, has not ended yet.`);
    }
    await clock.sleep(LOOK);
  }
  io.note(`The scheduler, process ${pid}, has stopped.`);
  return 0;
}

/** `jobs daemon status`: exit code 0 when a scheduler runs, 1 when none does. */
export function daemonStatus(
  { paths: { state }, clock }: Workspace,
  { output }: { output: string },
  io: Io,
): number {
  const running = runningDaemon({ state });
  if (output === "json") io.out(toJson(running ?? null, 2) + "\n");
  else io.out(`${daemonLine(running, clock.now())}\n`);
  return running === undefined ? 1 : 0;
}
