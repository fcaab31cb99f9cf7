import type { FileSearchFigures } from "./file_search.ts";
import type { FleetFigures } from "./fleet.ts";
import type { FirstPrompt } from "./first_prompt.ts";
import type { SchedulerFigures } from "./scheduler.ts";
import type { ServerFigures } from "./server.ts";
import type { Requirement, Results, ScenarioFigures, SessionLogFigures } from "./figures.ts";

/** The figures as Markdown, without a date: only what changed shows up in a comparison. */
export function markdown(results: Results): string {
  return [
    results.machine.join("; ") + ".",
    ...requirementsMarkdown(results.requirements),
    ...results.scenarios.map((scenario) => scenarioMarkdown(scenario, results.versions)),
    ...(results.first_prompt === undefined ? [] : [promptMarkdown(results.first_prompt)]),
    logMarkdown(results.session_log),
    ...(results.file_search ? [searchMarkdown(results.file_search)] : []),
    ...(results.scheduler ? [schedulerMarkdown(results.scheduler)] : []),
    ...(results.fleet ? [fleetMarkdown(results.fleet)] : []),
    ...results.server === undefined ? [] : [serverMarkdown(results.server)],
  ].join("\n\n") + "\n";
}

function requirementsMarkdown(requirements: Requirement[]): string[] {
  if (requirements.length === 0) return []; // svc did not take part
  const rows = requirements.map(({ text, limit, unit, measured, met }) => [
    text,
    `${round(limit)} ${unit}`,
    measured === undefined ? "not measured" : `${round(measured)} ${unit}`,
    met ? "met" : "**not met**",
  ]);
  return [table(["requirement of svc", "at most", "measured", ""], rows)];
}

function scenarioMarkdown(
  { title, results }: ScenarioFigures,
  versions: Record<string, string>,
): string {
  const rows = results.map((result) => {
    const name = `${result.name} ${versions[result.name]}`;
    if ("did_not_run" in result) return [name, "did not run", result.did_not_run, "", "", ""];
    const { ms, mb, ratio, runs } = result;
    const range = `${round(ms.min)} to ${round(ms.max)}`;
    return [
      name,
      `${round(ms.median)} ms`,
      range,
      round(ratio),
      `${round(mb.median)} MB`,
      String(runs),
    ];
  });
  const head = ["", "median", "min to max", "by the floor", "peak memory", "runs"];
  return `### ${title}\n\n${table(head, rows)}`;
}

function promptMarkdown({ svc_ms, floor_ms }: FirstPrompt): string {
  const rows = [["bare Deno", `${round(floor_ms)} ms`], ["svc", `${round(svc_ms)} ms`]];
  return `### The first prompt of a terminal session\n\n${table(["", "median"], rows)}`;
}

function logMarkdown(log: SessionLogFigures): string {
  const rows = [
    ["Append a turn to a young session", `${round(log.turn_10_ms)} ms`],
    ["Append a turn after 10,000 others", `${round(log.turn_10000_ms)} ms`],
    [`Parse that session, ${round(log.megabytes)} MB of JSON`, `${round(log.parse_ms)} ms`],
    ["Open it for appending", `${round(log.open_ms)} ms`],
  ];
  return `### The session log\n\n${table(["", "median"], rows)}`;
}

function searchMarkdown(search: FileSearchFigures): string {
  const rows = [
    ["svc, the tool call `grep`", `${round(search.svc_ms)} ms`],
    [`ripgrep ${search.ripgrep}, the whole process`, `${round(search.ripgrep_ms)} ms`],
    [`svc by ripgrep, of ${search.runs} pairs`, round(search.ratio)],
  ];
  return `### A search through ${search.files.toLocaleString("en")} files\n\n${
    table(["", "median"], rows)
  }`;
}

function schedulerMarkdown(scheduler: SchedulerFigures): string {
  const rows = [
    [
      `The first tick, which reads the register of ${round(scheduler.register_mb)} MB`,
      `${round(scheduler.first_tick_ms)} ms`,
    ],
    ["Each after that", `${round(scheduler.tick_ms)} ms`],
    ["Idle, of a processor", `${round(scheduler.idle_cpu_percent)} %`],
    ["Idle, memory", `${round(scheduler.idle_mb)} MB`],
  ];
  return `### The scheduler\n\n${table(["", ""], rows)}`;
}

function fleetMarkdown(fleet: FleetFigures): string {
  const rows = [
    ["All healthy after", `${round(fleet.all_healthy_s)} s`],
    ["An idle agent, private memory, median", `${round(fleet.agent_median_mb)} MB`],
    ["The largest of them", `${round(fleet.agent_max_mb)} MB`],
    ["The supervisor, private memory", `${round(fleet.supervisor_mb)} MB`],
    ["The supervisor, of a processor", `${round(fleet.supervisor_cpu_percent)} %`],
    ["All down after", `${round(fleet.all_down_s)} s`],
    ["Agents that had to be started again", String(fleet.restarts)],
  ];
  return `### A fleet of ${fleet.agents} agents\n\n${table(["", ""], rows)}`;
}

function serverMarkdown(server: ServerFigures): string {
  const mb = (value: number) => `${round(value)} MB`;
  const rows = [
    ["Idle", mb(server.idle_mb)],
    ["Idle, private memory beside another server", mb(server.idle_private_mb)],
    ["Idle: bare `Deno.serve`", mb(server.bare_idle_mb)],
    ...Object.entries(server.peers_idle_mb).map(([name, value]) => [`Idle: ${name}`, mb(value)]),
    ["`GET /health` in a second", round(server.health_per_s)],
    ["The same of bare `Deno.serve`", round(server.bare_per_s)],
    ["After 1,000 requests", mb(server.after_1000_mb)],
    ["After 100,000 requests", mb(server.after_100000_mb)],
    [
      "200 chats at once on 200 sessions",
      `${server.chats_answered} answered, ${server.chats_logged} logged, ${
        round(server.burst_s)
      } s`,
    ],
    ["After these", mb(server.after_burst_mb)],
    ["After 2,000 chats", mb(server.after_chats_mb)],
    ["After 4,000 chats", mb(server.after_more_chats_mb)],
    [
      "`GET /health` while 200 chats run",
      `99 % within ${round(server.health_p99_ms)} ms, all within ${round(server.health_max_ms)} ms`,
    ],
  ];
  return `### The server\n\n${table(["", ""], rows)}`;
}

function table(head: string[], rows: string[][]): string {
  const cells = [head, head.map(() => "---"), ...rows];
  return cells.map((row) => `| ${row.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`)
    .join("\n");
}

/** Three significant digits, and whole numbers from 100 on. */
function round(value: number): string {
  return value >= 100
    ? Math.round(value).toLocaleString("en")
    : String(Number(value.toPrecision(3)));
}
