import type { Clock } from "./clock.ts";
import { GRACE, killGroup, startGuard } from "./guard.ts";
import { startError } from "./process.ts";

/** A program that runs beside, such as a server. */
export interface ChildRequest {
  /** Program and arguments. Never a shell string, unless the shell itself is the program. */
  command: string[];
  /** Absolute path. */
  cwd: string;
  /** All of its environment. */
  env: Record<string, string>;
}

/** A program that was started, and its pipes. */
export interface Child {
  readonly pid: number;
  readonly input: WritableStream<Uint8Array>;
  readonly output: ReadableStream<Uint8Array>;
  readonly errors: ReadableStream<Uint8Array>;
  /** Its exit code, once it and all that it left in its group have ended. */
  readonly ended: Promise<number>;
  /** Ends it and its group: at once with its input closed, a second later with SIGTERM, then SIGKILL. */
  stop(): Promise<void>;
}

/** Milliseconds for going by itself once its input is closed. */
const PATIENCE = 1000;

/**
 * Starts a program in a session and process group of its own. The group never outlives it, nor this process:
 * should that die, even of SIGKILL, a guard ends the group.
 *
 * @throws SvcError `program_not_found`, `program_refused` or `no_directory` when it cannot start.
 */
export function startChild({ command, cwd, env }: ChildRequest, clock: Clock): Child {
  const [program = "", ...args] = command;
  const guard = startGuard();
  let child: Deno.ChildProcess;
  try {
    child = spawn(program, args, { cwd, env });
  } catch (error) {
    void guard?.stop();
    throw error;
  }
  guard?.watch(child.pid);
  const ended = child.status.then(async ({ code }) => {
    killGroup(child, "SIGKILL"); // what it left behind
    await guard?.stop();
    return code;
  });
  let stopping: Promise<void> | undefined;
  const within = async (ms: number) => {
    const over = new AbortController();
    const late = clock.sleep(ms, over.signal).then(() => false, () => true);
    const done = await Promise.race([ended.then(() => true), late]);
    over.abort();
    return done;
  };
  const stop = async () => {
    child.stdin.close().catch(() => {}); // a writer at it closes it itself
    if (await within(PATIENCE)) return;
    killGroup(child, "SIGTERM");
    if (await within(GRACE)) return;
    killGroup(child, "SIGKILL");
    await ended;
  };
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
  program: string,
  args: string[],
  options: { cwd: string; env: Record<string, string> },
): Deno.ChildProcess {
  try {
    return new Deno.Command(program, {
      args,
      ...options,
      clearEnv: true,
      detached: true, // setsid: a group to signal as one, and no terminal
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (cause) {
    throw startError(program, options.cwd, cause);
  }
}
