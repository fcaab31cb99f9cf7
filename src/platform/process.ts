import type { Child, ProcessRequest, ProcessResult } from "../plugins/api.ts";
import { type Clock, NO_REASON, systemClock } from "./clock.ts";
import { SvcError, thisProcess, writeHint } from "./error.ts";

/** Milliseconds between SIGTERM and SIGKILL. */
const GRACE = 2000;
/** Milliseconds for reading the rest of the pipes once the whole group has ended. */
const DRAIN = 500;
/** Milliseconds that a child has for ending by itself once its input is closed. */
const CLOSE_GRACE = 1000;
const SIGTERM_CODE = 143;

/** How a program is started. */
export interface Launch extends Pick<ProcessRequest, "command" | "cwd" | "env"> {
  /** Whether `env` is the whole environment. Default: it is added to that of svc. */
  clear_env?: boolean;
  /**
   * Whether the program is a launcher (bubblewrap) that ends with this process, and all others with it.
   * They need no watchdog, and get SIGTERM without their launcher, so that they can still end by themselves.
   */
  contained?: boolean;
  /**
   * Whether the command makes its session itself (`setsid`). Default: Deno does, for which it copies the page
   * tables of svc, and svc stands still for 3 ms.
   */
  makes_session?: boolean;
  /** Default: a watchdog of its own, which takes longer than most commands. */
  watchdogs?: Watchdogs;
  /** Whether standard input stays open without any input: servers end with their input. Default: it is empty. */
  open_input?: boolean;
  /** Called when the program has started. */
  on_start?: () => void;
}

