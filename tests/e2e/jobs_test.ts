import assert from "node:assert/strict";
import { call, hang, httpError, say, startBackend, type TestBackend } from "../support/backend.ts";
import { RECORDER, scripted } from "../jobs/support.ts";
import { inProcess } from "../support/io.ts";
import { inTerminal, startSvc, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";

/** A worktree whose backend is a script; `jobs` runs `svc jobs` in it. */
async function worktree(backend: TestBackend, config: Record<string, unknown> = {}) {
  const place = await project({
    ".svc/config.json": JSON.stringify({
      ...scripted(backend),
      ...config,
    }),
  });
  const jobs = (...args: string[]) => inProcess(["jobs", ...args], { cwd: place.path });
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await jobs(...args, "--output", "json");
    assert.equal(code, 0, stderr);
    return JSON.parse(stdout);
  };
  return { place, jobs, json, [Symbol.asyncDispose]: () => place[Symbol.asyncDispose]() };
}

async function register(place: Project) {
  return JSON.parse(await place.read(".svc/jobs.json")).jobs;
}

Deno.test("every flag of jobs add is stored [2.6, 3.1, 4.4, 4.5]", async () => {
  await using backend = startBackend([]);
  await using it = await worktree(backend);
  const flags = {
    "--prompt": "count",
    "--session": "standing",
    "--mode": "plan",
    "--provider": "groq",
    "--model": "m1",
    "--role": "writer",
    "--system-prompt": "Be brief.",
    "--retries": "1",
    "--backoff": "5",
    "--timeout": "90",
    "--file": "todo/task.md",
    "--approval": "auto",
    "--cron": "30 3 * * 1-5",
  };
  const added = await it.json(
    "add",
    "nightly",
    ...Object.entries(flags).flat(),
    ...["--tools-deny", "grep", "--tools-deny", "glob"],
    ...["--tool-permission", "edit=deny", "--tool-permission", "web=ask"],
    ...["--require-approval", "--approve-model"],
  );
  const [{ history, ...job }] = await register(it.place);
  assert.deepEqual([job, history], [added, []]);
  const { created_at, next_run_at, ...rest } = job;
  assert.ok(next_run_at > created_at);
  assert.match(next_run_at, /T03:30:00\.000Z$/);
  assert.deepEqual(rest, {
    name: "nightly",
    schedule: { cron: "30 3 * * 1-5" },
    prompt: "count",
    task_file: "todo/task.md",
    session: "standing",
    mode: "plan",
    role: "writer",
    system_prompt: "Be brief.",
    provider: "groq",
    model: "m1",
    tools_deny: ["grep", "glob"],
    tool_permission: { edit: "deny", web: "ask" },
    retries: 1,
    backoff: 5,
    timeout: 90,
    require_approval: true,
    approval_pending: false,
    approve_model: true,
    enabled: true,
    status: "approved",
    last_run_at: "",
  });
  const template = "# nightly\n\n## Task\n\n## Done when\n\n## Notes\n";
  assert.equal(await it.place.read("todo/task.md"), template);
});

Deno.test("an existing task file is kept; it is stored as a path of the worktree, or else as an absolute one [2.6, 4.5]", async () => {
  await using backend = startBackend([]);
  await using elsewhere = await project({ "task.md": "Mind it." });
  await using it = await worktree(backend);
  const file = `${elsewhere.path}/task.md`;
  const job = await it.json("add", "a", "--interval", "60", "--file", file);
  assert.deepEqual([job.task_file, job.status, job.enabled], [file, "proposed", true]);
  assert.equal(await elsewhere.read("task.md"), "Mind it.");
  const inside = await it.json("add", "c", "--interval", "1h", "--file", `${it.place.path}/c.md`);
  assert.deepEqual([inside.task_file, inside.schedule], ["c.md", { interval: 3600 }]);
  const bare = await it.json("add", "b", "--at", "2031-01-01", "--prompt", "x");
  assert.deepEqual([bare.task_file, bare.next_run_at], [
    ".svc/jobs/b.md",
    "2031-01-01T00:00:00.000Z",
  ]);
});

