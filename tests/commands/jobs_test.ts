import assert from "node:assert/strict";
import { main } from "../../src/cli/main.ts";
import { schedule } from "../../src/commands/jobs/daemon.ts";
import { Workspace } from "../../src/engine/workspace.ts";
import { Scheduler } from "../../src/jobs/scheduler.ts";
import type { Job } from "../../src/jobs/schema.ts";
import { type Reply, say, type Script } from "../support/backend.ts";
import { testIo } from "../support/io.ts";
import { jobs } from "../jobs/support.ts";

/** A worktree in which `svc jobs` runs in this process. */
async function commands(
  script: Script | Reply[] = [],
  options: Parameters<typeof jobs>[1] = {},
  ...added: (Partial<Job> & { name: string })[]
) {
  const place = await jobs(script, options);
  await place.add(...added);
  const svc = async (...args: string[]) => {
    const { home, cwd } = place.context.environment;
    const io = testIo({ home, cwd });
    const code = await main(["jobs", ...args], io);
    return { code, out: io.printed, notes: io.notes.join("\n") };
  };
  return { place, svc, [Symbol.asyncDispose]: () => place[Symbol.asyncDispose]() };
}

/** The entry of an attempt. */
function entry(status: "verified" | "failed", reason = "") {
  const at = "2026-01-02T03:04:05.000Z";
  return {
    ...{ started_at: at, finished_at: at, status, reason },
    ...{ duration: 1, session: "s", attempt: 1, content: "" },
  };
}

const LATER = "2126-01-01T00:00:00.000Z";

Deno.test("jobs status exits with 1 while the last run of a job failed [4.5]", async () => {
  await using it = await commands([], {}, { name: "a", next_run_at: LATER });
  assert.equal((await it.svc("status")).code, 0);
  const ended = (status: "verified" | "failed") =>
    it.place.register.change("a", () => ({ set: { status }, append: entry(status, "gone") }));
  await ended("failed");
  for (const args of [["status"], ["status", "--output", "json"]]) {
    assert.equal((await it.svc(...args)).code, 1);
  }
  assert.equal((await it.svc("list")).code, 0);
  await ended("verified");
  assert.equal((await it.svc("status")).code, 0);
  await ended("failed");
  await it.svc("disable", "a"); // the operator has dealt with it
  assert.equal((await it.svc("status")).code, 0);
  await it.place.add({ name: "once", schedule: { at: "2026-01-02" }, enabled: false });
  await it.place.register.change("once", () => ({
    set: { status: "failed", last_run_at: "2026-01-02T00:00:00Z", next_run_at: "" },
    append: entry("failed", "gone"),
  }));
  assert.equal(
    (await it.svc("status")).code,
    1,
    "a one-shot job that failed is disabled by itself",
  );
});

Deno.test("jobs list and jobs status agree on what waits for approval, and a job that never runs again does not [4.5]", async () => {
  const gated = { require_approval: true };
  await using it = await commands(
    [],
    {},
    { name: "done", ...gated, schedule: { at: "2026-01-02" }, enabled: false, status: "verified" },
    { name: "off", ...gated, enabled: false, status: "verified", next_run_at: LATER },
    { name: "parked", ...gated, status: "waiting_approval" },
    { name: "soon", ...gated, status: "verified", next_run_at: LATER },
    { name: "sure", ...gated, approval_pending: true, status: "verified", next_run_at: LATER },
    { name: "free", status: "verified", next_run_at: LATER },
  );
  await it.place.register.change("done", () => ({
    set: { last_run_at: "2026-01-02T00:00:00Z", next_run_at: "" },
  }));
  const { out: list } = await it.svc("list");
  const { out: status } = await it.svc("status");
  const waiting = ["parked", "soon"];
  const blocks = new Map(
    status.split("\n\n").map((block) => [block.split(":")[0]!.trim(), block]),
  );
  for (const { name } of it.place.register.list()) {
    const row = list.split("\n").find((line) => line.startsWith(`${name} `))!;
    assert.equal(/WAITING for approve/.test(row), waiting.includes(name), row);
    assert.equal(/WAITING for approve/.test(blocks.get(name)!), waiting.includes(name), name);
  }
  assert.match(status, /WAITING for approve: parked, soon/);
  assert.match(blocks.get("sure")!, /the next run is approved/);
  assert.doesNotMatch(blocks.get("done")! + blocks.get("off"), /approval:/);
  const { jobs } = JSON.parse((await it.svc("status", "--output", "json")).out);
  const approvals = jobs.map(({ name, approval }: Record<string, string>) => [name, approval]);
  assert.deepEqual(Object.fromEntries(approvals), {
    ...{ done: "", free: "", off: "", parked: "waiting", soon: "waiting", sure: "approved" },
  });
});

