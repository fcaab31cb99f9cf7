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
}

/** Starts the real program: the executable of `SVC_EXECUTABLE`, else the source under Deno. */
export function startSvc(args: string[], options: ProgramOptions): Deno.ChildProcess {
  const executable = Deno.env.get("SVC_EXECUTABLE");
  const [command, before] = executable === undefined
    ? [Deno.execPath(), ["run", ...buildFlags(), MAIN]]
    : [executable, []];
  return new Deno.Command(command, {
    args: [...before, ...args],
    cwd: options.cwd,
    clearEnv: true,
    env: {
      HOME: options.home ?? options.cwd,
      PATH: "/usr/local/bin:/usr/bin:/bin",
      DENO_DIR: Deno.env.get("DENO_DIR") ?? `${Deno.env.get("HOME")}/.cache/deno`,
      // Where the executable unpacks itself: once, and not into every test's home.
      XDG_CACHE_HOME: Deno.env.get("XDG_CACHE_HOME") ?? `${Deno.env.get("HOME")}/.cache`,
      ...options.env,
    },
    stdin: options.stdin === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
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
