import assert from "node:assert/strict";
import { createJob } from "../../src/jobs/create.ts";
import { jobContext } from "../../src/jobs/context.ts";
import { hang, say } from "../support/backend.ts";
import { until } from "../support/processes.ts";
import { server } from "./support.ts";

Deno.test("an operator lists, approves, rejects, enables, disables and runs jobs [4.1]", async () => {
  await using at = await server([say("reported")], { files: { ".svc/config.json": "{}" } });
  await at.project.write(
    ".svc/config.json",
    JSON.stringify({ base_url: at.backend.url, model: "test", memory_enabled: false }),
  );
  const context = jobContext(at.workspace);
  await createJob(context, {
    name: "nightly",
    schedule: { interval: 3600 },
    prompt: "report",
  });
  const { body } = await at.get("/jobs");
  assert.deepEqual([body.jobs.length, body.jobs[0].name, body.jobs[0].status], [
    1,
    "nightly",
    "proposed",
  ]);
  const steps: [trigger: string, status: string, enabled: boolean][] = [
    ["approve", "approved", true],
    ["disable", "approved", false],
    ["enable", "approved", true],
    ["reject", "proposed", false],
  ];
  for (const [trigger, status, enabled] of steps) {
    const { body } = await at.post(`/jobs/nightly/${trigger}`, "");
    assert.deepEqual([body.job.status, body.job.enabled], [status, enabled], trigger);
  }
  const refused = await at.post("/jobs/nightly/run", "");
  assert.deepEqual([refused.status, refused.body], [409, {
    error: "The job nightly is disabled.",
  }]);
  await at.post("/jobs/nightly/enable", "");
  assert.equal((await at.post("/jobs/nightly/run", "")).body.job.status, "executing");
  await until(async () => (await at.get("/jobs/nightly")).body.job.status === "verified");
  const { history } = (await at.get("/jobs/nightly")).body;
  assert.deepEqual([history.length, history[0].status, history[0].content], [
    1,
    "verified",
    "reported",
  ]);
  for (const path of ["/jobs/none/run", "/jobs/none/approve", "/jobs/%2e%2e%2fx/run"]) {
    assert.equal((await at.post(path, "")).status, 404, path);
  }
  assert.equal((await at.get("/jobs/none")).status, 404);
});

Deno.test("on a server that has a token, changing a job needs it, and reading one does not", async () => {
  const token = "0123456789abcdef0123";
  const files = { ".svc/config.json": '{"provider": "demo", "model": "demo"}' };
  await using at = await server([], { token, files });
  const schedule = { interval: 3600 };
  await createJob(jobContext(at.workspace), { name: "nightly", schedule, prompt: "report" });
  for (const trigger of ["approve", "reject", "enable", "disable", "run"]) {
    const { status, body } = await at.post(`/jobs/nightly/${trigger}`, "");
    assert.deepEqual([status, body], [401, { error: "a valid token is required" }], trigger);
  }
  assert.equal((await at.get("/jobs/nightly")).body.job.status, "proposed");
  const headers = { authorization: `Bearer ${token}` };
  const approved = await at.post("/jobs/nightly/approve", "", { headers });
  assert.equal(approved.body.job.status, "approved");
});

Deno.test("a server that stops ends its job runs, and their history records it", async () => {
  const at = await server([hang("half")], { files: { ".svc/config.json": "{}" } });
  await using _ = at.project;
  await using __ = at.home;
  await using ___ = at.backend;
  await at.project.write(
    ".svc/config.json",
    JSON.stringify({ base_url: at.backend.url, model: "test", memory_enabled: false }),
  );
  const context = jobContext(at.workspace);
  const schedule = { interval: 3600 };
  await createJob(context, { name: "long", schedule, prompt: "p", retries: 0 });
  await at.post("/jobs/long/run", "");
  await at.backend.arrived(1);
  await at.http.stop();
  const { status, reason } = context.register.history("long")[0]!;
  assert.deepEqual([status, reason], ["failed", "interrupted"]);
});
