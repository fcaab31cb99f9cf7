import type { FileSearchFigures } from "./file_search.ts";
import type { FleetFigures } from "./fleet.ts";
import type { FirstPrompt } from "./first_prompt.ts";
import type { RequestFigures } from "./requests.ts";
import type { SchedulerFigures } from "./scheduler.ts";
import type { ServerFigures } from "./server.ts";
import type { Requirement, ScenarioFigures, SessionLogFigures } from "./figures.ts";

/** The required figures of `svc`, next to those measured. A figure that was not measured is not met. */
export function requirements(
  scenarios: ScenarioFigures[],
  sessionLog: SessionLogFigures,
  { requests = [], prompt, search, scheduler, fleet, server }: {
    requests?: RequestFigures[];
    prompt?: FirstPrompt;
    search?: FileSearchFigures;
    scheduler?: SchedulerFigures;
    fleet?: FleetFigures;
    server?: ServerFigures;
  } = {},
): Requirement[] {
  const svc = (id: string) => {
    const figures = scenarios.find((scenario) => scenario.id === id)?.results
      .find((result) => result.name === "svc");
    return figures && "ms" in figures ? figures : undefined;
  };
  const require = (text: string, limit: number, unit: string, measured?: number): Requirement => ({
    text,
    limit,
    unit,
    measured,
    met: measured !== undefined && measured <= limit,
  });
  const times = "times";
  const sent = requests.find(({ name }) => name === "svc");
  return [
    require("One turn, by the floor's time", 2.6, times, svc("one_turn")?.ratio),
    require("One turn, peak memory", 65, "MB", svc("one_turn")?.mb.median),
    require("One turn in a new home", 500, "ms", svc("fresh_home")?.ms.median),
    require("`--version`, by the floor's time", 0.5, times, svc("version")?.ratio),
    require("100 tool rounds, by the floor's time", 2.8, times, svc("hundred_rounds")?.ratio),
    require("From the start to the first prompt, by bare Deno's", 2.6, times, prompt?.ratio),
    require("Turn 10,000 of a session, by turn 10", 1.5, times, sessionLog.turn_ratio),
    require("Opening that session, by one `JSON.parse` of it", 1.5, times, sessionLog.open_ratio),
    ...(sent
      ? [
        require("The tools of a request", 10_600, "bytes", sent.tools),
        require("Of a request, sent otherwise in the next turn", 0, "%", 100 - sent.prefix),
      ]
      : []),
    // A peer that could not be installed fails nothing.
    ...(search
      ? [require("`grep` in 20,000 files, by ripgrep's time", 3, times, search.ratio)]
      : []),
    ...(scheduler
      ? [
        require("A tick over 1,000 jobs with full histories", 10, "ms", scheduler.tick_ms),
        require("The idle scheduler, of a processor", 1, "%", scheduler.idle_cpu_percent),
        require("Its memory then", 100, "MB", scheduler.idle_mb),
      ]
      : []),
    ...(fleet
      ? [
        require(`${fleet.agents} agents, until all are healthy`, 60, "s", fleet.all_healthy_s),
        require("The largest of them, private memory", 60, "MB", fleet.agent_max_mb),
      ]
      : []),
    ...(server ? serverRequirements(server, require) : []),
  ];
}

function serverRequirements(
  server: ServerFigures,
  require: (text: string, limit: number, unit: string, measured: number) => Requirement,
): Requirement[] {
  const growth = server.after_100000_mb / server.after_1000_mb;
  return [
    require("An idle server", 80, "MB", server.idle_mb),
    require("An idle server, private memory", 60, "MB", server.idle_private_mb),
    require("Its memory after 100,000 requests, by that after 1,000", 1.1, "times", growth),
    require("Time of a `/health`, by bare `Deno.serve`", 1 / 0.6, "times", 1 / server.health_share),
    require("200 chats on 200 sessions, not answered", 0, "chats", 200 - server.chats_answered),
    require("200 chats on 200 sessions, not logged", 0, "chats", 200 - server.chats_logged),
    ...server.streams === undefined ? [] : [
      require("The first token of a streamed chat", 6, "ms", server.streams.svc.first_token_ms),
    ],
  ];
}
