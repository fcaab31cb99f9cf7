// deno-lint-ignore-file no-console
/**
 * `deno task bench [--quick] [--only NAME,...]`: measures svc next to its peers and the floor.
 * `docs/benchmarks.md` says what each figure means. Exit 1 when svc misses a requirement.
 */
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import manifest from "../deno.json" with { type: "json" };
import { writeFileAtomic } from "../src/platform/files.ts";
import { type Contestant, floor, svc } from "./contestants.ts";
import { fileSearch } from "./file_search.ts";
import { measureFleet } from "./fleet.ts";
import { Meter, tail } from "./measure.ts";
import { firstPrompt } from "./first_prompt.ts";
import { installPeers, peers } from "./peers.ts";
import { type Results, scenarioFigures, type SessionLogFigures } from "./figures.ts";
import { markdown, plots } from "./report.ts";
import { requestFigures } from "./requests.ts";
import { requirements } from "./requirements.ts";
import { compare, type Outcome, SCENARIOS } from "./scenarios.ts";
import { measureScheduler } from "./scheduler.ts";
import { measureServer } from "./server.ts";
import { openCost, turnCost } from "./session_log.ts";

const ROOT = fileURLToPath(new URL("..", import.meta.url));
const RUNS = 7;
const QUICK_RUNS = 3;
/** Seconds for which the idle scheduler is watched: some of its ticks, or one. */
const WATCH = 60;
const QUICK_WATCH = 15;
/** Agents of the fleet. */
const AGENTS = 100;
const QUICK_AGENTS = 20;
/** The figures in docs/benchmarks.md. */
const FIGURES = /(?<=<!-- deno-fmt-ignore-start -->\n).*(?=<!-- deno-fmt-ignore-end -->)/s;
const NAMES = ["svc", "floor", "codex", "claude", "pi", "qwen", "opencode"];

Deno.exit(await main(Deno.args));

