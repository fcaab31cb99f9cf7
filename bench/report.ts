import type { FileSearchFigures } from "./file_search.ts";
import type { FleetFigures } from "./fleet.ts";
import { type Bar, plot } from "./plot.ts";
import type { FirstPrompt } from "./first_prompt.ts";
import type { RequestFigures } from "./requests.ts";
import type { SchedulerFigures } from "./scheduler.ts";
import type { ServerFigures } from "./server.ts";
import type { Requirement, Results, ScenarioFigures, SessionLogFigures } from "./figures.ts";

/** A table of the report. */
interface Section {
  /** Part of the file name of its plot. */
  id: string;
  title: string;
  head: string[];
  rows: string[][];
}

/** The figures as Markdown, without a date: only what changed shows up in a comparison. */
export function markdown(results: Results): string {
  return [
    results.machine.join("; ") + ".",
    ...requirementsMarkdown(results.requirements),
    ...sections(results).map(({ id, title, head, rows }) => {
      const image = barsOf(rows).length === 0 ? "" : `![${title}](${plotFile(id)})\n\n`;
      return `### ${title}\n\n${image}${table(head, rows)}`;
    }),
  ].join("\n\n") + "\n";
}

/** A plot for each table, by the name of its file next to the report. */
export function plots(results: Results): Map<string, string> {
  return new Map(
    sections(results).flatMap(({ id, title, rows }) => {
      const bars = barsOf(rows);
      return bars.length === 0 ? [] : [[plotFile(id), plot(title, bars)] as const];
    }),
  );
}

const plotFile = (id: string) => `bench-${id.replaceAll("_", "-")}.svg`;

/** The rows whose figures have the unit that most of them have; none when only one has it. */
function barsOf(rows: string[][]): Bar[] {
  const bars = rows.flatMap(([label = "", text = ""]) => {
    const [, number, unit] = /^([\d,.]+) (ms|s|MB|%)$/.exec(text) ?? [];
    const value = Number(number?.replaceAll(",", ""));
    return value > 0 ? [{ label: label.replaceAll("`", ""), value, text, unit }] : [];
  });
  const [most = []] = [...Map.groupBy(bars, ({ unit }) => unit).values()]
    .sort((a, b) => b.length - a.length);
  return most.length > 1 ? most : [];
}

function sections(results: Results): Section[] {
  return [
    ...results.scenarios.map((scenario) => scenarioSection(scenario, results.versions)),
    ...results.requests?.length ? [requestSection(results.requests, results.versions)] : [],
    ...results.first_prompt === undefined ? [] : [promptSection(results.first_prompt)],
    logSection(results.session_log),
    ...results.file_search ? [searchSection(results.file_search)] : [],
    ...results.scheduler ? [schedulerSection(results.scheduler)] : [],
    ...results.fleet ? [fleetSection(results.fleet)] : [],
    ...results.server === undefined ? [] : [serverSection(results.server)],
  ];
}

const MEDIAN = ["", "median"];

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

function scenarioSection(
  { id, title, results }: ScenarioFigures,
  versions: Record<string, string>,
): Section {
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
  return { id, title, head, rows };
}

function requestSection(figures: RequestFigures[], versions: Results["versions"]): Section {
  const rows = figures.map(({ name, tools, first, prefix }) => [
    `${name} ${versions[name]}`,
    `${round(prefix)} %`,
    `${round(tools)} bytes`,
    `${round(first)} bytes`,
  ]);
  const title = "The second turn: the share of the last request with which its own begins";
  return { id: "requests", title, head: ["", "share", "tools", "first request"], rows };
}

function promptSection({ svc_ms, floor_ms }: FirstPrompt): Section {
  const rows = [["bare Deno", `${round(floor_ms)} ms`], ["svc", `${round(svc_ms)} ms`]];
  return {
    id: "first_prompt",
    title: "The first prompt of a terminal session",
    head: MEDIAN,
    rows,
  };
}

function logSection(log: SessionLogFigures): Section {
  const rows = [
    ["Append a turn to a young session", `${round(log.turn_10_ms)} ms`],
    ["Append a turn after 10,000 others", `${round(log.turn_10000_ms)} ms`],
    [`Parse that session, ${round(log.megabytes)} MB of JSON`, `${round(log.parse_ms)} ms`],
    ["Open it for appending", `${round(log.open_ms)} ms`],
  ];
  return { id: "session_log", title: "The session log", head: MEDIAN, rows };
}

function searchSection(search: FileSearchFigures): Section {
  const rows = [
    ["svc, the tool call `grep`", `${round(search.svc_ms)} ms`],
    [`ripgrep ${search.ripgrep}, the whole process`, `${round(search.ripgrep_ms)} ms`],
    [`svc by ripgrep, of ${search.runs} pairs`, round(search.ratio)],
  ];
  const title = `A search through ${search.files.toLocaleString("en")} files`;
  return { id: "search", title, head: MEDIAN, rows };
}

function schedulerSection(scheduler: SchedulerFigures): Section {
  const rows = [
    [
      `The first tick, which reads the register of ${round(scheduler.register_mb)} MB`,
      `${round(scheduler.first_tick_ms)} ms`,
    ],
    ["Each after that", `${round(scheduler.tick_ms)} ms`],
    ["Idle, of a processor", `${round(scheduler.idle_cpu_percent)} %`],
    ["Idle, memory", `${round(scheduler.idle_mb)} MB`],
  ];
  return { id: "scheduler", title: "The scheduler", head: ["", ""], rows };
}

function fleetSection(fleet: FleetFigures): Section {
  const rows = [
    ["All healthy after", `${round(fleet.all_healthy_s)} s`],
    ["An idle agent, private memory, median", `${round(fleet.agent_median_mb)} MB`],
    ["The largest of them", `${round(fleet.agent_max_mb)} MB`],
    ["The supervisor, private memory", `${round(fleet.supervisor_mb)} MB`],
    ["The supervisor, of a processor", `${round(fleet.supervisor_cpu_percent)} %`],
    ["All down after", `${round(fleet.all_down_s)} s`],
    ["Agents that had to be started again", String(fleet.restarts)],
  ];
  return { id: "fleet", title: `A fleet of ${fleet.agents} agents`, head: ["", ""], rows };
}

function serverSection(server: ServerFigures): Section {
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
    ...server.streams === undefined ? [] : [
      ["The first token of a streamed chat", `${round(server.streams.svc.first_token_ms)} ms`],
      ["Streamed chats in a second, 8 clients", round(server.streams.svc.per_s)],
      [
        "Both of bare `Deno.serve` with the same backend",
        `${round(server.streams.bare.first_token_ms)} ms, ${round(server.streams.bare.per_s)}`,
      ],
    ],
  ];
  return { id: "server", title: "The server", head: ["", ""], rows };
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
