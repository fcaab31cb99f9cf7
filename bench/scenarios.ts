import type { Script } from "../plugins/svc-core-demo/src/script.ts";
import { startDemoServer } from "../plugins/svc-core-demo/src/server.ts";
import type { Contestant, Place } from "./contestants.ts";
import { type Meter, type Run, tail } from "./measure.ts";
import { startWire } from "./wires.ts";

/** What every contestant is asked to do, and how to tell that it did. */
export interface Scenario {
  id: string;
  title: string;
  once(contestant: Contestant, place: Place, meter: Meter): Promise<Run>;
}

/** The runs of one contestant, or why there are none. */
export type Outcome = { name: string; runs: Run[] } | { name: string; did_not_run: string };

const ROUNDS = 100;
/** Lines of README.md that each round reads. */
const WINDOW = 10;
/** Pieces, each an event and a write of its own, that the plain answer arrives in. */
const PIECES = 50;
export const DONE = "That was the whole of it.";
/** A program whose first run takes longer than this, in ms, gets half of the runs. */
const SLOW = 5000;

export const SCENARIOS: Scenario[] = [
  {
    id: "one_turn",
    title: "One turn: a streamed answer",
    once: (contestant, place, meter) => converse(contestant, place, meter, answerScript(), 0),
  },
  {
    id: "fresh_home",
    title: "The same turn in a new home",
    once: freshHome,
  },
  {
    id: "hundred_rounds",
    title: `${ROUNDS} tool rounds, then an answer`,
    once: (contestant, place, meter) =>
      converse(contestant, place, meter, roundsScript(contestant, place), ROUNDS),
  },
  ...["--version", "--help"].map((argument) => ({
    id: argument.slice(2),
    title: `Start-up: \`${argument}\``,
    once: (contestant: Contestant, place: Place, meter: Meter) =>
      meter.run(contestant.start(argument, place)),
  })),
];

/** Runs a scenario: one warm-up each, then the counted runs in turn, so that a slow moment hits all. */
export async function compare(
  scenario: Scenario,
  contestants: Contestant[],
  runs: number,
  meter: Meter,
  folder: string,
): Promise<Outcome[]> {
  const entries = [];
  for (const contestant of contestants) {
    const place = await settle(`${folder}/${contestant.name}`);
    const outcome: Outcome = { name: contestant.name, runs: [] as Run[] };
    entries.push({ contestant, place, outcome: outcome as Outcome, left: runs });
  }
  for (let i = 0; i <= runs; i++) {
    for (const entry of entries) {
      const { contestant, place, outcome } = entry;
      if ("did_not_run" in outcome || entry.left === 0) continue;
      try {
        const run = await scenario.once(contestant, place, meter);
        if (i === 0) {
          if (run.ms > SLOW) entry.left = Math.ceil(runs / 2);
          continue;
        }
        outcome.runs.push(run);
        entry.left--;
      } catch (error) {
        entry.outcome = { name: contestant.name, did_not_run: (error as Error).message };
      }
    }
  }
  return entries.map((entry) => entry.outcome);
}

/** One turn of a contestant that was never started in this home: unpacking and empty caches included. */
async function freshHome(contestant: Contestant, place: Place, meter: Meter): Promise<Run> {
  const home = await Deno.makeTempDir({ dir: place.home });
  try {
    return await converse(contestant, { ...place, home }, meter, answerScript(), 0);
  } finally {
    await Deno.remove(home, { recursive: true });
  }
}

/** Lets the contestant take one turn against a scripted backend of its own. */
async function converse(
  contestant: Contestant,
  place: Place,
  meter: Meter,
  script: Script,
  rounds: number,
): Promise<Run> {
  if (contestant.aside) script.replies.unshift(contestant.aside);
  const { wire } = contestant;
  const server = wire === undefined ? startDemoServer({ script }) : startWire(wire, script);
  try {
    const run = await meter.run(await contestant.turn(server.url, "Read it.", place));
    // The last reply is only served when every round's result came back.
    if (!run.stdout.includes(DONE)) throw new Error(`no final answer: ${tail(run.stdout)}`);
    const logged = await contestant.loggedCalls?.(run, place) ?? rounds;
    if (logged !== rounds) throw new Error(`${logged} of ${rounds} tool calls in the session log`);
    return run;
  } finally {
    await server.close();
  }
}

function answerScript(): Script {
  const words = Array.from({ length: PIECES - 1 }, (_, i) => `Sentence ${i + 1} of the answer. `);
  return { replies: [{ text: [...words, DONE] }] };
}

/** Each reply waits for the line that only the call before it can have brought. */
export function roundsScript(contestant: Contestant, place: Place, rounds = ROUNDS): Script {
  const calls = Array.from({ length: rounds }, (_, i) => contestant.read(i + 1, WINDOW, place));
  const replies = [
    ...calls.map((call, i) => ({ tool_calls: [{ ...call, id: `call_${i + 1}` }] })),
    { text: DONE },
  ];
  return {
    replies: replies.map((reply, i) =>
      i === 0 ? reply : { ...reply, when: { tool_result: line(i + WINDOW - 1) } }
    ),
    default: { text: "A tool result is missing." },
  };
}

/** A home and a worktree with a README.md, both empty but for that the first time. */
export async function settle(folder: string): Promise<Place> {
  const place = { home: `${folder}/home`, worktree: `${folder}/worktree` };
  await Deno.mkdir(place.home, { recursive: true });
  await Deno.mkdir(place.worktree, { recursive: true });
  const lines = Array.from(
    { length: ROUNDS + WINDOW },
    (_, i) => `${line(i + 1)} and says little.`,
  );
  await Deno.writeTextFile(`${place.worktree}/README.md`, lines.join("\n") + "\n");
  return place;
}

/** How a line of README.md starts. */
function line(number: number): string {
  return `This is line ${String(number).padStart(3, "0")} of the description of a sample project`;
}