async function main(args: string[]): Promise<number> {
  const { quick, only } = parseArgs({
    args,
    options: { quick: { type: "boolean", default: false }, only: { type: "string" } },
  }).values;
  const names = only?.split(",") ?? NAMES;
  const stranger = names.find((name) => !NAMES.includes(name));
  if (stranger !== undefined) {
    note(`There is no "${stranger}" to measure. Choose from: ${NAMES.join(", ")}.`);
    return 2;
  }
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "svc-bench-" }));
  try {
    const effort = quick
      ? { runs: QUICK_RUNS, watch: QUICK_WATCH, agents: QUICK_AGENTS }
      : { runs: RUNS, watch: WATCH, agents: AGENTS };
    const results = await measure(names, effort, folder);
    const text = markdown(results);
    console.log(text);
    // A part of the measurement is for the one who asked, and does not replace the whole.
    if (!quick && only === undefined) publish(results, text);
    return results.requirements.every((requirement) => requirement.met) ? 0 : 1;
  } catch (error) {
    note((error as Error).message);
    return 1;
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function measure(
  names: string[],
  { runs, watch, agents }: { runs: number; watch: number; agents: number },
  folder: string,
): Promise<Results> {
  const { contestants, absent } = await gather(names);
  using meter = new Meter();
  const scenarios = [];
  for (const scenario of SCENARIOS) {
    note(scenario.title);
    const outcomes = await compare(scenario, contestants, runs, meter, folder);
    scenarios.push(scenarioFigures(scenario.id, scenario.title, [...outcomes, ...absent]));
  }
  note("The requests of two turns");
  const requests = await requestFigures(contestants, meter, `${folder}/requests`);
  const executable = contestants.some(({ name }) => name === "svc");
  if (executable) note("The first prompt");
  const prompt = executable
    ? await firstPrompt(`${ROOT}dist/svc`, `${folder}/prompt`, 2 * runs)
    : undefined;
  note("The session log");
  const sessionLog = await measureLog(`${folder}/log`);
  note("A search through 20,000 files");
  const search = names.includes("svc") ? await fileSearch(`${folder}/tree`) : undefined;
  if (executable) note("The scheduler");
  const scheduler = executable
    ? await measureScheduler(`${ROOT}dist/svc`, `${folder}/jobs`, watch)
    : undefined;
  if (executable) note(`A fleet of ${agents} agents`);
  const fleet = executable
    ? await measureFleet(`${ROOT}dist/svc`, `${folder}/agents`, agents)
    : undefined;
  let server;
  if (contestants.some(({ name }) => name === "svc")) {
    note("The server");
    server = await measureServer(`${ROOT}dist/svc`, contestants, `${folder}/server`);
  }
  return {
    machine: await machine(),
    versions: Object.fromEntries(
      [...contestants, ...peers()].map(({ name, version }) => [name, version]),
    ),
    scenarios,
    requests,
    first_prompt: prompt,
    session_log: sessionLog,
    file_search: search,
    scheduler,
    fleet,
    server,
    requirements: names.includes("svc")
      ? requirements(scenarios, sessionLog, { requests, prompt, search, scheduler, fleet, server })
      : [],
  };
}

/** Who can take part, and why the others cannot. */
async function gather(names: string[]): Promise<{ contestants: Contestant[]; absent: Outcome[] }> {
  const contestants = [floor()];
  if (names.includes("svc")) contestants.unshift(svc(await build(), manifest.version));
  const wanted = peers().filter(({ name }) => names.includes(name));
  if (wanted.length === 0) return { contestants, absent: [] };
  try {
    note("Installing the peers");
    await installPeers();
    return { contestants: [...contestants, ...wanted], absent: [] };
  } catch (error) {
    const did_not_run = (error as Error).message;
    return { contestants, absent: wanted.map(({ name }) => ({ name, did_not_run })) };
  }
}

/** Builds the executable, so that what is measured is the source as it stands. */
async function build(): Promise<string> {
  note("Building dist/svc");
  const { success, stderr } = await new Deno.Command(`${ROOT}compile.sh`).output();
  if (!success) throw new Error(`compile.sh: ${tail(new TextDecoder().decode(stderr))}`);
  return `${ROOT}dist/svc`;
}

async function measureLog(directory: string): Promise<SessionLogFigures> {
  const turns = await turnCost(directory);
  const opening = openCost(directory);
  return {
    turn_10_ms: turns.tenth,
    turn_10000_ms: turns.late,
    turn_ratio: turns.ratio,
    megabytes: opening.bytes / 1e6,
    parse_ms: opening.parse,
    open_ms: opening.open,
    open_ratio: opening.open_ratio,
  };
}

/** System, processor and memory. */
async function machine(): Promise<string[]> {
  const script = "uname -sr; grep -m 1 'model name' /proc/cpuinfo; grep MemTotal /proc/meminfo";
  const { stdout } = await new Deno.Command("sh", { args: ["-c", script] }).output();
  const [system = "", processor = "", memory = ""] = new TextDecoder().decode(stdout).split("\n");
  const gigabytes = Number(/\d+/.exec(memory)?.[0] ?? NaN) * 1024 / 1e9;
  return [
    system,
    `${navigator.hardwareConcurrency} cores of ${processor.split(": ")[1]}`,
    `${gigabytes.toFixed(0)} GB of memory`,
  ];
}

function publish(results: Results, text: string): void {
  writeFileAtomic(
    `${ROOT}bench/results/latest.json`,
    JSON.stringify(results, thousandths, 2) + "\n",
  );
  for (const [file, svg] of plots(results)) writeFileAtomic(`${ROOT}docs/${file}`, svg);
  const path = `${ROOT}docs/benchmarks.md`;
  writeFileAtomic(path, Deno.readTextFileSync(path).replace(FIGURES, () => `\n${text}\n`));
}

/** Rounds numbers: digits that mean nothing would hide in a comparison which figures changed. */
function thousandths(_key: string, value: unknown): unknown {
  return typeof value === "number" ? Math.round(value * 1000) / 1000 : value;
}

function note(line: string): void {
  console.error(`bench: ${line}`);
}
