/**
 * Kills the program at random instants: everything that it acknowledged must be in the log, once.
 *
 * Acknowledged, by what `--output stream-json` shows, is
 * - `turn_started`: the turn, and with the turn's next event its prompt;
 * - `permission`: the audit entry;
 * - `tool_call`, `tool_result`, `turn_finished`: all text and thinking of the turn before it, as one part
 *   a reply (tokens alone may be part of a reply that is still coming, and promise nothing);
 * - `tool_result`: its part, with its output, and what the tool did to the worktree;
 * - `turn_finished`: the turn's end and status.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { systemClock } from "../../src/platform/clock.ts";
import type { SessionDocument, Turn } from "../../src/sessions/schema.ts";
import { SessionStore } from "../../src/sessions/store.ts";
import { call, calls, type Reply, say, startBackend, think } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { startSvc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { length, Random, SEED } from "../support/random.ts";

const KILLS = { campaign: length(120, 16), fresh: length(80, 8) };
const ALL_KILLS = KILLS.campaign + KILLS.fresh;
/** One run in so many is not killed. */
const UNTOUCHED = length(20, 6);
/** Kills of one session in the lane of the fresh ones. */
const YOUTH = 4;
/** Runs that a lane's backend has answers for: some end before their instant. */
const MOST_RUNS = 300;
/** The instant of the kill, counted from the start of the run. */
type Instant =
  | { at: "start" }
  | { at: "bytes" | "events" | "requests" | "file changes"; count: number }
  | { at: "never" };

function instant(random: Random): Instant {
  const kind = random.below(20);
  if (kind === 0) return { at: "start" };
  if (kind < 6) return { at: "bytes", count: 1 + random.below(random.one([600, 3000, 150_000])) };
  if (kind < 11) return { at: "events", count: 1 + random.below(30) };
  if (kind < 14) return { at: "requests", count: 1 + random.below(5) };
  return { at: "file changes", count: 1 + random.below(50) };
}

/** The replies of one turn. Every text, output and file of it begins with `<mark>.<number> `. */
function turnScript(mark: string, random: Random): Reply[] {
  let count = 0;
  const text = (): string => {
    const size = random.below(9) === 0 ? 70_000 + random.below(30_000) : random.below(300);
    return `${mark}.${++count} ${"Grüße 世界 ".repeat(size / 9)}`;
  };
  const pieces = (): string[] => {
    const whole = text();
    const at = random.below(whole.length);
    return [whole.slice(0, at), whole.slice(at)];
  };
  const write = (): [string, Record<string, unknown>] => {
    const content = text();
    return ["file_write", { path: `out/${content.split(" ")[0]}`, content }];
  };
  const run = (): [string, Record<string, unknown>] => {
    const output = `${mark}.${++count}`;
    const rest = random.one(["", "; head -c 90000 /dev/zero | tr '\\0' z", "; exit 3"]);
    return ["run_command", { command: `echo ${output} | tee out/${output}${rest}` }];
  };
  const read = (): [string, Record<string, unknown>] => ["file_read", { path: "big.txt" }];
  const round = (): Reply => {
    const more: Reply = random.below(2) === 0 ? { text: pieces() } : {};
    if (random.below(3) === 0) more.thinking = pieces();
    return random.one([
      () => calls([write()], more),
      () => calls([run()], more),
      () => calls([read(), read(), write()], more),
      () => calls([write(), run()], more),
    ])();
  };
  const rounds = Array.from({ length: 1 + random.below(4) }, round);
  const answer = random.below(2) === 0 ? say(pieces()) : think(pieces(), { text: text() });
  return [...rounds, answer].map((reply) => ({ ...reply, when: { user: `turn ${mark};` } }));
}

// deno-lint-ignore no-explicit-any
type Event = any;

/** The events of one run until it ended. */
interface Shown {
  mark: string;
  events: Event[];
  killed: boolean;
}

class Lane {
  readonly store: SessionStore;
  #runs = 0;

  constructor(
    readonly place: Project,
    readonly random: Random,
    readonly name: string,
    readonly backend: { url: string; onNext: (act: (() => void) | undefined) => void },
  ) {
    const directory = join(place.path, ".svc", "sessions");
    const warn = (message: string) => assert.fail(message);
    this.store = new SessionStore({ directory, version: "0.1.0", clock: systemClock, warn });
  }

