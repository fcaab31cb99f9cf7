// deno-lint-ignore-file no-console
/**
 * What a sandboxed command costs in addition to a bare one:
 * `deno run --no-prompt --allow-read --allow-write --allow-run --allow-env bench/sandbox.ts`. Medians of milliseconds.
 */
import { systemClock } from "../src/platform/clock.ts";
import { processEnvironment } from "../src/platform/environment.ts";
import { Sandbox } from "../src/platform/sandbox.ts";

const RUNS = 40;
const worktree = await Deno.makeTempDir();
const environment = processEnvironment();

function sandbox(mode: "off" | "auto", path: string): Sandbox {
  return new Sandbox({
    worktree,
    environment: { ...environment, get: (name) => name === "PATH" ? path : environment.get(name) },
    clock: systemClock,
    settings: () => ({ mode, deny_read: ["~/.ssh", "~/.aws"], write: [], network: true, env: [] }),
    hidden: [],
    warn: () => {},
  });
}

// A PATH without bubblewrap leaves Landlock.
const programs = await Deno.makeTempDir();
await Deno.symlink("/bin/bash", `${programs}/bash`);
for (const name of ["sh", "env", "sleep"]) {
  await Deno.symlink(`/bin/${name}`, `${programs}/${name}`);
}
const search = environment.get("PATH") ?? "";
const kinds: [string, Sandbox][] = [
  ["none", sandbox("off", search)],
  ["auto", sandbox("auto", search)],
  ["without bubblewrap", sandbox("auto", programs)],
];
const times = kinds.map((): number[] => []);
for (let run = 0; run <= RUNS; run++) {
  // In turn, so that other work on the machine concerns all alike.
  for (const [index, [, sandbox]] of kinds.entries()) {
    const started = performance.now();
    await sandbox.run(
      { command: ["bash", "-c", "true"], cwd: worktree, timeout: 60 },
      new AbortController().signal,
    );
    if (run > 0) times[index]!.push(performance.now() - started); // the first one probes
  }
}
for (const [index, [name, sandbox]] of kinds.entries()) {
  const sorted = times[index]!.sort((a, b) => a - b);
  const kind = await sandbox.kind() ?? "no sandbox";
  console.log(`${name}: ${kind}, ${sorted[RUNS / 2]!.toFixed(1)} ms`);
}
await Deno.remove(worktree, { recursive: true });
await Deno.remove(programs, { recursive: true });
