import assert from "node:assert/strict";
import { join } from "node:path";
import { JobRegister } from "../../src/jobs/register.ts";
import { jobRow } from "../../src/jobs/register_rows.ts";
import type { HistoryEntry } from "../../src/jobs/schema.ts";
import { manualClock } from "../support/clock.ts";
import { type Project, project } from "../support/project.ts";
import { aJob } from "./support.ts";

function open(place: Project) {
  const warnings: string[] = [];
  const warn = (message: string) => void warnings.push(message);
  return { warnings, register: new JobRegister({ state: place.path, clock: manualClock(), warn }) };
}

const attempt = (n: number): HistoryEntry => ({
  started_at: "2026-01-02T03:04:05.000Z",
  finished_at: "2026-01-02T03:04:06.000Z",
  status: "verified",
  reason: "",
  duration: 1,
  session: `s${n}`,
  attempt: 1,
  content: `"quoted" \\ {[}] ${n}`,
});

Deno.test("jobs are added, changed and removed, and the file stays one JSON object with jobs [2.6]", async () => {
  await using place = await project();
  const { register } = open(place);
  for (const name of ["a", "b", "c"]) await register.add(aJob({ name }));
  await register.change("b", () => ({ set: { status: "failed" }, append: attempt(1) }));
  const disk = JSON.parse(await place.read("jobs.json"));
  assert.deepEqual(Object.keys(disk), ["jobs"]);
  assert.deepEqual(disk.jobs.map((job: { name: string }) => job.name), ["a", "b", "c"]);
  assert.deepEqual(disk.jobs[1].history, [attempt(1)]);
  assert.deepEqual(register.history("b"), [attempt(1)]);
  assert.deepEqual([await register.remove("a"), await register.remove("a")], [true, false]);
  await register.remove("c");
  assert.deepEqual(register.list().map(({ name, status }) => [name, status]), [["b", "failed"]]);
  await register.remove("b");
  assert.deepEqual(JSON.parse(await place.read("jobs.json")), { jobs: [] });
  await register.add(aJob({ name: "again" }));
  assert.deepEqual(register.list().map(({ name }) => name), ["again"]);
});

Deno.test("missing fields of a job have defaults, and keys of older files are read [2.6, 8, 9]", async () => {
  await using place = await project({
    "jobs.json": JSON.stringify({
      jobs: [{
        name: "old",
        schedule: { cron: "* * * * *", at: null },
        type: "writer",
        mode: null,
      }],
    }),
  });
  const { register, warnings } = open(place);
  assert.deepEqual(register.list(), [{
    name: "old",
    schedule: { cron: "* * * * *" },
    prompt: "",
    session: "",
    mode: "",
    role: "writer",
    system_prompt: "",
    provider: "",
    model: "",
    tools_deny: [],
    tool_permission: {},
    retries: 3,
    backoff: 60,
    require_approval: false,
    approval_pending: false,
    approve_model: false,
    enabled: true,
    status: "proposed",
    created_at: "",
    next_run_at: "",
    last_run_at: "",
  }]);
  assert.deepEqual(warnings, []);
});

Deno.test("an interval under 60 seconds is kept in the file, counts as 60 and is said once [8]", async () => {
  const given = { name: "quick", schedule: { interval: 10 }, backoff: 1.5 };
  await using place = await project({ "jobs.json": JSON.stringify({ jobs: [given] }) });
  const { register, warnings } = open(place);
  assert.deepEqual(register.list().map(({ schedule, backoff }) => [schedule, backoff]), [
    [{ interval: 60 }, 2],
  ]);
  await register.change("quick", () => ({ set: { status: "approved" } }));
  assert.equal(register.get("quick")!.schedule.interval, 60);
  const [{ schedule, backoff, status }] = JSON.parse(await place.read("jobs.json")).jobs;
  assert.deepEqual([schedule, backoff, status], [{ interval: 10 }, 1.5, "approved"]);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /interval under 60 seconds, which counts as 60 \(quick\)/);
});

Deno.test("a change of a job keeps unknown keys and the bytes of all other entries [2.6]", async () => {
  const before = `{ "note": "mine",\n"jobs": [ {"name":"a" , "schedule":{"interval":60}, "x":[1, 2],
    "history":[  ] , "later":true},{ "name": "broken", "history": [{"odd": 1}] }, 7 ],\t"more": {} }`;
  await using place = await project({ "jobs.json": before });
  const { register, warnings } = open(place);
  await register.change("a", () => ({ set: { status: "approved" } }));
  const after = await place.read("jobs.json");
  const tail = before.slice(before.indexOf(',{ "name": "broken"'));
  assert.ok(after.startsWith('{ "note": "mine",\n"jobs": [ {'));
  assert.ok(after.endsWith(tail));
  const [job] = JSON.parse(after).jobs;
  assert.deepEqual([job.x, job.later, job.status, job.history], [[1, 2], true, "approved", []]);
  assert.equal(warnings.length, 2);
  assert.match(warnings[0]!, /left out \(broken\)/);
  assert.match(warnings[1]!, /entry 3.*no JSON object/);
});

