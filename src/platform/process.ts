import { type Clock, systemClock } from "./clock.ts";
import { SvcError } from "./error.ts";
import { GRACE, killGroup, startGuard } from "./guard.ts";

/** A child process to run to its end. */
export interface ProcessRequest {
  /** Program and arguments. Never a shell string, unless the shell itself is the program. */
  command: string[];
  cwd: string;
  /** Seconds; the whole process group is ended after that. */
  timeout: number;
  /** Extra environment variables. */
  env?: Record<string, string>;
  /** Text for standard input, which is empty otherwise. */
  stdin?: string;
  /** Characters of output kept, half from the start and half from the end (default 200,000). */
  max_output?: number;
  /** `false`: standard error is thrown away, so that `output` is standard output and nothing else. */
  errors?: false;
}

/** How a child process ended. */
export interface ProcessResult {
  /** Exit code; 128 + signal number when a signal ended it. */
  code: number;
  /** Standard output and error in the order they arrived, cut in the middle at `max_output`. */
  output: string;
  timed_out: boolean;
  cancelled: boolean;
}

/** Milliseconds for reading what is left in the pipes once the whole group is gone. */
const DRAIN = 500;
const SIGTERM_CODE = 143;

/**
 * Runs a program in a session and process group of its own and waits for it.
 *
 * The group never outlives the call: at the timeout, or when `signal` aborts, it gets SIGTERM and two
 * seconds later SIGKILL; when the program itself has ended, whatever it left behind is killed. A
 * process that made yet another session (`setsid`) escapes that, but does not keep the call waiting.
 * Should this process die first, even of SIGKILL, a guard ends the group in the same way.
 *
 * @throws SvcError `program_not_found`, `program_refused` or `no_directory` when it cannot start.
 */
export async function runProcess(
  request: ProcessRequest,
  signal: AbortSignal,
  clock: Clock = systemClock,
): Promise<ProcessResult> {
  if (signal.aborted) {
    return { code: SIGTERM_CODE, output: "", timed_out: false, cancelled: true };
  }
  const guard = startGuard();
  let child: Deno.ChildProcess;
  try {
    child = spawn(request);
  } catch (error) {
    await guard?.stop();
    throw error;
  }
  guard?.watch(child.pid);
  const output = new BoundedText(request.max_output ?? 200_000);
  const streams = request.errors === false ? [child.stdout] : [child.stdout, child.stderr];
  const pipes = streams.map((stream) => new Pipe(stream, output));
  const drained = Promise.all(pipes.map((pipe) => pipe.ended));
  const settled = new AbortController();
  if (request.stdin !== undefined) feed(child, request.stdin, settled.signal);

  let reason: "timed_out" | "cancelled" | undefined;
  const cancelled = new Promise<"cancelled">((resolve) => {
    signal.addEventListener("abort", () => resolve("cancelled"), {
      once: true,
      signal: settled.signal,
    });
  });
  try {
    const stop = await Promise.race([
      child.status.then(() => undefined),
      cancelled,
      pause(clock, request.timeout * 1000, settled.signal).then(() => "timed_out" as const),
    ]);
    if (stop !== undefined) {
      reason = stop;
      killGroup(child, "SIGTERM");
      // A program's children may still be tidying up after it died: they hold its pipes.
      await Promise.race([
        Promise.all([child.status, drained]),
        pause(clock, GRACE, settled.signal),
      ]);
    }
    killGroup(child, "SIGKILL");
    const status = await child.status;
    await Promise.race([drained, pause(clock, DRAIN, settled.signal)]);
    return {
      code: status.code,
      output: output.text(),
      timed_out: reason === "timed_out",
      cancelled: reason === "cancelled",
    };
  } finally {
    settled.abort();
    await Promise.all([...pipes.map((pipe) => pipe.cancel()), guard?.stop()]);
  }
}

function spawn(request: ProcessRequest): Deno.ChildProcess {
  const [program = "", ...args] = request.command;
  try {
    return new Deno.Command(program, {
      args,
      cwd: request.cwd,
      env: request.env,
      detached: true, // setsid: a group to signal as one, and no terminal to read a password from
      stdin: request.stdin === undefined ? "null" : "piped",
      stdout: "piped",
      stderr: request.errors === false ? "null" : "piped",
    }).spawn();
  } catch (cause) {
    throw startError(program, request.cwd, cause);
  }
}

/** Why a program could not be started. */
export function startError(program: string, cwd: string, cause: unknown): unknown {
  if (cause instanceof Deno.errors.NotFound) {
    return /': (No such cwd|cwd is not)/.test(cause.message)
      ? new SvcError("no_directory", `There is no directory ${cwd} to run ${program} in.`, {
        cause,
      })
      : new SvcError("program_not_found", `The program ${program} was not found.`, {
        hint: "Install it, or add its folder to PATH.",
        cause,
      });
  }
  if (cause instanceof Deno.errors.PermissionDenied) {
    return new SvcError("program_refused", `The program ${program} may not be executed.`, {
      cause,
    });
  }
  if (cause instanceof Deno.errors.NotCapable) {
    return new SvcError("program_refused", `This process has no permission to run ${program}.`, {
      hint: "Programs need Deno's run permission; see svc permissions.",
      cause,
    });
  }
  return cause;
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

/** Reads one output stream as leniently decoded UTF-8 until its end or `cancel`. */
class Pipe {
  readonly ended: Promise<void>;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;

  constructor(stream: ReadableStream<Uint8Array>, sink: BoundedText) {
    this.#reader = stream.getReader();
    this.ended = this.#read(sink);
  }

  async #read(sink: BoundedText): Promise<void> {
    const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
    try {
      for (;;) {
        const { value, done } = await this.#reader.read();
        sink.add(done ? decoder.decode() : decoder.decode(value, { stream: true }));
        if (done) return;
      }
    } catch {
      // a pipe that breaks has ended
    }
  }

  async cancel(): Promise<void> {
    await this.#reader.cancel().catch(() => {});
    await this.ended;
  }
}

/** Text of which at most the first and the last half of `limit` characters are kept. */
class BoundedText {
  readonly #half: number;
  #head = "";
  #tail = "";
  #dropped = 0;

  constructor(limit: number) {
    this.#half = Math.max(1, Math.floor(limit / 2));
  }

  add(text: string): void {
    const room = this.#half - this.#head.length;
    if (room > 0) {
      this.#head += text.slice(0, room);
      text = text.slice(room);
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
