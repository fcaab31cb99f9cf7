// deno-lint-ignore-file no-console
/**
 * Watches process trees. For each pid on standard input (one a line) it follows the process and all of
 * its descendants until the process has ended, and prints the largest `VmHWM` it saw, in kB.
 *
 * `VmHWM` is the kernel's own record of a process's highest resident memory, so a peak between two looks
 * is not missed; what is missed is growth after the last look, at most `EVERY` ms before the end. It is
 * a program of its own because reading /proc takes every permission, and because the backend's
 * event loop must not wait for it.
 */

/** Milliseconds between two looks. */
const EVERY = 2;

const pause = new Int32Array(new SharedArrayBuffer(4));
let input = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  input += text;
  for (let end; (end = input.indexOf("\n")) >= 0;) {
    const pid = input.slice(0, end);
    input = input.slice(end + 1);
    console.log(watch(pid));
  }
}

function watch(root: string): number {
  const tree = new Set([root]);
  let peak = 0;
  for (;;) {
    for (const pid of tree) {
      const memory = highWater(pid);
      if (memory === undefined) {
        tree.delete(pid);
        continue;
      }
      peak = Math.max(peak, memory);
      for (const child of children(pid)) tree.add(child);
    }
    if (!tree.has(root)) return peak;
    Atomics.wait(pause, 0, 0, EVERY);
  }
}

/** In kB; undefined once the process has ended, whether or not its parent has waited for it. */
function highWater(pid: string): number | undefined {
  const found = /^VmHWM:\s*(\d+) kB$/m.exec(read(`/proc/${pid}/status`));
  return found ? Number(found[1]) : undefined;
}

function children(pid: string): string[] {
  let tasks: string[];
  try {
    tasks = [...Deno.readDirSync(`/proc/${pid}/task`)].map((entry) => entry.name);
  } catch {
    return [];
  }
  return tasks.flatMap((task) => read(`/proc/${pid}/task/${task}/children`).split(" "))
    .filter((child) => child !== "");
}

/** The text of a file of a process that may end at any moment. */
function read(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
