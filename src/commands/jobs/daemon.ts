import { join } from "node:path";
import type { Workspace } from "../../engine/workspace.ts";
import { jobContext } from "../../jobs/context.ts";
import { lockDaemon, runningDaemon, withdrawForJobs } from "../../jobs/daemon.ts";
import { DailyDigest } from "../../jobs/digest.ts";
import { Heartbeat } from "../../jobs/heartbeat.ts";
import { type Pulse, runDaemon } from "../../jobs/scheduler.ts";
import { type Clock, timestamp } from "../../platform/clock.ts";
import {
  launchDetached,
  ownCommand,
  readRecord,
  rotateLog,
  signalProcesses,
} from "../../platform/detached.ts";
import { errorMessage, SvcError, usageError } from "../../platform/error.ts";
import { readTextIfExists } from "../../platform/files.ts";
import { pathOption, trustOption } from "../command.ts";
import { type Io, toJson } from "../io.ts";
import { noStore } from "../../store/link.ts";
import { LocalQueue } from "../../store/queue.ts";
import { daemonLine, isTrouble, stepFields, stepLine } from "./view.ts";
import { type LogFields, type LogFormat, logLine, logOption } from "../log.ts";
import { argument, choice, command, integer, option, optional, withDefault } from "../options.ts";

/** `jobs daemon`. */
export const daemonParser = command("daemon", {
  action: "daemon",
  control: optional(
    argument(choice(["status", "stop"], "ACTION"), "Show the scheduler that runs, or stop it."),
  ),
  tick: optional(
    option(
      "--tick",
      integer("SECONDS", 1),
      "Seconds between two checks for due jobs. Default: jobs.tick (15).",
    ),
  ),
  quiet: option("--quiet", "Print failures only."),
  no_work: option("--no-work", "Only put due jobs into the queue of the store, for svc worker."),
  log: logOption,
  detach: option("--detach", "Run in the background, and log to .svc/logs/jobs.log."),
  output: withDefault(
    option("--output", choice(["text", "json"]), "For status: text (default) or json."),
    "text",
  ),
  trust: trustOption,
  path: pathOption,
}, "Run the jobs of this worktree as they come due, until interrupted.");

interface Values {
  control?: string;
  tick?: number;
  quiet: boolean;
  no_work: boolean;
  detach: boolean;
  log: LogFormat;
  output: string;
}

/** Runs the scheduler, here or in the background, or shows or stops the one that runs. */
export async function jobsDaemon(workspace: Workspace, values: Values, io: Io): Promise<number> {
  if (values.control === "status") return daemonStatus(workspace, values, io);
  if (values.control === "stop") return await stopDaemon(workspace, io);
  const tick = values.tick ?? workspace.config.get("jobs.tick");
  if (values.detach) return await detachDaemon(workspace, { ...values, tick }, io);
  return await schedule(workspace, { ...values, tick }, io);
}

const HOUR = 3_600_000;

