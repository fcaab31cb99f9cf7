// deno-lint-ignore-file no-console
/**
 * `deno run -A bench/event_loop.ts`: how long svc serve holds its event loop, and so every other request,
 * under the heaviest requests there are. Time that the process waited for a processor is not counted, so
 * that a busy machine changes little. Linux only.
 */
import { startDemoServer } from "../plugins/svc-core-demo/src/server.ts";
import { systemClock } from "../src/platform/clock.ts";
import { SessionStore } from "../src/sessions/store.ts";
import { startWatched } from "./watched.ts";

const CHATS = 200;
const LOGS = 50;
const NAMES = 10_000;
const MB = 1e6;
const STAMP = "2026-01-01T00:00:00.000Z";
/** Chats before anything is measured. */
const WARM = 20;

async function main(): Promise<void> {
  const backend = startDemoServer({
    script: {
      replies: [...Array(WARM + 1).fill({ text: "done" }), { text: "word ".repeat(MB) }],
      default: { text: "done" },
    },
  });
  const folder = await Deno.makeTempDir({ prefix: "svc-loop-" });
  try {
    await Deno.mkdir(`${folder}/.svc`);
    const settings = {
      base_url: backend.url,
      model: "bench",
      memory_enabled: false,
      "serve": { rate_limit: 0, max_concurrent: 200, max_queue: 1000 },
    };
    await Deno.writeTextFile(`${folder}/.svc/config.json`, JSON.stringify(settings));
    seed(folder);
    await using server = await startWatched(folder);
    const { url } = server;
    const chat = async (session: string) => {
      const body = JSON.stringify({ prompt: "hello", session });
      const { status } = await (await fetch(`${url}/chat`, { method: "POST", body })).json();
      if (status !== "ok") throw new Error(`${session}: ${status}`);
    };
    const get = async (path: string) => await (await fetch(url + path)).bytes();
    const each = (count: number, name: string) => () =>
      Promise.all(Array.from({ length: count }, (_, i) => chat(`${name}_${i}`)));
    const loads: [name: string, act: () => Promise<unknown>][] = [
      ["nothing", () => new Promise((resume) => setTimeout(resume, 1000))],
      ["a chat answered with 5 MB", () => chat("answer")],
      [`${CHATS} chats on new sessions`, each(CHATS, "new")],
      [`${CHATS} chats on sessions of one turn`, each(CHATS, "new")],
      ["one chat on a log of 10 MB", () => chat("long_0")],
      [`${LOGS} chats on logs of 10 MB`, each(LOGS, "long")],
      ["GET /sessions/<log of 10 MB>", () => get("/sessions/long_0")],
      ["GET /sessions/<log of 100 MB>", () => get("/sessions/huge")],
      [`GET /sessions, ${NAMES} of them`, () => get("/sessions")],
      ["GET /metrics", () => get("/metrics")],
      ["POST /asks/<id>/answer, into a log of 10 MB", async () => {
        const body = JSON.stringify({ answer: "yes" });
        const answer = await fetch(`${url}/asks/1/answer`, { method: "POST", body });
        if (!answer.ok) throw new Error(await answer.text());
        await answer.body?.cancel();
      }],
      ["GET /jobs, a register of 100 MB", () => get("/jobs")],
      ["GET /jobs, after a change by another process", async () => {
        await Deno.utime(`${folder}/.svc/jobs.json`, 1, 1);
        await get("/jobs");
      }],
      ["GET /jobs/<name>", () => get("/jobs/job-500")],
      ["POST /jobs/<name>/disable", async () => {
        const answer = await fetch(`${url}/jobs/job-500/disable`, { method: "POST" });
        if (!answer.ok) throw new Error(await answer.text());
        await answer.body?.cancel();
      }],
    ];
    await each(WARM, "warm")();
    await chat("long_1");
    await server.held();
    for (const [name, act] of loads) {
      const begun = performance.now();
      try {
        await act();
      } catch (error) {
        console.log(`${name}: ${error}`);
      }
      const ms = performance.now() - begun;
      const { longest, over } = await server.held();
      console.log(
        `${name.padEnd(46)} ${longest.toFixed(1).padStart(8)} ms held, ${over} over 10 ms; took ${
          ms.toFixed(0)
        } ms`,
      );
    }
  } finally {
    await backend.close();
    await Deno.remove(folder, { recursive: true });
  }
}

/** Logs of 10 and 100 MB, thousands of names, an ask and a register of jobs. */
function seed(folder: string): void {
  const directory = `${folder}/.svc/sessions`;
  const path = (name: string) => `${directory}/${name}.json`;
  const sessions = new SessionStore({ directory, version: "0.0.0", clock: systemClock });
  for (const [name, size] of [["long_0", 10 * MB], ["huge", 100 * MB]] as const) {
    sessions.open(name).close();
    const [head] = Deno.readTextFileSync(path(name)).split('\n],"updated_at"');
    const turns: string[] = [];
    const output = "a line of a file that a tool read\n".repeat(120);
    for (let bytes = 0; bytes < size;) {
      const index = turns.length + 1;
      const timestamp = STAMP;
      const turn = { index, status: "ok", started_at: timestamp, ended_at: timestamp };
      const rest = { ...turn, model: "m", provider: "p", mode: "build", reasoning: false };
      const parts = [
        { type: "user", text: "go on", timestamp },
        {
          type: "tool",
          name: "file_read",
          input: { path: "a" },
          output,
          is_error: false,
          timestamp,
        },
        { type: "text", text: "gone on", timestamp },
      ];
      const lines = parts.map((part) => JSON.stringify(part)).join(",\n");
      turns.push(`{"parts":[\n${lines}\n],${JSON.stringify(rest).slice(1)}`);
      bytes += turns.at(-1)!.length;
    }
    const text = `${head}\n${turns.join(",\n")}\n],"updated_at":"${STAMP}"}\n`;
    Deno.writeTextFileSync(path(name), text);
  }
  const ask = { id: 1, question: "?", origin: "long_0", status: "pending", created_at: STAMP };
  Deno.writeTextFileSync(`${folder}/.svc/asks.json`, JSON.stringify([ask]));
  Deno.writeTextFileSync(`${folder}/.svc/jobs.json`, registerText());
  const text = Deno.readTextFileSync(path("long_0"));
  for (let i = 1; i < LOGS; i++) {
    const name = `long_${i}`;
    Deno.writeTextFileSync(path(name), text.replace('"long_0"', JSON.stringify(name)));
  }
  for (let i = 0; i < NAMES; i++) Deno.writeTextFileSync(path(`ses_20260101_000000_${i}`), "{}");
}

/** A register of a thousand jobs with histories of 100 KB each. */
function registerText(): string {
  const entry = {
    started_at: STAMP,
    finished_at: STAMP,
    status: "verified",
    content: "The tests pass; nothing is left to do. ".repeat(26).slice(0, 1000),
  };
  const jobs = Array.from({ length: 1000 }, (_, n) => ({
    name: `job-${n}`,
    schedule: { interval: 86_400 },
    prompt: "run the tests and report",
    status: "verified",
    created_at: STAMP,
    history: Array(90).fill(entry),
  }));
  return JSON.stringify({ jobs }, null, 2);
}

await main();