Deno.test("an invalid new job is one error sentence and exit code 2, and nothing is written [2.6, 4.5, 7.4]", async () => {
  await using backend = startBackend([]);
  await using it = await worktree(backend);
  const good = ["--interval", "60", "--prompt", "x"];
  const cases: [string[], RegExp][] = [
    [["x", "--cron", "61 * * * *", "--prompt", "x"], /field minute \(61\)/],
    [["x", "--cron", "0 0 31 2 *", "--prompt", "x"], /never comes/],
    [["x", "--prompt", "x"], /exactly one of cron, interval and at, and 0 are given/],
    [["x", ...good, "--at", "2031-01-01"], /and 2 are given/],
    [["x", "--interval", "59", "--prompt", "x"], /at least 60 whole seconds, and not 59/],
    [
      ["x", "--interval", "9007199254740991", "--prompt", "x"],
      /is no duration such as 90, 20m or 6h/,
    ],
    [["x", ...good, "--backoff", "9007199254740991"], /3,?153,?600,?000/],
    [["x", "--at", "2020-01-01T09:00", "--prompt", "x"], /"2020-01-01T09:00" is past; it is 20/],
    [["x", "--at", "tomorrow", "--prompt", "x"], /"tomorrow" is no ISO 8601 datetime/],
    [["x", "--interval", "60"], /neither a prompt nor a task file/],
    [["../x", ...good], /cannot be the name of a job/],
    [["x", ...good, "--mode", "fast"], /fast/],
    [["x", ...good, "--session", "a/b"], /cannot be the name of a session/],
    [["x", ...good, "--tool-permission", "edit"], /"edit" is not of the form/],
    [["x", ...good, "--retries", "-1"], /-1/],
    [["x", ...good, "--file", "."], /is a folder/],
  ];
  for (const [args, message] of cases) {
    const { code, stdout, stderr } = await it.jobs("add", ...args);
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr.split("\n")[0]!, message);
  }
  assert.deepEqual([...Deno.readDirSync(`${it.place.path}/.svc`)].map(({ name }) => name), [
    "config.json",
  ]);
  assert.equal((await it.jobs("add", "x", ...good)).code, 0);
  const before = await it.place.read(".svc/jobs.json");
  const again = await it.jobs("add", "x", ...good);
  assert.equal(again.code, 2);
  assert.match(again.stderr, /There is a job x already/);
  assert.equal(await it.place.read(".svc/jobs.json"), before);
});

Deno.test("jobs add-supervisor makes an approved leader with its task in the template [4.5]", async () => {
  await using backend = startBackend([]);
  await using it = await worktree(backend);
  for (const schedule of [["--interval", "600"], ["--cron", "0 * * * *"], ["--at", "2031-01-01"]]) {
    const name = `watch${schedule[0]}`;
    const file = ["--file", `${name}.md`];
    const job = await it.json(
      "add-supervisor",
      name,
      ...schedule,
      "--task",
      "mind the gap",
      ...file,
    );
    assert.deepEqual([job.role, job.status, job.task_file], ["leader", "approved", `${name}.md`]);
    assert.match(
      await it.place.read(`${name}.md`),
      /^# .*\n\n## Task\n\nmind the gap\n[^]*## Done when/,
    );
  }
});

Deno.test("jobs run prints the answer and a summary, and its exit code is the result [4.5, 7.4]", async () => {
  await using backend = startBackend([
    say("all is well"),
    httpError(500),
    say("better now"),
    httpError(500),
  ]);
  await using it = await worktree(backend);
  await it.jobs("add", "a", "--interval", "3600", "--prompt", "look", "--backoff", "0");
  const first = await it.jobs("run", "a");
  assert.deepEqual([first.code, first.stderr], [
    0,
    "This run approves the job a, which then runs by its schedule.\n",
  ]);
  assert.match(
    first.stdout,
    /^all is well\nsummary: ended ok, not checked in [\d.]+ s, session job_\w+, next run .* UTC \(in 60 min\)\n$/,
  );
  assert.equal((await register(it.place))[0].status, "verified");
  const retried = await it.json("run", "a");
  assert.deepEqual([retried.status, retried.content], ["verified", "better now"]);
  assert.equal(
    JSON.parse(await it.place.read(`.svc/sessions/${retried.session}.json`)).turns.length,
    2,
  );
  const failed = await it.jobs("run", "a", "--no-retry");
  assert.equal(failed.code, 1);
  assert.match(failed.stdout, /^summary: failed \(.*500.*\) in /);
  assert.equal((await it.jobs("run", "b")).code, 2);
});

Deno.test("jobs run --verbose streams the answer, and what the agent does to standard error [4.5]", async () => {
  await using backend = startBackend([call("list_dir", { path: "." }), say(["one ", "two"])]);
  await using it = await worktree(backend);
  await it.jobs("add", "a", "--interval", "60", "--prompt", "look");
  const { code, stdout, stderr } = await it.jobs("run", "a", "--verbose");
  assert.equal(code, 0, stderr);
  assert.match(stdout, /^one two\nsummary: ended ok, not checked in/);
  assert.match(stderr, /list/);
});

