import assert from "node:assert/strict";
import { commandLine, processOptions, type ProgramOptions } from "./program.ts";
import { Screen } from "./screen.ts";

/** A program in a pseudo-terminal of its own (`script` of util-linux), and what a person sees of it. */
export class Pty implements AsyncDisposable {
  readonly screen: Screen;
  /** Everything that the program wrote. */
  written = "";
  /** The exit code, once it has ended. */
  readonly ended: Promise<number>;
  readonly #child: Deno.ChildProcess;
  readonly #typist: WritableStreamDefaultWriter<Uint8Array<ArrayBuffer>>;
  readonly #folder: string;
  /** Whether its output has ended. */
  over = false;
  #changed: () => void = () => {};

  /** Starts a command line; its words are quoted for the shell that `script` uses. */
  constructor(command: string[], options: ProgramOptions, columns = 80, rows = 24) {
    this.screen = new Screen(columns, rows);
    this.#folder = Deno.makeTempDirSync({ prefix: "svc-pty-" });
    const line = `tty > '${this.#folder}/tty'; stty cols ${columns} rows ${rows}; ` +
      `exec ${command.map(quoted).join(" ")}`;
    this.#child = new Deno.Command("script", {
      args: ["--quiet", "--return", "--command", line, "/dev/null"],
      ...processOptions({ ...options, env: { TERM: "xterm-256color", ...options.env } }),
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#typist = this.#child.stdin.getWriter();
    this.ended = this.#show();
  }

  /** Types keys as they are, in one piece. */
  async type(keys: string): Promise<void> {
    await this.#typist.write(new TextEncoder().encode(keys));
  }

  /** Waits until the screen shows this, or all rows are as the function wants them. */
  async until(wanted: string | RegExp | ((screen: Screen) => boolean)): Promise<void> {
    const there = () =>
      typeof wanted === "function"
        ? wanted(this.screen)
        : typeof wanted === "string"
        ? this.screen.text().includes(wanted)
        : wanted.test(this.screen.text());
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, 60_000);
    while (!there() && !this.over) {
      const more = new Promise<boolean>((resolve) => this.#changed = () => resolve(true));
      if (!await Promise.race([more, late.promise.then(() => false)])) break;
    }
    clearTimeout(timer);
    assert.ok(there(), `not seen: ${wanted}\n--- the screen ---\n${this.screen.text()}`);
  }

  /** Gives the terminal another size, as when a window is resized. */
  async resize(columns: number, rows: number): Promise<void> {
    this.screen.resize(columns, rows);
    await this.#stty("cols", `${columns}`, "rows", `${rows}`);
  }

  /** The terminal's settings, as `stty -a` prints them. */
  settings(): Promise<string> {
    return this.#stty("-a");
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.over) this.#child.kill("SIGKILL");
    await this.ended;
    await this.#typist.close().catch(() => {}); // the terminal is gone already
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #show(): Promise<number> {
    for await (const text of this.#child.stdout.pipeThrough(new TextDecoderStream())) {
      this.written += text;
      this.screen.write(text);
      this.#changed();
    }
    this.over = true;
    this.#changed();
    return (await this.#child.status).code;
  }

  async #stty(...args: string[]): Promise<string> {
    const tty = (await Deno.readTextFile(`${this.#folder}/tty`)).trim();
    const { stdout, success } = await new Deno.Command("stty", { args: ["-F", tty, ...args] })
      .output();
    assert.ok(success);
    return new TextDecoder().decode(stdout);
  }
}

/** The real program in a pseudo-terminal. */
export function svcPty(args: string[], options: ProgramOptions, columns = 80, rows = 24): Pty {
  return new Pty(commandLine(args, options), options, columns, rows);
}

function quoted(word: string): string {
  return `'${word.replaceAll("'", `'\\''`)}'`;
}