/** Runs the scheduler until it is interrupted; exit code 0. */
export async function schedule(
  workspace: Workspace,
  { tick, quiet, no_work = false, log = "text" }: {
    tick: number;
    quiet: boolean;
    no_work?: boolean;
    log?: LogFormat;
  },
  io: Io,
): Promise<number> {
  const { clock, config, environment, paths, store, trust, paths: { state } } = workspace;
  const { pruneWorktree } = await import("../../jobs/prune.ts");
  const warn = rateLimited(
    clock,
    (message) => io.note(logLine(log, clock, message, { level: "warning" })),
  );
  const tell = (message: string, fields?: LogFields) =>
    io.out(`${logLine(log, clock, message, fields)}\n`);
  const context = jobContext({ clock, environment, paths, store, trust, warn });
  if (no_work && store === undefined) {
    throw noStore("--no-work puts jobs into the queue of a store");
  }
  await store?.refresh();
  const queue = store === undefined
    ? new LocalQueue(clock, () => config.get("project_concurrency"))
    : (await store.open()).queue;
  const interrupt = io.onInterrupt();
  const place = await lockDaemon({ state, clock });
  try {
    const { pid } = place.identity;
    const detached = readRecord(daemonRecord(state))?.pid === pid;
    const since = timestamp(clock);
    const heartbeat = new Heartbeat({ clock, warn });
    const digest = new DailyDigest(context);
    const beat = (pulse: Pulse) => {
      place.write({ since, tick, detached, last_tick: timestamp(clock), ...pulse });
      if (detached) rotateLog(daemonLog(state));
    };
    beat({ healthy: true, busy: [], next: "" });
    // A terminal session continues after the scheduler and keeps its permissions.
    // The jobs of a store may be added by another machine, at any time.
    if (io.live === undefined && store === undefined) {
      context.withdrawn = await withdrawForJobs(context);
    }
    if (!quiet) {
      tell(`scheduler: process ${pid} looks every ${tick} s at the jobs of ${paths.worktree}`);
    }
    let tidied = -Infinity;
    let tidying = Promise.resolve();
    /** Deletes the sessions that are no longer kept, at the start and then every hour. */
    const tidy = () => {
      if (clock.now() - tidied < HOUR) return;
      tidied = clock.now();
      tidying = pruneWorktree(workspace).then(
        (pruned = []) => {
          if (pruned.length > 0 && !quiet) {
            const sessions = pruned.length === 1 ? "session" : "sessions";
            tell(`scheduler: ${pruned.length} old ${sessions} deleted`);
          }
        },
        (error) => warn(`Old sessions are not deleted: ${errorMessage(error)}`),
      );
    };
    await runDaemon({
      context,
      queue,
      work: !no_work,
      tick,
      settings() {
        try {
          config.reload();
        } catch (error) {
          warn(`The settings stay as they were: ${errorMessage(error)}`);
        }
        return {
          concurrency: config.get("jobs.concurrency"),
          hold: config.get("jobs.timeout"),
          grace: config.get("jobs.grace"),
        };
      },
      signal: interrupt.signal,
      tell: (step) => {
        if (!quiet || isTrouble(step)) tell(stepLine(step, context), stepFields(step));
      },
      beat(pulse) {
        tidy();
        try {
          digest.look(config.get("jobs.digest_at"));
          beat(pulse);
          if (pulse.healthy) heartbeat.beat(config.get("jobs.heartbeat_url"));
        } catch (error) {
          warn(`The scheduler's state cannot be written: ${errorMessage(error)}`);
        }
      },
    });
    await tidying;
    await heartbeat.idle();
    await digest.idle();
    if (!quiet) tell("scheduler: stopped");
    return 0;
  } finally {
    place.release();
    interrupt.release();
  }
}

/** Milliseconds between two checks of a scheduler that starts or stops. */
const LOOK = 50;
/** Milliseconds beyond its grace that a scheduler may take to stop. */
const STOP_LIMIT = 30_000;

/** `jobs daemon --detach`: returns once the scheduler runs. */
export async function detachDaemon(
  { paths: { state, worktree }, clock, trust }: Workspace,
  { tick, quiet, no_work, log: format }: Pick<Values, "quiet" | "no_work" | "log"> & {
    tick: number;
  },
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
    command: [
      ...command,
      ...quiet ? ["--quiet"] : [],
      ...no_work ? ["--no-work"] : [],
      ...["--log", format],
      ...trust.all ? ["--trust"] : [],
      ...["--path", worktree],
    ],
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
  const tail = (readTextIfExists(log) ?? "").trimEnd().split("\n").slice(-5).join("\n");
  throw new SvcError("scheduler_ended", `The scheduler ended with exit code ${ended}: ${tail}`, {
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
  const [signalled] = await signalProcesses([running], "TERM");
  if (signalled === undefined && runningDaemon({ state })?.pid === pid) {
    throw new SvcError("not_stopped", `The process ${pid} could not be stopped.`, {
      hint: `Stop it as the user that started it: kill -s TERM ${pid}`,
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
  else io.out(`${daemonLine(running, clock.now(), io)}\n`);
  return running === undefined ? 1 : 0;
}

/** Where a scheduler in the background logs. */
export const daemonLog = (state: string): string => join(state, "logs", "jobs.log");

/** The process that was started as the scheduler in the background. */
export const daemonRecord = (state: string): string => join(state, "jobs.daemon.pid");

/** Milliseconds for which a message is not repeated. */
const PAUSE = 6 * 3600_000;
/** Messages that are remembered at most. */
const KEPT = 200;

/** Limits how often a message is repeated in the log: the same one at most every six hours. */
function rateLimited(
  clock: Clock,
  write: (message: string) => void,
): (message: string) => void {
  const written = new Map<string, number>();
  return (message) => {
    const now = clock.now();
    // After the clock was set back, messages must not be suppressed until it has caught up.
    if (Math.abs(now - (written.get(message) ?? -Infinity)) < PAUSE) return;
    written.delete(message);
    written.set(message, now);
    const [oldest] = written.keys();
    if (written.size > KEPT) written.delete(oldest!);
    write(message);
  };
}
