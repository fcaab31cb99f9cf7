import { identifyProcesses, type ProcessIdentity } from "../../src/platform/detached.ts";

/** Whether a process still runs. */
export async function isAlive({ pid, started }: ProcessIdentity): Promise<boolean> {
  return (await identifyProcesses([pid])).get(pid) === started;
}

/** Calls `look` every 50 ms until it returns something; fails after two minutes. */
export async function poll<T>(
  look: () => T | Promise<T>,
  wanted: (seen: T) => boolean,
): Promise<T> {
  for (const deadline = Date.now() + 120_000;;) {
    const seen = await look();
    if (wanted(seen)) return seen;
    if (Date.now() > deadline) throw new Error(`Not as wanted: ${JSON.stringify(seen)}`);
    await new Promise((again) => setTimeout(again, 50));
  }
}

/** Waits until a condition holds; fails after a minute. */
export async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  for (const deadline = Date.now() + 60_000; !await check();) {
    if (Date.now() > deadline) throw new Error(`Not within a minute: ${check}`);
    await new Promise((again) => setTimeout(again, 2));
  }
}

/** Returns once no process works in the folder any more. */
export async function noProcessesLeft(folder: string): Promise<void> {
  const args = ["-c", 'readlink /proc/[0-9]*/cwd | grep -F -c -- "$1"', "sh", folder];
  const look = async () => {
    const { stdout } = await new Deno.Command("sh", { args, cwd: "/", stderr: "null" }).output();
    return new TextDecoder().decode(stdout);
  };
  await poll(look, (left) => left === "0\n");
}