Deno.test("each broken entry is warned about once and kept, and the others work", async () => {
  const good = { name: "good", schedule: { interval: 60 } };
  const broken = [
    { ...good, name: "../up" },
    { ...good, name: "cron", schedule: { cron: "61 * * * *" } },
    { ...good, name: "two", schedule: { interval: 60, at: "2026-01-01" } },
    { ...good, name: "status", status: "sleeping" },
    { ...good, name: "next", next_run_at: "soon" },
    good,
  ];
  await using place = await project({ "jobs.json": JSON.stringify({ jobs: [good, ...broken] }) });
  const { register, warnings } = open(place);
  assert.deepEqual(register.list().map(({ name }) => name), ["good"]);
  await register.change("good", () => ({ set: { status: "approved" } }));
  assert.equal(register.list().length, 1);
  assert.equal(warnings.length, broken.length);
  assert.match(warnings[1]!, /left out \(cron\): schedule .*field minute/);
  assert.deepEqual(JSON.parse(await place.read("jobs.json")).jobs.slice(1), broken);
  await assert.rejects(register.add(aJob({ name: "cron" })), { code: "duplicate_job" });
});

Deno.test("a corrupt jobs.json is read as empty, and renamed when a job is added [2.6, 7.6]", async () => {
  for (
    const text of [
      "",
      "{",
      "[]",
      '{"jobs": {}}',
      '{"jobs": [}',
      '{"jobs": []} x',
      '{"jobs": [], nonsense}',
    ]
  ) {
    await using place = await project({ "jobs.json": text });
    const { register, warnings } = open(place);
    assert.deepEqual(register.list(), []);
    assert.equal(await register.change("a", () => ({ set: {} })), undefined);
    assert.equal(await register.remove("a"), false);
    assert.equal(await place.read("jobs.json"), text);
    assert.match(warnings.join(), /is corrupt/);
    await register.add(aJob({ name: "a" }));
    const kept = [...Deno.readDirSync(place.path)].find(({ name }) => name.includes(".broken-"))!;
    assert.equal(await place.read(kept.name), text);
    assert.deepEqual(register.list().map(({ name }) => name), ["a"]);
  }
});

Deno.test("a change applies to the current entry on disk, and removed jobs stay removed", async () => {
  await using place = await project();
  const { register } = open(place);
  await register.add(aJob({ name: "a" }));
  await register.add(aJob({ name: "b" }));
  assert.equal(register.get("a")!.retries, 3);
  const edited = JSON.parse(await place.read("jobs.json"));
  edited.jobs[0].retries = 9;
  edited.jobs[0].comment = "by hand";
  edited.jobs.pop();
  await place.write("jobs.json", JSON.stringify(edited));
  const other = open(place).register;
  await other.change("a", () => ({ set: { prompt: "from elsewhere" } }));
  const job = await register.change("a", (job) => ({ set: { backoff: job.retries } }));
  assert.deepEqual([job!.retries, job!.backoff, job!.prompt], [9, 9, "from elsewhere"]);
  assert.equal(JSON.parse(await place.read("jobs.json")).jobs[0].comment, "by hand");
  assert.equal(await register.change("b", () => ({ set: { retries: 1 } })), undefined);
  assert.equal(register.list().length, 1);
});

Deno.test("the newest 100 attempts of a job are kept, in order [2.6, 8]", async () => {
  await using place = await project();
  const { register } = open(place);
  await register.add(aJob({ name: "a" }));
  for (let n = 1; n <= 103; n++) await register.change("a", () => ({ append: attempt(n) }));
  const sessions = register.history("a").map(({ session }) => session);
  assert.deepEqual([sessions.length, sessions[0], sessions.at(-1)], [100, "s4", "s103"]);
});

Deno.test("a history that is no JSON array is saved next to the register before a new one begins", async () => {
  for (const history of ["[oops]", '{"a":1}', '"text"', "7"]) {
    await using place = await project({
      "jobs.json": `{"jobs": [{"name": "a", "schedule": {"interval": 60}, "history": ${history}}]}`,
    });
    const { register, warnings } = open(place);
    assert.deepEqual(register.history("a"), []);
    await register.change("a", () => ({ set: { prompt: "other" } }));
    await register.change("a", () => ({ append: attempt(1) }));
    assert.deepEqual(register.history("a"), [attempt(1)]);
    const kept = [...Deno.readDirSync(place.path)].find(({ name }) => name.includes(".broken-"))!;
    assert.equal(await place.read(kept.name), history);
    assert.equal(warnings.length, 2);
  }
});

