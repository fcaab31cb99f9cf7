import assert from "node:assert/strict";
import type { JobContext } from "../../src/jobs/context.ts";
import { lockDaemon, runningDaemon } from "../../src/jobs/daemon.ts";
import { JobRegister } from "../../src/jobs/register.ts";
import { runDaemon } from "../../src/jobs/scheduler.ts";
import type { HistoryEntry } from "../../src/jobs/schema.ts";
import { moveGate } from "../../src/jobs/transitions.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { hang, httpError, say } from "../support/backend.ts";
import { project } from "../support/project.ts";
import { frozen, mounts } from "../support/tiny_disk.ts";
import { aJob, jobs, START, type TestJobs } from "./support.ts";

const MINUTE = 60_000;

/** A scheduler with one tick a minute, on a clock that the test moves. */
function start(
  place: TestJobs,
  { concurrency = 1, grace = 0, more = {} as Partial<JobContext> } = {},
) {
  const stop = new AbortController();
  const steps: string[] = [];
  let waiting: (() => void)[] = [];
  const wake = () => {
    const woken = waiting;
    waiting = [];
    for (const each of woken) each();
  };
  /** Resolves once the condition holds; it is checked after each change. */
  const until = async (so: () => unknown) => {
    while (!so()) await new Promise<void>((again) => void waiting.push(again));
  };
  let asleep: (() => void) | undefined;
  const clock = {
    now: place.clock.now,
    sleep(ms: number, signal?: AbortSignal) {
      // The grace period of a test does not end; other waits are short.
      if (signal !== stop.signal) {
        return systemClock.sleep(ms === grace * 1000 ? ms : Math.min(ms, 5), signal);
      }
      return new Promise<void>((resolve) => {
        asleep = () => {
          asleep = undefined;
          resolve();
        };
        signal.addEventListener("abort", () => asleep?.());
        if (signal.aborted) asleep();
        wake();
      });
    },
  };
  const daemon = runDaemon({
    context: { ...place.context, clock, ...more },
    tick: 60,
    settings: () => ({ concurrency, hold: 0, grace }),
    signal: stop.signal,
    tell(step) {
      steps.push("job" in step ? `${step.job} ${step.step}` : step.step);
      wake();
    },
    beat: () => {},
  });
  return {
    steps,
    saw: (step: string, times = 1) =>
      until(() => steps.filter((each) => each === step).length >= times),
    /** Lets a minute pass, and waits for the scheduler's tick. */
    async minute() {
      await until(() => asleep);
      place.clock.set(place.clock.now() + MINUTE);
      asleep!();
      await until(() => asleep);
    },
    async end() {
      await until(() => asleep);
      stop.abort();
      await daemon;
    },
  };
}

/** The register of another process. */
function another({ context }: TestJobs): JobContext {
  const { state, clock } = context;
  return { ...context, register: new JobRegister({ state, clock, warn: () => {} }) };
}

Deno.test("changes by other processes take effect at the next tick and are kept", async () => {
  await using place = await jobs({ replies: [], default: say("done") });
  await place.add({ name: "a", schedule: { interval: 60 } });
  const daemon = start(place);
  await daemon.saw("a finished");
  const other = another(place);
  await other.register.add(aJob({ name: "b", status: "proposed", schedule: { interval: 60 } }));
  await daemon.minute();
  await daemon.saw("a finished", 2);
  await moveGate(other, "b", "approve");
  await moveGate(other, "a", "disable");
  await daemon.minute();
  await daemon.saw("b finished");
  const text = await place.project.read(".svc/jobs.json");
  const edited = text.replace('"name": "b"', '"name": "b", "note": "by hand"');
  await place.project.write(".svc/jobs.json", edited.replace('"prompt": "go"', '"prompt": "new"'));
  await moveGate(other, "a", "enable");
  await daemon.minute();
  await daemon.saw("b finished", 2);
  await daemon.saw("a finished", 3);
  assert.equal(
    place.backend.chats.filter(({ messages }) => messages.at(-1).content === "new").length,
    1,
  );
  await other.register.remove("a");
  await daemon.minute();
  await daemon.saw("b finished", 3);
  await daemon.end();
  assert.deepEqual(place.disk().jobs.map(({ name, note }) => [name, note]), [["b", "by hand"]]);
  assert.equal(daemon.steps.filter((step) => step === "a finished").length, 3);
  assert.deepEqual(place.warnings, []);
});

