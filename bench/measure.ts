import { fileURLToPath } from "node:url";

/** A program to run, with its whole environment. */
export interface Invocation {
  command: string[];
  cwd: string;
  env: Record<string, string>;
}

/** One run of a program. */
export interface Run {
  /** From just before the start until the end of the process. */
  ms: number;
  /** Highest resident memory of the largest process in its tree. */
  mb: number;
  stdout: string;
}

/** Milliseconds after which a run counts as stuck. */
const TIMEOUT = 120_000;

/** Runs programs one at a time, with their wall time and peak memory. */
export class Meter implements Disposable {
  readonly #sampler = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-config", "--allow-all", SAMPLER],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  readonly #requests = this.#sampler.stdin.getWriter();
  readonly #peaks = this.#sampler.stdout.pipeThrough(new TextDecoderStream()).getReader();

  /** @throws Error with the end of its output when the program fails or gets stuck. */
  async run({ command, cwd, env }: Invocation): Promise<Run> {
    const start = performance.now();
    const child = new Deno.Command(command[0]!, {
      args: command.slice(1),
      cwd,
      env,
      clearEnv: true,
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
      detached: true, // a group of its own, so that a stuck run can be ended as a whole
    }).spawn();
    const watched = this.#requests.write(new TextEncoder().encode(`${child.pid}\n`));
    let stuck = false;
    const timer = setTimeout(() => {
      stuck = true;
      Deno.kill(-child.pid, "SIGKILL");
    }, TIMEOUT);
    const ended = child.status.then(() => performance.now() - start);
    const { code, stdout, stderr } = await child.output();
    clearTimeout(timer);
    await watched;
    const mb = Number((await this.#peaks.read()).value) * 1024 / 1e6;
    const [out, err] = [stdout, stderr].map((bytes) => new TextDecoder().decode(bytes));
    if (stuck) throw new Error(`still running after ${TIMEOUT / 1000} s`);
    if (code !== 0) throw new Error(`exit ${code}: ${tail(err + out!)}`);
    return { ms: await ended, mb, stdout: out! };
  }

  [Symbol.dispose](): void {
    this.#sampler.kill();
  }
}

export function tail(text: string): string {
  return text.trim().slice(-300).replaceAll(/\s+/g, " ");
}

const SAMPLER = fileURLToPath(new URL("sampler.ts", import.meta.url));
