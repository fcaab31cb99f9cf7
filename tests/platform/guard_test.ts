import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { project } from "../support/project.ts";
import { nobodyLeft } from "../support/processes.ts";

const GUARDED = fileURLToPath(new URL("../support/guarded.ts", import.meta.url));

/** Has `guarded.ts` start a command and be killed; returns the number of the command once the guard is done. */
async function killed(cwd: string, output: string, ...command: string[]): Promise<number> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--no-lock", "--no-check", "--allow-run", GUARDED, output, ...command],
    cwd,
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const [own, number] = ((await reader.read()).value ?? "").trim().split(" ");
  assert.equal((await child.status).signal, "SIGKILL");
  for (const guard = `svc-guard ${own} `;;) {
    const { success } = await new Deno.Command("pgrep", { args: ["-f", guard] }).output();
    if (!success) break;
  }
  await Promise.all([reader.cancel(), child.stderr.cancel()]);
  return Number(number);
}

Deno.test("a command whose guard knew nothing of it yet when svc was killed ends with its children", async () => {
  await using place = await project();
  await killed(place.path, "piped", "sh", "-c", "sleep 300 & sleep 300");
  await nobodyLeft(place.path);
});

Deno.test("such a command that ignores SIGTERM gets SIGKILL", async () => {
  await using place = await project();
  await killed(place.path, "piped", "sh", "-c", "trap '' TERM; sleep 300 & wait; wait");
  await nobodyLeft(place.path);
});

for (const output of ["null", "inherit"]) {
  Deno.test(`a process that began then, but is no command of svc's (its output: ${output}), is left alone`, async () => {
    await using place = await project();
    const number = await killed(place.path, output, "sleep", "300");
    Deno.kill(number, "SIGKILL"); // NotFound, were it gone
    await nobodyLeft(place.path);
  });
}
