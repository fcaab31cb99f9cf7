import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { RECORDER, scripted } from "../jobs/support.ts";
import { type Reply, startBackend } from "../support/backend.ts";
import { buildFlags } from "../support/flags.ts";
import { processOptions } from "../support/program.ts";
import { project } from "../support/project.ts";
import { length } from "../support/random.ts";

const ENTRY = fileURLToPath(new URL("../support/daemon_entry.ts", import.meta.url));
/** How often the scheduler is killed. */
const KILLS = length(200, 10);
/** Minutes of the jobs in one real second. */
const FACTOR = 900;
const NAMES = ["a", "b", "c", "d", "e", "f"];

interface Attempt {
  started_at: string;
  status: string;
  reason: string;
  session: string;
  attempt: number;
  content: string;
}

Deno.test(`a scheduler that is killed ${KILLS} times loses no attempt and repeats none [3.1]`, async () => {
  // Each answer is unique; some requests fail, and some answers are slow.
  const replies = Array.from({ length: KILLS * 50 + 500 }, (_, number): Reply => {
    if (number % 7 === 6) return { status: 400, body: { error: { message: "no" } } };
    return { text: ["answer ", `${number}.`], chunk_delay_ms: number % 5 * 8 };
  });
  await using backend = startBackend(replies);
  const origin = Date.now();
  await using place = await project({
    ".svc/config.json": JSON.stringify({
      ...scripted(backend),
      plugins: [],
      "jobs.concurrency": 2,
    }),
    ".svc/plugins/recorder/manifest.json": '{ "name": "recorder", "entry": "plugin.js" }',
    ".svc/plugins/recorder/plugin.js": RECORDER,
    ".svc/jobs.json": JSON.stringify({
      jobs: NAMES.map((name, place) => ({
        name,
        schedule: place % 2 === 0 ? { interval: 60 } : { cron: "* * * * *" },
        prompt: `job ${name}`,
        status: "approved",
        retries: 2,
        backoff: 20,
        created_at: new Date(origin).toISOString(),
        next_run_at: new Date(origin).toISOString(),
        session: name === "f" ? "standing" : "",
      })),
    }),
  });

  /** All attempts that were ever in the register, by job. */
  const known = new Map(NAMES.map((name) => [name, [] as Attempt[]]));
  const look = async (settled: boolean) => {
    const { jobs } = JSON.parse(await place.read(".svc/jobs.json"));
    assert.deepEqual(jobs.map(({ name }: { name: string }) => name), NAMES);
    for (const job of jobs) {
      const before = known.get(job.name)!;
      const history: Attempt[] = job.history ?? [];
      const last = before.at(-1);
      const at = last === undefined
        ? -1
        : history.findIndex((attempt) => attempt.started_at === last.started_at);
      assert.ok(last === undefined || at >= 0, `${job.name} has lost its last attempt`);
      // Earlier attempts are unchanged, except the oldest ones that the history drops.
      assert.deepEqual(history.slice(0, at + 1), before.slice(before.length - at - 1));
      before.push(...history.slice(at + 1));
      if (settled) {
        assert.ok(["verified", "failed"].includes(job.status), `${job.name} is ${job.status}`);
      }
    }
  };
  const all = () => [...known.values()].flat();

  let stderr = "";
  const run = async (end: (child: Deno.ChildProcess, out: () => string) => Promise<void>) => {
    const child = new Deno.Command(Deno.execPath(), {
      args: ["run", ...buildFlags(), ENTRY, place.path, String(FACTOR), String(origin)],
      ...processOptions({ cwd: place.path }),
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    let out = "";
    const started = Promise.withResolvers<void>();
    const reading = (async () => {
      for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
        out += text;
        if (out.includes("attempt")) started.resolve();
      }
      started.resolve();
    })();
    const errors = (async () => {
      for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) stderr += text;
    })();
    await started.promise;
    await end(child, () => out);
    const { code } = await child.status;
    await Promise.all([reading, errors]);
    return code;
  };

  for (let kill = 0; kill < KILLS; kill++) {
    const requests = backend.requests.length;
    // From the first attempt on: with one of the next requests, and up to 23 ms after it, so that every
    // step of an attempt is hit: the stream, the save, the report, the begin of the next one.
    await run(async (child) => {
      if (kill % 4 > 0) await backend.arrived(requests + kill % 4 * 2);
      await new Promise((later) => setTimeout(later, kill * 7 % 24));
      child.kill("SIGKILL");
    });
    await look(false);
  }
  const code = await run(async (child, out) => {
    while (!NAMES.every((name) => out().includes(`${name}: ended ok`))) {
      await backend.arrived(backend.requests.length + 1);
    }
    child.kill("SIGTERM");
  });
  assert.equal(code, 0, stderr);
  await look(true);

  const unexpected = stderr.split("\n").filter((line) =>
    line !== "" && !line.includes("runs code of its own")
  );
  assert.deepEqual(unexpected, []);
  const attempts = all();
  assert.ok(attempts.some(({ reason }) => reason === "interrupted"), "something was cut");
  // No answer counts twice, and each that counts was given.
  const verified = attempts.filter(({ status }) => status === "verified");
  assert.equal(new Set(verified.map(({ content }) => content)).size, verified.length);
  assert.ok(verified.every(({ content }) => /^answer \d+\.$/.test(content)));
  // Every reported attempt is in the history exactly once.
  const told: { event: string; job: string; session: string; content: string }[] =
    (await place.read("told.jsonl")).trim().split("\n").map((line) => JSON.parse(line));
  for (const report of told.filter(({ event }) => event === "job.run.completed")) {
    if (report.content === "") continue;
    const found = known.get(report.job)!.filter(({ content }) => content === report.content);
    assert.equal(found.length, 1, JSON.stringify(report));
  }
  // Every finished run was reported.
  const reported = new Set(told.map(({ content }) => content));
  assert.ok(verified.every(({ content }) => reported.has(content)));
  // The attempts of a run are numbered one after the other.
  for (const history of known.values()) {
    for (const [place, { attempt }] of history.entries()) {
      const before = history[place - 1];
      const follows = before?.status === "failed" && attempt === before.attempt + 1;
      assert.ok(attempt === 1 || follows, JSON.stringify([before, history[place]]));
    }
  }
  assert.ok(attempts.length >= backend.requests.length - KILLS, "every request belongs to one");
});
