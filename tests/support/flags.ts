/** The permission flags that the program is built with, as the tasks and compile.sh share them. */
export function buildFlags(profile: "build" | "plan" | "sandboxed" = "build"): string[] {
  const file = new URL(`../../permissions/${profile}.flags`, import.meta.url);
  return Deno.readTextFileSync(file).trim().split("\n");
}

/** The permission flags of the tests themselves. */
export const TEST_FLAGS = [
  "--no-prompt",
  "--v8-flags=--enable-experimental-regexp-engine,--enable-experimental-regexp-engine-on-excessive-backtracks",
  ...["read", "write", "net", "run", "env", "sys"]
    .map((name) => `--allow-${name}`),
];