  /** One run of the program on a session, killed at its instant, should it live so long. */
  async run(session: string, instant: Instant): Promise<Shown> {
    const mark = `${this.name}${++this.#runs}`;
    const args = ["run", "--base-url", this.backend.url, "--model", "m", "--yes"];
    const output = ["--session-id", session, "--output", "stream-json", `turn ${mark};`];
    const watcher = instant.at === "file changes" ? Deno.watchFs(this.place.path) : undefined;
    let killed = false;
    const child = startSvc([...args, ...output], { cwd: this.place.path });
    const kill = () => {
      if (killed) return;
      try {
        child.kill("SIGKILL");
        killed = true;
      } catch {
        // it had ended
      }
    };
    let left = "count" in instant ? instant.count : 0;
    const tick = (kind: Instant["at"], by = 1) => {
      if (instant.at === kind && (left -= by) <= 0) kill();
    };
    this.backend.onNext(() => tick("requests"));
    const watched = watcher && (async () => {
      for await (const _ of watcher) tick("file changes");
    })();
    if (instant.at === "start") kill();
    const errors = new Response(child.stderr).text();
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      tick("bytes", chunk.length);
      for (let i = chunk.indexOf("\n"); i >= 0; i = chunk.indexOf("\n", i + 1)) tick("events");
    }
    const { signal, code } = await child.status;
    watcher?.close();
    await watched;
    const stderr = await errors;
    if (signal !== "SIGKILL") assert.deepEqual({ code, stderr }, { code: 0, stderr: "" }, mark);
    const events = text.split("\n").slice(0, -1).map((line) => JSON.parse(line));
    return { mark, events, killed: signal === "SIGKILL" };
  }
}

/** Counters of a campaign, printed with its result. */
const figures = { kills: 0, events: 0, interrupted: 0, torn: 0 };

/** Everything that the runs of a session showed as done is in its log, once. */
function checkLog(document: SessionDocument | undefined, shown: Shown[], place: Project): void {
  if (document === undefined) {
    const begun = shown.filter(({ events }) => events.length > 0);
    assert.deepEqual(begun, [], "a session that was told of is not there");
    return;
  }
  assert.deepEqual(document.turns.map(({ index }) => index), document.turns.map((_, i) => i + 1));
  const parts = document.turns.flatMap((turn) => turn.parts);
  const marks = parts.flatMap(markOf);
  assert.equal(new Set(marks).size, marks.length, "something is there twice");
  let audited = 0;
  for (const { events } of shown) {
    if (events.length === 0) continue;
    assert.equal(events[0].type, "turn_started");
    const turn = document.turns[events[0].index - 1];
    assert.ok(turn, `turn ${events[0].index} is not there`);
    audited += checkTurn(turn, events, place);
  }
  assert.ok(document.permissions.length >= audited, "a decision is not there");
}

/** @returns how many audit entries the events tell of */
function checkTurn(turn: Turn, events: Event[], place: Project): number {
  if (events.length > 1) assert.equal(turn.parts[0]?.type, "user", `turn ${turn.index}: prompt`);
  const expected: Pick<Turn["parts"][number], "type">[] = [];
  let thinking = "";
  let text = "";
  const reply = () => {
    if (thinking !== "") expected.push({ type: "thinking", text: thinking } as never);
    if (text !== "") expected.push({ type: "text", text } as never);
    thinking = text = "";
  };
  const called = new Map<string, Event>();
  for (const event of events) {
    if (event.type === "thinking") thinking += event.content;
    if (event.type === "token") text += event.content;
    if (["tool_call", "tool_result", "turn_finished"].includes(event.type)) reply();
    if (event.type === "tool_call") called.set(event.id, event);
    if (event.type === "tool_result") {
      const input = called.get(event.id).arguments;
      const { name, output, is_error } = event;
      expected.push({ type: "tool", name, input, output, is_error } as never);
      if (name === "file_write") {
        assert.equal(Deno.readTextFileSync(join(place.path, input.path)), input.content);
      }
    }
  }
  const found = turn.parts.slice(1, 1 + expected.length).map((part) => {
    const { timestamp: _, round: _1, call: _2, ...rest } = { round: 0, call: undefined, ...part };
    return rest;
  });
  assert.deepEqual(found, expected, `turn ${turn.index}`);
  const last = events.at(-1);
  if (last.type === "turn_finished") {
    assert.equal(turn.status, last.result.status);
    assert.notEqual(turn.ended_at, "");
    assert.equal(turn.parts.length, 1 + expected.length);
  }
  return events.filter(({ type }) => type === "permission").length;
}

/** The mark that a part was scripted with, and that no other part of its kind has. */
function markOf(part: Turn["parts"][number]): string[] {
  if (part.type === "tool") {
    const { path, command } = part.input;
    const mark = /\S+\.\d+/.exec(String(command ?? path))?.[0];
    return mark === "big.txt" || mark === undefined ? [] : [`tool ${mark}`];
  }
  return [`${part.type} ${part.text.split(" ", part.type === "user" ? 2 : 1).join(" ")}`];
}

