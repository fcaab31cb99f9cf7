/** Ports that no fleet of a developer uses by default. */
const PORTS = "18780-18890";
/** Seconds that the agents idle before they are looked at, and then the supervisor. */
const SETTLE = 5;
const WATCH = 10;
/** Milliseconds between two looks at the agents that start, and for how long they may. */
const LOOK = 250;
const PATIENCE = 300_000;

/** What a fleet of idle agents costs. */
export interface FleetFigures {
  agents: number;
  /** Until every agent has answered a health probe. */
  all_healthy_s: number;
  /** Private memory of one agent, what is swapped out included. */
  agent_median_mb: number;
  agent_max_mb: number;
  supervisor_mb: number;
  /** Of one processor. */
  supervisor_cpu_percent: number;
  all_down_s: number;
  /** Agents that had to be started again: none should. */
  restarts: number;
}

/**
 * Has one supervisor start agents of an executable, lets them idle, and stops them.
 *
 * @param folder is made; has a home of its own, so that the executable unpacks itself there first
 */
export async function measureFleet(
  executable: string,
  folder: string,
  count: number,
): Promise<FleetFigures> {
  const worktree = `${folder}/fleet`;
  const env = { HOME: folder, XDG_CACHE_HOME: `${folder}/cache`, SVC_FLEET_PORT: PORTS };
  const fleet = (...args: string[]) =>
    run([executable, "fleet", ...args, "--path", worktree], { cwd: folder, env });
  const status = async (): Promise<Status> => JSON.parse(await fleet("status", "--output", "json"));
  for (let number = 1; number <= count; number++) {
    const state = `${worktree}/agent${number}/.svc`;
    await Deno.mkdir(state, { recursive: true });
    await Deno.writeTextFile(`${state}/config.json`, '{"provider": "demo"}');
  }
  await fleet("init");
  try {
    const begun = performance.now();
    await fleet("up", "--detach");
    await allHealthy(status, count);
    const all_healthy_s = (performance.now() - begun) / 1000;
    await pause(SETTLE);
    const { supervisor, agents } = await status();
    const memory = (await Promise.all(agents.map(({ pid }) => privateMemory(pid))))
      .sort((one, other) => one - other);
    const before = await cpuTime(supervisor.pid);
    await pause(WATCH);
    const supervisor_cpu = (await cpuTime(supervisor.pid) - before) / WATCH;
    const supervisor_mb = await privateMemory(supervisor.pid);
    const ending = performance.now();
    await fleet("down");
    return {
      agents: count,
      all_healthy_s,
      agent_median_mb: memory[count >> 1]!,
      agent_max_mb: memory.at(-1)!,
      supervisor_mb,
      supervisor_cpu_percent: 100 * supervisor_cpu,
      all_down_s: (performance.now() - ending) / 1000,
      restarts: agents.reduce((sum, { restarts }) => sum + restarts, 0),
    };
  } finally {
    await fleet("down").catch(() => {}); // there may be none any more
  }
}

interface Status {
  supervisor: { pid: number };
  agents: { pid: number; healthy: boolean; restarts: number }[];
}

async function allHealthy(status: () => Promise<Status>, count: number): Promise<void> {
  for (const deadline = performance.now() + PATIENCE; performance.now() < deadline;) {
    const healthy = (await status()).agents.filter((agent) => agent.healthy).length;
    if (healthy === count) return;
    await pause(LOOK / 1000);
  }
  throw new Error(`not all ${count} agents are healthy after ${PATIENCE / 1000} s`);
}

async function run(
  [program, ...args]: string[],
  { cwd, env }: { cwd: string; env?: Record<string, string> },
): Promise<string> {
  const { success, stdout, stderr } = await new Deno.Command(program!, { args, cwd, env }).output();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  return new TextDecoder().decode(stdout);
}

/** MB that a process alone takes. Deno itself may not read /proc without every permission. */
async function privateMemory(pid: number): Promise<number> {
  const program = "/^Private_|^SwapPss/ {sum += $2} END {print sum}";
  const kilobytes = await run(["awk", program, `/proc/${pid}/smaps_rollup`], { cwd: "/" });
  return Number(kilobytes) * 1024 / 1e6;
}

/** Seconds of processor time so far. */
async function cpuTime(pid: number): Promise<number> {
  return Number(await run(["awk", "{print $14 + $15}", `/proc/${pid}/stat`], { cwd: "/" })) / 100;
}

function pause(seconds: number): Promise<void> {
  return new Promise((over) => void setTimeout(over, seconds * 1000));
}
