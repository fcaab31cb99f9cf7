import { argument, command, constant, option } from "@optique/core/primitives";
import { object } from "@optique/core/constructs";
import { optional, withDefault } from "@optique/core/modifiers";
import { choice, integer } from "@optique/core/valueparser";
import { join } from "node:path";
import type { Workspace } from "../../engine/workspace.ts";
import { jobContext } from "../../jobs/context.ts";
import { type Pulse, runDaemon } from "../../jobs/daemon.ts";
import { takePlace } from "../../jobs/daemon_state.ts";
import { withdrawForJobs } from "../../jobs/withdraw.ts";
import { timestamp } from "../../platform/clock.ts";
import { readRecord } from "../../platform/detached.ts";
import { errorMessage } from "../../platform/error.ts";
import { rotateLog } from "../../platform/log_rotation.ts";
import { stripControl } from "../../platform/terminal.ts";
import { says } from "../command.ts";
import type { Io } from "../io.ts";
import { daemonLog, daemonRecord } from "./daemon_places.ts";
import { daemonStatus, detachDaemon, stopDaemon } from "./daemon_control.ts";
import { isTrouble, stepLine } from "./daemon_lines.ts";
import { pathOption } from "../options.ts";
import { seldom } from "./seldom.ts";

/** `jobs daemon`. */
export const daemonParser = command(
  "daemon",
  object({
    action: constant("daemon"),
    control: optional(argument(choice(["status", "stop"], { metavar: "ACTION" }), {
      description: says("Show the scheduler that runs, or stop it."),
    })),
    tick: optional(option("--tick", integer({ min: 1, metavar: "SECONDS" }), {
      description: says("Seconds between two looks at what is due. Default: jobs.tick (15)."),
    })),
    quiet: option("--quiet", { description: says("Print only what goes wrong.") }),
    detach: option("--detach", {
      description: says("Run in the background, and log to .svc/logs/jobs.log."),
    }),
    output: withDefault(
      option("--output", choice(["text", "json"]), {
        description: says("For status: text (default) or json."),
      }),
      "text",
    ),
    path: pathOption,
  }),
  { description: says("Run the jobs of this worktree as they come due, until interrupted.") },
);

interface Values {
  control?: string;
  tick?: number;
  quiet: boolean;
  detach: boolean;
  output: string;
}

/** Runs the scheduler, here or in the background, or shows or stops the one that runs. */
export async function jobsDaemon(workspace: Workspace, values: Values, io: Io): Promise<number> {
  if (values.control === "status") return daemonStatus(workspace, values, io);
  if (values.control === "stop") return await stopDaemon(workspace, io);
  const tick = values.tick ?? workspace.config.get("jobs.tick");
  if (values.detach) return await detachDaemon(workspace, { ...values, tick }, io);
  return await schedule(workspace, { tick, quiet: values.quiet }, io);
}

/** Runs the scheduler until it is interrupted; exit code 0. */
export async function schedule(
  workspace: Workspace,
  { tick, quiet }: { tick: number; quiet: boolean },
  io: Io,
): Promise<number> {
  const { clock, config, environment, paths, paths: { state } } = workspace;
  const at = () => timestamp(clock).replace(/\.\d+Z$/, "Z");
  const warn = seldom(clock, (message) => io.note(`${at()} warning: ${message}`));
  const tell = (line: string) =>
    io.out(`${at()} ${stripControl(line).replace(/\s*\n\s*/g, " ")}\n`);
  const context = jobContext({ clock, environment, paths, warn });
  const interrupt = io.onInterrupt();
  const place = await takePlace({ state, clock });
  try {
    const { pid } = place.identity;
    const detached = readRecord(daemonRecord(state))?.pid === pid;
    const since = timestamp(clock);
    const beat = (pulse: Pulse) => {
      place.write({ since, tick, detached, last_tick: timestamp(clock), ...pulse });
      if (detached) rotateLog(daemonLog(state));
    };
    beat({ busy: [], next: "" });
    // A terminal session goes on after this, and with it what its user allows it.
    if (io.live === undefined) context.withdrawn = await withdrawForJobs(context);
    if (!quiet) {
      tell(`scheduler: process ${pid} looks every ${tick} s at the jobs of ${paths.worktree}`);
    }
    await runDaemon({
      context,
      tick,
      settings() {
        try {
          config.reload();
        } catch (error) {
          warn(`The settings stay as they were: ${errorMessage(error)}`);
        }
        return { concurrency: config.get("jobs.concurrency"), grace: config.get("jobs.grace") };
      },
      signal: interrupt.signal,
      tell: (step) => {
        if (!quiet || isTrouble(step)) tell(stepLine(step, context));
      },
      beat(pulse) {
        try {
          beat(pulse);
        } catch (error) {
          warn(`${join(state, "jobs.daemon.json")} cannot be written: ${errorMessage(error)}`);
        }
      },
    });
    if (!quiet) tell("scheduler: stopped");
    return 0;
  } finally {
    place.release();
    interrupt.release();
  }
}