Deno.test("a one-shot job that has run has no next run, also when it is enabled or approved again [3.1]", async () => {
  await using it = await commands([], {}, {
    name: "once",
    schedule: { at: "2026-01-02" },
    require_approval: true,
    enabled: false,
    status: "verified",
  });
  await it.place.register.change("once", () => ({
    set: { last_run_at: "2026-01-02T00:00:00Z", next_run_at: "" },
  }));
  for (const gate of ["enable", "approve"]) {
    const { code, out, notes } = await it.svc(gate, "once");
    assert.equal(code, 0);
    assert.match(out, /next run: none: it has run/);
    assert.match(out + notes, /svc jobs run once/);
  }
  assert.doesNotMatch((await it.svc("status")).out, /WAITING|with the next tick/);
});

Deno.test("a run that waits for its next attempt shows when that is", async () => {
  const running = {
    ...{ attempt: 1, session: "s", started_at: LATER, attempt_at: LATER },
    next_at: LATER,
  };
  await using it = await commands(
    [],
    {},
    { name: "a", status: "executing", running: { ...running, phase: "backoff" } },
    { name: "b", status: "executing", running: { ...running, phase: "attempt" } },
  );
  const { out } = await it.svc("list");
  assert.match(out, /^a +executing +attempt 2 at 2126-01-01 00:00:00 UTC/m);
  assert.match(out, /^b +executing +running now/m);
  assert.match((await it.svc("status")).out, /session: +s$/m);
});

Deno.test("jobs status counts runs, and says how many attempts they took [4.5]", async () => {
  await using it = await commands([], {}, { name: "a", next_run_at: LATER });
  const append = (attempt: number, status: "verified" | "failed") =>
    it.place.register.change("a", () => ({ append: { ...entry(status, "gone"), attempt } }));
  await append(1, "failed");
  await append(2, "verified");
  await append(1, "failed");
  const fired = async () => /times fired: +(.*)/.exec((await it.svc("status")).out)![1];
  assert.equal(await fired(), "2 (1 ok, 1 failed), 3 attempts");
  const running = { attempt: 1, session: "s", started_at: "", attempt_at: "", next_at: LATER };
  const phase = "backoff" as const;
  await it.place.register.change("a", () => ({
    set: { status: "executing", running: { ...running, phase } },
  }));
  assert.equal(await fired(), "2 (1 ok, 0 failed), 3 attempts", "the second run is under way");
  for (let at = 0; at < 100; at++) await append(1, "verified");
  assert.match((await fired())!, /^100 \(.*\); older ones are not kept$/);
});

Deno.test("jobs run says that it approves a proposed job, and one approval is enough for one that requires it [3.1, 4.5]", async () => {
  const waits = { require_approval: true, next_run_at: LATER };
  await using it = await commands(
    [say("done"), say("done")],
    {},
    { name: "a", status: "proposed" },
    {
      name: "b",
      status: "proposed",
      ...waits,
    },
  );
  const said = "This run approves the job a, which then runs by its schedule.";
  assert.match((await it.svc("run", "a")).notes, new RegExp(said));
  assert.doesNotMatch((await it.svc("run", "a")).notes, /approves/);
  assert.doesNotMatch((await it.svc("approve", "b")).out, /WAITING/);
  assert.match((await it.svc("status")).out, /approval: +the next run is approved/);
  await it.svc("reject", "b");
  assert.match((await it.svc("run", "b")).notes, /b is disabled\.\nhint: .*svc jobs approve b$/m);
});

Deno.test("a run of a job that requires approval says that the next one waits [3.1, 4.5]", async () => {
  await using it = await commands([say("done")], {}, { name: "a", require_approval: true });
  const waits = /UTC \(in [\w ]+\), WAITING for approve$/m;
  assert.match((await it.svc("run", "a")).out, waits);
  assert.match((await it.svc("list")).out, /^a +waiting_approval +\S+ \S+ UTC/m);
  assert.match((await it.svc("status")).out, waits);
});

