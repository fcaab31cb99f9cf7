// deno-lint-ignore-file no-console
/**
 * Runs the tests: `deno task test [--no-check] [file or folder ...]`. It checks types and builds the
 * executable once, then runs all test files in parallel in an environment of their own: home, cache and
 * temporary folder are removed at the end. docs/testing.md describes the variables.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { TEST_FLAGS } from "./support/flags.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const paths = Deno.args.filter((arg) => arg !== "--no-check");
const seed = Deno.env.get("SVC_TEST_SEED") ?? `${crypto.getRandomValues(new Uint32Array(1))[0]}`;
const scratch = await Deno.realPath(await Deno.makeTempDir({ prefix: "svc-tests-" }));
await Deno.chmod(scratch, 0o711); // some tests run programs as another user
for (const signal of ["SIGINT", "SIGTERM"] as const) Deno.addSignalListener(signal, () => {});
try {
  Deno.exitCode = await main();
} finally {
  await Deno.remove(scratch, { recursive: true });
}

async function main(): Promise<number> {
  const executable = Deno.env.get("SVC_EXECUTABLE") ?? join(scratch, "svc");
  const prepared = await Promise.all([
    Deno.args.includes("--no-check") || quietly(Deno.execPath(), "task", "check"),
    Deno.env.has("SVC_EXECUTABLE") ||
    quietly("bash", "compile.sh", "--archive", "--output", executable),
  ]);
  if (prepared.includes(false)) return 1;
  const folder = async (name: string) => {
    await Deno.mkdir(join(scratch, name));
    return join(scratch, name);
  };
  const info = await new Deno.Command(Deno.execPath(), { args: ["info", "--json"], cwd: root })
    .output();
  const repeat = `SVC_TEST_SEED=${seed}`;
  console.log(`Random tests: ${repeat}`);
  const { code } = await new Deno.Command(Deno.execPath(), {
    args: [
      "test",
      "--no-check",
      "--parallel",
      ...["--preload", "tests/support/limit.ts"],
      ...TEST_FLAGS,
      ...paths.length ? paths : ["tests", "plugins", "examples"],
    ],
    cwd: root,
    env: {
      DENO_DIR: JSON.parse(new TextDecoder().decode(info.stdout)).denoDir,
      DENO_JOBS: Deno.env.get("DENO_JOBS") ?? `${2 * navigator.hardwareConcurrency}`,
      HOME: await folder("home"),
      SVC_EXECUTABLE: executable,
      SVC_TEST_SEED: seed,
      TMPDIR: await folder("tmp"),
      XDG_CACHE_HOME: await folder("cache"),
    },
    stdin: "null",
  }).spawn().status;
  if (code !== 0) console.log(`The same random tests again: ${repeat}`);
  return code;
}

/** Runs a command in the project's folder and shows its output only when it fails. */
async function quietly(command: string, ...args: string[]): Promise<boolean> {
  const { success, stdout, stderr } = await new Deno.Command(command, { args, cwd: root }).output();
  if (!success) { for (const output of [stdout, stderr]) await Deno.stderr.write(output); }
  return success;
}
