// deno-lint-ignore-file no-console
/**
 * `deno run --no-prompt --allow-read --allow-write --allow-net --allow-run --allow-env bench/fleet.ts [N]`:
 * starts N (100) agents of the executable that it builds under one supervisor, and prints one line of
 * JSON: seconds until all are healthy, private memory (swapped-out memory included), what the supervisor
 * takes, seconds until all are down. Exit 1 when an agent takes 60 MB or more, or being healthy 60 s.
 */
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const COUNT = Number(Deno.args[0] ?? 100);
/** Ports that a fleet of somebody who works here does not have. */
const PORTS = "18780-18890";
/** Seconds that the agents idle before they are looked at, and then the supervisor. */
const IDLE = 20;
const MAX_MB = 60;
const MAX_SECONDS = 60;

const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "svc-bench-" }));
const executable = `${folder}/svc`;
const worktree = `${folder}/fleet`;
let code = 1;
try {
  await run(["./compile.sh", "--output", executable], ROOT);
  for (let number = 1; number <= COUNT; number++) {
    const state = `${worktree}/agent${number}/.svc`;
    await Deno.mkdir(state, { recursive: true });
    await Deno.writeTextFile(`${state}/config.json`, '{"provider": "demo"}');
  }
  await fleet("init"); // unpacks the executable, too
  const begun = performance.now();
  await fleet("up", "--detach");
  let healthy = 0;
  while (healthy < COUNT) {
    await new Promise((resolve) => setTimeout(resolve, 250));
    healthy = (await status()).agents.filter((agent) => agent.healthy).length;
  }
  const all_healthy_s = (performance.now() - begun) / 1000;
  await idle();
  const { supervisor, agents } = await status();
  const memory = (await Promise.all(agents.map(({ pid }) => privateMemory(pid)))).sort((a, b) =>
    a - b
  );
  const before = await cpuTime(supervisor.pid);
  await idle();
  const supervisor_cpu = (await cpuTime(supervisor.pid) - before) / IDLE;
  const supervisor_mb = await privateMemory(supervisor.pid);
  const ending = performance.now();
  await fleet("down");
  console.log(JSON.stringify({
    agents: COUNT,
    all_healthy_s: rounded(all_healthy_s),
    agent_median_mb: rounded(memory[Math.floor(COUNT / 2)]!),
    agent_max_mb: rounded(memory.at(-1)!),
    total_mb: rounded(memory.reduce((sum, each) => sum + each, 0)),
    supervisor_mb: rounded(supervisor_mb),
    supervisor_cpu_percent: rounded(supervisor_cpu * 100),
    all_down_s: rounded((performance.now() - ending) / 1000),
    restarts: agents.reduce((sum, { restarts }) => sum + restarts, 0),
  }));
  code = memory.at(-1)! < MAX_MB && all_healthy_s < MAX_SECONDS ? 0 : 1;
} finally {
  await fleet("down").catch(() => {});
  await Deno.remove(folder, { recursive: true });
}
Deno.exit(code);

function fleet(...args: string[]): Promise<string> {
  return run([executable, "fleet", ...args, "--path", worktree], folder);
}

interface Status {
  supervisor: { pid: number };
  agents: { pid: number; healthy: boolean; restarts: number }[];
}

async function status(): Promise<Status> {
  return JSON.parse(await fleet("status", "--output", "json"));
}

async function run([program, ...args]: string[], cwd: string): Promise<string> {
  const env = { HOME: folder, XDG_CACHE_HOME: `${folder}/cache`, SVC_FLEET_PORT: PORTS };
  const { success, stdout, stderr } = await new Deno.Command(program!, {
    args,
    cwd,
    env: program === executable ? env : {},
  }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

function idle(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, IDLE * 1000));
}

/** MB that a process alone takes. Deno itself may not read /proc without every permission. */
async function privateMemory(pid: number): Promise<number> {
  const program = "/^Private_|^SwapPss/ {sum += $2} END {print sum}";
  return Number(await run(["awk", program, `/proc/${pid}/smaps_rollup`], "/")) * 1024 / 1e6;
}

/** Seconds of processor time so far. */
async function cpuTime(pid: number): Promise<number> {
  return Number(await run(["awk", "{print $14 + $15}", `/proc/${pid}/stat`], "/")) / 100;
}

function rounded(value: number): number {
  return Number(value.toFixed(1));
}
