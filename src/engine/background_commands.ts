import { type Clock, systemClock } from "../platform/clock.ts";
import { SvcError } from "../platform/error.ts";
import type { Sandbox } from "../platform/sandbox.ts";
import { oneLine, stripControl } from "../platform/terminal.ts";
import type { BackgroundCommand, CommandOutput, CommandWait } from "../plugins/api.ts";
import { COMMANDS_NOTE } from "./conversation.ts";
import { unfinished } from "./progress.ts";

/** Commands of a session that may run at once. */
const MOST_RUNNING = 8;
/** Commands of a session that are known after their end. */
const MOST_ENDED = 16;
/** Characters of new output that are kept of a command. */
const KEPT = 200_000;
/** Characters a second of output that no call takes, once it is dropped: the program waits for its reader. */
const DROPPED_RATE = 1_000_000;
/** Milliseconds between two attempts to reach a port. */
const LOOK = 100;
/** Milliseconds that one attempt may take. */
const PROBE = 500;
/** Characters of a command line in a list. */
const LINE = 80;

/** What starts a command. */
export interface CommandStart {
  command: string[];
  /** Absolute path of the folder to run in. */
  cwd: string;
  env?: Record<string, string>;
  /** The command line, for lists. */
  line: string;
}

/** The commands that one session runs in the background, and those that have ended. */
export class SessionCommands {
  readonly #sandbox: Sandbox;
  readonly #clock: Clock;
  #commands: RunningCommand[] = [];
  #ids = 0;

  constructor(sandbox: Sandbox, clock: Clock = systemClock) {
    this.#sandbox = sandbox;
    this.#clock = clock;
  }

  /** Those that have not ended. */
  get running(): RunningCommand[] {
    return this.#commands.filter(({ code }) => code === undefined);
  }

  find(id: number): RunningCommand | undefined {
    return this.#commands.find((command) => command.id === id);
  }

