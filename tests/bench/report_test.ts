import assert from "node:assert/strict";
import { type Results, scenarioFigures, type SessionLogFigures } from "../../bench/figures.ts";
import { markdown, plots } from "../../bench/report.ts";
import { requirements } from "../../bench/requirements.ts";
import type { Outcome } from "../../bench/scenarios.ts";
import type { FleetFigures } from "../../bench/fleet.ts";
import type { SchedulerFigures } from "../../bench/scheduler.ts";
import type { ServerFigures } from "../../bench/server.ts";

Deno.test("figures are medians with their range, and ratios to the floor's median", () => {
  const { results } = scenarioFigures("one_turn", "One turn", [
    outcome("svc", [90, 60, 75], 50),
    outcome("floor", [31, 30, 10], 40),
    { name: "pi", did_not_run: "exit 1" },
  ]);
  assert.deepEqual(results, [
    {
      name: "svc",
      runs: 3,
      ms: { median: 75, min: 60, max: 90 },
      mb: { median: 50, min: 50, max: 50 },
      ratio: 2.5,
    },
    {
      name: "floor",
      runs: 3,
      ms: { median: 30, min: 10, max: 31 },
      mb: { median: 40, min: 40, max: 40 },
      ratio: 1,
    },
    { name: "pi", did_not_run: "exit 1" },
  ]);
});

Deno.test("each requirement is met up to its limit, and not beyond it", () => {
  const limits = { turn: 78, mb: 65, home: 500, version: 15, rounds: 280, prompt: 2.6, late: 1.5 };
  const met = verdicts({ ...limits, open: 1.5 });
  assert.deepEqual(met, met.map(() => true));
  const beyond = {
    turn: 79,
    mb: 66,
    home: 501,
    version: 16,
    rounds: 281,
    prompt: 2.61,
    late: 1.51,
  };
  assert.deepEqual(verdicts({ ...beyond, open: 1.51 }), met.map(() => false));
});

Deno.test("a requirement whose figure could not be taken is not met", () => {
  const failed = scenarioFigures("one_turn", "", [{ name: "svc", did_not_run: "exit 1" }]);
  const [time, memory] = requirements([failed], log(1, 1));
  assert.deepEqual([time!.met, memory!.met], [false, false]);
  const floorless = scenarioFigures("one_turn", "", [
    outcome("svc", [1], 1),
    { name: "floor", did_not_run: "exit 1" },
  ]);
  assert.equal(requirements([floorless], log(1, 1))[0]!.met, false);
});

Deno.test("the server's requirements are met up to their limits, and not beyond them", () => {
  const server: ServerFigures = {
    idle_mb: 80,
    idle_private_mb: 60,
    bare_idle_mb: 30,
    peers_idle_mb: { opencode: 321 },
    health_per_s: 6000,
    bare_per_s: 10_000,
    health_share: 0.6,
    after_1000_mb: 100,
    after_100000_mb: 110,
    chats_answered: 200,
    chats_logged: 200,
    burst_s: 1,
    after_burst_mb: 100,
    after_chats_mb: 110,
    after_more_chats_mb: 110,
    health_p99_ms: 1,
    health_max_ms: 2,
    streams: { svc: { first_token_ms: 6, per_s: 100 }, bare: { first_token_ms: 1, per_s: 900 } },
  };
  const verdict = (figures: ServerFigures) =>
    requirements([], log(1, 1), { server: figures }).slice(-7).map(({ met }) => met);
  assert.deepEqual(verdict(server), Array(7).fill(true));
  const missed = {
    ...server,
    idle_mb: 81,
    idle_private_mb: 61,
    health_share: 0.59,
    after_100000_mb: 111,
    chats_answered: 199,
    chats_logged: 199,
    streams: { ...server.streams!, svc: { first_token_ms: 6.1, per_s: 100 } },
  };
  assert.deepEqual(verdict(missed), Array(7).fill(false));
});

Deno.test("the scheduler's requirements are met up to their limits, and not beyond them", () => {
  const verdict = (tick_ms: number, idle_cpu_percent: number, idle_mb: number) => {
    const figures = { register_mb: 131, first_tick_ms: 700 };
    const scheduler: SchedulerFigures = { ...figures, tick_ms, idle_cpu_percent, idle_mb };
    return requirements([], log(1, 1), { scheduler }).slice(-3).map(({ met }) => met);
  };
  assert.deepEqual(verdict(10, 1, 100), [true, true, true]);
  assert.deepEqual(verdict(10.1, 1.01, 101), [false, false, false]);
});

Deno.test("the requirements of requests are met up to their limits, and not beyond them", () => {
  const verdict = (tools: number, prefix: number) => {
    const requests = [{ name: "svc", tools, first: 12_000, prefix }];
    return requirements([], log(1, 1), { requests }).slice(-2).map(({ met }) => met);
  };
  assert.deepEqual(verdict(10_600, 100), [true, true]);
  assert.deepEqual(verdict(10_601, 99.9), [false, false]);
});

