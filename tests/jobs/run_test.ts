import assert from "node:assert/strict";
import { Workspace } from "../../src/engine/workspace.ts";
import { beginRun, JobRun } from "../../src/jobs/run.ts";
import { Scheduler } from "../../src/jobs/scheduler.ts";
import type { Job } from "../../src/jobs/schema.ts";
import { moveGate } from "../../src/jobs/transitions.ts";
import type { JobReport } from "../../src/plugins/api.ts";
import { call, hang, httpError, say } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { jobs, START, type TestJobs } from "./support.ts";

const never = new AbortController().signal;

/** Runs a job by hand to its end, without waiting for backoffs. */
async function run(place: TestJobs, name = "a", signal = never): Promise<JobReport> {
  const run = await beginRun(place.context, name, "run");
  assert.ok(run instanceof JobRun, JSON.stringify(run));
  while (run.next !== undefined) {
    place.clock.set(run.next);
    await run.attempt(signal);
  }
  return run.report!;
}

const roleFile = JSON.stringify({ clerk: { system_prompt: "You are the clerk." } });

Deno.test("the retries of a job share the run's session and double the backoff; the last failure is reported once [1, 2.6, 3.1, 4.5, 6.1]", async () => {
  await using place = await jobs([500, 502, 503].map((status) => httpError(status)), {
    recorder: true,
  });
  await place.add({ name: "a", retries: 2, backoff: 10 });
  const begun = await beginRun(place.context, "a", "run");
  assert.ok(begun instanceof JobRun);
  const due: number[] = [];
  while (begun.next !== undefined) {
    due.push(begun.next - START);
    place.clock.set(begun.next);
    await begun.attempt(never);
  }
  assert.deepEqual(due, [0, 10_000, 30_000]);
  const [job] = place.disk().jobs;
  assert.equal(job.status, "failed");
  assert.equal(new Set(job.history.map(({ session }: { session: string }) => session)).size, 1);
  assert.deepEqual(job.history.map(({ attempt }: { attempt: number }) => attempt), [1, 2, 3]);
  assert.match(job.history[2].reason, /503/);
  const prompts = place.backend.chats.map(({ messages }) => messages.at(-1).content);
  assert.deepEqual(prompts, [
    "go",
    "[Previous attempt 1 failed. Retry this job and finish it.]\n\ngo",
    "[Previous attempt 2 failed. Retry this job and finish it.]\n\ngo",
  ]);
  const told = place.told();
  assert.deepEqual(told.map(({ event, attempt }) => [event, attempt]), [
    ["job.will_run", 1],
    ["job.executing", 1],
    ["job.executing", 2],
    ["job.executing", 3],
    ["job.failed", 3],
    ["job.run.completed", undefined],
  ]);
  const { reason, session, ...report } = told.at(-1);
  assert.deepEqual([reason, session], [job.history[2].reason, job.history[2].session]);
  assert.deepEqual(report, {
    event: "job.run.completed",
    job: "a",
    status: "failed",
    outcome: "failed",
    duration: 30,
    started_at: "2026-01-02T03:04:05.000Z",
    finished_at: "2026-01-02T03:04:35.000Z",
    content: "",
    checked: false,
    denied: [],
    worktree: place.project.path,
    memory: "",
    usage: {},
    cost: null,
    parked_asks: [],
  });
});

Deno.test("an attempt's entry has the first 1000 characters of the answer and 300 of the reasons [2.6]", async () => {
  const refusal = httpError(400, { error: { message: "n".repeat(2000) } });
  await using place = await jobs([say("y".repeat(1500)), refusal]);
  await place.add({ name: "a", retries: 0 });
  await run(place);
  await run(place);
  const [well, ill] = place.register.history("a");
  assert.equal(well!.content, "y".repeat(1000));
  assert.ok(ill!.reason.length <= 300, ill!.reason);
});

