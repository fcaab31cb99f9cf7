import { join } from "node:path";
import { pathToFileURL } from "node:url";
import flags from "../../permissions/build.flags" with { type: "text" };
import type { ProcessResult } from "./api.ts";
import { runDeno } from "./deno_program.ts";

/** The test modules in a plugin's folder, relative to it. */
export function testFiles(folder: string): string[] {
  const found: string[] = [];
  const walk = (below: string) => {
    for (const { name, isDirectory, isFile } of Deno.readDirSync(join(folder, below))) {
      if (name === "node_modules" || name.startsWith(".")) continue;
      if (isDirectory) walk(join(below, name));
      else if (isFile && /[_.]test\.(ts|js|mjs)$/.test(name)) found.push(join(below, name));
    }
  };
  walk("");
  return found.sort();
}

/** Runs a plugin's test modules under Deno, with the permissions that the plugin has in the program. */
export function runTests(
  folder: string,
  files: string[],
  packages: string[],
  signal: AbortSignal,
): Promise<ProcessResult> {
  const granted = flags.trim().split("\n");
  const imports = Object.fromEntries(packages.map((name) => [
    name,
    pathToFileURL(join(folder, "node_modules", name, "index.js")).href,
  ]));
  const map = `data:application/json,${encodeURIComponent(JSON.stringify({ imports }))}`;
  return runDeno(
    [
      "test",
      "--quiet",
      ...granted,
      "--no-config",
      "--no-lock",
      `--import-map=${map}`,
      "--",
      ...files,
    ],
    { cwd: folder, timeout: 600, signal, purpose: "running a plugin's tests" },
  );
}
