import assert from "node:assert/strict";
import { join } from "node:path";
import { jobContext } from "../../src/jobs/context.ts";
import { say, usage } from "../support/backend.ts";
import { formToken, signIn, submit, visit } from "../server/console.ts";
import { server, type TestServer } from "../server/support.ts";
import { until } from "../support/processes.ts";
import { withFleet, world } from "./world.ts";

/** The text of a page, without its markup. */
async function textOf(at: TestServer, path: string, cookie: string): Promise<string> {
  const { status, text } = await visit(at, path, cookie);
  assert.equal(status, 200, path);
  return text.replaceAll(/<(style|script|title)[^]*?<\/\1>|<[^>]+>/g, " ").replaceAll(/\s+/g, " ")
    .replaceAll("&lt;", "<").replaceAll("&#39;", "'").replaceAll("&quot;", '"');
}

Deno.test("Last night has every run since a time with its proof, cost, changes and refusals", async () => {
  await using at = await world();
  const cookie = await signIn(at);
  const text = await textOf(at, "/console/night", cookie);
  assert.match(text, /triage ended ok, not checked [\d.]+ s , cost 0\.\d+ , 7,740 tokens Session/);
  assert.match(text, /2 changed files \+4 −1/);
  assert.match(text, /notes\/triage\.md \+2 −1/);
  assert.match(text, /-- #41 waits for a reporter \+- #41 cannot be repeated/);
  assert.match(text, /1 refused call run_command : the category bash is set to deny/);
  assert.match(text, /mirror failed 2 s .* the backend refuses the key: 401/);
  assert.match(text, /Failing mirror Blocked mirror Waiting for approval audit , changelog/);
  const week = await textOf(at, "/console/night?since=7d", cookie);
  assert.match(week, /nightly-tests verified .* Checked by deno task test/);
  const count = (text: string) => Number(/Runs (\d+)/.exec(text)![1]);
  assert.ok(count(week) > count(text));
  const { text: html } = await visit(at, "/console/night?since=7d&page=2", cookie);
  assert.match(html, /rel="prev"/);
  assert.match(html, /<svg class="drawing time-line"[^>]*role="img" aria-label="\d+ runs, /);
});

Deno.test("Last night has the runs that the server accepted from clients", async () => {
  await using at = await server([say("It is done.", usage(100, 20))]);
  const { body } = await at.post("/runs", { prompt: "Tidy the attic" });
  await until(async () => (await at.get(`/runs/${body.id}`)).body.state === "done");
  const text = await textOf(at, "/console/night", await signIn(at));
  assert.match(text, /Tidy the attic ended ok, not checked .* 120 tokens Session/);
});

Deno.test("the page Jobs has states, next and last runs, charts of the history, and the task file", async () => {
  await using at = await world();
  const cookie = await signIn(at);
  const list = await textOf(at, "/console/jobs", cookie);
  // Those that wait for a person come first, then those that fail.
  const order = ["audit", "changelog", "mirror", "links", "nightly-tests"];
  const places = order.map((name) => list.indexOf(` ${name} `));
  assert.deepEqual(places, places.toSorted((one, other) => one - other));
  assert.match(list, /links approved Schedule every 4 h Next [\d:]+ Last/);
  assert.match(list, /mirror failed blocked/);
  assert.match(await textOf(at, "/console/jobs?q=night", cookie), /All jobs 1 nightly-tests/);
  const { text: html } = await visit(at, "/console/jobs/nightly-tests", cookie);
  assert.match(html, /aria-label="The durations of 28 runs, of which \d+ failed\."/);
  assert.equal(html.match(/<rect [^>]*><title>[^<]* UTC: cost 0\.\d+, /g)!.length, 28);
  const job = await textOf(at, "/console/jobs/triage", cookie);
  assert.match(job, /Task file .*triage\.md # triage ## Task Sort the new issues by what they ask/);
  assert.equal((await visit(at, "/console/jobs/none", cookie)).status, 404);
});

Deno.test("the gates of a job are buttons, for those who may operate it", async () => {
  await using at = await world();
  const cookie = await signIn(at);
  const form_token = await formToken(at, cookie);
  const { register } = jobContext(at.workspace);
  const press = (name: string, gate: string, by = cookie, token = form_token) =>
    submit(at, `/console/jobs/${name}`, by, { form_token: token, gate });
  const buttons = async (by: string) =>
    [...(await visit(at, "/console/jobs/changelog", by)).text.matchAll(
      /name="gate" value="(\w+)"/g,
    )]
      .map(([, gate]) => gate);
  assert.deepEqual(await buttons(cookie), ["approve", "run", "disable", "reject"]);
  const { status, headers } = await press("changelog", "approve");
  assert.deepEqual([status, headers.get("location")], [303, "/console/jobs/changelog"]);
  assert.equal(register.need("changelog").status, "approved");
  assert.deepEqual(await buttons(cookie), ["run", "disable", "reject"]);
  await press("changelog", "disable");
  assert.equal(register.need("changelog").enabled, false);
  assert.equal((await press("changelog", "run")).status, 409);
  await press("changelog", "enable");
  await press("changelog", "run");
  await until(() => register.history("changelog").length === 1);
  await press("changelog", "reject");
  assert.equal(register.need("changelog").status, "proposed");
  assert.equal((await press("changelog", "explode")).status, 400);
  const reader = await signIn(at, "read");
  assert.deepEqual(await buttons(reader), []);
  const other = /name="form_token" value="([^"]+)"/.exec(
    (await visit(at, "/console", reader)).text,
  )![1]!;
  assert.equal((await press("changelog", "approve", reader, other)).status, 403);
  assert.equal(register.need("changelog").status, "proposed");
});

