import assert from "node:assert/strict";
import type { Ask } from "../../src/asks/store.ts";
import { DailyDigest, digestOf, digestWithRuns, runsOf } from "../../src/jobs/digest.ts";
import { Scheduler } from "../../src/jobs/scheduler.ts";
import type { HistoryEntry } from "../../src/jobs/schema.ts";
import { call, httpError, say } from "../support/backend.ts";
import { jobs, START } from "./support.ts";

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const never = new AbortController().signal;
const iso = (time: number) => new Date(time).toISOString();

function entry(at: number, more: Partial<HistoryEntry> = {}): HistoryEntry {
  return {
    ...{ started_at: iso(at), finished_at: iso(at), status: "verified", reason: "" },
    ...{ duration: 1, session: "s", attempt: 1, content: "", ...more },
  };
}

/** A line of the ledger. */
function request(at: number, more: Record<string, unknown>): string {
  const line = { time: iso(at), for: "turn", provider: "p", model: "m", calls: 0, chars: 0 };
  return JSON.stringify({ ...line, in: 100, out: 10, cached: 0, reasoning: 0, cost: 0.5, ...more });
}

Deno.test("a digest has what ran and what it cost, what waits, was refused, failed and is blocked", async () => {
  const [yesterday, before] = [START - HOUR, START - 2 * DAY];
  await using place = await jobs([], {
    files: {
      [`.svc/usage/${iso(yesterday).slice(0, 10)}.jsonl`]: [
        request(yesterday, { job: "a" }),
        request(yesterday, { job: "a", cost: 0.25 }),
        request(yesterday, { job: "b", cost: null }),
        request(yesterday, {}),
        JSON.stringify({ time: iso(yesterday), reserves: "x", by: "y", tokens: 9, cost: 9 }),
      ].join("\n"),
      [`.svc/usage/${iso(before).slice(0, 10)}.jsonl`]: request(before, { job: "a", in: 9000 }),
    },
  });
  const later = { next_run_at: iso(START + DAY) };
  await place.add(
    { name: "b", ...later, blocked: { since: iso(yesterday), reason: "the model is gone" } },
    { name: "a", ...later },
    { name: "new", status: "proposed" },
    { name: "gated", ...later, require_approval: true, status: "waiting_approval" },
    {
      name: "slow",
      status: "executing",
      running: {
        ...{ attempt: 1, session: "t", started_at: iso(START - DAY), phase: "attempt" },
        ...{ attempt_at: iso(START - DAY), next_at: "" },
      },
    },
  );
  const add = (name: string, entry: HistoryEntry) =>
    place.register.change(name, () => ({ append: entry }));
  const denied = [{ tool: "run_command", reason: "bash is denied" }];
  await add("a", entry(before, { status: "failed", reason: "old", denied }));
  await add("a", entry(yesterday, { session: "mine", denied }));
  await add("a", entry(yesterday, { denied }));
  await add("b", entry(yesterday, { status: "failed", reason: "the model is gone" }));
  const asks = [
    { id: 3, origin: "mine", question: "Which way?" },
    { id: 4, origin: "t", question: "And now?" },
    { id: 5, origin: "elsewhere", question: "Hm?" },
  ];
  const { event: _, worktree: _1, ...digest } = await digestOf(
    place.context,
    asks as Ask[],
    START - DAY,
  );
  assert.deepEqual(digest, {
    since: iso(START - DAY),
    until: iso(START),
    ran: [
      { job: "a", runs: 2, failed: 0, tokens: 220, cost: 0.75 },
      { job: "b", runs: 1, failed: 1, tokens: 110, cost: null },
    ],
    total: { tokens: 440, cost: null },
    failing: [{ job: "b", at: iso(yesterday), reason: "the model is gone" }],
    blocked: [{ job: "b", since: iso(yesterday), reason: "the model is gone" }],
    stuck: ["slow"],
    waiting: ["gated", "new"],
    asks: asks.map((ask, n) => ({ ...ask, job: ["a", "slow", ""][n] })),
    denied: [{ job: "a", tool: "run_command", reason: "bash is denied", times: 2 }],
  });
});

