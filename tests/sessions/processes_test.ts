import assert from "node:assert/strict";
import { dirname } from "node:path";
import type { SessionDocument } from "../../src/sessions/schema.ts";
import { length, Random } from "../support/random.ts";
import { inPlace, type Place, texts } from "./support.ts";

const KILLS = length(200, 20);
const random = new Random();
/** Groups of six appends: more than a worker can do before it is killed. */
const TURNS = 25;
/** The worker stays when it has done them all. */
const LAST = "Infinity";

class Worker {
  readonly #child: Deno.ChildProcess;
  readonly #lines: ReadableStreamDefaultReader<string>;
  #text = "";

  constructor(directory: string, id: string, turns: number, stay = "") {
    const script = new URL("./worker.ts", import.meta.url).pathname;
    this.#child = new Deno.Command(Deno.execPath(), {
      args: [
        ...["run", "--no-check", "--cached-only", "--no-prompt"],
        // Checkpoints are next to the sessions.
        `--allow-read=${directory},${dirname(directory)}/checkpoints`,
        `--allow-write=${directory}`,
        ...[script, directory, "x", id, String(turns), stay],
      ],
      stdin: "piped",
      stdout: "piped",
      stderr: "inherit",
    }).spawn();
    this.#lines = this.#child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  }

  async go(): Promise<void> {
    const writer = this.#child.stdin.getWriter();
    await writer.write(new Uint8Array([10]));
    await writer.close();
  }

  /** Returns when this many appends were acknowledged. */
  async acknowledged(count: number): Promise<void> {
    while (this.#text.split("\n").length <= count) {
      const { done, value } = await this.#lines.read();
      if (done) throw new Error("The worker ended by itself.");
      this.#text += value;
    }
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Everything that was acknowledged until the end. */
  async end(): Promise<{ code: number; acknowledged: string[] }> {
    for (let chunk; (chunk = await this.#lines.read()).done === false;) this.#text += chunk.value;
    const { code } = await this.#child.status;
    return { code, acknowledged: this.#text.split("\n").slice(0, -1) };
  }
}

/** The marks in the log, in order. */
function marks(document: SessionDocument): string[] {
  return [
    ...document.turns.flatMap(texts),
    ...document.errors.map(({ message }) => message),
    ...document.permissions.map(({ path = "" }) => path),
  ].map((text) => text.split(" ")[0]!).filter((text) => text.includes("."));
}

function wholeOnce(document: SessionDocument, acknowledged: string[], where: string): void {
  const found = marks(document);
  const once = new Set(found);
  assert.equal(once.size, found.length, `${where}: something is there twice`);
  const lost = acknowledged.filter((mark) => !once.has(mark));
  assert.deepEqual(lost, [], `${where}: lost`);
  assert.ok(document.turns.every(({ index }, i) => index === i + 1), `${where}: order of turns`);
}

Deno.test("processes append to one session at the same time and lose nothing", () =>
  inPlace(async (place) => {
    const workers = ["a", "b", "c"].map((id) => new Worker(place.directory, id, 20));
    await Promise.all(workers.map((worker) => worker.go()));
    const ends = await Promise.all(workers.map((worker) => worker.end()));
    assert.deepEqual(ends.map(({ code }) => code), [0, 0, 0]);
    const document = place.json("x");
    const all = ends.flatMap(({ acknowledged }) => acknowledged);
    assert.equal(all.length, 3 * 20 * 6);
    wholeOnce(document, all, "at the end");
    assert.equal(marks(document).length, all.length);
    assert.equal(document.turns.length, 3 * 20 * 3);
    assert.ok(document.turns.every(({ status }) => status === "ok"));
    assert.deepEqual(place.store.read("x"), document);
    assert.deepEqual(place.names(), ["x.json"]);
  }));

Deno.test(`a session is whole after each of ${KILLS} kills of the process that writes it`, () =>
  inPlace(async (place) => {
    const all: string[] = [];
    // Each second worker stays inside a turn (after its second to sixth append) until it is killed there.
    const appends = Array.from(
      { length: KILLS + 1 },
      (_, i) => i % 2 ? 6 * random.below(TURNS) + 2 + random.below(5) : random.below(5 * TURNS),
    );
    const spawn = (i: number) =>
      new Worker(place.directory, `k${i}`, TURNS, i % 2 ? `${appends[i]}` : LAST);
    let next = spawn(0);
    for (let i = 0; i < KILLS; i++) {
      const worker = next;
      await worker.go();
      const killed = worker.acknowledged(appends[i]!).then(() => worker.kill());
      next = spawn(i + 1); // starts while this one writes
      await killed;
      all.push(...(await worker.end()).acknowledged);
      checkAfterKill(place, all, `kill ${i}`);
    }
    next.kill();
    await next.end();
    assert.ok(all.length > KILLS);
    const interrupted = place.json("x").turns.filter(({ status }) => status === "error").length;
    assert.ok(interrupted >= Math.floor(KILLS / 2), `${interrupted} kills met a running turn`);
  }));

Deno.test("a session is whole when several of its writers are killed", () =>
  inPlace(async (place) => {
    const all: string[] = [];
    for (let round = 0; round < 5; round++) {
      const workers = ["a", "b", "c"].map((id) =>
        new Worker(place.directory, `${id}${round}`, TURNS, LAST)
      );
      await Promise.all(workers.map((worker) => worker.go()));
      for (const worker of workers) {
        await worker.acknowledged(1 + random.below(5 * TURNS));
        worker.kill();
      }
      for (const worker of workers) all.push(...(await worker.end()).acknowledged);
      checkAfterKill(place, all, `round ${round}`);
    }
  }));

function checkAfterKill({ store, json }: Place, all: string[], where: string): void {
  const found = store.read("x");
  if (found === undefined) return assert.deepEqual(all, [], where); // killed before its first append
  wholeOnce(found, all, `${where}, read`);
  const session = store.open("x");
  const document = json("x");
  session.close();
  wholeOnce(document, all, `${where}, open`);
  assert.deepEqual(document.turns.map(texts), found.turns.map(texts), where);
  assert.ok(document.turns.every(({ status }) => status !== "running"), where);
  const gone = document.turns.filter(({ status }) => status === "error").length;
  const said = document.errors.filter(({ message }) => message.startsWith("The process ended"));
  assert.equal(said.length, gone, where);
}
