import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { RECORDER, scripted } from "../jobs/support.ts";
import { hang, say, startBackend, type TestBackend } from "../support/backend.ts";
import { needs } from "../support/needs.ts";
import { poll } from "../support/processes.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";

/** A worktree with one due job; `jobs` runs `svc jobs` in it. */
async function worktree(backend: TestBackend, config: Record<string, unknown> = {}) {
  const place = await project({
    ".svc/config.json": JSON.stringify({
      ...scripted(backend),
      "jobs.grace": 0,
      ...config,
    }),
    ".svc/jobs.json": JSON.stringify({
      jobs: [{
        name: "a",
        schedule: { interval: 3600 },
        prompt: "go",
        status: "approved",
        created_at: "2026-01-01T00:00:00Z",
        next_run_at: "2026-01-01T00:00:00Z",
      }],
    }),
  });
  const jobs = (...args: string[]) => svc(["jobs", ...args], { cwd: place.path });
  const job = async () => JSON.parse(await place.read(".svc/jobs.json")).jobs[0];
  const status = async () =>
    JSON.parse((await jobs("daemon", "status", "--output", "json")).stdout);
  return { place, jobs, job, status, [Symbol.asyncDispose]: () => place[Symbol.asyncDispose]() };
}

/** Reads the standard output of a child until it contains a text. */
async function said(child: Deno.ChildProcess, text: string) {
  let out = "";
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const more = async () => {
    const { value, done } = await reader.read();
    out += value ?? "";
    return !done;
  };
  while (!out.includes(text) && await more());
  return async () => {
    while (await more());
    return out;
  };
}

Deno.test("jobs daemon runs due jobs, prints a line for each step, and stops cleanly [1, 4.5]", async () => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    await using backend = startBackend([say("done")]);
    await using it = await worktree(backend);
    const child = startSvc(["jobs", "daemon"], { cwd: it.place.path });
    const rest = await said(child, "a: ended ok");
    const stderr = new Response(child.stderr).text();
    const second = await it.jobs("daemon");
    assert.equal(second.code, 2);
    assert.match(second.stderr, /is running already: process \d+, since 2\d{3}-/);
    const { stdout } = await it.jobs("status");
    assert.match(stdout, new RegExp(`^scheduler: process ${child.pid}; since .*; last tick `, "m"));
    child.kill(signal);
    const lines = (await rest()).trim().split("\n").map((line) => line.replace(/^\S+Z /, ""));
    assert.equal(
      lines[0],
      `scheduler: process ${child.pid} looks every 15 s at the jobs of ${it.place.path}`,
    );
    assert.match(lines[1]!, /^a: attempt 1 in session job_\S+$/);
    assert.match(lines[2]!, /^a: ended ok, not checked in \S+ s; next run: .* UTC \(in 60 min\)$/);
    assert.deepEqual(lines.slice(3), ["scheduler: stopped"]);
    assert.deepEqual([(await child.status).code, await stderr], [0, ""]);
    assert.equal(await it.status(), null);
    assert.match((await it.jobs("status")).stdout, /^scheduler: none runs in this worktree/m);
  }
});

Deno.test("a scheduler whose worktree was removed says so, and does not make it again", async () => {
  await using home = await project({ "work/README.md": "" });
  const path = `${home.path}/work`;
  const child = startSvc(["jobs", "daemon", "--tick", "1"], { cwd: path, home: home.path });
  await said(child, "scheduler: process");
  await Deno.rename(path, `${home.path}/renamed`);
  let notes = "";
  for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) {
    notes += text;
    if (notes.includes("not there any more")) break;
  }
  assert.match(notes, /warning: .*The worktree \S+\/work is not there any more\.$/m);
  child.kill("SIGTERM");
  await child.status;
  assert.throws(() => Deno.statSync(path), Deno.errors.NotFound);
});

Deno.test("jobs daemon --log json prints each step as a JSON object", async () => {
  await using backend = startBackend([say("done")]);
  await using it = await worktree(backend);
  const child = startSvc(["jobs", "daemon", "--log", "json"], { cwd: it.place.path });
  const rest = await said(child, '"step":"finished"');
  child.kill("SIGTERM");
  const lines = (await rest()).trim().split("\n").map((line) => JSON.parse(line));
  const [begin, started, finished, stopped] = lines;
  assert.match(begin.message, /^scheduler: process \d+ looks every 15 s/);
  assert.deepEqual([started.event, started.step, started.job, started.attempt], [
    ...["job", "started", "a", 1],
  ]);
  const { level, step, status, duration, session, cost } = finished;
  assert.deepEqual([level, step, status, cost], ["info", "finished", "verified", null]);
  assert.equal(session, started.session);
  assert.equal(typeof duration, "number");
  assert.equal(stopped.message, "scheduler: stopped");
  await child.stderr.cancel();
  await child.status;
});