/** Standard output of a program that succeeds; undefined for one that fails or cannot be started. */
export async function outputOf([program = "", ...args]: string[]): Promise<string | undefined> {
  try {
    const { success, stdout } = await new Deno.Command(program, { args, cwd: "/", stderr: "null" })
      .output();
    return success ? new TextDecoder().decode(stdout) : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Runs a program in a session and process group of its own and waits for it.
 *
 * The group never outlives the call. At the timeout, or when `signal` aborts, it gets SIGTERM and two seconds
 * later SIGKILL. When the program itself has ended, the rest of its group is killed. A process that starts a
 * session of its own (`setsid`) leaves the group, but does not keep the call waiting. If this process ends
 * first, even by SIGKILL, a watchdog ends the group in the same way.
 *
 * @throws SvcError `program_not_found`, `program_refused` or `no_directory` when it cannot start.
 */
export async function runProcess(
  request: ProcessRequest & Launch,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<ProcessResult> {
  if (signal.aborted) {
    return { code: SIGTERM_CODE, output: "", timed_out: false, cancelled: true };
  }
  const { watchdogs = new Watchdogs(0), open_input = false } = request;
  const watchdog = request.contained ? undefined : await watchdogs.take();
  let child: Deno.ChildProcess;
  try {
    child = spawn(request, {
      stdin: request.stdin === undefined && !open_input ? "null" : "piped",
      stderr: request.errors === false ? "null" : "piped",
    });
  } catch (error) {
    await watchdog?.stop();
    throw error;
  }
  watchdog?.watch(child.pid);
  request.on_start?.();
  const output = new BoundedText(request.max_output ?? 2_000_000);
  const errors = request.errors === "apart"
    ? new BoundedText(request.max_output ?? 2_000_000)
    : output;
  const streams = request.errors === false ? [child.stdout] : [child.stdout, child.stderr];
  const pipes = streams.map((stream) =>
    new Pipe(stream, (text) => {
      (stream === child.stdout ? output : errors).add(text);
      return request.on_output?.(text);
    })
  );
  const drained = Promise.all(pipes.map((pipe) => pipe.ended));
  const settled = new AbortController();
  if (request.stdin !== undefined) feed(child, request.stdin, settled.signal);

  const cancelled = new Promise<"cancelled">((resolve) => {
    if (signal.aborted) resolve("cancelled"); // while the watchdog was taken
    signal.addEventListener("abort", () => resolve("cancelled"), {
      once: true,
      signal: settled.signal,
    });
  });
  try {
    const stop = await Promise.race([
      child.status.then(() => undefined),
      cancelled,
      ...request.timeout === Infinity
        ? []
        : [pause(clock, request.timeout * 1000, settled.signal).then(() => "timed_out" as const)],
    ]);
    if (stop !== undefined) {
      await terminate(child, request);
      // Children of the program hold its pipes and may still be cleaning up after it ended.
      await Promise.race([
        Promise.all([child.status, drained]),
        pause(clock, GRACE, settled.signal),
      ]);
    }
    killGroup(child, "SIGKILL", request);
    const status = await child.status;
    await Promise.race([drained, pause(clock, DRAIN, settled.signal)]);
    return {
      code: status.code,
      output: output.text(),
      ...(errors !== output && { errors: errors.text() }),
      timed_out: stop === "timed_out",
      cancelled: stop === "cancelled",
    };
  } finally {
    settled.abort(NO_REASON);
    if (open_input) child.stdin.abort().catch(() => {});
    await Promise.all([...pipes.map((pipe) => pipe.cancel()), watchdogs.release(watchdog)]);
  }
}

/**
 * Starts a program, such as a server, in a session and process group of its own. The group never outlives the
 * program, nor this process: if this process ends, even by SIGKILL, a watchdog ends the group.
 *
 * @throws SvcError `program_not_found`, `program_refused` or `no_directory` when it cannot start.
 */
export function startChild(launch: Launch, clock: Clock): Child {
  const watchdog = launch.contained ? undefined : startWatchdog();
  let child: Deno.ChildProcess;
  try {
    child = spawn(launch, { stdin: "piped", stderr: "piped" });
  } catch (error) {
    void watchdog?.stop();
    throw error;
  }
  watchdog?.watch(child.pid);
  const ended = child.status.then(async ({ code }) => {
    killGroup(child, "SIGKILL", launch); // processes that it left in its group
    await watchdog?.stop();
    return code;
  });
  const endsWithin = async (ms: number) => {
    const settled = new AbortController();
    const late = clock.sleep(ms, settled.signal).then(() => false, () => true);
    const done = await Promise.race([ended.then(() => true), late]);
    settled.abort();
    return done;
  };
  const stop = async () => {
    child.stdin.close().catch(() => {}); // a writer that holds the lock closes it itself
    if (await endsWithin(CLOSE_GRACE)) return;
    await terminate(child, launch);
    if (await endsWithin(GRACE)) return;
    killGroup(child, "SIGKILL", launch);
    await ended;
  };
  let stopping: Promise<void> | undefined;
  return {
    pid: child.pid,
    input: child.stdin,
    output: child.stdout,
    errors: child.stderr,
    ended,
    stop: () => stopping ??= stop(),
  };
}

function spawn(
  { command: [program = "", ...args], cwd, env, clear_env = false, makes_session = false }: Launch,
  options: Pick<Deno.CommandOptions, "stdin" | "stderr">,
): Deno.ChildProcess {
  try {
    return new Deno.Command(program, {
      ...options,
      args,
      cwd,
      env,
      clearEnv: clear_env,
      detached: !makes_session, // setsid: a group to signal as one, and no terminal to read a password from
      stdout: "piped",
    }).spawn();
  } catch (cause) {
    throw startError(program, cwd, cause);
  }
}

/** The error for a program that could not be started. */
function startError(program: string, cwd: string, cause: unknown): unknown {
  if (cause instanceof Deno.errors.NotFound) {
    return /': (No such cwd|cwd is not)/.test(cause.message)
      ? new SvcError("no_directory", `There is no directory ${cwd} to run ${program} in.`, {
        cause,
      })
      : programNotFound(program, cause);
  }
  if (cause instanceof Deno.errors.PermissionDenied) {
    return programRefused(program, cause);
  }
  if (cause instanceof Deno.errors.NotCapable) {
    return new SvcError(
      "program_refused",
      `${thisProcess()} has no permission to run ${program}.`,
      {
        hint: writeHint(cause) || "Programs need Deno's run permission; see svc permissions.",
        cause,
      },
    );
  }
  return cause;
}

export function programNotFound(program: string, cause?: unknown): SvcError {
  return new SvcError("program_not_found", `The program ${program} was not found.`, {
    hint: "Install it, or add its folder to PATH.",
    cause,
  });
}

export function programRefused(program: string, cause?: unknown): SvcError {
  return new SvcError("program_refused", `The program ${program} may not be executed.`, { cause });
}

/** A sleep that ends early, without an error, when `signal` aborts. */
async function pause(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  await clock.sleep(ms, signal).catch(() => {});
}

/** Writes standard input. A program that ends without reading all of it is no error. */
function feed(child: Deno.ChildProcess, text: string, settled: AbortSignal): void {
  const writer = child.stdin.getWriter();
  writer.write(new TextEncoder().encode(text)).then(() => writer.close()).catch(() => {});
  settled.addEventListener("abort", () => void writer.abort().catch(() => {}), { once: true });
}

/** Bytes of a read, once an output has filled a short one. */
const LONG_READ = 64 * 1024;

type Sink = (text: string) => void | Promise<void>;

/** Reads an output stream as leniently decoded UTF-8 until its end or `cancel`. */
class Pipe {
  readonly ended: Promise<void>;
  readonly #reader: ReadableStreamBYOBReader;

  constructor(stream: ReadableStream<Uint8Array>, sink: Sink) {
    this.#reader = stream.getReader({ mode: "byob" });
    this.ended = this.#read(sink);
  }

  async #read(sink: Sink): Promise<void> {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    // Deno's default reader allocates 64 KB for each read, and most outputs are short.
    let buffer = new Uint8Array(4096);
    try {
      for (;;) {
        const { value, done } = await this.#reader.read(buffer);
        await sink(done ? decoder.decode() : decoder.decode(value, { stream: true }));
        if (done) return;
        const full = value.length === value.buffer.byteLength;
        buffer = full ? new Uint8Array(LONG_READ) : new Uint8Array(value.buffer);
      }
    } catch {
      // a broken pipe has ended
    }
  }

  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
    await this.ended;
  }
}

/** Keeps the first and the last `limit / 2` characters of a text. */
class BoundedText {
  readonly #half: number;
  #head = "";
  #tail = "";
  #dropped = 0;

  constructor(limit: number) {
    this.#half = Math.max(1, Math.floor(limit / 2));
  }

  add(text: string): void {
    const free = this.#half - this.#head.length;
    if (free > 0) {
      this.#head += text.slice(0, free);
      text = text.slice(free);
    }
    this.#tail += text;
    // Trimmed when it has doubled, so that each character is copied a bounded number of times.
    if (this.#tail.length > 2 * this.#half) this.#trim();
  }

  text(): string {
    this.#trim();
    if (this.#dropped === 0) return this.#head + this.#tail;
    const marker = `\n... (${this.#dropped} characters dropped) ...\n`;
    return (this.#head + marker + this.#tail).toWellFormed();
  }

  #trim(): void {
    const excess = this.#tail.length - this.#half;
    if (excess <= 0) return;
    this.#dropped += excess;
    this.#tail = this.#tail.slice(excess);
  }
}

/** A process that ends a process group when this process ends, even by SIGKILL. */
interface Watchdog {
  /** Whether it runs. */
  readonly alive: boolean;
  /** Names the group; called as soon as its number is known. */
  watch(group: number): void;
  /** Tells that the group has ended. */
  release(): void;
  /** Tells that the next command is about to start; when this resolves, it may. */
  begin(): Promise<void>;
  stop(): Promise<void>;
}

/** Watchdogs of commands that run one after the other. */
export class Watchdogs {
  readonly #most: number;
  readonly #idle: Watchdog[] = [];

  /** @param most how many are kept for later commands */
  constructor(most = 4) {
    this.#most = most;
  }

  /** A watchdog for a command that starts now; see {@linkcode startWatchdog}. */
  async take(): Promise<Watchdog | undefined> {
    const known = this.#idle.pop();
    if (known === undefined) return startWatchdog();
    await known.begin();
    return known.alive ? known : startWatchdog();
  }

  /** Keeps a watchdog whose command has ended, or stops it. */
  async release(watchdog: Watchdog | undefined): Promise<void> {
    if (watchdog === undefined) return;
    if (this.#idle.length === this.#most) return await watchdog.stop();
    watchdog.release();
    this.#idle.push(watchdog);
  }

  async close(): Promise<void> {
    await Promise.all(this.#idle.splice(0).map((watchdog) => watchdog.stop()));
  }
}

/**
 * For one command after the other: reads the number of the group, a line when the group has ended, and, when the next
 * command is about to start, the hundredths of a second since svc has started this shell. Its input ends when svc ends.
 *
 * If the end comes before the number, svc ended between starting the command and naming the group, and the
 * command may run. `orphan` finds it in `/proc`: a session leader that started since, that the
 * kernel gave to the same new parent as the watchdog, and whose output pipes have no reader. A machine without
 * `/proc` has no such search.
 */
const WATCHDOG = `trap '' HUP INT TERM
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
  sleep 0.1 # the command makes its session meanwhile
  reaper=$parent
  for pid in /proc/[0-9]*; do
    pid=\${pid#/proc/}
    look "$pid" && [ "$parent $group $session" = "$reaper $pid $pid" ] && [ "$pid" != $$ ] &&
      [ "$started" -ge "$since" ] && unread 1 && unread 2 && echo "$pid"
  done
}
look $$
first=$started since=$started
while read -r groups || { groups=$(orphan) && false; }; do
  read -r _ || break
  read -r hundredths || exit
  since=$((first + hundredths))
done
[ -n "$groups" ] || exit
for group in $groups; do kill -s TERM -- "-$group"; done
sleep "$grace"
for group in $groups; do kill -s KILL -- "-$group"; done`;

/**
 * Starts a shell at the end of a pipe from this process: the kernel closes the pipe however this process ends.
 * It has to run before the command that it watches is started. Undefined without a shell or the permission to
 * run one.
 */
export function startWatchdog(): Watchdog | undefined {
  let shell: Deno.ChildProcess;
  try {
    shell = new Deno.Command("sh", {
      args: ["-c", WATCHDOG, "svc-watchdog", String(Deno.pid), String(GRACE / 1000)],
      cwd: "/", // keeps no file system busy
      detached: true, // a Ctrl-C in the terminal does not reach it
      stdin: "piped",
      stdout: "null",
      stderr: "null",
    }).spawn();
  } catch {
    return undefined;
  }
  shell.unref(); // it ends when this process does
  let alive = true;
  shell.status.then(() => alive = false);
  const writer = shell.stdin.getWriter();
  const from = performance.now();
  const tell = (line: string | number) =>
    writer.write(new TextEncoder().encode(`${line}\n`)).catch(() => {});
  return {
    get alive() {
      return alive;
    },
    watch: (group) => void tell(group),
    release: () => void tell("ended"),
    // The shell may read this line after the command has started, and cannot tell the time for itself.
    begin: () => tell(Math.floor((performance.now() - from) / 10)),
    async stop() {
      killGroup(shell, "SIGKILL"); // before its input closes, which would trigger it
      shell.ref();
      await shell.status;
      await writer.abort().catch(() => {});
    },
  };
}

/** Sends SIGTERM to a child's process group; of a launcher's, to the processes inside alone. */
async function terminate(child: Deno.ChildProcess, launch: Launch): Promise<void> {
  if (!launch.contained) return killGroup(child, "SIGTERM");
  try {
    await new Deno.Command("sh", { args: ["-c", TERMINATE, "svc", String(child.pid)], cwd: "/" })
      .output();
  } catch {
    killGroup(child, "SIGTERM", launch); // no permission to run a shell: the launcher ends, and all with it
  }
}

/** Process 1 of the sandbox ignores the signal. */
const TERMINATE = `for stat in /proc/[0-9]*/stat; do
  read -r line <"$stat" || continue
  pid=\${line%% *} leader=$1
  set -- \${line##*) }
  [ "$4" != "$leader" ] || [ "$pid" = "$leader" ] || kill -s TERM "$pid"
  set -- "$leader"
done 2>/dev/null`;

/** Signals a child's process group, which may have ended already. */
function killGroup(
  child: Deno.ChildProcess,
  signal: Deno.Signal,
  { contained = false }: Pick<Launch, "contained"> = {},
): void {
  try {
    Deno.kill(-child.pid, signal);
  } catch (error) {
    const none = error instanceof Deno.errors.NotFound; // it has ended, or not made its session yet
    // Signalling a group needs Deno's full run permission. With a launcher, all processes end.
    try {
      child.kill(none ? signal : "SIGKILL");
    } catch {
      // it has ended
    }
    if (!none && !contained) throw error;
  }
}
