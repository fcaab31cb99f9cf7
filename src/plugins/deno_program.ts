import { basename, extname } from "node:path";
import { errorMessage, SvcError } from "../platform/error.ts";
import { runProcess } from "../platform/process.ts";
import type { ProcessResult } from "./api.ts";

/**
 * Runs Deno itself: the one that runs this program, where that is one, else the one on the PATH.
 *
 * @throws SvcError `no_deno` when there is none.
 */
export async function runDeno(
  args: string[],
  { cwd, timeout, signal, purpose }: {
    cwd: string;
    /** Seconds. */
    timeout: number;
    signal: AbortSignal;
    /** What it is for, as in "installing packages". */
    purpose: string;
  },
): Promise<ProcessResult> {
  const own = Deno.execPath();
  const program = basename(own, extname(own)) === "deno" ? own : "deno";
  const env = { NO_COLOR: "1", DENO_NO_UPDATE_CHECK: "1", DENO_NO_PACKAGE_JSON: "1" };
  try {
    return await runProcess({ command: [program, ...args], cwd, timeout, env }, signal);
  } catch (cause) {
    throw new SvcError("no_deno", `Deno is needed for ${purpose}: ${errorMessage(cause)}`, {
      hint: "Install Deno (https://deno.com), or have svc run where it is on the PATH.",
      cause,
    });
  }
}
