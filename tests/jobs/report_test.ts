import assert from "node:assert/strict";
import { Workspace } from "../../src/engine/workspace.ts";
import { reportRun, sendJobEvent, type Services } from "../../src/jobs/report.ts";
import { type Clock, systemClock } from "../../src/platform/clock.ts";
import type { JobReport, ReportService } from "../../src/plugins/api.ts";
import { manualClock } from "../support/clock.ts";
import { project } from "../support/project.ts";
import { trusting } from "../support/trust.ts";

const PAYLOAD: JobReport = {
  event: "job.run.completed",
  job: "a",
  status: "verified",
  outcome: "ended ok, not checked",
  duration: 1,
  reason: "",
  session: "s",
  started_at: "2026-01-02T03:04:05.000Z",
  finished_at: "2026-01-02T03:04:06.000Z",
  content: "done",
  checked: false,
  denied: [],
  worktree: "/w",
  memory: "",
  usage: {},
  cost: null,
  parked_asks: [],
};

async function withServices(
  report: ReportService[],
  test: (services: Services, warnings: string[]) => Promise<void>,
  clock: Clock = systemClock,
) {
  await using place = await project();
  const warnings: string[] = [];
  const workspace = Workspace.open({
    path: place.path,
    environment: { home: place.path, cwd: place.path, get: trusting },
    clock,
    warn: (message) => warnings.push(message),
    overrides: { "report.webhook": "http://127.0.0.1:1/hook" },
  });
  await test({ report, workspace }, warnings);
}

Deno.test("every report service gets its own copy of the report, and the configuration [1, 2.11, 4.9, 6.1]", async () => {
  const got: unknown[] = [];
  const service: ReportService = {
    report(payload, config) {
      got.push(structuredClone(payload), config.get("report.webhook"));
      payload.status = "failed";
    },
  };
  await withServices([service, service], async (services) => {
    await reportRun(services, PAYLOAD);
    const hook = "http://127.0.0.1:1/hook";
    assert.deepEqual(got, [PAYLOAD, hook, PAYLOAD, hook]);
  });
});

Deno.test("a report service that throws, rejects or hangs is warned about and does not affect others [6.1]", async () => {
  let reported = 0;
  const good: ReportService = { report: () => void reported++, job_event: () => void reported++ };
  const bad: ReportService[] = [
    {
      report: () => {
        throw new Error("no network");
      },
      job_event: () => {
        throw new Error("no network");
      },
    },
    {
      report: () => Promise.reject(new Error("no network")),
      job_event: () => Promise.reject(new Error("no network")),
    },
  ];
  await withServices([...bad, good], async (services, warnings) => {
    await reportRun(services, PAYLOAD);
    await sendJobEvent(services, { event: "job.verified", job: "a" }, manualClock());
    assert.equal(reported, 2);
    assert.equal(warnings.length, 4);
    assert.match(warnings[0]!, /A report of the job a was not taken: no network/);
    assert.match(warnings[3]!, /The event job\.verified of the job a was not taken: no network/);
  });
  const hanging = { report: () => new Promise(() => {}), job_event: () => new Promise(() => {}) };
  await withServices([hanging], async (services, warnings) => {
    await reportRun(services, PAYLOAD);
    await sendJobEvent(services, { event: "job.verified", job: "a" }, manualClock());
    assert.match(warnings[0]!, /longer than 30 seconds/);
    assert.match(warnings[1]!, /longer than 10 seconds/);
  }, manualClock());
});

Deno.test("job events go to the services with job_event [6.1]", async () => {
  const got: unknown[] = [];
  const taker: ReportService = { report() {}, job_event: (event) => void got.push(event) };
  await withServices([{ report() {} }, taker], async (services) => {
    await sendJobEvent(services, { event: "job.timeout", job: "a", attempt: 2 }, manualClock());
    assert.deepEqual(got, [{
      event: "job.timeout",
      job: "a",
      timestamp: "2026-01-02T03:04:05.000Z",
      worktree: services.workspace.paths.worktree,
      session: "",
      attempt: 2,
      reason: "",
    }]);
  });
});

Deno.test("after a stop a report has two more seconds, then it is left with a warning", async () => {
  const clock = manualClock();
  const stop = new AbortController();
  const sleeps: number[] = [];
  const waiting: Clock = {
    ...clock,
    sleep: (ms, signal) => {
      sleeps.push(ms);
      return ms < 30_000 ? clock.sleep(ms, signal) : new Promise(() => {});
    },
  };
  let taken = 0;
  const good: ReportService = { report: () => void taken++ };
  const hanging: ReportService = {
    report: () => {
      setTimeout(() => stop.abort(), 0);
      return new Promise(() => {});
    },
  };
  await withServices([good, hanging], async (services, warnings) => {
    assert.equal(await reportRun(services, PAYLOAD, stop.signal), false);
    assert.deepEqual([taken, warnings], [1, [
      "A report of the job a was not taken before the stop; it is left to the next start",
    ]]);
    assert.deepEqual(sleeps, [30_000, 30_000, 2000]);
  }, waiting);
  await withServices([good], async (services, warnings) => {
    assert.equal(await reportRun(services, PAYLOAD, stop.signal), true);
    assert.deepEqual([taken, warnings], [2, []]);
  }, waiting);
});
