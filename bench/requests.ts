import { startDemoServer } from "../plugins/svc-core-demo/src/server.ts";
import type { Contestant } from "./contestants.ts";
import type { Meter } from "./measure.ts";
import { DONE, roundsScript, settle } from "./scenarios.ts";
import { startWire } from "./wires.ts";

/** What the requests of one contestant hold. */
export interface RequestFigures {
  name: string;
  /** Bytes of the tools, and of the whole first request, of which the prompt is a few. */
  tools: number;
  first: number;
  /** The share of a turn's last request, in percent, with which the next turn's first one begins. */
  prefix: number;
}

/** Rounds of the first turn. */
const ROUNDS = 10;

/** Two turns of each contestant, each a process of its own. One that does not do both is left out. */
export async function requestFigures(
  contestants: Contestant[],
  meter: Meter,
  folder: string,
): Promise<RequestFigures[]> {
  const figures: RequestFigures[] = [];
  for (const contestant of contestants) {
    if (contestant.again === undefined) continue;
    const place = await settle(`${folder}/${contestant.name}`);
    const { aside, wire, name } = contestant;
    const script = roundsScript(contestant, place, ROUNDS);
    script.replies.push({ text: DONE });
    if (aside) script.replies.unshift(aside);
    const demo = wire === undefined ? startDemoServer({ script, record: true }) : undefined;
    const server = demo ?? startWire(wire!, script);
    const requests = () =>
      (demo?.requests.map(({ body }) => body) ?? server.requests as unknown[])
        .filter((body): body is Body => ((body as Body)?.tools ?? []).length > 0);
    try {
      await meter.run(await contestant.turn(server.url, "Read it.", place));
      const [first, last] = [requests()[0]!, requests().at(-1)!];
      const { length } = requests();
      await meter.run(await contestant.again(server.url, "Again.", place));
      const next = requests()[length];
      if (next === undefined) throw new Error("there was no second turn");
      const [tools, whole] = [first.tools, first].map((each) => bytes(JSON.stringify(each)));
      figures.push({ name, tools: tools!, first: whole!, prefix: shared(last, next) });
    } catch (error) {
      // deno-lint-ignore no-console
      console.error(`${name}: ${(error as Error).message}`);
    } finally {
      await server.close();
    }
  }
  return figures;
}

/** A request of any of the three protocols. */
interface Body {
  tools?: unknown[];
  /** The system prompt; in `messages` where it is a message. */
  system?: unknown;
  instructions?: unknown;
  messages?: unknown[];
  input?: unknown[];
}

/** The percentage of a request with which another one begins, in the order in which backends cache it. */
function shared(request: Body, next: Body): number {
  const [one, other] = [request, next].map(({ tools, system, instructions, messages, input }) =>
    JSON.stringify(
      [tools, system ?? instructions, ...messages ?? input ?? []],
      (key, value) => key === "cache_control" ? undefined : value, // a mark that moves
    ).slice(0, -1)
  ) as [string, string];
  let same = 0;
  while (same < one.length && one[same] === other[same]) same++;
  return 100 * bytes(one.slice(0, same)) / bytes(one);
}

function bytes(text: string): number {
  return new TextEncoder().encode(text).length;
}