Deno.test("the history has the usage of each attempt, and the report that of the run", async () => {
  const cut = httpError(500);
  const READ = call("file_read", { path: "a.txt" }, {
    usage: { prompt_tokens: 100, completion_tokens: 10 },
  });
  await using place = await jobs([
    READ,
    cut,
    say("done", { usage: { prompt_tokens: 150, completion_tokens: 20 } }),
  ], {
    recorder: true,
    config: { prices: { "generic-compatible/test": { in: 1, out: 2 } } },
  });
  await place.add({ name: "a", retries: 1 });
  await run(place);
  const [first, second] = place.register.history("a");
  assert.deepEqual(first!.usage, { prompt_tokens: 100, completion_tokens: 10 });
  assert.deepEqual([second!.usage, second!.cost], [
    { prompt_tokens: 150, completion_tokens: 20 },
    0.00019,
  ]);
  const report = place.told().find(({ event }) => event === "job.run.completed");
  assert.deepEqual([report.usage, report.cost], [
    { prompt_tokens: 250, completion_tokens: 30, total_tokens: 280 },
    0.00031,
  ]);
});

Deno.test("budget.job_run counts all attempts of a run", async () => {
  const read = (n: number) =>
    call("file_read", { path: `${n}` }, { usage: { prompt_tokens: 90, completion_tokens: 10 } });
  await using place = await jobs([read(1), httpError(500), read(2), read(3)], {
    config: { "budget.job_run": { tokens: 250 } },
  });
  await place.add({ name: "a", retries: 3 });
  await run(place);
  const history = place.register.history("a");
  assert.deepEqual(history.map(({ usage }) => usage!.prompt_tokens), [90, 90]);
  assert.match(
    history[1]!.reason,
    /^Stopped by the budget budget\.job_run\.tokens: 200 of 250 tokens/,
  );
});

Deno.test("a run that reaches its budget is failed with the reason, and is not retried", async () => {
  const read = (n: number) => call("file_read", { path: `${n}` }, { usage: { total_tokens: 100 } });
  await using place = await jobs([read(1), read(2), read(3)], { recorder: true });
  await place.add({ name: "a", retries: 3, max_total_tokens: 260 });
  await run(place);
  const [entry, ...others] = place.register.history("a");
  assert.deepEqual(others, []);
  assert.match(entry!.reason, /^Stopped by the budget max_total_tokens: 200 of 260 tokens/);
});

Deno.test("the system prompt of a job is role, task, job prompt, memory, mode, in this order [2.6]", async () => {
  await using place = await jobs([say("done")], {
    files: {
      ".svc/roles.json": roleFile,
      ".svc/jobs/a.md": "# a\n\n## Task\n\nCount the stars.\n",
      ".svc/memory/jobs/a.md": "There were nine.\n",
    },
    config: { "memory.job": true, mode: "plan", system_prompt: "CONFIGURED" },
  });
  await place.add({
    name: "a",
    task_file: ".svc/jobs/a.md",
    role: "clerk",
    system_prompt: "Be brief.",
  });
  await run(place);
  const system: string = place.backend.chats[0].messages[0].content;
  const parts = [
    "You are the clerk.",
    "## Job task\n\n# a\n\n## Task\n\nCount the stars.",
    "Be brief.",
    "## Run memory\n\n",
    "There were nine.",
    "You are in plan mode",
  ].map((part) => system.indexOf(part));
  assert.deepEqual(parts, [...parts].sort((one, other) => one - other));
  assert.ok(parts.every((at) => at >= 0), system);
  assert.ok(!system.includes("CONFIGURED"));
});

