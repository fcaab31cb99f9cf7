import { fileURLToPath } from "node:url";
import { buildFlags } from "./flags.ts";

const MAIN = fileURLToPath(new URL("../../main.ts", import.meta.url));

/** How a run of the real program ended. */
export interface Ended {
  code: number;
  stdout: string;
  stderr: string;
}

export interface ProgramOptions {
  cwd: string;
  /** HOME of the process; default: `cwd`. */
  home?: string;
  /** Standard input; default: none. */
  stdin?: string;
  env?: Record<string, string>;
  /** Runs the source, whatever `SVC_EXECUTABLE` says. */
  source?: boolean;
}

/** Starts the real program: the executable of `SVC_EXECUTABLE`, else the source under Deno. */
export function startSvc(args: string[], options: ProgramOptions): Deno.ChildProcess {
  const [command, ...rest] = commandLine(args, options);
  return new Deno.Command(command!, {
    args: rest,
    ...processOptions(options),
    stdin: options.stdin === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
}

/** The real program as a command line. */
export function commandLine(args: string[], { source = false } = {}): string[] {
  const executable = Deno.env.get("SVC_EXECUTABLE");
  return source || executable === undefined
    ? [Deno.execPath(), "run", ...buildFlags(), MAIN, ...args]
    : [executable, ...args];
}

/** The folder and environment of a process, with nothing of the machine's own. */
export function processOptions(options: ProgramOptions): Deno.CommandOptions {
  return {
    cwd: options.cwd,
    clearEnv: true,
    env: {
      HOME: options.home ?? options.cwd,
      PATH: "/usr/local/bin:/usr/bin:/bin",
      DENO_DIR: Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`,
      // Where the executable unpacks itself: once, and not into every test's home.
      XDG_CACHE_HOME: Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`,
      SVC_TRUST: "1",
      ...options.env,
    },
  };
}

/** Runs the real program to its end. */
export async function svc(args: string[], options: ProgramOptions): Promise<Ended> {
  const child = startSvc(args, options);
  if (options.stdin !== undefined) {
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(options.stdin));
    await writer.close();
  }
  const { code, stdout, stderr } = await child.output();
  const text = new TextDecoder();
  return { code, stdout: text.decode(stdout), stderr: text.decode(stderr) };
}

/**
 * Runs the real program in a pseudo-terminal and types, in turn, each answer once its prompt has
 * appeared. Returns all that the terminal was sent.
 */
export async function inTerminal(
  args: string[],
  options: ProgramOptions,
  dialogue: [prompt: string, answer: string][],
): Promise<string> {
  const [command, ...rest] = commandLine(args, options);
  const quoted = [command!, ...rest].map((word) => `'${word.replaceAll("'", `'\\''`)}'`).join(" ");
  const child = new Deno.Command("script", {
    args: ["--quiet", "--return", "--command", quoted, "/dev/null"],
    ...processOptions(options),
    stdin: "piped",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const writer = child.stdin.getWriter();
  let screen = "";
  let seen = 0;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    screen += text;
    const [prompt, answer] = dialogue[0] ?? [];
    const found = prompt === undefined ? -1 : screen.indexOf(prompt, seen);
    if (found < 0) continue;
    seen = found + prompt!.length;
    dialogue.shift();
    await writer.write(new TextEncoder().encode(answer));
  }
  await writer.close().catch(() => {}); // the terminal is gone already
  await child.status;
  return screen;
}