Deno.test("a stop of the scheduler during an attempt records it, and the next start continues [4.5]", async () => {
  await using backend = startBackend([hang("half"), say("whole")]);
  await using it = await worktree(backend);
  const child = startSvc(["jobs", "daemon", "--quiet"], { cwd: it.place.path });
  await backend.arrived(1);
  child.kill("SIGTERM");
  const { code, stdout } = await child.output();
  assert.deepEqual([code, new TextDecoder().decode(stdout)], [0, ""]);
  const { status, history } = await it.job();
  assert.deepEqual([status, history.length, history[0].reason], ["failed", 1, "interrupted"]);
  const next = startSvc(["jobs", "daemon"], { cwd: it.place.path });
  const rest = await said(next, "a: ended ok");
  next.kill("SIGTERM");
  assert.match(await rest(), /a: attempt 2 in session/);
  await next.stderr.cancel();
  await next.status;
});

Deno.test("jobs daemon --detach runs in the background, logs, has a status, can be stopped, and restarts after a kill [4.5]", async () => {
  await using backend = startBackend([say("done"), hang("half"), say("whole")]);
  await using it = await worktree(backend, { "jobs.grace": 10 });
  const { code, stderr, stdout } = await it.jobs("daemon", "--detach", "--tick", "1");
  assert.deepEqual([code, stdout], [0, ""], stderr);
  const [, pid] = /^The scheduler runs as process (\d+) and logs to \S+\.svc\/logs\/jobs\.log$/m
    .exec(stderr)!;
  try {
    const state = await it.status();
    assert.deepEqual([state.pid, state.detached, state.tick], [Number(pid), true, 1]);
    assert.equal((await it.jobs("daemon", "--detach")).code, 2);
    await backend.arrived(1);
    const stopped = await it.jobs("daemon", "stop");
    assert.deepEqual([stopped.code, stopped.stdout], [0, ""], stopped.stderr);
    assert.match(stopped.stderr, new RegExp(`process ${pid}, has stopped`));
    assert.equal((await it.jobs("daemon", "status")).code, 1);
    const log = await it.place.read(".svc/logs/jobs.log");
    assert.match(log, /a: ended ok, not checked in[^]*scheduler: stopped\n$/);
    assert.equal((await it.job()).status, "verified");
    assert.match((await it.jobs("daemon", "stop")).stderr, /No scheduler runs/);

    // Killed during an attempt.
    const text = await it.place.read(".svc/jobs.json");
    await it.place.write(
      ".svc/jobs.json",
      text.replace(/"next_run_at": "[^"]*"/, '"next_run_at": "2026-01-01T00:00:00Z"'),
    );
    await it.jobs("daemon", "--detach", "--tick", "1");
    await backend.arrived(2);
    Deno.kill((await it.status()).pid, "SIGKILL");
    await poll(it.status, (status) => status === null);
    assert.equal((await it.job()).status, "executing");
    await it.jobs("daemon", "--detach", "--tick", "1");
    await backend.arrived(3);
    assert.equal((await it.jobs("daemon", "stop")).code, 0);
    const { status, history } = await it.job();
    assert.equal(status, "verified");
    assert.deepEqual(
      history.map(({ attempt, reason }: { attempt: number; reason: string }) => [attempt, reason]),
      [[1, ""], [1, "interrupted"], [2, ""]],
    );
  } finally {
    await it.jobs("daemon", "stop");
  }
});

Deno.test("a scheduler revokes unused permissions, and a job that needs one later fails with a hint", async () => {
  await using backend = startBackend([say("done"), say("never")]);
  await using it = await worktree(backend, {
    plugins: [],
    tool_permission: { vcs: "deny", bash: "deny", dev: "deny", mcp: "deny" },
  });
  await it.place.write(
    ".svc/plugins/recorder/manifest.json",
    '{ "name": "recorder", "entry": "p.js" }',
  );
  const plugin = RECORDER.replace(
    "report: (payload) => write(payload),",
    `report: () =>
    write({ run: Deno.permissions.querySync({ name: "run" }).state }),`,
  );
  await it.place.write(".svc/plugins/recorder/p.js", plugin);
  const child = startSvc(["jobs", "daemon", "--tick", "1"], { cwd: it.place.path });
  const rest = await said(child, "a: ended ok");
  await it.place.write(
    ".svc/config.json",
    (await it.place.read(".svc/config.json")).replace('"bash":"deny"', '"bash":"allow"'),
  );
  const text = await it.place.read(".svc/jobs.json");
  await it.place.write(
    ".svc/jobs.json",
    text.replace(/"next_run_at": "[^"]*"/, '"next_run_at": "2026-01-01T00:00:00Z"'),
  );
  await poll(it.job, ({ status }) => status === "failed");
  child.kill("SIGTERM");
  assert.match(await rest(), /a: failed .*may use programs now \(run\)/);
  await child.stderr.cancel();
  await child.status;
  const told = (await it.place.read("told.jsonl")).trim().split("\n").map((line) =>
    JSON.parse(line)
  );
  assert.deepEqual(told.filter(({ run }) => run).map(({ run }) => run), ["prompt", "prompt"]);
});