Deno.test("a register with the same inode, size and time is not read again", async () => {
  await using place = await project();
  const { register } = open(place);
  await register.add(aJob({ name: "a" }));
  await register.change("a", () => ({ append: attempt(1) }));
  const [path, text] = [join(place.path, "jobs.json"), await place.read("jobs.json")];
  const [job] = register.list();
  const { atime, mtime } = await Deno.stat(path);
  await place.write("jobs.json", text.replace('"name": "a"', '"name": "z"')); // the same file and size
  await Deno.utime(path, atime!, mtime!);
  assert.equal(register.list()[0], job);
  await Deno.utime(path, atime!, new Date(mtime!.getTime() + 1000));
  assert.equal(register.list()[0]!.name, "z");
});

Deno.test("changes of two processes to different jobs are both kept [2.6]", async () => {
  await using place = await project();
  const [one, other] = [open(place).register, open(place).register];
  for (const name of ["a", "b"]) await one.add(aJob({ name }));
  await Promise.all(Array.from({ length: 20 }, (_, n) => {
    const [register, name] = n % 2 === 0 ? [one, "a"] : [other, "b"];
    return register.change(name, ({ retries }) => ({ set: { retries: retries + 1 } }));
  }));
  assert.deepEqual(one.list().map(({ retries }) => retries), [13, 13]);
});

Deno.test("the newest attempts of long histories are found without reading the others", async () => {
  await using place = await project();
  const start = Date.parse("2026-01-02T00:00:00.000Z");
  const hourly = (n: number): HistoryEntry => ({
    ...attempt(n),
    finished_at: new Date(start + n * 3_600_000).toISOString(),
    content: "x".repeat(1000),
  });
  const { register } = open(place);
  await register.add(aJob({ name: "long" }), Array.from({ length: 100 }, (_, n) => hourly(n)));
  await register.add(aJob({ name: "short" }), [hourly(0)]);
  const all = register.history("long");
  const { seekSync } = Deno.FsFile.prototype;
  const reads: number[] = [];
  const counted = (since: number) => {
    reads.length = 0;
    Deno.FsFile.prototype.seekSync = function (offset, whence) {
      reads.push(Number(offset));
      return seekSync.call(this, offset, whence);
    };
    try {
      return register.histories({ since: start + since * 3_600_000 });
    } finally {
      Deno.FsFile.prototype.seekSync = seekSync;
    }
  };
  assert.deepEqual(counted(98).get("long"), all.slice(98));
  assert.equal(reads.length, 2);
  assert.deepEqual(counted(200).get("long"), all.slice(-1));
  assert.deepEqual(counted(200).get("short"), [hourly(0)]);
  assert.deepEqual(counted(10).get("long"), all.slice(10));
  // A file that another program has formatted.
  await place.write(
    "jobs.json",
    JSON.stringify(JSON.parse(await place.read("jobs.json")), null, 2),
  );
  assert.deepEqual(register.histories({ since: start + 97 * 3_600_000 }).get("long"), all);
});

Deno.test("a large register is read and changed in pieces, between which other work gets its turn", async () => {
  await using place = await project();
  const long = { ...attempt(1), content: "x".repeat(1e6) };
  const jobs = ["a", "b", "c", "d", "e"].map((name) => ({
    ...aJob({ name }),
    history: [long],
  }));
  await place.write("jobs.json", JSON.stringify({ jobs }));
  const { register } = open(place);
  const turnsOf = async (work: Promise<unknown>) => {
    let turns = 0;
    let ended = false;
    work.finally(() => ended = true);
    while (!ended) {
      await new Promise((resume) => setImmediate(resume));
      turns++;
    }
    await work;
    return turns;
  };
  const { syncSync } = Deno.FsFile.prototype;
  Deno.FsFile.prototype.syncSync = () => assert.fail("the event loop waits for the disk");
  try {
    assert.ok(await turnsOf(Promise.all([register.refresh(), register.refresh()])) > 5);
    assert.deepEqual(register.list().map(({ name }) => name), ["a", "b", "c", "d", "e"]);
    const change = register.change("c", () => ({ set: { enabled: false }, append: attempt(2) }));
    assert.ok(await turnsOf(change) > 5);
  } finally {
    Deno.FsFile.prototype.syncSync = syncSync;
  }
  assert.deepEqual(register.history("c"), [long, attempt(2)]);
  const after = JSON.parse(await place.read("jobs.json")).jobs;
  assert.deepEqual(after.map((job: { enabled: boolean }) => job.enabled), [
    true,
    true,
    false,
    true,
    true,
  ]);
  assert.deepEqual(after[4].history, [long]);
});

Deno.test("the row of a job with an invalid name has no file of another folder as its task", async () => {
  await using place = await project({ "notes.md": "private", ".svc/jobs/a.md": "Sweep." });
  const task = (name: string) =>
    (jobRow({ name }, join(place.path, ".svc")).value as { task_text?: string }).task_text;
  assert.equal(task("a"), "Sweep.");
  assert.equal(task("../../notes"), undefined);
});
