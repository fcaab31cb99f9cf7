import { systemClock } from "../src/platform/clock.ts";
import type { Session } from "../src/sessions/session.ts";
import { SessionStore } from "../src/sessions/store.ts";

const LATE = 10_000;
const SAMPLE = 101;

/** Median milliseconds of the turns around two places in one session. */
export interface TurnCost {
  tenth: number;
  late: number;
  ratio: number;
}

/** Median milliseconds of opening a session of 10,000 turns next to parsing its JSON once. */
export interface OpenCost {
  parse: number;
  /** Opening it for appending. */
  open: number;
  /** Opening it and reading the whole log, checked. */
  read: number;
  /** Reading the file and parsing it: what `read` cannot do without. */
  plain: number;
  open_ratio: number;
  read_ratio: number;
  bytes: number;
}

/** Logs 10,000 turns into the session `long` of `directory`, and times those early and late in it. */
export async function turnCost(directory: string): Promise<TurnCost> {
  const session = storeIn(directory).open("long");
  const times: number[] = [];
  for (let i = 1; i <= LATE + SAMPLE / 2; i++) times.push(await oneTurn(session, i));
  session.close();
  // The first turns of a process pay for its compiler; a second young session stands in for them.
  const young = storeIn(directory).open("young");
  const early: number[] = [];
  for (let i = 1; i <= SAMPLE; i++) early.push(await oneTurn(young, i));
  young.close();
  const tenth = median(early);
  const late = median(times.slice(-SAMPLE));
  return { tenth, late, ratio: late / tenth };
}

/** Times the opening of the session `long` that `turnCost` left in `directory`. */
export function openCost(directory: string): OpenCost {
  const store = storeIn(directory);
  const path = `${directory}/long.json`;
  const text = Deno.readTextFileSync(path);
  const parse = medianOf(() => JSON.parse(text));
  const plain = medianOf(() => JSON.parse(Deno.readTextFileSync(path)));
  const open = medianOf(() => store.open("long").close());
  const read = medianOf(() => {
    const session = store.open("long");
    session.document();
    session.close();
  });
  return {
    parse,
    plain,
    open,
    read,
    open_ratio: open / parse,
    read_ratio: read / plain,
    bytes: text.length,
  };
}

async function oneTurn(session: Session, i: number): Promise<number> {
  const start = performance.now();
  await session.acquireTurn();
  const turn = session.beginTurn({ model: "m", provider: "p", mode: "build", reasoning: false });
  turn.append({ type: "user", text: `What does part ${i} of this do?` });
  session.recordPermission({
    tool: "file_read",
    action: "allow",
    decision: "granted",
    path: `src/part_${i}.ts`,
  });
  turn.append({
    type: "tool",
    name: "file_read",
    input: { path: `src/part_${i}.ts` },
    output: `${i}|export const part = ${i};\n`.repeat(12),
    is_error: false,
  });
  turn.append({ type: "text", text: "It exports a number, and nothing else. ".repeat(4) });
  turn.end("ok");
  return performance.now() - start;
}

function storeIn(directory: string): SessionStore {
  return new SessionStore({ directory, version: "0.0.0", clock: systemClock });
}

function medianOf(act: () => void): number {
  return median(Array.from({ length: 15 }, () => {
    const start = performance.now();
    act();
    return performance.now() - start;
  }));
}

function median(values: number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1]!;
}

if (import.meta.main) {
  const directory = Deno.makeTempDirSync();
  try {
    const turns = await turnCost(directory);
    const opening = openCost(directory);
    const ms = (value: number) => `${value.toFixed(3)} ms`;
    // deno-lint-ignore no-console
    console.log([
      `turn 10: ${ms(turns.tenth)}, turn ${LATE}: ${ms(turns.late)}, ratio ${
        turns.ratio.toFixed(2)
      }`,
      `open: ${ms(opening.open)}, parse: ${ms(opening.parse)}, ratio ${
        opening.open_ratio.toFixed(2)
      }`,
      `open and read: ${ms(opening.read)}, read and parse: ${ms(opening.plain)}, ` +
      `ratio ${opening.read_ratio.toFixed(2)} (${(opening.bytes / 1e6).toFixed(1)} MB)`,
    ].join("\n"));
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
}