  /** Starts a command. @throws SvcError as `Sandbox.run`, and `too_many_commands` */
  async start(request: CommandStart): Promise<RunningCommand> {
    if (this.running.length >= MOST_RUNNING) {
      throw new SvcError(
        "too_many_commands",
        `${MOST_RUNNING} commands run in the background already; stop one of them first.`,
      );
    }
    const command = new RunningCommand(++this.#ids, request.line, this.#clock);
    this.#commands.push(command);
    try {
      await command.start(request, this.#sandbox);
    } catch (error) {
      this.#commands = this.#commands.filter((each) => each !== command);
      throw error;
    }
    const ended = this.#commands.filter(({ code }) => code !== undefined);
    const old = ended.slice(0, Math.max(0, ended.length - MOST_ENDED));
    this.#commands = this.#commands.filter((each) => !old.includes(each));
    return command;
  }

  /** The commands that have ended since the last call, and whose exit code no other call has told. */
  takeEnded(): RunningCommand[] {
    const ended = this.#commands.filter(({ code, told }) => code !== undefined && !told);
    for (const command of ended) command.told = true;
    return ended;
  }

  /** Ends all commands, and waits for their end. */
  async end(): Promise<void> {
    await Promise.all(this.#commands.map((command) => command.stop()));
  }
}

/** A command that runs in the background. Its output since the last look at it is kept, the newest of it. */
class RunningCommand implements BackgroundCommand {
  readonly id: number;
  readonly line: string;
  code: number | undefined;
  /** Whether the exit code was told. */
  told = false;
  readonly #clock: Clock;
  readonly #stop = new AbortController();
  #ended: Promise<void> = Promise.resolve();
  #new = "";
  /** Lines that were dropped before these. */
  #dropped = 0;
  #changed = Promise.withResolvers<void>();
  /** Calls that wait for output. */
  #waiting = 0;
  /** Ends the pauses of the program. */
  #resume = new AbortController();

  constructor(id: number, line: string, clock: Clock) {
    this.id = id;
    this.line = oneLine(line).slice(0, LINE).toWellFormed();
    this.#clock = clock;
  }

  /** Resolves when the program has started. @throws SvcError as `Sandbox.run` */
  async start({ command, cwd, env }: CommandStart, sandbox: Sandbox): Promise<void> {
    const started = Promise.withResolvers<void>();
    const request = {
      ...{ command, cwd, env, timeout: Infinity, max_output: 0, open_input: true },
      on_start: started.resolve,
      on_output: (text: string) => this.#add(text),
    };
    this.#ended = sandbox.run(request, this.#stop.signal).then(({ code }) => {
      this.#end(code);
      started.resolve();
    }, (error) => {
      this.#end(1);
      started.reject(error);
    });
    await started.promise;
  }

  async output(
    { wait_for, port, timeout = 0 }: CommandWait,
    signal: AbortSignal,
  ): Promise<CommandOutput> {
    const over = new AbortController();
    const waits = AbortSignal.any([signal, over.signal]);
    this.#waiting++;
    this.#unpause();
    let late = timeout === 0;
    const expired = this.#clock.sleep(timeout * 1000, waits).then(() => {}, () => {})
      .then(() => late = true);
    const waited = wait_for !== undefined || port !== undefined;
    const met = async () =>
      waited &&
      (wait_for === undefined || cleaned(this.#new).includes(wait_for)) &&
      (port === undefined || await accepts(port, waits));
    let reached = false;
    try {
      for (;;) {
        const changed = this.#changed.promise; // what comes while the port is tried counts
        reached = await met();
        if (reached || this.code !== undefined || late) break;
        const pause = port === undefined ? [] : [this.#clock.sleep(LOOK, waits).catch(() => {})];
        await Promise.race([changed, expired, ...pause]);
      }
    } finally {
      over.abort();
      this.#waiting--;
    }
    return { ...this.#take(reached ? wait_for : undefined), reached, code: this.code };
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    this.#unpause();
    await this.#ended;
  }

  /** Adds new output. When some is dropped, the next is read after a pause, unless a call waits for it. */
  async #add(text: string): Promise<void> {
    this.#new += text;
    this.#wake();
    if (this.#new.length <= KEPT) return;
    const cut = this.#new.indexOf("\n", this.#new.length - KEPT / 2) + 1;
    const gone = this.#new.slice(0, cut || this.#new.length - KEPT / 2);
    this.#dropped += gone.split("\n").length - 1;
    this.#new = this.#new.slice(gone.length);
    if (this.#waiting > 0 || this.#stop.signal.aborted) return;
    const ms = gone.length / DROPPED_RATE * 1000;
    await this.#clock.sleep(ms, this.#resume.signal).catch(() => {});
  }

  #unpause(): void {
    this.#resume.abort();
    this.#resume = new AbortController();
  }

  #end(code: number): void {
    this.code = code;
    this.#wake();
  }

  #wake(): void {
    this.#changed.resolve();
    this.#changed = Promise.withResolvers();
  }

  /**
   * Takes the whole lines of the new output: half a secret is not masked. The last line is taken too when the command
   * has ended, or when the text in it was waited for.
   */
  #take(found?: string): Pick<CommandOutput, "output" | "skipped"> {
    const last = this.#new.length - (this.code === undefined ? unfinished(this.#new) : 0);
    const whole = cleaned(this.#new.slice(0, last));
    const all = found !== undefined && !whole.includes(found);
    const output = all ? cleaned(this.#new) : whole;
    this.#new = all ? "" : this.#new.slice(last);
    const skipped = this.#dropped;
    this.#dropped = 0;
    if (this.code !== undefined) this.told = true;
    return { output, skipped };
  }
}

/** A text without control characters; a line that a program writes again and again counts as several. */
function cleaned(text: string): string {
  return stripControl(text.replace(/\r+\n?/g, "\n")).toWellFormed();
}

/** Whether something on this machine listens on a TCP port. */
async function accepts(port: number, cancelled: AbortSignal): Promise<boolean> {
  for (const hostname of ["127.0.0.1", "::1"]) {
    // The kernel does not answer for a program that accepts no more connections.
    const signal = AbortSignal.any([cancelled, AbortSignal.timeout(PROBE)]);
    try {
      (await Deno.connect({ hostname, port, signal })).close();
      return true;
    } catch (error) {
      if (error instanceof Deno.errors.NotCapable) throw error;
    }
  }
  return false;
}

/**
 * What the model is to know: the commands that have ended, once, and those that run, when that has changed. The note is
 * empty for nothing; `ended` is the part for the person.
 *
 * @param told the last note in the conversation
 * @param mask replaces secrets in command lines
 */
export function commandsNote(
  commands: SessionCommands | undefined,
  told = "",
  mask: (text: string) => string = (text) => text,
): { note: string; ended: string } {
  const ends = commands?.takeEnded() ?? [];
  const ended = mask(
    ends.map(({ id, line, code }) => `Command ${id} (${line}) ended with exit code ${code}.`)
      .join(" "),
  );
  const running = commands?.running.map(({ id, line }) => `${id} (${line})`) ?? [];
  const list = mask(running.join(", ")) || "none";
  const state = `Running: ${list}.`;
  const known = told === "" ? list === "none" : told.endsWith(state);
  const note = known && ended === "" ? "" : `${COMMANDS_NOTE}${ended}${ended && " "}${state}`;
  return { note, ended };
}
