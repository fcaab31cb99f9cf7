/** A process that a number alone does not tell from a later one with the same number. */
export interface ProcessIdentity {
  pid: number;
  /** Boot and start time; a word without spaces. */
  started: string;
}

/**
 * Shell function that prints the start of a process, or fails when there is none. Deno reads nothing below
 * `/proc` without all permissions, and a machine without it has `ps`.
 */
export const STARTED = `started() {
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

/** Who these process numbers belong to now; those of no process, or an ended one, are left out. */
export async function identifyProcesses(pids: number[]): Promise<Map<number, string>> {
  if (pids.length === 0) return new Map();
  const lines = await shell(IDENTIFY, pids.map(String));
  return new Map(lines.map((line) => {
    const [pid, started] = line.split(" ");
    return [Number(pid), started!];
  }));
}

/** Who this process is. */
export async function ownIdentity(): Promise<ProcessIdentity> {
  return { pid: Deno.pid, started: (await identifyProcesses([Deno.pid])).get(Deno.pid) ?? "" };
}

/** Whether a process is still there. */
export async function isAlive({ pid, started }: ProcessIdentity): Promise<boolean> {
  return started !== "" && (await identifyProcesses([pid])).get(pid) === started;
}

/**
 * Signals processes, or the process groups that they lead, if they are still the ones that are meant: the
 * one who looks is the one who signals, with nothing in between that takes time.
 *
 * @returns the numbers of those that got the signal
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
