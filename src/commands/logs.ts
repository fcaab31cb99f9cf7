import { join } from "node:path";
import { followLog, tailLog } from "../fleet/logs.ts";
import { systemClock } from "../platform/clock.ts";
import { openPaths, userDirectory } from "../platform/environment.ts";
import { nearest, usageError } from "../platform/error.ts";
import { entriesOf, lstatIfExists } from "../platform/files.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import { defineCommand, pathOption } from "./command.ts";
import { listText, printLists } from "./format.ts";
import type { Io } from "./io.ts";
import { nameOf } from "./names.ts";
import { argument, command, integer, option, optional, withDefault } from "./options.ts";

/** Options of the commands that show a log. */
export const tailOptions = {
  count: withDefault(
    option("-n/--lines", integer("N", 0), "Lines from its end; default: 50."),
    50,
  ),
  follow: option("-f/--follow", "Follow what is appended."),
};

/** `svc logs`: the logs of the server, the scheduler, the supervisor and its agents. */
export const logs = defineCommand({
  parser: command(
    "logs",
    {
      name: optional(
        argument(
          nameOf("logs"),
          "serve, jobs, fleet, or an agent of the fleet; default: list them.",
        ),
      ),
      ...tailOptions,
      path: pathOption,
    },
    "Show the end of a log of this worktree: of svc serve, of the scheduler in the background, of " +
      "the supervisor of the fleet, or of one of its agents.",
  ),
  examples: ["svc logs", "svc logs jobs -f", "svc logs serve -n 200"],
  async run({ name, path, ...options }, io) {
    const { state } = openPaths(path || io.environment.cwd, userDirectory(io.environment));
    const names = logNames(state);
    if (name !== undefined) {
      if (names.includes(name)) return await showLog(logFile(state, name), options, io);
      const guess = nearest(name, names);
      throw usageError(
        "no_log",
        `There is no log ${JSON.stringify(name)} in this worktree.`,
        guess === undefined ? "See them with: svc logs" : `Did you mean "${guess}"?`,
      );
    }
    const rows = names.map((name) => {
      const { size, mtime } = lstatIfExists(logFile(state, name))!;
      const written = mtime?.toISOString().slice(0, 19).replace("T", " ") ?? "";
      return [oneLine(name), `${Math.ceil(size / 1000)} kB`, `${written} UTC`];
    });
    printLists(io, listText(io, ["LOG", "SIZE", "WRITTEN"], rows));
    if (rows.length === 0) io.note("There are no logs.");
    return 0;
  },
});

/** The logs of a worktree, those of the fleet's agents among them. */
export function logNames(state: string): string[] {
  return entriesOf(join(state, "logs"))
    .filter(({ name, isFile }) => isFile && name.endsWith(".log"))
    .map(({ name }) => name.slice(0, -".log".length)).sort();
}

const logFile = (state: string, name: string) => join(state, "logs", `${name}.log`);

/** Prints the last lines of a log, and with `follow` what is appended until the operator interrupts. */
export async function showLog(
  path: string,
  { count, follow }: { count: number; follow: boolean },
  io: Io,
): Promise<number> {
  const show = (text: string) => io.out(stripControl(text));
  const interrupt = io.onInterrupt();
  try {
    const following = follow ? followLog(path, show, systemClock, interrupt.signal) : undefined;
    const lines = tailLog(path, count);
    show(lines.map((line) => `${line}\n`).join(""));
    if (lines.length === 0 && !follow) io.note("The log is empty.");
    await following;
    return 0;
  } finally {
    interrupt.release();
  }
}