Deno.test("Ctrl-C ends a run, which is recorded as failed", async () => {
  await using backend = startBackend([hang("half")]);
  await using it = await worktree(backend);
  await it.jobs("add", "a", "--interval", "60", "--prompt", "look");
  const child = startSvc(["jobs", "run", "a"], { cwd: it.place.path });
  const { gone } = await backend.arrived(1);
  child.kill("SIGINT");
  const { code } = await child.output();
  await gone;
  assert.equal(code, 130);
  const [job] = await register(it.place);
  assert.deepEqual([job.status, job.running, job.history[0].reason], [
    "failed",
    undefined,
    "interrupted",
  ]);
});

Deno.test("after kill -9 in an attempt the next run records it and continues", async () => {
  await using backend = startBackend([hang("half"), say("done")]);
  await using it = await worktree(backend);
  await it.jobs("add", "a", "--interval", "60", "--prompt", "look");
  const child = startSvc(["jobs", "run", "a"], { cwd: it.place.path });
  await backend.arrived(1);
  assert.match((await it.jobs("run", "a")).stderr, /is running in another process/);
  child.kill("SIGKILL");
  await child.output();
  assert.equal((await register(it.place))[0].status, "executing");
  assert.equal((await it.jobs("run", "a")).code, 0);
  const [job] = await register(it.place);
  const attempts = job.history.map((
    entry: Record<string, unknown>,
  ) => [entry.status, entry.reason]);
  assert.deepEqual([job.status, attempts], ["verified", [["failed", "interrupted"], [
    "verified",
    "",
  ]]]);
});

Deno.test("jobs approve, reject, enable, disable, stop and remove move a job; repeating one changes nothing [3.1, 4.5]", async () => {
  await using backend = startBackend([say("done")]);
  await using it = await worktree(backend);
  await it.jobs("add", "a", "--interval", "60", "--prompt", "look");
  const gate = async (...args: string[]) => {
    const { status, enabled } = await it.json(...args);
    return [status, enabled];
  };
  assert.deepEqual(await gate("approve", "a"), ["approved", true]);
  const again = await it.jobs("approve", "a");
  assert.deepEqual([again.code, again.stderr], [0, "The job a is approved already.\n"]);
  assert.deepEqual(await gate("stop", "a"), ["approved", false]);
  const refused = await it.jobs("run", "a");
  assert.deepEqual([refused.code, refused.stdout], [1, ""]);
  assert.match(refused.stderr, /The job a is disabled\.\nhint: Let it run with: svc jobs enable a/);
  assert.deepEqual(await gate("enable", "a"), ["approved", true]);
  assert.deepEqual(await gate("disable", "a"), ["approved", false]);
  assert.deepEqual(await gate("reject", "a"), ["proposed", false]);
  assert.equal((await it.jobs("remove", "a")).stdout, "Removed the job a.\n");
  assert.deepEqual(await register(it.place), []);
  const missing = await it.jobs("approve", "a");
  assert.deepEqual([missing.code, missing.stdout], [2, ""]);
});