Deno.test("a rejected job, and a proposed one that another program has disabled, runs once it is approved [3.1, 4.5]", async () => {
  await using it = await commands(
    [say("done"), say("done")],
    {},
    { name: "a" },
    { name: "b", status: "proposed", enabled: false, next_run_at: "" },
  );
  await it.svc("reject", "a");
  for (const name of ["a", "b"]) {
    const { code, out } = await it.svc("approve", name);
    assert.equal(code, 0);
    assert.match(out, new RegExp(`^${name}: approved, enabled; next run: \\d{4}`));
  }
  it.place.clock.set(Date.parse("2126-01-01"));
  await new Scheduler(it.place.context).tick(new AbortController().signal);
  assert.equal(it.place.backend.chats.length, 2);
});

Deno.test("jobs add refuses a job that cannot work, in one sentence with a hint, and writes nothing [4.5]", async () => {
  const good = ["--interval", "60", "--prompt", "x"];
  const cases: [string[], RegExp, Record<string, unknown>?][] = [
    [["--role", "nobody"], /There is no role "nobody"/],
    [["--provider", "nowhere"], /There is no provider "nowhere"/],
    [["--model", "groq/some-model"], /model not approved: groq\/some-model/],
    [["--role", "clerk"], /model not approved: groq\/big/],
    [["--mode", "fast"], /fast/],
    [["--max-cost", "1"], /max_cost cannot be kept: generic-compatible\/test has no price/],
    [["--session", "torn"], /session torn cannot be read/],
    [[], /No model provider is connected/, { base_url: "", model: "" }],
    [[], /No model is chosen/, { model: "" }],
  ];
  for (const [args, message, config] of cases) {
    await using it = await commands([], {
      config,
      files: {
        ".svc/roles.json": '{"clerk": {"system_prompt": "Count.", "model": "groq/big"}}',
        ".svc/sessions/torn.json": "{ no session",
      },
    });
    const { code, out, notes } = await it.svc("add", "a", ...good, ...args);
    assert.deepEqual([code, out], [2, ""], args.join(" "));
    assert.match(notes.split("\n")[0]!, message);
    assert.match(notes, /\nhint: /, args.join(" "));
    assert.equal(it.place.register.get("a"), undefined);
    assert.ok(!(await exists(`${it.place.project.path}/.svc/jobs/a.md`)));
  }
});

Deno.test("jobs add takes an unapproved model with --approve-model, which is approved by the first run [5.2]", async () => {
  await using it = await commands();
  const args = ["add", "a", "--interval", "60", "--prompt", "x", "--model", "groq/big"];
  assert.equal((await it.svc(...args, "--approve-model")).code, 0);
  assert.ok(!(await exists(`${it.place.context.environment.home}/.config/svc/models.json`)));
});

Deno.test("jobs approve warns of a job that cannot work, and approves it", async () => {
  await using it = await commands([], {}, { name: "a", role: "nobody", status: "proposed" });
  const { code, out, notes } = await it.svc("approve", "a");
  assert.equal(code, 0);
  assert.match(out, /^a: approved, enabled/);
  assert.match(notes, /^warning: the job cannot work yet: There is no role "nobody"/m);
});

Deno.test("the fields of a task are stored by jobs add, shown, and kept when the scheduler changes the job [4.5]", async () => {
  const prices = { "generic-compatible/test": { in: 1, out: 2 } };
  await using it = await commands([], { config: { "jobs.timeout": 7200, prices } });
  await it.place.project.write("n.schema.json", '{"type": "object"}');
  const options = {
    ...{ "--max-cost": "0.5", "--max-total-tokens": "9000", "--max-tool-calls": "7" },
    ...{ "--max-rounds": "5", "--timeout": "20m", "--wait": "6h", "--verify": "true" },
    ...{ "--verify-rounds": "2", "--schema": "n.schema.json" },
  };
  const added = await it.svc(
    ...["add", "a", "--interval", "60", "--prompt", "x", "--approval", "auto"],
    ...Object.entries(options).flat(),
  );
  assert.equal(added.code, 0, added.notes);
  const fields = {
    ...{ max_cost: 0.5, max_total_tokens: 9000, max_tool_calls: 7, max_rounds: 5 },
    ...{ timeout: 1200, quota_wait: 21_600, verify: "true", verify_rounds: 2 },
    schema: { type: "object" },
  };
  const stored = () => {
    const [job] = it.place.disk().jobs;
    return Object.fromEntries(Object.keys(fields).map((name) => [name, job[name]]));
  };
  assert.deepEqual(stored(), fields);
  await it.svc("disable", "a");
  assert.deepEqual(stored(), fields);
  const { out } = await it.svc("show", "a");
  assert.match(out, /timeout: +20 min for an attempt$/m);
  assert.match(out, /quota wait: +6 h$/m);
  assert.match(
    out,
    /budget: +max_cost 0.5, max_total_tokens 9000, max_tool_calls 7, max_rounds 5$/m,
  );
  assert.match(out, /verify: +true$/m);
  assert.match(out, /verify rounds: +2$/m);
  assert.match(out, /schema: +\{"type":"object"\}$/m);
  await it.place.add({ name: "plain" });
  assert.match(
    (await it.svc("show", "plain")).out,
    /timeout: +2 h for an attempt \(jobs.timeout\)$/m,
  );
  await it.place.add({ name: "free", timeout: 0 });
  assert.match((await it.svc("show", "free")).out, /timeout: +none$/m);
});