Deno.test("a finished job run is sent to the webhook, and a webhook that rejects it does not fail the run [2.11, 3.1, 6.1]", async () => {
  await using backend = startBackend([say("done"), say("again")]);
  const got: { event: string; job: string; content: string }[] = [];
  const hook = Deno.serve({ port: 0, onListen: () => {} }, async (request) => {
    got.push(await request.json());
    return new Response(null, { status: got.length === 1 ? 200 : 410 });
  });
  const { port } = hook.addr as Deno.NetAddr;
  await using it = await worktree(backend, { "report.webhook": `http://127.0.0.1:${port}/` });
  const { code, stderr } = await it.jobs("run", "a");
  assert.deepEqual([code, stderr.includes("warning")], [0, false], stderr);
  assert.deepEqual(got.map(({ event, job, content }) => [event, job, content]), [
    ["job.run.completed", "a", "done"],
  ]);
  const again = await it.jobs("run", "a");
  assert.equal(again.code, 0);
  assert.match(again.stderr, /A report of the job a was not taken: the webhook at \S+ answers 410/);
  assert.equal((await it.job()).status, "verified");
  await hook.shutdown();
});

Deno.test("a webhook that hangs does not delay a stop, and gets the report at the next start", async () => {
  for (const [command, signal] of [["run", "SIGINT"], ["daemon", "SIGTERM"]] as const) {
    await using backend = startBackend([say("done")]);
    const got: { job: string; status: string; session: string }[] = [];
    const arrivals = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const release = Promise.withResolvers<Response>();
    const hook = Deno.serve({ port: 0, onListen: () => {} }, async (request) => {
      got.push(await request.json());
      arrivals[got.length - 1]?.resolve();
      return got.length <= 2 ? await release.promise : new Response();
    });
    const url = `http://127.0.0.1:${(hook.addr as Deno.NetAddr).port}/`;
    await using it = await worktree(backend, { "report.webhook": url });
    for (const [n, arrived] of arrivals.entries()) {
      const byHand = n === 0 && command === "run";
      const args = byHand ? ["jobs", "run", "a"] : ["jobs", "daemon"];
      const child = startSvc(args, { cwd: it.place.path });
      const output = Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      await arrived.promise;
      child.kill(signal);
      const { code } = await child.status;
      const [stdout, stderr] = await output;
      assert.equal(code, 0, stderr);
      assert.match(
        stdout + stderr,
        /A report of the job a was not taken before the stop; it is left to the next start/,
      );
      if (n === 0) assert.match(stdout, byHand ? /^done\nsummary: ended ok/ : /a: ended ok/);
      assert.equal(got.length, n + 1);
      const left = await it.job();
      assert.deepEqual([left.status, left.running?.phase], ["verified", "report"]);
    }
    release.resolve(new Response());
    const next = startSvc(["jobs", "daemon"], { cwd: it.place.path });
    const rest = await said(next, "looks every");
    await poll(it.job, ({ running }) => running === undefined);
    next.kill("SIGTERM");
    await rest();
    await next.stderr.cancel();
    await next.status;
    assert.deepEqual(got.map(({ job, status }) => [job, status]), Array(3).fill(["a", "verified"]));
    assert.equal(new Set(got.map(({ session }) => session)).size, 1);
    await hook.shutdown();
  }
});

const UNIT = fileURLToPath(new URL("../../docs/svc-jobs@.service", import.meta.url));

/** Whether systemd is available to check units. */
async function hasSystemd(): Promise<boolean> {
  try {
    return (await new Deno.Command("systemd-analyze", { args: ["--version"] }).output()).success;
  } catch {
    return false;
  }
}

Deno.test({
  name: "the systemd unit of the documentation is one that systemd understands",
  ...needs("systemd-analyze is missing", await hasSystemd()),
  async fn() {
    await using place = await project();
    // systemd checks that the program exists, which is not installed here.
    const text = Deno.readTextFileSync(UNIT);
    await place.write("svc-jobs@tmp.service", text.replace("%h/.local/bin/svc", "/bin/sh"));
    const { code, stderr } = await new Deno.Command("systemd-analyze", {
      args: ["verify", `${place.path}/svc-jobs@tmp.service`],
    }).output();
    assert.deepEqual([code, new TextDecoder().decode(stderr)], [0, ""]);
  },
});