Deno.test("the fleet's requirements are met up to their limits, and not beyond them", () => {
  const verdict = (all_healthy_s: number, agent_max_mb: number) =>
    requirements([], log(1, 1), { fleet: { ...FLEET, all_healthy_s, agent_max_mb } }).slice(-2)
      .map(({ met }) => met);
  assert.deepEqual(verdict(60, 60), [true, true]);
  assert.deepEqual(verdict(60.1, 60.1), [false, false]);
});

Deno.test("the report names the machine, the versions, what was not met and who did not run", () => {
  const scenario = scenarioFigures("one_turn", "One turn", [
    outcome("svc", [1234.5], 91.23),
    outcome("floor", [100], 40),
    { name: "pi", did_not_run: "exit 1: a | b" },
  ]);
  const results: Results = {
    machine: ["Linux 6", "2 cores"],
    versions: { svc: "0.1.0", floor: "Deno 2.9.6", pi: "1.2.3" },
    scenarios: [scenario],
    first_prompt: { svc_ms: 90, floor_ms: 40, ratio: 2.25 },
    session_log: log(1, 1),
    scheduler: {
      register_mb: 131,
      first_tick_ms: 712,
      tick_ms: 2.1,
      idle_cpu_percent: 0.07,
      idle_mb: 141,
    },
    fleet: FLEET,
    requirements: requirements([scenario], log(1, 1), {
      prompt: { svc_ms: 90, floor_ms: 40, ratio: 2.25 },
    }),
  };
  const [file, svg] = [...plots(results)][0]!;
  assert.equal(file, "bench-one-turn.svg");
  assert.match(svg, /<title>One turn \(logarithmic scale\)<\/title>/);
  assert.match(svg, /svc 0\.1\.0<\/text><rect class="svc" x="170" y="10" width="420"/);
  assert.match(svg, /class="floor"[^>]+><text[^>]*>100 ms</);
  assert.doesNotMatch(svg, /pi 1\.2\.3/);
  const lines = markdown(results).split("\n");
  for (
    const line of [
      "Linux 6; 2 cores.",
      "| One turn, peak memory | 65 MB | 91.2 MB | **not met** |",
      "| 100 tool rounds, by the floor's time | 2.8 times | not measured | **not met** |",
      "| From the start to the first prompt, by bare Deno's | 2.6 times | 2.25 times | met |",
      "| svc | 90 ms |",
      "| The first tick, which reads the register of 131 MB | 712 ms |",
      "| Idle, of a processor | 0.07 % |",
      "### A fleet of 100 agents",
      "| All healthy after | 29.4 s |",
      "| The supervisor, of a processor | 0.7 % |",
      "| Turn 10,000 of a session, by turn 10 | 1.5 times | 1 times | met |",
      "| svc 0.1.0 | 1,235 ms | 1,235 to 1,235 | 12.3 | 91.2 MB | 1 |",
      "| pi 1.2.3 | did not run | exit 1: a \\| b |  |  |  |",
    ]
  ) assert.ok(lines.includes(line), `${line}\nis not in\n${lines.join("\n")}`);
});

const FLEET: FleetFigures = {
  agents: 100,
  all_healthy_s: 29.4,
  agent_median_mb: 20.1,
  agent_max_mb: 25,
  supervisor_mb: 90,
  supervisor_cpu_percent: 0.7,
  all_down_s: 1.3,
  restarts: 0,
};

function verdicts(
  { turn, mb, home, version, rounds, prompt, late, open }: Record<
    "turn" | "mb" | "home" | "version" | "rounds" | "prompt" | "late" | "open",
    number
  >,
): boolean[] {
  const scenarios = [
    scenarioFigures("one_turn", "", [outcome("svc", [turn], mb), outcome("floor", [30], 1)]),
    scenarioFigures("fresh_home", "", [outcome("svc", [home], mb)]),
    scenarioFigures("version", "", [outcome("svc", [version], mb), outcome("floor", [30], 1)]),
    scenarioFigures("hundred_rounds", "", [
      outcome("svc", [rounds], mb),
      outcome("floor", [100], 1),
    ]),
  ];
  const first = { svc_ms: prompt, floor_ms: 1, ratio: prompt };
  return requirements(scenarios, log(late, open), { prompt: first }).map(({ met }) => met);
}

function outcome(name: string, times: number[], mb: number): Outcome {
  return { name, runs: times.map((ms) => ({ ms, mb, stdout: "" })) };
}

function log(turn_ratio: number, open_ratio: number): SessionLogFigures {
  return {
    turn_10_ms: 1,
    turn_10000_ms: turn_ratio,
    turn_ratio,
    megabytes: 12,
    parse_ms: 1,
    open_ms: open_ratio,
    open_ratio,
  };
}
