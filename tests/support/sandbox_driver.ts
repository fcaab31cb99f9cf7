// deno-lint-ignore-file no-console
/** Runs the commands of standard input through a `Sandbox` and prints what they did; see sandbox.ts. */
import { systemClock } from "../../src/platform/clock.ts";
import { processEnvironment } from "../../src/platform/environment.ts";
import { Sandbox, type SandboxSettings } from "../../src/platform/sandbox.ts";
import type { DrivenResult, DriverReport, DriverRequest } from "./sandbox.ts";

const request: DriverRequest = await new Response(Deno.stdin.readable).json();
const own = processEnvironment();
const settings: SandboxSettings = {
  mode: "auto",
  deny_read: request.deny_read,
  write: [],
  network: true,
  env: [],
};
const sandbox = new Sandbox({
  worktree: request.worktree,
  environment: { ...own, get: (name) => name === "PATH" ? request.path : own.get(name) },
  clock: systemClock,
  settings: () => settings,
  hidden: [],
  warn: () => {},
});

const report: DriverReport = {
  kind: await sandbox.kind() ?? "none",
  full: await sandbox.full(),
  results: [],
};
for (const { script, network = true, mode = "auto", env = [] } of request.commands) {
  Object.assign(settings, { network, mode, env });
  const before = state();
  const result: DrivenResult = { code: -1, output: "", changed: [] };
  try {
    const { code, output } = await sandbox.run({
      command: ["bash", "-c", script],
      cwd: request.worktree,
      timeout: 60,
      env: { ...request.env, SVC: String(Deno.pid) },
    }, new AbortController().signal);
    Object.assign(result, { code, output });
  } catch (error) {
    result.output = `${(error as { code?: string }).code}: ${(error as Error).message}`;
  }
  const after = state();
  result.changed = request.guarded.filter((_, index) => before[index] !== after[index]);
  report.results.push(result);
}
console.log(JSON.stringify(report));

function state(): string[] {
  return request.guarded.map((path) => {
    try {
      if (Deno.lstatSync(path).isDirectory) return [...Deno.readDirSync(path)].map(name).join();
      return `${Deno.statSync(path).mode} ${Deno.readTextFileSync(path)}`;
    } catch (error) {
      return (error as Error).name;
    }
  });
}

function name(entry: Deno.DirEntry): string {
  return entry.name;
}
