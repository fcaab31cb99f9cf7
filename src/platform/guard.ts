/** Ends a process group should this process die, even of SIGKILL. */
export interface Guard {
  /** Says which group; to be called as soon as that is known. */
  watch(group: number): void;
  stop(): Promise<void>;
}

/** Milliseconds between SIGTERM and SIGKILL. */
export const GRACE = 2000;

/**
 * Reads the group, and then waits for the end of its input, which comes when nobody can write to it any more.
 *
 * Should that come first, the command was started all the same, or not at all. It is known by what only it
 * can be: a leader of a session that began after the guard, given away by the kernel to whom the guard was
 * given, whose output nobody reads any more. Where there is no `/proc`, it is not looked for.
 */
const GUARD = `trap '' HUP INT TERM
svc=$1 grace=$2
look() {
  read -r stat <"/proc/$1/stat" || return 1
  set -- \${stat##*) }
  parent=$2 group=$3 session=$4
  shift 19
  started=$1
}
unread() {
  pipe=$(readlink "/proc/$pid/fd/$1") || return 1
  case $pipe in pipe:*) ! ls -l /proc/[0-9]*/fd/ | grep -F -- "-> $pipe" | grep -q '^lr' ;; *) false ;; esac
}
orphan() {
  while look $$ && [ "$parent" = "$svc" ]; do sleep 0; done
  reaper=$parent since=$started
  for pid in /proc/[0-9]*; do
    pid=\${pid#/proc/}
    look "$pid" && [ "$parent $group $session" = "$reaper $pid $pid" ] && [ "$pid" != $$ ] &&
      [ "$started" -ge "$since" ] && unread 1 && unread 2 && echo "$pid"
  done
}
if read -r groups; then read -r _; else groups=$(orphan); fi
[ -n "$groups" ] || exit
for group in $groups; do kill -s TERM -- "-$group"; done
sleep "$grace"
for group in $groups; do kill -s KILL -- "-$group"; done`;

/**
 * Starts a shell that holds one end of a pipe, of which this process has the other: the kernel closes that
 * one however this process ends. It has to stand before what it guards is started. Without a shell, or the
 * permission to run it, there is no guard.
 */
export function startGuard(): Guard | undefined {
  let shell: Deno.ChildProcess;
  try {
    shell = new Deno.Command("sh", {
      args: ["-c", GUARD, "svc-guard", String(Deno.pid), String(GRACE / 1000)],
      cwd: "/", // or it would keep a file system busy
      detached: true, // a Ctrl-C in the terminal is not for it
      stdin: "piped",
      stdout: "null",
      stderr: "null",
    }).spawn();
  } catch {
    return undefined;
  }
  const writer = shell.stdin.getWriter();
  return {
    watch(group) {
      writer.write(new TextEncoder().encode(`${group}\n`)).catch(() => {});
    },
    async stop() {
      killGroup(shell, "SIGKILL"); // before its input closes, which would set it off
      await shell.status;
      await writer.abort().catch(() => {});
    },
  };
}

/** Signals a child's process group; a group that is gone already is what was wanted. */
export function killGroup(child: Deno.ChildProcess, signal: Deno.Signal): void {
  try {
    Deno.kill(-child.pid, signal);
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return;
    child.kill("SIGKILL"); // the group is out of reach without Deno's full run permission
    throw error;
  }
}
