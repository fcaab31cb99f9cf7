import assert from "node:assert/strict";
import { inProcess } from "../support/io.ts";
import { project } from "../support/project.ts";

Deno.test("sessions preview shows turns, kinds of parts, tools, parent and sub-sessions, and - for what is empty [4.7]", async () => {
  const timestamp = "2026-01-02T03:04:05.000Z";
  const tool = { type: "tool", name: "grep", input: {}, output: "a", is_error: false, timestamp };
  const session = (name: string, more: object) => ({
    [`.svc/sessions/${name}.json`]: JSON.stringify({
      ...{ session_name: name, session_id: "", created_at: timestamp, updated_at: timestamp },
      ...{ parent_id: "", role: "", version: "0.1.0", sub_sessions: [], errors: [] },
      ...{ permissions: [], turns: [], ...more },
    }),
  });
  const turn = {
    ...{ index: 1, started_at: timestamp, ended_at: timestamp, status: "ok", model: "m" },
    ...{ provider: "p", mode: "build", reasoning: "auto" },
    parts: [{ type: "user", text: "look around", timestamp }, tool, tool],
  };
  await using place = await project({
    ...session("one", { parent_id: "above", sub_sessions: ["sub_a", "sub_b"], turns: [turn] }),
    ...session("none", {}),
  });
  const preview = async (name: string) =>
    (await inProcess(["sessions", "preview", name], { cwd: place.path })).stdout;
  const page = await preview("one");
  for (const line of ["turns: 1", "parts: user 1, tool 2", "tools: grep 2", "parent: above"]) {
    assert.ok(page.includes(`\n${line}\n`), page);
  }
  assert.match(page, /^sub-sessions: sub_a, sub_b\nbegins: look around$/m);
  assert.match(await preview("none"), /^tools: -\nrole: -\nparent: -\nsub-sessions: -$/m);
});

Deno.test("sessions list takes a prefix and a time, and says how many there are [4.7]", async () => {
  await using place = await project({
    ".svc/sessions/job_a.json": "{}",
    ".svc/sessions/job_b.json": "{}",
    ".svc/sessions/ses_c.json": "{}",
  });
  const old = new Date(Date.now() - 7_200_000);
  await Deno.utime(`${place.path}/.svc/sessions/job_a.json`, old, old);
  const list = async (...args: string[]) => {
    const all = ["sessions", "list", ...args, "--output", "json"];
    const { stdout } = await inProcess(all, { cwd: place.path });
    return JSON.parse(stdout).map(({ name }: { name: string }) => name).sort();
  };
  assert.deepEqual(await list("--prefix", "job_"), ["job_a", "job_b"]);
  assert.deepEqual(await list("--since", "1h"), ["job_b", "ses_c"]);
  assert.deepEqual(await list("all", "--since", "1h", "--prefix", "job_"), ["job_b"]);
  const few = await inProcess(["sessions", "list", "1", "--prefix", "job_"], { cwd: place.path });
  assert.match(few.stderr, /1 of 2/);
});