Deno.test("a broken register is warned about once, is not modified, and is used again once repaired", async () => {
  await using place = await jobs({ replies: [], default: say("done") });
  await place.add({ name: "a", schedule: { interval: 60 } });
  const daemon = start(place);
  await daemon.saw("a finished");
  for (const times of [1, 2]) {
    const text = await place.project.read(".svc/jobs.json");
    const broken = text.slice(0, -20 - times);
    await place.project.write(".svc/jobs.json", broken);
    await daemon.minute();
    await daemon.minute();
    assert.equal(await place.project.read(".svc/jobs.json"), broken);
    assert.equal(place.warnings.filter((line) => line.includes("is corrupt")).length, times);
    await place.project.write(".svc/jobs.json", text);
    await daemon.minute();
    await daemon.saw("a finished", 1 + times);
  }
  await daemon.end();
  assert.equal(place.backend.chats.length, 3);
});

Deno.test("an attempt that ends while the register is broken is saved once it is repaired", async () => {
  await using place = await jobs([say("the answer")]);
  await place.add({ name: "a" });
  let text = "";
  const show: JobContext["show"] = (event) => {
    if (event.type === "turn_started") {
      text = Deno.readTextFileSync(place.register.path);
      Deno.writeTextFileSync(place.register.path, text.slice(0, 50));
    }
    if (event.type === "turn_finished") {
      setTimeout(() => Deno.writeTextFileSync(place.register.path, text), 30);
    }
  };
  const daemon = start(place, { more: { show } });
  await daemon.saw("a finished");
  await daemon.end();
  const [job] = place.disk().jobs;
  assert.deepEqual([job.status, job.history.length, job.history[0].content], [
    "verified",
    1,
    "the answer",
  ]);
});

Deno.test("attempts that end while the register is not writable are saved later, and not repeated", async () => {
  await using place = await jobs([httpError(500), say("the answer")]);
  await place.add({ name: "a", backoff: 0 });
  // Every change of the register opens this file first.
  const lock = place.register.path.replace("jobs.json", ".jobs.json.lock");
  const show: JobContext["show"] = (event) => {
    if (event.type !== "turn_started") return;
    Deno.removeSync(lock);
    Deno.mkdirSync(lock);
  };
  const warn = (message: string) => {
    place.warnings.push(message);
    Deno.removeSync(lock);
  };
  const daemon = start(place, { more: { show, warn } });
  await daemon.saw("a retry");
  await daemon.minute();
  await daemon.saw("a finished");
  await daemon.end();
  const [job] = place.disk().jobs;
  assert.equal(job.status, "verified");
  assert.deepEqual(
    job.history.map(({ attempt, content }: HistoryEntry) => [attempt, content]),
    [[1, ""], [2, "the answer"]],
  );
  assert.equal(place.backend.chats.length, 2);
  assert.equal(place.warnings.length, 2);
  for (const warning of place.warnings) {
    assert.match(
      warning,
      /^a: .* cannot be written: .*[^.]\. Its end is written down once it can be\.$/,
    );
  }
});

Deno.test("a report that cannot be recorded as sent is not sent again", async () => {
  let lock = "";
  let reports = 0;
  await using hook = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen() {} }, () => {
    reports++;
    Deno.removeSync(lock);
    Deno.mkdirSync(lock);
    return new Response();
  });
  const config = { "report.webhook": `http://127.0.0.1:${hook.addr.port}/` };
  await using place = await jobs([say("the answer")], { config });
  await place.add({ name: "a" });
  lock = place.register.path.replace("jobs.json", ".jobs.json.lock");
  let refused = 0;
  const warn = (message: string) => {
    if (!message.includes(".jobs.json.lock")) return;
    refused++;
    Deno.removeSync(lock);
  };
  const daemon = start(place, { more: { warn } });
  await daemon.saw("a finished");
  await daemon.minute();
  await daemon.end();
  assert.deepEqual([reports, refused], [1, 1]);
  assert.equal(place.disk().jobs[0].running, undefined);
});

Deno.test("a stop cancels attempts after the grace period, and the next start continues the run", async () => {
  await using place = await jobs([hang("half"), say("whole"), say("b done")]);
  await place.add({ name: "a", retries: 1 }, { name: "b" });
  const first = start(place);
  await first.saw("a started");
  await place.backend.arrived(1);
  await first.end();
  assert.deepEqual(first.steps, ["a started", "stopping", "a retry"]);
  const [cut, untouched] = place.disk().jobs;
  assert.deepEqual([cut.status, cut.history[0].reason], ["failed", "interrupted"]);
  assert.deepEqual([untouched.status, untouched.history], ["approved", []]);
  const second = start(place);
  await second.saw("b finished");
  await second.end();
  const [job] = place.disk().jobs;
  assert.deepEqual(
    job.history.map(({ attempt, status }: { attempt: number; status: string }) => [
      attempt,
      status,
    ]),
    [[1, "failed"], [2, "verified"]],
  );
  assert.equal(job.history[0].session, job.history[1].session);
});

