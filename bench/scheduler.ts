// deno-lint-ignore-file no-console
import { Workspace } from "../src/engine/workspace.ts";
import { jobContext } from "../src/jobs/context.ts";
import { Scheduler } from "../src/jobs/scheduler.ts";

const JOBS = 1000;
const ATTEMPTS = 100;
const TICKS = 200;
/** Seconds after the start in which the scheduler reads the register. */
const SETTLE = 5;
/** Clock ticks of the kernel in a second, the unit of `/proc/<pid>/stat`. */
const HERTZ = 100;

/** What `svc jobs daemon` costs with 1,000 jobs of 100 attempts each, none of them due. */
export interface SchedulerFigures {
  register_mb: number;
  /** The tick that reads the register. */
  first_tick_ms: number;
  /** Median of those after it. */
  tick_ms: number;
  /** Of one processor, with the usual 15 seconds between two ticks. */
  idle_cpu_percent: number;
  idle_mb: number;
}

/**
 * Measures ticks in this process, and then the daemon of an executable while it has nothing to do.
 *
 * @param folder is made
 * @param watch seconds for which the daemon is watched
 */
export async function measureScheduler(
  executable: string,
  folder: string,
  watch: number,
): Promise<SchedulerFigures> {
  await Deno.mkdir(`${folder}/.svc`, { recursive: true });
  await Deno.writeTextFile(`${folder}/.svc/config.json`, '{"provider": "demo"}');
  const register = `${folder}/.svc/jobs.json`;
  await Deno.writeTextFile(register, registerText());
  const { size } = await Deno.stat(register);
  return {
    register_mb: size / 1e6,
    ...await ticks(folder),
    ...await idle(executable, folder, watch),
  };
}

async function ticks(folder: string): Promise<{ first_tick_ms: number; tick_ms: number }> {
  const environment = {
    home: folder,
    cwd: folder,
    get: (name: string) => name === "SVC_TRUST" ? "1" : undefined,
  };
  const workspace = Workspace.open({ path: folder, environment, warn: console.error });
  const scheduler = new Scheduler(jobContext(workspace));
  const never = new AbortController().signal;
  const times: number[] = [];
  for (let tick = 0; tick <= TICKS; tick++) {
    const begun = performance.now();
    await scheduler.tick(never);
    times.push(performance.now() - begun);
  }
  const [first = 0, ...later] = times;
  const median = later.sort((one, other) => one - other)[later.length >> 1]!;
  return { first_tick_ms: first, tick_ms: median };
}

async function idle(
  executable: string,
  folder: string,
  watch: number,
): Promise<{ idle_cpu_percent: number; idle_mb: number }> {
  const child = new Deno.Command(executable, {
    args: ["jobs", "daemon", "--path", folder],
    env: { HOME: folder, SVC_TRUST: "1" },
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  await reader.read(); // it looks at its jobs
  await pause(SETTLE);
  const before = await used(child.pid);
  await pause(watch);
  const after = await used(child.pid);
  child.kill("SIGTERM");
  while (!(await reader.read()).done);
  await child.status;
  return { idle_cpu_percent: 100 * (after.cpu - before.cpu) / watch, idle_mb: after.mb };
}

/** Seconds of processor time, and megabytes, that a process has used. */
async function used(pid: number): Promise<{ cpu: number; mb: number }> {
  const { stdout } = await new Deno.Command("cat", {
    args: [`/proc/${pid}/stat`, `/proc/${pid}/status`],
  }).output();
  const text = new TextDecoder().decode(stdout);
  const fields = text.slice(text.lastIndexOf(") ", text.indexOf("\n")) + 2).split(" ");
  const kilobytes = Number(/VmRSS:\s+(\d+)/.exec(text)?.[1]);
  return { cpu: (Number(fields[11]) + Number(fields[12])) / HERTZ, mb: kilobytes / 1000 };
}

function registerText(): string {
  const later = new Date(Date.now() + 86_400_000).toISOString();
  const history = Array.from({ length: ATTEMPTS }, (_, n) => ({
    started_at: new Date(Date.UTC(2026, 0, 1, n)).toISOString(),
    finished_at: new Date(Date.UTC(2026, 0, 1, n, 1)).toISOString(),
    status: n % 10 === 0 ? "failed" : "verified",
    reason: n % 10 === 0 ? "HTTP 503" : "",
    duration: 60,
    session: "job_20260101_000000_abcdef",
    attempt: 1,
    content: "The tests pass; nothing is left to do. ".repeat(26).slice(0, 1000),
  }));
  const jobs = Array.from({ length: JOBS }, (_, n) => ({
    name: `job-${n}`,
    schedule: { interval: 86_400 },
    prompt: "run the tests and report",
    status: "verified",
    created_at: "2026-01-01T00:00:00.000Z",
    next_run_at: later,
    last_run_at: "2026-01-05T03:00:00.000Z",
    history,
  }));
  return JSON.stringify({ jobs }, null, 2);
}

function pause(seconds: number): Promise<void> {
  return new Promise((over) => void setTimeout(over, seconds * 1000));
}
