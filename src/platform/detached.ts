import { dirname } from "node:path";
import { readTextIfExists } from "./files.ts";
import { type ProcessIdentity, STARTED } from "./process_identity.ts";
import { writeFailure } from "./write_failure.ts";

/** A program to start so that it outlives this process. */
export interface DetachedRequest {
  command: readonly string[];
  cwd: string;
  env?: Record<string, string>;
  /** Standard output and error are appended to this file. */
  log: string;
  /** File that will say who the process is; see {@linkcode readRecord}. */
  record: string;
  /** Kept in the record: one word. */
  note?: string;
}

/** A detached program, while this process is still there to see how it ends. */
export interface Detached {
  pid: number;
  /** Resolves to the exit code once it has ended. */
  ended: Promise<number>;
}

/** Bytes that no record is longer than, notes of a few words included. */
const RECORD = 200;

/**
 * The shell becomes the program, after it has written down who it is: even if its parent is killed at this
 * very moment, the next one finds it.
 */
const LAUNCH = `${STARTED}
record=$1 note=$2 log=$3; shift 3
printf '%s %s %s\\n' "$$" "$(started $$ 2>/dev/null)" "$note" >"$record.new" &&
  mv -f "$record.new" "$record" || exit 126
exec "$@" >>"$log" 2>&1`;

/**
 * Starts a program in a session of its own, without a terminal and without an input; neither the end of
 * this process nor that of its terminal reaches it.
 *
 * @throws SvcError `detached_record` when it could not write down who it is, such as on a full disk; the
 * errors of Deno.Command, such as NotFound for a folder that is not there
 */
export function launchDetached(request: DetachedRequest): Detached {
  const { command, cwd, env, log, record, note = "-" } = request;
  try {
    for (const file of [log, record]) Deno.mkdirSync(dirname(file), { recursive: true });
    // The shell writes it anew; but what it would say of a full disk nobody hears.
    Deno.writeTextFileSync(`${record}.new`, " ".repeat(RECORD));
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

/** Who a launched program is, and the note that it was given; undefined when the file does not say. */
export function readRecord(path: string): ProcessIdentity & { note: string } | undefined {
  const [pid, started, note] = (readTextIfExists(path) ?? "").trim().split(" ");
  if (!/^[1-9]\d*$/.test(pid ?? "") || !started || note === undefined) return undefined;
  return { pid: Number(pid), started, note };
}

/** A log that leads elsewhere would have another file written to. */
function removeLink(log: string): void {
  try {
    if (Deno.lstatSync(log).isSymlink) Deno.removeSync(log);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