Deno.test("an attempt that ends within the grace period is verified, and no other begins", async () => {
  await using place = await jobs([say("slow", { delay_ms: 50 })]);
  await place.add({ name: "a" }, { name: "b" });
  const daemon = start(place, { grace: 3600 });
  await place.backend.arrived(1);
  await daemon.end();
  assert.deepEqual(daemon.steps, ["a started", "stopping", "a finished"]);
  assert.deepEqual(place.disk().jobs.map(({ status }) => status), ["verified", "approved"]);
});

Deno.test("with concurrency, a slow job does not block others", async () => {
  await using place = await jobs({
    replies: [{ ...hang("long"), when: { user: "long" } }],
    default: say("done"),
  });
  await place.add({ name: "a", prompt: "long" }, { name: "b", schedule: { interval: 60 } });
  const daemon = start(place, { concurrency: 2 });
  for (let run = 1; run <= 3; run++) {
    await daemon.saw("b finished", run);
    await daemon.minute();
  }
  assert.equal(place.register.get("a")!.status, "executing");
  await daemon.end();
});

Deno.test("without concurrency, jobs run in the order in which they became due", async () => {
  await using place = await jobs([say("b", { delay_ms: 40 }), say("c"), say("a")]);
  await place.add(
    { name: "a", next_run_at: new Date(START + MINUTE).toISOString() },
    { name: "b" },
    { name: "c" },
  );
  const daemon = start(place);
  await place.backend.arrived(1);
  await daemon.minute();
  await daemon.saw("a finished");
  await daemon.end();
  assert.deepEqual(daemon.steps.filter((step) => step.endsWith("started")), [
    "b started",
    "c started",
    "a started",
  ]);
});

Deno.test("a failed attempt and a run that waits for approval are reported as steps", async () => {
  await using place = await jobs([httpError(500), say("done")]);
  await place.add({ name: "a", retries: 1, backoff: 60 }, { name: "b", require_approval: true });
  const daemon = start(place);
  await daemon.saw("b parked");
  await daemon.minute();
  await daemon.saw("a finished");
  await daemon.end();
  assert.deepEqual(daemon.steps, ["a started", "a retry", "b parked", "a started", "a finished"]);
});

Deno.test("a job that needs a revoked permission fails with a hint", async () => {
  await using place = await jobs([say("never")], { config: { "tool_permission.bash": "allow" } });
  await place.add({ name: "a" });
  const daemon = start(place, { more: { withdrawn: ["run"] } });
  await daemon.saw("a finished");
  await daemon.end();
  const [{ status, history }] = place.disk().jobs;
  assert.deepEqual([status, history.length], ["failed", 1]);
  assert.match(history[0].reason, /may use programs now \(run\).*start it anew/);
  assert.equal(place.backend.chats.length, 0);
});

Deno.test("a worktree has one scheduler, and a second one fails with the process of the first [8]", async () => {
  await using place = await project();
  const at = { state: `${place.path}/.svc`, clock: systemClock };
  assert.equal(runningDaemon(at), undefined);
  const held = await lockDaemon(at);
  const since = "2026-01-02T03:04:05.000Z";
  const said = {
    since,
    tick: 15,
    detached: false,
    last_tick: since,
    next: "",
    healthy: true,
    busy: ["a"],
  };
  held.write(said);
  assert.deepEqual(runningDaemon(at), { ...held.identity, ...said });
  await assert.rejects(lockDaemon(at), {
    code: "scheduler_running",
    exit: 2,
    message:
      `The scheduler of this worktree is running already: process ${Deno.pid}, since ${since}.`,
  });
  held.release();
  assert.equal(runningDaemon(at), undefined);
  (await lockDaemon(at)).release();
  // The status file of a killed scheduler is ignored.
  await place.write(".svc/jobs.daemon.json", JSON.stringify({ ...held.identity, ...said }));
  assert.equal(runningDaemon(at), undefined);
  (await lockDaemon(at)).release();
});

Deno.test("a scheduler releases its lock on a disk that became read-only", mounts, async () => {
  await using place = await project();
  const where = { state: place.path, clock: systemClock };
  const first = await lockDaemon(where);
  const pulse = {
    since: "",
    tick: 1,
    detached: false,
    last_tick: "",
    next: "",
    healthy: true,
    busy: [],
  };
  first.write(pulse);
  assert.equal(runningDaemon(where)?.pid, Deno.pid);
  {
    await using _ = await frozen(place.path);
    first.release();
  }
  assert.equal(runningDaemon(where), undefined);
  (await lockDaemon(where)).release();
});