Deno.test("jobs list, status and show print health, next run, answer, parked asks and pending approval of a job [3.1, 4.5]", async () => {
  await using backend = startBackend([
    call("ask", { question: "Which way?" }),
    say("went left"),
    httpError(500, { error: { message: "no such thing" } }),
  ]);
  await using it = await worktree(backend);
  await it.jobs("add", "good", "--interval", "7200", "--prompt", "look", "--approval", "auto");
  await it.jobs("add", "bad", "--interval", "7200", "--prompt", "fail", "--retries", "0");
  await it.jobs(
    "add",
    "gated",
    "--cron",
    "0 3 * * *",
    "--prompt",
    "x",
    "--approval",
    "auto",
    "--require-approval",
  );
  await it.jobs("run", "good");
  await it.jobs("run", "bad");
  const { stdout: status } = await it.jobs("status");
  assert.match(status, /^3 jobs; failing: bad; next: \w+ in .*; asks waiting for you: 1\n/);
  assert.match(
    status,
    /^good: ended ok, not checked, every 2 h\n {2}next run: .* UTC \(in (120 min|2 h)\)$/m,
  );
  assert.match(status, /last run: +ended ok, not checked (now|\d+ s ago) in [\d.]+ s: went left$/m);
  assert.match(status, /times fired: +1 \(0 ok, 1 failed\)\n {2}last error: .*no such thing/);
  assert.match(status, /^ {2}up since: +\S/m);
  assert.match(status, /^gated: [^]*approval: +WAITING for approve \(svc jobs approve gated\)/m);
  assert.match(status, /^ {2}#1 {2}good {2}job_\w+ {2}Which way\?$/m);
  await it.jobs("approve", "gated");
  const { stdout: show } = await it.jobs("show", "gated");
  assert.match(show, /approval: +the next run is approved/);
  await it.place.write(".svc/memory/jobs/good.md", "Left was right.\n");
  const settings = await it.place.read(".svc/config.json");
  await it.place.write(
    ".svc/config.json",
    settings.replace('"memory.job":false', '"memory.job":true'),
  );
  const { stdout: good } = await it.jobs("show", "good");
  assert.match(
    good,
    /task file: +\/.*\/\.svc\/jobs\/good\.md\n {2}memory: +.*\/memory\/jobs\/good\.md/,
  );
  assert.match(
    good,
    /Left was right\.\n[^]*^history:\n.*attempt 1 [^]*^last output:\n {2}went left$/m,
  );
  const shown = await it.json("show", "good");
  assert.deepEqual([shown.history.length, shown.asks[0].id], [1, 1]);
  const { code, stdout } = await it.jobs("status", "--output", "json");
  assert.equal(code, 1); // bad fails
  const { jobs, asks } = JSON.parse(stdout);
  assert.deepEqual(jobs.map((job: { name: string; ok: number }) => [job.name, job.ok]), [
    ["bad", 0],
    ["gated", 0],
    ["good", 1],
  ]);
  assert.equal(asks.length, 1);
  const { stdout: list } = await it.jobs("list");
  assert.match(list, /^NAME +STATE +NEXT RUN +SCHEDULE\nbad +failed .*every 2 h\ngated /);
});

Deno.test("jobs edit opens the task file with EDITOR, on a terminal or not, and makes it first [4.5]", async () => {
  await using backend = startBackend([]);
  await using it = await worktree(backend);
  await it.jobs("add", "a", "--interval", "60", "--prompt", "look");
  await it.place.write("my editor.sh", '#!/bin/sh\necho "$1" >> "$2"\n');
  await Deno.chmod(`${it.place.path}/my editor.sh`, 0o755);
  const editor = `'${it.place.path}/my editor.sh' "two words;"`;
  const cwd = it.place.path;
  const file = ".svc/jobs/a.md";
  await Deno.remove(`${cwd}/${file}`);
  const refused = await svc(["jobs", "edit", "a"], { cwd });
  assert.deepEqual([refused.code, refused.stdout], [2, ""]);
  assert.match(refused.stderr, /EDITOR[^]*\.svc\/jobs\/a\.md/);
  assert.match(await it.place.read(file), /^# a\n/);
  await Deno.remove(`${cwd}/${file}`);
  const { code, stderr } = await svc(["jobs", "edit", "a"], { cwd, env: { EDITOR: editor } });
  assert.equal(code, 0, stderr);
  assert.match(await it.place.read(file), /^# a\n[^]*\ntwo words;\n$/);
  const failed = await svc(["jobs", "edit", "a"], { cwd, env: { EDITOR: "false" } });
  assert.deepEqual([failed.code, failed.stderr], [1, "The editor ended with exit code 1.\n"]);
  await inTerminal(["jobs", "edit", "a"], { cwd, env: { EDITOR: editor } }, []);
  assert.match(await it.place.read(file), /\ntwo words;\ntwo words;\n$/);
});

Deno.test("job events reach the report services from every command [6.1]", async () => {
  await using backend = startBackend([say("done")]);
  await using it = await worktree(backend, { plugins: [] });
  await it.place.write(
    ".svc/plugins/recorder/manifest.json",
    '{"name":"recorder","entry":"plugin.js"}',
  );
  await it.place.write(".svc/plugins/recorder/plugin.js", RECORDER);
  await it.jobs("add", "a", "--interval", "60", "--prompt", "look");
  for (const command of ["approve", "run", "reject"]) await it.jobs(command, "a");
  await it.jobs("add-supervisor", "b", "--interval", "60", "--task", "look");
  const told = (await it.place.read("told.jsonl")).trim().split("\n").map((line) =>
    JSON.parse(line)
  );
  assert.deepEqual(told.map(({ event, job }) => [event, job]), [
    ["job.proposed", "a"],
    ["job.approved", "a"],
    ["job.will_run", "a"],
    ["job.executing", "a"],
    ["job.verified", "a"],
    ["job.run.completed", "a"],
    ["job.proposed", "a"],
    ["job.approved", "b"],
  ]);
});