Deno.test("the page Usage has what svc usage says, by day, job and model", async () => {
  await using at = await world();
  const cookie = await signIn(at);
  const { text: html } = await visit(at, "/console/usage", cookie);
  const sum = (await at.get("/usage?since=30d&by=model")).body;
  const number = (value: number) => value.toLocaleString("en");
  const text = await textOf(at, "/console/usage", cookie);
  for (const group of sum.groups) {
    assert.ok(text.includes(`${group.name} ${number(group.requests)} ${number(group.in)}`));
  }
  assert.match(html, /aria-label="Tokens a day by model, from [\d-]+ to [\d-]+\./);
  assert.equal(html.match(/<g><title>[\d-]+: [\d,]+<\/title>/g)!.length, 30);
  assert.match(text, /By job \d+ Usage by job Job Requests .* nightly-tests/);
});

Deno.test("the page Fleet has the agents, their logs and questions, and talks to them", async () => {
  await using at = await world();
  await using agent = await withFleet(at);
  const cookie = await signIn(at);
  const form_token = await formToken(at, cookie);
  const send = (path: string, fields: Record<string, string>) =>
    submit(at, `/console/fleet/${path}`, cookie, { form_token, ...fields });
  const all = await textOf(at, "/console/fleet", cookie);
  assert.match(all, /Healthy 1 of 3 Restarts 12 Questions 1/);
  assert.match(all, /notes State healthy since .* Port \d+ Restarts 0/);
  assert.match(all, /crawler State crashed .* exited with code 137/);
  assert.match(await textOf(at, "/console/fleet/crawler", cookie), /Log listening error: no more/);
  // What is asked in the agent's worktree is answered there.
  await send("notes/asks/1", { option: "1" });
  assert.equal(agent.workspace.asks.get(1)!.answer, "The newer one");
  await send("crawler", { action: "restart" });
  assert.ok(Deno.statSync(join(at.project.path, ".svc/fleet/crawler.restart")).isFile);
  await send("crawler", { action: "disable" });
  assert.match(await textOf(at, "/console/fleet/crawler", cookie), /crashed disabled/);
  const sent = await send("notes/chat", { prompt: "Do all notes have a title?" });
  assert.deepEqual([sent.status, sent.headers.get("location")], [303, "/console/fleet/notes"]);
  await until(async () =>
    /Do all notes have a title\? All 12 notes have a title now\./
      .test(await textOf(at, "/console/fleet/notes", cookie))
  );
  assert.equal((await send("crawler/chat", { prompt: "Hello?" })).status, 409);
  const { text } = await visit(at, "/console/fleet/notes?open=1", cookie);
  const link = /href="(http:[^"]+)" rel="noreferrer"/.exec(text)![1]!;
  const opened = await fetch(link, { redirect: "manual" });
  assert.equal(opened.headers.get("location"), "/console");
});

Deno.test("no page reads more files for more jobs, sessions and requests", async () => {
  await using at = await world();
  const cookie = await signIn(at);
  const paths = [
    ...["/console", "/console/night", "/console/jobs", "/console/jobs/links"],
    ...["/console/sessions", "/console/usage", "/console/fleet"],
  ];
  const reads = async () => {
    const counts: Record<string, number> = {};
    for (const path of paths) {
      await visit(at, path, cookie); // fills what is kept between requests
      counts[path] = await countedOpens(() => visit(at, path, cookie));
    }
    return counts;
  };
  const few = await reads();
  const { register } = jobContext(at.workspace);
  const disk = JSON.parse(Deno.readTextFileSync(register.path));
  const old = disk.jobs.find(({ name }: { name: string }) => name === "links");
  const more = Array.from({ length: 1000 }, (_, n) => ({
    ...old,
    name: `job-${n}`,
    history: old.history.slice(0, 5),
  }));
  disk.jobs = [...disk.jobs, ...more];
  await at.project.write(".svc/jobs.json", JSON.stringify(disk));
  const sessions = join(at.project.path, ".svc/sessions");
  const log = Deno.readFileSync(join(sessions, "first-look.json"));
  for (let n = 0; n < 1000; n++) Deno.writeFileSync(join(sessions, `s-${n}.json`), log);
  const many = await reads();
  // A page of the list of sessions shows up to a hundred of them.
  for (const path of paths) {
    const most = few[path]! + (path === "/console/sessions" ? 300 : 10);
    assert.ok(many[path]! <= most, `${path}: ${few[path]} files, then ${many[path]}`);
  }
});

/** How many files are opened meanwhile. */
async function countedOpens(work: () => Promise<unknown>): Promise<number> {
  const { openSync, readTextFileSync } = Deno;
  let count = 0;
  Deno.openSync = (...given) => {
    count++;
    return openSync(...given);
  };
  Deno.readTextFileSync = (...given) => {
    count++;
    return readTextFileSync(...given);
  };
  try {
    await work();
  } finally {
    Object.assign(Deno, { openSync, readTextFileSync });
  }
  return count;
}
