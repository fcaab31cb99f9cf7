import assert from "node:assert/strict";
import { startDemoServer } from "../../plugins/svc-core-demo/src/server.ts";
import { runDaemon } from "../../src/jobs/scheduler.ts";
import type { Job } from "../../src/jobs/schema.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { FULL, length } from "../support/random.ts";
import { jobs } from "./support.ts";

/** Simulated days: a whole leap year in full. */
const DAYS = length(366, 5);
/** Available with `--v8-flags=--expose-gc`; memory use is then checked too. */
const { gc: collect } = globalThis as { gc?: () => void };
const DAY = 86_400_000;
const TICK = 15_000;
/** The sample includes 29 February. */
const FROM = FULL ? Date.UTC(2028, 0, 1) : Date.UTC(2028, 1, 26);
const TO = FROM + DAYS * DAY;

interface Planned {
  schedule: Job["schedule"];
  /** Whether a cron schedule matches a minute. */
  at?: (time: Date) => boolean;
}

const minute = (h: number, m: number) => (time: Date) =>
  time.getUTCHours() === h && time.getUTCMinutes() === m;

/** Tens of jobs with all kinds of schedules. */
const PLANS: Record<string, Planned> = {
  ...Object.fromEntries(
    Array.from({ length: 14 }, (_, n): [string, Planned] => [`daily-${n}`, {
      schedule: { cron: `${n * 4} ${n} * * *` },
      at: minute(n, n * 4),
    }]),
  ),
  "same-minute": { schedule: { cron: "0 0 * * *" }, at: minute(0, 0) },
  "twice": {
    schedule: { cron: "30 6,18 * * *" },
    at: (time) => minute(6, 30)(time) || minute(18, 30)(time),
  },
  "workdays": {
    schedule: { cron: "5 9 * * 1-5" },
    at: (time) => minute(9, 5)(time) && time.getUTCDay() % 6 !== 0,
  },
  "sundays": {
    schedule: { cron: "59 23 * * 7" },
    at: (time) => minute(23, 59)(time) && time.getUTCDay() === 0,
  },
  "months": {
    schedule: { cron: "0 0 1 * *" },
    at: (time) => minute(0, 0)(time) && time.getUTCDate() === 1,
  },
  "leap-day": {
    schedule: { cron: "0 12 29 2 *" },
    at: (time) => minute(12, 0)(time) && time.getUTCDate() === 29 && time.getUTCMonth() === 1,
  },
  "last-of-month": {
    schedule: { cron: "0 4 31 * *" },
    at: (time) => minute(4, 0)(time) && time.getUTCDate() === 31,
  },
  "interval-odd": { schedule: { interval: 40_007 } },
  "interval-day": { schedule: { interval: 86_400 } },
  "once": { schedule: { at: "2028-02-29T23:59:50Z" } },
  "once-offset": { schedule: { at: "2028-03-01T01:30:00+02:00" } },
};

/** When a job runs: at the first tick at which it is due, and then by its schedule strictly after that. */
function model({ schedule, at }: Planned): string[] {
  const found: number[] = [];
  const tick = (time: number) => FROM + Math.ceil((time - FROM) / TICK) * TICK;
  if (at !== undefined) {
    for (let time = FROM + 60_000; time < TO; time += 60_000) {
      if (at(new Date(time))) found.push(tick(time));
    }
  } else if (schedule.interval !== undefined) {
    const step = schedule.interval * 1000;
    for (let time = tick(FROM + step); time < TO; time = tick(time + step)) found.push(time);
  } else {
    const time = tick(Date.parse(schedule.at!));
    if (time < TO) found.push(time);
  }
  return found.map((time) => new Date(time).toISOString());
}

Deno.test(`over ${DAYS} days every job runs once at each scheduled time, without leaks`, async () => {
  const backend = startDemoServer({ script: { replies: [], default: { text: "done" } } });
  await using place = await jobs([], { config: { base_url: backend.url } });
  place.clock.set(FROM);
  await place.project.write(
    ".svc/jobs.json",
    JSON.stringify({
      jobs: Object.entries(PLANS).map(([name, { schedule }]) => ({
        name,
        schedule,
        prompt: "go",
        task_file: "",
        status: "approved",
        created_at: new Date(FROM).toISOString(),
      })),
    }),
  );
  const ran = new Map(Object.keys(PLANS).map((name) => [name, [] as string[]]));
  const stop = new AbortController();
  const memory: number[] = [];
  let finished = 0;
  let wake = () => {};
  /** When the next job is due; undefined while it is computed. */
  const nextDue = () => {
    const open = place.register.list().filter(({ enabled }) => enabled);
    if (open.some(({ running }) => running !== undefined)) return undefined;
    const next = Math.min(TO, ...open.map(({ next_run_at }) => Date.parse(next_run_at)));
    return next <= clock.now() ? undefined : next;
  };
  const clock = {
    now: place.clock.now,
    async sleep(ms: number, signal?: AbortSignal) {
      if (signal !== stop.signal) return await systemClock.sleep(ms, signal);
      while (nextDue() === undefined) await new Promise<void>((again) => void (wake = again));
      // Ticks without a due job are skipped.
      place.clock.set(clock.now() + Math.ceil((nextDue()! - clock.now()) / ms) * ms);
      if (clock.now() >= TO) stop.abort();
    },
  };
  await runDaemon({
    context: { ...place.context, clock },
    tick: TICK / 1000,
    settings: () => ({ concurrency: 1, hold: 0, grace: 0 }),
    signal: stop.signal,
    tell(step) {
      if (step.step !== "finished") return;
      wake();
      ran.get(step.job)!.push(step.report.started_at);
      assert.equal(step.report.status, "verified", step.report.reason);
      if (++finished % 100 !== 0 || collect === undefined) return;
      collect();
      memory.push(Deno.memoryUsage().heapUsed / 1e6);
    },
    beat: () => {},
  });
  await backend.close();
  for (const [name, plan] of Object.entries(PLANS)) {
    assert.deepEqual(ran.get(name), model(plan), name);
  }
  assert.deepEqual(place.warnings, []);
  const [first = 0, last = 0] = [memory[0], memory.at(-1)];
  assert.ok(last - first < 10, `${finished} runs, and from ${first} to ${last} MB`);
});