Deno.test("what the attempts of a job use is in its digest", async () => {
  const usage = { prompt_tokens: 30, completion_tokens: 3, total_tokens: 33 };
  await using place = await jobs(
    [call("run_command", { command: "ls" }, { usage }), say("ok", { usage }), httpError(401)],
    { config: { prices: { "generic-compatible/test": { in: 1e6, out: 1e6 } } } },
  );
  await place.add({ name: "a" }, { name: "b" });
  await new Scheduler(place.context).tick(never);
  const digest = await digestOf(place.context, [], START - DAY);
  assert.deepEqual(digest.ran.map(({ job, runs, failed }) => [job, runs, failed]), [
    ["a", 1, 0],
    ["b", 1, 1],
  ]);
  assert.deepEqual([digest.ran[0]!.tokens, digest.ran[0]!.cost], [66, 66]);
  assert.deepEqual(digest.denied.map(({ job, tool, times }) => [job, tool, times]), [
    ["a", "run_command", 1],
  ]);
  assert.deepEqual(digest.blocked.map(({ job }) => job), ["b"]);
});

const RECORDER = `
const file = new URL("../../../told.jsonl", import.meta.url);
export function register_services(services) {
  services.register("report", { report() {}, digest: ({ event, since, until }) =>
    Deno.writeTextFileSync(file, JSON.stringify([event, since, until]) + "\\n", { append: true }) });
}
`;

Deno.test("the digest is reported once a day at its time, also when that was missed or svc was restarted", async () => {
  await using place = await jobs([], {
    config: { plugins: [] },
    files: {
      ".svc/plugins/told/manifest.json": '{ "name": "told", "entry": "plugin.js" }',
      ".svc/plugins/told/plugin.js": RECORDER,
    },
  });
  const at = "07:00 Europe/Berlin"; // 06:00 in UTC
  const looks: [time: string, restarted?: boolean][] = [
    ["2026-01-02T05:00"], // the first call notes the time
    ["2026-01-02T05:59"],
    ["2026-01-02T06:00"],
    ["2026-01-02T06:01", true],
    ["2026-01-02T20:00"],
    ["2026-01-05T09:00", true], // three were missed
    ["2026-01-05T09:01"],
    ["2026-01-06T06:00"],
    ["2026-01-03T00:00"], // the clock was set back
    ["2026-01-03T06:00"],
  ];
  let daily = new DailyDigest(place.context);
  for (const [time, restarted] of looks) {
    if (restarted) daily = new DailyDigest(place.context);
    place.clock.set(Date.parse(`${time}Z`));
    daily.look("");
    daily.look(at);
    await daily.idle();
  }
  const spans = place.told().map(([event, since, until]: string[]) => {
    assert.equal(event, "jobs.digest");
    return [since!.slice(8, 16), until!.slice(8, 16)];
  });
  assert.deepEqual(spans, [
    ["02T05:00", "02T06:00"],
    ["02T06:00", "05T09:00"],
    ["05T09:00", "06T06:00"],
    ["03T00:00", "03T06:00"],
  ]);
  for (const wrong of ["07:00 Nowhere/Land", "24:00", "7 o'clock"]) {
    daily.look(wrong);
    assert.equal(
      place.warnings.at(-1),
      `jobs.digest_at is no time such as 07:00 Europe/Berlin: ${JSON.stringify(wrong)}.`,
    );
  }
});

Deno.test("the attempts of one session are one run, with their time, usage, cost and refusals", () => {
  const usage = { prompt_tokens: 10, completion_tokens: 2 };
  const denied = [{ tool: "run_command", reason: "bash is denied" }];
  const [one, two, three, ...none] = runsOf("a", [
    entry(START, { session: "s1", status: "failed", reason: "cut off", usage, cost: 0.1, denied }),
    entry(START + 5000, { session: "s1", attempt: 2, usage, cost: 0.2, checked: true }),
    entry(START + HOUR, { session: "s2", usage }),
    entry(START + DAY, { session: "s2", status: "failed", reason: "no worktree" }),
  ]);
  assert.deepEqual(one, {
    ...{ job: "a", session: "s1", status: "verified", checked: true, reason: "", content: "" },
    ...{ started_at: iso(START), finished_at: iso(START + 5000) },
    ...{ attempts: 2, duration: 2, tokens: 24, cost: 0.3, denied },
  });
  assert.deepEqual([two!.tokens, two!.cost, three!.tokens, three!.cost], [12, null, 0, 0]);
  assert.deepEqual(none, []);
});

Deno.test("the runs of a digest are those that ended since its time, the newest first", async () => {
  await using place = await jobs([]);
  await place.add({ name: "b" }, { name: "a" });
  for (const [name, at] of [["a", 3], ["a", 1], ["b", 2]] as const) {
    await place.register.change(name, () => ({
      append: entry(START - at * HOUR, { session: `${name}${at}` }),
    }));
  }
  const { runs } = await digestWithRuns(place.context, [], START - 2 * HOUR);
  assert.deepEqual(runs.map(({ session }) => session), ["a1", "b2"]);
});