/** Every turn but the last is over, and those whose process was killed are closed as failed. */
function checkClosed(document: SessionDocument, shown: Shown[]): void {
  const over = new Map<number, Shown>();
  for (const each of shown) if (each.events.length > 0) over.set(each.events[0].index, each);
  const lost = [];
  for (const { index, status, ended_at } of document.turns) {
    assert.notEqual(ended_at, "", `turn ${index}`);
    const finished = over.get(index)?.events.at(-1).type === "turn_finished";
    if (finished) assert.equal(status, "ok", `turn ${index}`);
    else assert.ok(["ok", "error"].includes(status), `turn ${index} is ${status}`);
    if (status === "error") lost.push(`The process ended before turn ${index} did.`);
  }
  assert.deepEqual(document.errors.map(({ message }) => message), lost);
}

/** Runs without a kill: the session continues, and its file is valid JSON. */
async function checkGoesOn(lane: Lane, session: string, shown: Shown[]): Promise<void> {
  const run = await lane.run(session, { at: "never" });
  shown.push(run);
  assert.equal(run.events.at(-1)?.type, "turn_finished");
  const directory = join(lane.place.path, ".svc", "sessions");
  const document = JSON.parse(Deno.readTextFileSync(join(directory, `${session}.json`)));
  checkLog(document, shown, lane.place);
  checkClosed(document, shown);
  assert.deepEqual(lane.store.read(session), document);
  const beside = [...Deno.readDirSync(directory)].map(({ name }) => name)
    .filter((name) => name.includes(session) && name !== `${session}.json`);
  assert.deepEqual(beside, []);
}

/** Kills runs of `session` until the requested number was killed before their end. */
async function killRuns(lane: Lane, session: string, kills: number): Promise<void> {
  const shown: Shown[] = [];
  for (let killed = 0, runs = 1; killed < kills; runs++) {
    const moment = instant(lane.random);
    const run = await lane.run(session, moment);
    shown.push(run);
    if (run.killed) killed++;
    try {
      if (isTorn(lane, session)) figures.torn++;
      checkLog(lane.store.read(session), shown, lane.place);
      if (runs % UNTOUCHED === 0) await checkGoesOn(lane, session, shown);
    } catch (error) {
      throw new Error(`run ${run.mark}, killed at ${JSON.stringify(moment)}`, { cause: error });
    }
  }
  await checkGoesOn(lane, session, shown);
  figures.kills += kills;
  for (const { events } of shown) {
    figures.events += events.filter(({ type }) => !["thinking", "token"].includes(type)).length;
    const begun = events.length > 0;
    if (begun && events.at(-1).type !== "turn_finished") figures.interrupted++;
  }
}

/** Whether the file alone, without its journal, was left in the middle of a write. */
function isTorn(lane: Lane, session: string): boolean {
  try {
    const file = join(lane.place.path, ".svc", "sessions", `${session}.json`);
    JSON.parse(Deno.readTextFileSync(file) || "{}");
    return false;
  } catch (error) {
    return error instanceof SyntaxError;
  }
}

async function inLane(name: string, body: (lane: Lane) => Promise<void>): Promise<void> {
  await using place = await project({ "big.txt": "line\n".repeat(4000), "out/.keep": "" });
  const random = new Random(SEED + name.length);
  const marks = Array.from({ length: MOST_RUNS }, (_, i) => `${name}${i + 1}`);
  const replies = marks.flatMap((mark) => turnScript(mark, random));
  let act: (() => void) | undefined;
  await using backend = startBackend({ replies }, { onRequest: () => act?.() });
  const onNext = (next: typeof act) => void (act = next);
  await body(new Lane(place, random, name, { url: backend.url, onNext }));
  await noProcessesLeft(place.path);
}

Deno.test(`${ALL_KILLS} kills of the program at random instants leave every log whole`, async () => {
  await Promise.all([
    inLane("c", (lane) => killRuns(lane, "campaign", KILLS.campaign)),
    inLane("fresh", async (lane) => {
      for (let i = 0; i < KILLS.fresh / YOUTH; i++) await killRuns(lane, `fresh ${i}`, YOUTH);
    }),
  ]);
  assert.equal(figures.kills, ALL_KILLS);
  assert.ok(
    figures.interrupted > ALL_KILLS / 10,
    `few kills met a turn: ${JSON.stringify(figures)}`,
  );
});

Deno.test("the commands of a killed run end with it, also those that ignore SIGTERM", async () => {
  await using place = await project();
  await new Deno.Command("mkfifo", { args: ["told"], cwd: place.path }).output();
  const command = "trap '' TERM; (sleep 300 & wait) & echo begun > told; wait; sleep 300";
  await using backend = startBackend([call("run_command", { command, timeout: 600 })]);
  const args = ["run", "--base-url", backend.url, "--model", "m", "--yes", "go"];
  const child = startSvc(args, { cwd: place.path });
  assert.equal(await place.read("told"), "begun\n");
  child.kill("SIGKILL");
  await child.output();
  await noProcessesLeft(place.path);
});