Deno.test("a job without a task has the generic prompt, and the task file is read for each run [2.6]", async () => {
  await using place = await jobs([say("one"), say("two")]);
  await place.add({ name: "a" });
  await run(place);
  assert.match(place.backend.chats[0].messages[0].content, /^You carry out a recurring job/);
  await place.register.change("a", () => ({ set: { task_file: "task.md", prompt: "" } }));
  await place.project.write("task.md", "Look around.");
  await run(place);
  const [system, user] = place.backend.chats[1].messages;
  assert.match(system.content, /^## Job task\n\nLook around\./);
  assert.equal(user.content, "Carry out the job now.");
});

Deno.test("a job with a prompt may lack its default task file, and the unchanged template is no task [7.4]", async () => {
  await using place = await jobs([say("one"), say("two")]);
  await place.add({ name: "a", task_file: undefined });
  assert.equal((await run(place)).status, "verified");
  await place.project.write(
    ".svc/jobs/a.md",
    "# a\n\n## Task\n\n## Done when\n\n## Notes\n",
  );
  assert.equal((await run(place)).status, "verified");
  for (const { messages: [system] } of place.backend.chats) {
    assert.match(system.content, /^You carry out a recurring job/);
    assert.ok(!system.content.includes("## Job task"));
  }
});

Deno.test("an unknown role, a missing task file and an unapproved model fail a job's run once, with the reason [2.6, 7.4]", async () => {
  const cases: [Partial<Job>, RegExp][] = [
    [{ role: "nobody" }, /nobody/],
    [{ task_file: "gone.md" }, /^task file not found: .*gone\.md$/],
    [{ model: "groq/some-model" }, /^model not approved: groq\/some-model/],
    [{ mode: "nonsense" }, /nonsense/],
  ];
  for (const [given, reason] of cases) {
    await using place = await jobs([], { recorder: true, config: { plugins: [] } });
    await place.add({ name: "a", ...given });
    const report = await run(place);
    assert.equal(report.status, "failed");
    assert.match(report.reason, reason);
    const history = place.register.history("a");
    assert.deepEqual(history.map((entry) => entry.reason), [report.reason]);
    assert.equal(place.register.get("a")!.status, "failed");
    assert.equal(place.backend.chats.length, 0);
    assert.equal(place.told().at(-1).reason, report.reason);
  }
});

Deno.test("approve_model approves the job's model in the registry [2.6]", async () => {
  await using place = await jobs([say("done")]);
  const home = place.context.environment.home;
  await Deno.mkdir(`${home}/.config/svc`, { recursive: true });
  const connection = { mine: { base_url: place.backend.url, api_key: "" } };
  await Deno.writeTextFile(`${home}/.config/svc/providers.json`, JSON.stringify(connection));
  await place.add({ name: "a", model: "mine/m1", approve_model: true });
  assert.equal((await run(place)).status, "verified");
  const models = JSON.parse(await Deno.readTextFile(`${home}/.config/svc/models.json`));
  assert.deepEqual([models[0].provider, models[0].model], ["mine", "m1"]);
});

Deno.test("a job's denied tools are added to the configuration's, and its permissions apply [2.6, 4.5]", async () => {
  await using place = await jobs([call("file_write", { path: "x", content: "x" }), say("ok")], {
    config: { "tools.deny": ["grep"] },
  });
  await place.add({ name: "a", tools_deny: ["glob"], tool_permission: { edit: "deny" } });
  await run(place);
  const offered = place.backend.chats[0].tools.map((
    { function: { name } }: { function: { name: string } },
  ) => name);
  assert.ok(offered.includes("file_read"));
  for (const name of ["grep", "glob", "file_write", "file_edit"]) {
    assert.ok(!offered.includes(name), name);
  }
});

Deno.test("a job's stable session is used by every run, and a parked ask is reported with its id and origin [2.6, 2.11, 3.1]", async () => {
  await using place = await jobs([
    call("ask", { question: "Which way?" }),
    say("waiting"),
    say("again"),
  ], { recorder: true });
  await place.add({ name: "a", session: "standing" });
  const first = await run(place);
  assert.deepEqual(first.parked_asks, [{ id: 1, origin: "standing", question: "Which way?" }]);
  assert.deepEqual(place.told().at(-1).parked_asks, first.parked_asks);
  const second = await run(place);
  assert.equal(second.session, "standing");
  assert.deepEqual(
    JSON.parse(await place.project.read(".svc/sessions/standing.json")).turns.length,
    2,
  );
});

Deno.test("the next run in a stable session reads the answer to the last run's question", async () => {
  await using place = await jobs([
    call("ask", { question: "Which way?" }),
    say("waiting"),
    say("left it is"),
  ]);
  await place.add({ name: "a", session: "standing" });
  await run(place);
  const { worktree: path, environment } = place.context;
  const { asks } = Workspace.open({ path, environment, clock: place.clock });
  await asks.answer(1, "left");
  const second = await run(place);
  const { messages } = place.backend.chats[2];
  const spoken = messages.filter(({ role }: { role: string }) => role === "user");
  const words = spoken.map(({ content }: { content: string }) => content).join("\n");
  assert.match(words, /\[answer to parked ask #1\] left/);
  assert.match(words, /go$/);
  assert.deepEqual([second.content, second.parked_asks], ["left it is", []]);
});

Deno.test("a role that is removed fails the next run once, with the reason [7.4]", async () => {
  await using place = await jobs([say("kept")], {
    files: { ".svc/roles.json": '{"keeper": {"system_prompt": "Keep."}}' },
  });
  await place.add({ name: "a", role: "keeper", retries: 3 });
  assert.equal((await run(place)).status, "verified");
  await place.project.write(".svc/roles.json", "{}");
  const gone = await run(place);
  assert.deepEqual([gone.status, place.register.history("a").length], ["failed", 2]);
  assert.match(gone.reason, /no role "keeper"/);
});

Deno.test("a timed-out attempt is cancelled, and the next attempt follows [2.6, 4.5]", async () => {
  let expire = () => {};
  const clock = {
    now: () => START,
    sleep: (_: number, signal?: AbortSignal) =>
      new Promise<void>((resolve, reject) => {
        expire = resolve;
        signal?.addEventListener("abort", () => reject(signal.reason));
      }),
  };
  await using place = await jobs([hang("half an ans"), say("whole")], { clock, recorder: true });
  await place.add({ name: "a", timeout: 5, retries: 1, backoff: 0 });
  const begun = await beginRun(place.context, "a", "run");
  assert.ok(begun instanceof JobRun);
  const request = place.backend.arrived(1);
  const attempt = begun.attempt(never);
  const { gone } = await request;
  expire();
  await attempt;
  await gone;
  await begun.attempt(never);
  const history = place.register.history("a");
  assert.deepEqual(history.map(({ status, reason }) => [status, reason]), [
    ["failed", "timeout after 5 s"],
    ["verified", ""],
  ]);
  assert.equal(begun.report!.content, "whole");
  assert.equal(place.told().filter(({ event }) => event === "job.timeout").length, 1);
});

Deno.test("the timeout ends tools and their processes", async () => {
  let expire = () => {};
  const clock = {
    now: () => START,
    sleep: () => new Promise<void>((resolve) => void (expire = resolve)),
  };
  const command = { command: "touch started; sleep 300", timeout: 300 };
  await using place = await jobs([call("run_command", command)], {
    clock,
    config: { tool_permission: { bash: "allow" } },
  });
  await place.add({ name: "a", timeout: 5, retries: 0 });
  const watcher = Deno.watchFs(place.project.path);
  const ended = run(place);
  for await (const { paths } of watcher) if (paths.some((path) => path.endsWith("started"))) break;
  expire();
  assert.equal((await ended).reason, "timeout after 5 s");
  await noProcessesLeft(place.project.path);
});

Deno.test("an interrupted run ends its tools' processes, and is recorded as failed", async () => {
  const command = { command: "touch started; sleep 300", timeout: 300 };
  await using place = await jobs([call("run_command", command)], {
    config: { tool_permission: { bash: "allow" } },
  });
  await place.add({ name: "a" });
  const interrupt = new AbortController();
  const watcher = Deno.watchFs(place.project.path);
  const ended = run(place, "a", interrupt.signal);
  for await (const { paths } of watcher) if (paths.some((path) => path.endsWith("started"))) break;
  interrupt.abort();
  const report = await ended;
  assert.deepEqual([report.status, report.reason], ["failed", "interrupted"]);
  const [job] = place.disk().jobs;
  assert.deepEqual([job.status, job.running, job.history.length], ["failed", undefined, 1]);
  await noProcessesLeft(place.project.path);
});

Deno.test("each run of a job is added to its memory, as the model's summary or as its result [1, 2.6, 3.1]", async () => {
  await using place = await jobs([
    say("nine"),
    say("Nine stars so far."),
    say("ten"),
    httpError(500),
  ], {
    config: { "memory.job": true },
  });
  await place.add({ name: "a" });
  assert.equal((await run(place)).memory, "Nine stars so far.");
  const { memory } = await run(place);
  assert.match(memory, /^Run \d{4}-.*: verified ten Nine stars so far\.$/);
  assert.match(
    place.backend.chats[2].messages[0].content,
    /## Run memory\n\n[^#]*Nine stars so far\./,
  );
});

Deno.test("a job in plan mode reads its memory and does not write it [2.6]", async () => {
  await using place = await jobs([say("all is well")], { config: { "memory.job": true } });
  await place.project.write(".svc/memory/jobs/a.md", "There were nine.\n");
  await place.add({ name: "a", mode: "plan" });
  assert.equal((await run(place)).memory, "There were nine.");
  assert.equal(place.backend.chats.length, 1);
  assert.match(place.backend.chats[0].messages[0].content, /There were nine\./);
  assert.equal(await place.project.read(".svc/memory/jobs/a.md"), "There were nine.\n");
});

Deno.test("a job that requires approval parks, runs once when it is approved, and parks again [1, 2.6, 3.1]", async () => {
  await using place = await jobs([say("one"), say("two")], { recorder: true });
  await place.add({ name: "a", require_approval: true });
  const scheduler = new Scheduler(place.context);
  const status = () => place.register.get("a")!.status;
  await scheduler.tick(never);
  await scheduler.tick(never);
  assert.equal(status(), "waiting_approval");
  assert.deepEqual(place.told().map(({ event }) => event), ["job.waiting_approval"]);
  await moveGate(place.context, "a", "approve");
  await scheduler.tick(never);
  assert.deepEqual([status(), place.backend.chats.length], ["waiting_approval", 1]);
  assert.deepEqual(place.told().slice(-2).map(({ event }) => event), [
    "job.run.completed",
    "job.waiting_approval",
  ]);
  assert.equal(place.register.get("a")!.running, undefined);
  place.clock.set(START + 3600_000);
  await scheduler.tick(never);
  assert.equal(place.backend.chats.length, 1);
  assert.equal((await run(place)).status, "verified");
  assert.equal(status(), "waiting_approval");
});

Deno.test("a job that is approved during its run is not parked after it, nor is one that has no next run [3.1]", async () => {
  const gated = { require_approval: true, status: "verified" } as const;
  await using place = await jobs([say("one"), say("two"), say("three")]);
  await place.add(
    { name: "armed", ...gated },
    { name: "off", ...gated },
    { name: "once", ...gated, schedule: { at: "2026-01-02T03:00" } },
  );
  for (const [name, trigger] of [["armed", "approve"], ["off", "disable"], ["once"]] as const) {
    const begun = await beginRun(place.context, name, "run");
    assert.ok(begun instanceof JobRun);
    if (trigger !== undefined) await moveGate(place.context, name, trigger);
    await begun.attempt(never);
    assert.equal(place.register.get(name)!.status, "verified", name);
  }
});

Deno.test("a job that requires approval and has an unknown mode parks, runs once approved, and is reported [3.1]", async () => {
  await using place = await jobs([], { recorder: true });
  await place.add({ name: "a", require_approval: true, mode: "nonsense", retries: 0 });
  const scheduler = new Scheduler(place.context);
  await scheduler.tick(never);
  await moveGate(place.context, "a", "approve");
  await scheduler.tick(never);
  assert.deepEqual(place.told().map(({ event }) => event), [
    "job.waiting_approval",
    "job.failed",
    "job.run.completed",
    "job.waiting_approval",
  ]);
  assert.deepEqual(place.warnings, []);
});

Deno.test("a run whose answer was truncated is verified, and the first run by hand is the approval [3.1]", async () => {
  await using place = await jobs([say("half of it", { finish: "length" })], {
    config: { auto_continue: false },
  });
  await place.add({ name: "a", status: "proposed" });
  assert.equal((await run(place)).status, "verified");
  const { status, next_run_at } = place.register.get("a")!;
  assert.deepEqual([status, next_run_at], ["verified", "2026-01-02T04:04:05.000Z"]);
});

Deno.test("a one-shot job runs once and disables itself [3.1]", async () => {
  await using place = await jobs([say("done")]);
  await place.add({ name: "a", schedule: { at: "2026-01-02T03:00" } });
  const scheduler = new Scheduler(place.context);
  for (let n = 0; n < 2; n++) await scheduler.tick(never);
  const { status, enabled, next_run_at } = place.register.get("a")!;
  assert.deepEqual([status, enabled, next_run_at], ["verified", false, ""]);
  assert.equal(place.backend.chats.length, 1);
});

Deno.test("times that a job missed behind a closed gate are not made up for [3.1, 4.5]", async () => {
  await using place = await jobs([]);
  await place.add({ name: "a", enabled: false, schedule: { cron: "0 3 * * *" } });
  assert.equal(
    (await moveGate(place.context, "a", "enable")).next_run_at,
    "2026-01-03T03:00:00.000Z",
  );
  await place.add({ name: "b", status: "proposed", schedule: { cron: "0 3 * * *" } });
  assert.equal(
    (await moveGate(place.context, "b", "approve")).next_run_at,
    "2026-01-03T03:00:00.000Z",
  );
  await assert.rejects(moveGate(place.context, "b", "approve"), { code: "job_refused", exit: 1 });
});

Deno.test("edits during a job's run are kept: rejected, removed, another next run [3.1]", async () => {
  const edits: [Partial<Job> | undefined, (job?: Job) => unknown, unknown][] = [
    [{ status: "proposed", enabled: false }, (job) => [job!.status, job!.enabled], [
      "proposed",
      false,
    ]],
    [
      { next_run_at: "2030-01-01T00:00:00.000Z" },
      (job) => job!.next_run_at,
      "2030-01-01T00:00:00.000Z",
    ],
    [{ schedule: { interval: 60 } }, (job) => job!.next_run_at, "2026-01-02T03:05:05.000Z"],
    [undefined, (job) => job, undefined],
  ];
  for (const [set, seen, expected] of edits) {
    await using place = await jobs([say("done")], { recorder: true });
    await place.add({ name: "a" });
    const begun = await beginRun(place.context, "a", "run");
    assert.ok(begun instanceof JobRun);
    if (set === undefined) await place.register.remove("a");
    else await place.register.change("a", () => ({ set }));
    await begun.attempt(never);
    assert.deepEqual(seen(place.register.get("a")), expected);
    assert.equal(place.told().at(-1).event, "job.run.completed");
  }
});

Deno.test("a running job is not begun again, in this process or another [3.1]", async () => {
  await using place = await jobs([say("done")]);
  await place.add({ name: "a" });
  const first = await beginRun(place.context, "a", "run");
  assert.ok(first instanceof JobRun);
  assert.deepEqual(await beginRun(place.context, "a", "run"), {
    refused: "is running in another process",
  });
  await first.attempt(never);
  assert.equal(place.register.get("a")!.status, "verified");
});