Deno.test("jobs digest sums up the last day, or as long as --since says, as text and JSON", async () => {
  const ago = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString();
  await using it = await commands(
    [],
    {},
    { name: "a", next_run_at: LATER, blocked: { since: ago(1), reason: "the key is wrong" } },
    { name: "new", status: "proposed" },
  );
  const denied = [{ tool: "run_command", reason: "bash is denied" }];
  for (const hours of [30, 1]) {
    const finished_at = ago(hours);
    await it.place.register.change("a", () => ({
      append: { ...entry("failed", "the key is wrong"), finished_at, denied },
    }));
  }
  const { code, out } = await it.svc("digest");
  assert.equal(code, 0);
  assert.match(
    out,
    /^jobs since \S+ \S+ UTC \(24 h ago\); all requests of this worktree: 0 tokens$/m,
  );
  assert.match(out, /^ran:\n {2}a +1 attempt, 1 failed +0 tokens$/m);
  assert.match(out, /^failing:\n {2}a +.*\(60 min ago\) +the key is wrong$/m);
  assert.match(out, /^blocked:\n {2}a +.* the key is wrong$/m);
  assert.match(out, /^waits for approval .*:\n {2}new$/m);
  assert.match(out, /^refused:\n {2}a +run_command +1 x +bash is denied$/m);
  const week = JSON.parse((await it.svc("digest", "--since", "7d", "--output", "json")).out);
  assert.deepEqual([week.ran[0].runs, week.denied[0].times], [2, 2]);
});

Deno.test("the scheduler calls the heartbeat address, and sends a digest that was missed to the webhook", async () => {
  const got = new Map<string, unknown>();
  const both = Promise.withResolvers<void>();
  const server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen: () => {} },
    async (call) => {
      got.set(new URL(call.url).pathname, call.method === "POST" ? await call.json() : call.method);
      if (got.size === 2) both.resolve();
      return new Response();
    },
  );
  const url = `http://127.0.0.1:${server.addr.port}`;
  await using it = await commands([], {
    config: {
      "jobs.heartbeat_url": `${url}/beat`,
      "jobs.digest_at": "07:00",
      "report.webhook": `${url}/report`,
    },
    files: { ".svc/jobs.digest.json": '{"sent": "2026-01-02T08:00:00.000Z"}' },
  }, { name: "a", status: "proposed" });
  const { environment } = it.place.context;
  const workspace = Workspace.open({ path: it.place.project.path, environment });
  const stop = new AbortController();
  const io = testIo(environment, {
    live: workspace, // keeps the permissions of this process
    onInterrupt: () => ({ signal: stop.signal, release() {} }),
  });
  const ended = schedule(workspace, { tick: 3600, quiet: true }, io);
  await both.promise;
  stop.abort();
  assert.equal(await ended, 0);
  const { event, since, waiting } = got.get("/report") as Record<string, unknown>;
  assert.deepEqual([got.get("/beat"), event, since, waiting], [
    "GET",
    "jobs.digest",
    "2026-01-02T08:00:00.000Z",
    ["a"],
  ]);
  await workspace.close();
  await server.shutdown();
});

function exists(path: string): Promise<boolean> {
  return Deno.lstat(path).then(() => true, () => false);
}
