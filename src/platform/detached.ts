import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { ProcessRequest } from "../plugins/api.ts";
import type { Environment } from "./environment.ts";
import { writeFailure } from "./error.ts";
import { lstatIfExists, makeFolder, readTextIfExists, removeIfExists } from "./files.ts";

/** A program to start so that it outlives this process. */
export interface DetachedRequest extends Pick<ProcessRequest, "command" | "cwd" | "env"> {
  /** Standard output and error are appended to this file. */
  log: string;
  /** File that identifies the process; see {@linkcode readRecord}. */
  record: string;
  /** Kept in the record: one word. */
  note?: string;
}

/** A detached program that this process started. */
export interface Detached {
  pid: number;
  /** Resolves to the exit code once it has ended. */
  ended: Promise<number>;
}

/** Identifies a process. The start time tells it from a later process with the same number. */
export interface ProcessIdentity {
  pid: number;
  /** Boot id and start time, without spaces. */
  started: string;
}

/**
 * Shell function that prints the start of a process and fails when there is none. A shell does it, because Deno
 * reads `/proc` only with all permissions. A machine without `/proc` has `ps`.
 */
const STARTED = `started() {
  if read -r boot </proc/sys/kernel/random/boot_id; then
    read -r stat <"/proc/$1/stat" || return 1
    set -- \${stat##*) }
    case $1 in Z | X | '') return 1 ;; esac
    shift 19
    printf '%s' "$boot/$1"
  else
    start=$(LC_ALL=C ps -o lstart= -p "$1" | tr -s ' ' _)
    [ -n "$start" ] && printf '%s' "$start"
  fi
}`;

const IDENTIFY = `${STARTED}
for pid; do start=$(started "$pid") && echo "$pid $start"; done`;

const SIGNAL = `${STARTED}
signal=$1 sign=$2; shift 2
while [ $# -gt 1 ]; do
  [ "$(started "$1")" = "$2" ] && kill -s "$signal" -- "$sign$1" && echo "$1"
  shift 2
done`;

/** Bytes that are reserved for a record. */
const RECORD_SIZE = 200;

/**
 * The shell writes the record and then becomes the program: a later process finds it even if this one is killed
 * between the two.
 */
const LAUNCH = `${STARTED}
record=$1 note=$2 log=$3; shift 3
printf '%s %s %s\\n' "$$" "$(started $$ 2>/dev/null)" "$note" >"$record.new" &&
  mv -f "$record.new" "$record" || exit 126
exec "$@" >>"$log" 2>&1`;

/**
 * Starts a program in a session of its own, without a terminal and without input, so that it outlives this
 * process and its terminal.
 *
 * @throws SvcError `detached_record` when its record cannot be written, such as on a full disk; the errors of
 * Deno.Command, such as NotFound for a missing folder
 */
export function launchDetached(request: DetachedRequest): Detached {
  const { command, cwd, env, log, record, note = "-" } = request;
  try {
    for (const file of [log, record]) makeFolder(dirname(file));
    // The shell rewrites the record, but could not report a full disk: this reserves its space.
    Deno.writeTextFileSync(`${record}.new`, " ".repeat(RECORD_SIZE));
  } catch (cause) {
    throw writeFailure("detached_record", record, cause);
  }
  removeLink(log);
  const child = new Deno.Command("sh", {
    args: ["-c", LAUNCH, "svc-launch", record, note, log, ...command],
    cwd,
    env,
    detached: true,
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  return { pid: child.pid, ended: child.status.then(({ code }) => code) };
}

/** The identity and the note in the record at `path`; undefined when there is no valid record. */
export function readRecord(path: string): ProcessIdentity & { note: string } | undefined {
  const [pid, started, note] = (readTextIfExists(path) ?? "").trim().split(" ");
  if (!/^[1-9]\d*$/.test(pid ?? "") || !started || note === undefined) return undefined;
  return { pid: Number(pid), started, note };
}

/** Removes a log that is a symbolic link, which would have another file written. */
function removeLink(log: string): void {
  try {
    if (Deno.lstatSync(log).isSymlink) Deno.removeSync(log);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

/**
 * The command line that starts this program again, without arguments: the executable, or the source under Deno
 * with the permissions of the build profile.
 */
export function ownCommand(environment: Environment): string[] {
  if (Deno.build.standalone) return [Deno.execPath()];
  // The archive of compile.sh sets its own path: the files it unpacked may be removed by then.
  const archive = environment.get("SVC_EXECUTABLE");
  const main = fileURLToPath(Deno.mainModule);
  const flags = readTextIfExists(join(dirname(main), "permissions", "build.flags"));
  if (flags === undefined && archive !== undefined) return [archive];
  return [Deno.execPath(), "run", ...(flags ?? "").trim().split("\n"), main];
}

/** The start of each process that runs, by number. Numbers without a running process are left out. */
export async function identifyProcesses(pids: number[]): Promise<Map<number, string>> {
  if (pids.length === 0) return new Map();
  const lines = await shell(IDENTIFY, pids.map(String));
  return new Map(lines.map((line) => {
    const [pid, started] = line.split(" ");
    return [Number(pid), started!];
  }));
}

/** The identity of this process. */
export async function ownIdentity(): Promise<ProcessIdentity> {
  return { pid: Deno.pid, started: (await identifyProcesses([Deno.pid])).get(Deno.pid) ?? "" };
}

/**
 * Signals processes, or the process groups that they lead. One shell compares the identity and sends the signal,
 * so that a later process with the same number is not signalled.
 *
 * @returns the numbers of the processes that got the signal
 */
export async function signalProcesses(
  targets: ProcessIdentity[],
  signal: "INT" | "TERM" | "KILL",
  { group = false }: { group?: boolean } = {},
): Promise<number[]> {
  const known = targets.filter(({ pid, started }) => pid > 1 && started !== "");
  if (known.length === 0) return [];
  const words = known.flatMap(({ pid, started }) => [String(pid), started]);
  return (await shell(SIGNAL, [signal, group ? "-" : "", ...words])).map(Number);
}

async function shell(script: string, args: string[]): Promise<string[]> {
  const { stdout } = await new Deno.Command("sh", {
    args: ["-c", script, "svc-processes", ...args],
    stdin: "null",
    stderr: "null",
  }).output();
  return new TextDecoder().decode(stdout).split("\n").filter((line) => line !== "");
}

/** Bytes above which a log is rotated. */
export const MAX_LOG = 5 * 1024 * 1024;
/** Number of older logs that are kept; `<log>.1` is the newest. */
const KEPT = 3;

/**
 * Rotates a log that is larger than `max` bytes and that its writer keeps open for appending: the content is
 * copied to `<log>.1` and the file is truncated. A line written between the two is lost.
 *
 * @returns whether it was rotated
 */
export function rotateLog(path: string, max = MAX_LOG): boolean {
  const info = lstatIfExists(path);
  if (info === undefined || !info.isFile || info.size <= max) return false;
  const copy = `${path}.new`;
  removeIfExists(copy);
  try {
    Deno.copyFileSync(path, copy); // first, because the disk may be full
  } catch (error) {
    removeIfExists(copy);
    throw error;
  }
  for (let number = KEPT; number > 1; number--) {
    renameIfExists(`${path}.${number - 1}`, `${path}.${number}`);
  }
  Deno.renameSync(copy, `${path}.1`); // a new inode, which a reader that follows the log notices
  Deno.truncateSync(path);
  return true;
}

function renameIfExists(from: string, to: string): void {
  try {
    Deno.renameSync(from, to);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
