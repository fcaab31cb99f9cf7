import assert from "node:assert/strict";
import type { SessionDocument, Turn } from "../../src/sessions/schema.ts";
import { calls, hang, say } from "../support/backend.ts";
import { until } from "../support/processes.ts";
import { formToken, signIn, submit, visit } from "./console.ts";
import { server, type TestServer } from "./support.ts";

const STAMP = "2026-01-22T01:02:03.000Z";

/** Parts without their times. */
type Given = Record<string, unknown>[];

function addSession(
  { workspace }: TestServer,
  name: string,
  turns: Given[],
  more: Partial<SessionDocument> = {},
): void {
  const document = {
    session_name: name,
    session_id: "",
    created_at: STAMP,
    updated_at: STAMP,
    parent_id: "",
    role: "",
    version: "",
    sub_sessions: [],
    errors: [],
    permissions: [],
    turns: turns.map((parts, index): Turn => ({
      index: index + 1,
      started_at: STAMP,
      ended_at: STAMP,
      status: "ok",
      model: "m",
      provider: "p",
      mode: "auto",
      reasoning: "",
      parts: parts.map((part) => ({ ...part, timestamp: STAMP })) as Turn["parts"],
    })),
  };
  workspace.sessions.add(name, { ...document, ...more });
}

Deno.test("what models, tools and names of sessions say is text in the console, never markup or a link", async () => {
  await using at = await server();
  const hostile = `<script>alert(1)</script><img src=x onerror=alert(1)>"><b onclick='x'>` +
    `[a](javascript:alert(1)) javascript:alert(2) http://evil.example \x1b[31mred\x1b]0;t\x07 a\u202Eb\u2066c\u0000d`;
  const name = `a"><script>alert(3)<`;
  const tool = { type: "tool", name: hostile, input: { [hostile]: hostile }, output: hostile };
  const parts = [
    { type: "user", text: hostile },
    { type: "thinking", text: hostile },
    { type: "text", text: hostile },
    { ...tool, is_error: true, analysis: hostile },
    { ...tool, is_error: false, input: { path: hostile, old: hostile, new: `${hostile}!` } },
    { type: "command", text: hostile, summary: hostile },
    { type: "system", text: hostile },
  ];
  const permission = { tool: hostile, action: "ask" as const, decision: "granted" as const };
  addSession(at, name, [parts], {
    role: hostile,
    sub_sessions: [name, hostile.slice(0, 20)],
    permissions: [{ ...permission, path: hostile, granted_by: hostile, timestamp: STAMP }],
    errors: [{ code: 0, message: hostile, timestamp: STAMP }],
  });
  await at.workspace.asks.park({
    question: hostile,
    context: hostile,
    options: [hostile],
    origin: name,
  });
  const cookie = await signIn(at);
  for (
    const path of ["/console", "/console/sessions", `/console/sessions/${encodeURIComponent(name)}`]
  ) {
    const { status, text, headers } = await visit(at, path, cookie);
    assert.equal(status, 200);
    assert.match(text, /&lt;script&gt;alert\(/);
    assert.match(headers.get("content-security-policy")!, /^default-src 'none'/);
    assert.deepEqual(text.match(/<script[^>]*>/g)?.length, 1, "the console's own");
    assert.doesNotMatch(text.replaceAll(/"[^"]*"/g, ""), /<(img|b)\b|<[^>]*\son\w+=/);
    assert.deepEqual([...text.matchAll(/(?:href|src|action)="(?!\/console|#|data:,")/g)], [], path);
    // deno-lint-ignore no-control-regex
    assert.doesNotMatch(text, /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/);
  }
  const inbox = await visit(at, "/console", cookie);
  assert.match(inbox.text, /a&lt;U\+202E&gt;b/, "nothing is hidden in what a person answers");
});

Deno.test("a line of 10 MB is cut in a transcript, and whole as plain text", async () => {
  await using at = await server();
  const output = `<b>${"x".repeat(10_000_000)}\u202e</b>`;
  addSession(at, "big", [[
    { type: "tool", name: "run_command", input: { command: "cat" }, output, is_error: false },
    { type: "text", text: output.slice(0, 30_000) },
  ]]);
  const cookie = await signIn(at);
  const { text } = await visit(at, "/console/sessions/big", cookie);
  assert.ok(text.length < 100_000);
  const links = [...text.matchAll(/href="([^"]+)">Show all/g)].map(([, link]) =>
    link!.replaceAll("&amp;", "&")
  );
  assert.equal(links.length, 2);
  const whole = await visit(at, links[0]!, cookie);
  assert.equal(whole.headers.get("content-type"), "text/plain; charset=utf-8");
  assert.equal(whole.headers.get("x-content-type-options"), "nosniff");
  assert.equal(whole.text, output.replace("\u202e", ""));
  assert.equal((await visit(at, links[0]!, "")).status, 401);
  assert.equal((await visit(at, "/console/sessions/big/text?turn=2&part=0", cookie)).status, 404);
  assert.equal((await visit(at, "/console/sessions/big/text?turn=1&part=9", cookie)).status, 404);
});

Deno.test("a transcript of 10,000 turns is paged, its end first, and reads only the page", async () => {
  await using at = await server();
  const parts = (index: number) => [{ type: "user", text: `prompt ${index}.` }, {
    type: "text",
    text: `answer ${index}. ${"x".repeat(200)}`,
  }];
  addSession(at, "long", Array.from({ length: 10_000 }, (_, index) => parts(index + 1)));
  const cookie = await signIn(at);
  const last = await visit(at, "/console/sessions/long", cookie);
  assert.match(last.text, /Page <span class="number">500<\/span> of <span class="number">500</);
  assert.match(last.text, /prompt 10000\./);
  assert.match(last.text, /prompt 9981\./);
  assert.doesNotMatch(last.text, /prompt 9980\./);
  assert.match(last.text, /data-follows="long"/);
  const second = await visit(at, "/console/sessions/long?page=2", cookie);
  assert.deepEqual(
    [...second.text.matchAll(/prompt (\d+)\./g)].map(([, index]) => Number(index)),
    Array.from({ length: 20 }, (_, index) => 21 + index),
  );
  assert.doesNotMatch(second.text, /data-follows/);
  assert.match(
    (await visit(at, "/console/sessions/long?page=99999", cookie)).text,
    /prompt 10000\./,
  );
  assert.match((await visit(at, "/console/sessions/long?page=x", cookie)).text, /prompt 1\./);
});

Deno.test("a session page has calls with diffs and output, the audit, errors, and sub-agents as a tree", async () => {
  await using at = await server();
  addSession(at, "sub_a", [[{ type: "user", text: "look here" }]], {
    parent_id: "main",
    role: "explorer",
    sub_sessions: ["sub_b"],
  });
  addSession(at, "sub_b", [[{ type: "user", text: "look there" }]], { parent_id: "sub_a" });
  addSession(at, "main", [[
    { type: "user", text: "fix it" },
    {
      type: "tool",
      name: "edit",
      input: { path: "a.ts", old: "one\ntwo\n", new: "one\nthree\n" },
      output: "edited a.ts",
      is_error: false,
    },
  ]], {
    sub_sessions: ["sub_a", "sub_gone"],
    errors: [{ code: 429, message: "slow down", timestamp: STAMP }],
    permissions: [{
      tool: "edit",
      action: "ask",
      decision: "declined",
      path: "a.ts",
      granted_by: "operator",
      timestamp: STAMP,
    }],
  });
  const { text } = await visit(at, "/console/sessions/main", await signIn(at));
  assert.match(text, /<details class="tool" id="part-1-1"><summary><code>[^<]*a\.ts/);
  assert.match(text, /class="removed">-two\n.*class="added">\+three\n/s);
  assert.match(text, /edited a\.ts/);
  assert.match(text, /<span class="badge warn">declined<\/span>.*by operator/s);
  assert.match(text, /slow down.*status 429/s);
  const tree = /<ul class="tree">.*<\/ul>/s.exec(text)![0];
  assert.match(
    tree,
    /sub_a<\/a>.*explorer: look here.*<ul class="tree"><li>.*sub_b<\/a>.*look there/s,
  );
  assert.match(tree, /sub_gone<\/a>.*was removed/s);
  assert.match(
    (await visit(at, "/console/sessions/sub_a", await signIn(at))).text,
    /Parent<\/dt><dd><a href="\/console\/sessions\/main">/,
  );
});

Deno.test("a session of any name has a page", async () => {
  await using at = await server();
  const cookie = await signIn(at);
  for (const name of ["100%41 ü", "a?b#c&d", "+;,=", "constructor"]) {
    addSession(at, name, [[{ type: "user", text: `hello ${name}` }]]);
    const list = await visit(at, "/console/sessions?limit=1", cookie);
    const [, link] = [...list.text.matchAll(/<td><a href="([^"]+)"/g)].find(([, link]) =>
      decodeURIComponent(link!).endsWith(`/${name}`)
    )!;
    const { status, text } = await visit(at, link!, cookie);
    assert.equal(status, 200, name);
    assert.match(text, /<div class="prose">hello /);
  }
});

Deno.test("a form that is too large is refused, and its connection is closed", async () => {
  await using at = await server(undefined, { config: { "serve.max_body": 200 } });
  const cookie = await signIn(at);
  const answer = await submit(at, "/console/sign-out", cookie, { form_token: "x".repeat(300) });
  assert.deepEqual([answer.status, answer.headers.get("connection")], [413, "close"]);
});

Deno.test("the list of sessions is paged and filtered by kind and time", async () => {
  await using at = await server();
  for (let index = 0; index < 60; index++) {
    addSession(at, `${index < 5 ? "job_" : "ses_"}${String(index).padStart(2, "0")}`, [[]]);
  }
  at.workspace.sessions.open("now").close();
  const cookie = await signIn(at);
  const names = async (query: string) => {
    const { text } = await visit(at, `/console/sessions${query}`, cookie);
    return [...text.matchAll(/href="\/console\/sessions\/(\w+)"/g)].map(([, name]) => name);
  };
  assert.equal((await names("")).length, 50);
  assert.equal((await names("?page=2")).length, 11);
  assert.deepEqual(await names("?since=24h"), ["now"]);
  assert.equal((await names("?prefix=job_")).length, 5);
  assert.deepEqual(await names("?prefix=zzz"), []);
  const { text } = await visit(at, "/console/sessions?prefix=job_", cookie);
  assert.match(text, /<option value="job_" selected="">/);
});

Deno.test("a parked question is answered in the inbox, with an option or in words, once", async () => {
  await using at = await server();
  addSession(at, "asker", [[{ type: "user", text: "begin" }]], { job: "nightly" });
  const park = (question: string) =>
    at.workspace.asks.park({
      question,
      context: "because",
      options: ["red", "blue\u200b"],
      origin: "asker",
    });
  const [first, second] = [await park("Which colour?"), await park("And which now?")];
  const cookie = await signIn(at, "answer");
  const { text } = await visit(at, "/console", cookie);
  assert.match(text, /And which now\?.*because.*value="0".*Which colour\?/s);
  assert.match(text, /href="\/console\/jobs\/nightly"/);
  const form_token = await formToken(at, cookie);
  const answer = (id: number, fields: Record<string, string>) =>
    submit(at, `/console/asks/${id}`, cookie, { form_token, ...fields });
  assert.equal((await answer(first.id, { option: "1", answer: "" })).status, 303);
  assert.equal((await answer(second.id, { option: "1", answer: " green " })).status, 303);
  assert.equal(at.workspace.asks.need(first.id).answer, "blue\u200b");
  assert.equal(at.workspace.asks.need(second.id).answer, "green");
  const twice = await answer(first.id, { answer: "red" });
  assert.equal(twice.status, 409);
  assert.match(twice.text, /already answered: blue/);
  assert.equal((await answer(99, { answer: "red" })).status, 404);
  assert.equal((await answer(first.id, { answer: "" })).status, 400);
  assert.match((await visit(at, "/console", cookie)).text, /No agent waits for an answer/);
});

Deno.test("the inbox has jobs that wait or fail, and budgets that are used up", async () => {
  const job = (name: string, more: Record<string, unknown>) => (
    { name, schedule: { cron: "0 3 * * *" }, prompt: "work", created_at: STAMP, ...more }
  );
  const failed = { started_at: STAMP, finished_at: STAMP, status: "failed", session: "night" };
  await using at = await server({
    replies: [],
    default: {
      text: "done",
      usage: { prompt_tokens: 900, completion_tokens: 100, total_tokens: 1000 },
    },
  }, {
    config: { "budget.day": { tokens: 1100 } },
    files: {
      ".svc/jobs.json": JSON.stringify({
        jobs: [
          job("fresh", { status: "proposed" }),
          job("gated", { status: "waiting_approval", require_approval: true }),
          job("broken", { status: "failed", history: [{ ...failed, reason: "it <broke>" }] }),
          job("fine", { status: "verified", history: [{ ...failed, status: "verified" }] }),
        ],
      }),
    },
  });
  const empty = await visit(at, "/console", await signIn(at));
  assert.match(empty.text, /No budget of the day is nearly used up/);
  assert.equal((await at.post("/chat", { prompt: "a" })).status, 200);
  const { text } = await visit(at, "/console", await signIn(at));
  assert.match(text, /fresh<\/a>.*is proposed.*gated<\/a>.*waits for approval/s);
  assert.match(text, /name="gate" value="approve"/);
  assert.match(text, /broken<\/a>.*it &lt;broke&gt;.*\/console\/sessions\/night/s);
  assert.doesNotMatch(text, />fine<\/a>/);
  assert.match(text, /nearly reached.*90 % of the budget budget\.day\.tokens are used/s);
  assert.doesNotMatch(
    (await visit(at, "/console", await signIn(at, "answer"))).text,
    /name="gate"/,
  );
});

Deno.test("the inbox has the openings that are not trusted, and says how to accept them", async () => {
  await using at = await server(undefined, {
    trusted: false,
    files: {
      ".svc/config.json": JSON.stringify({ tool_permission: { bash: "allow" } }),
      ".svc/plugins/extra.ts": "export function register_tools() {}",
    },
  });
  const { text } = await visit(at, "/console", await signIn(at));
  const [, openings = ""] = /<section id="openings"(.*?)<\/section>/s.exec(text) ?? [];
  assert.match(openings, /tool_permission.*bash.*allow/s);
  assert.match(openings, /extra/);
  assert.match(openings, /svc trust/);
  assert.doesNotMatch(openings, /<form/);
});

Deno.test("a message from the console begins a run in the session, and the next one reaches that run", async () => {
  await using at = await server({
    replies: [{ text: "first" }, hang()],
    default: { text: "done" },
  });
  await at.post("/chat", { prompt: "begin", session: "s" });
  const cookie = await signIn(at);
  const form_token = await formToken(at, cookie);
  const send = (message: string, path = "/console/sessions/s/messages") =>
    submit(at, path, cookie, { form_token, message });
  const { status, headers } = await send("go on");
  assert.deepEqual([status, headers.get("location")], [303, "/console/sessions/s"]);
  await at.backend.arrived(2);
  assert.equal((await send("and this")).status, 303);
  const { text } = await visit(at, "/console/sessions/s", cookie);
  assert.match(text, /go on/);
  const id = /name="id" value="(run_[^"]+)"/.exec(text)![1]!;
  const { body: { runs } } = await at.get("/runs?state=running");
  assert.deepEqual([runs[0].id, runs[0].messages], [id, ["and this"]]);
  const cancelled = await submit(at, "/console/sessions/s/cancel", cookie, { form_token, id });
  assert.equal(cancelled.status, 303);
  assert.equal(at.workspace.sessions.read("s")!.turns[1]!.status, "cancelled");
  const again = await submit(at, "/console/sessions/s/cancel", cookie, { form_token, id });
  assert.equal(again.status, 409);
  assert.equal((await send(" ")).status, 400);
  assert.equal((await send("a", "/console/sessions/none/messages")).status, 404);
  const reader = await signIn(at, "answer");
  const fields = { form_token: await formToken(at, reader), message: "a" };
  assert.equal((await submit(at, "/console/sessions/s/messages", reader, fields)).status, 403);
  assert.doesNotMatch((await visit(at, "/console/sessions/s", reader)).text, /<textarea/);
});

Deno.test("a session page shows what a run writes before it is in the log", async () => {
  await using at = await server([hang("<b>half")]);
  const { body } = await at.post("/runs", { prompt: "begin", session: "s" });
  const cookie = await signIn(at);
  await at.backend.arrived(1);
  await until(async () =>
    (await visit(at, "/console/sessions/s", cookie)).text.includes("&lt;b&gt;half")
  );
  assert.equal((await at.post(`/runs/${body.id}/cancel`, "")).status, 200);
});

Deno.test("a session page and the events of a run show what a command prints while it runs", async () => {
  const waitFor = (file: string) => `until [ -e ${file} ]; do sleep 0.05; done`;
  const command = `echo '<b>half'; ${waitFor("a")}; echo more; ${waitFor("b")}`;
  await using at = await server([calls([["run_command", { command }]]), say("done")], {
    config: { tool_permission: { bash: "allow" } },
  });
  const { body } = await at.post("/runs", { prompt: "begin", session: "s" });
  const cookie = await signIn(at);
  await until(async () =>
    (await visit(at, "/console/sessions/s", cookie)).text.includes("&lt;b&gt;half\n</pre>")
  );
  const { worktree } = at.workspace.paths;
  const events = await fetch(`${at.http.url}/runs/${body.id}/events`);
  await Deno.writeTextFile(`${worktree}/a`, "");
  let seen = "";
  for await (const text of events.body!.pipeThrough(new TextDecoderStream())) {
    seen += text;
    if (seen.includes('"content":"more\\n"')) await Deno.writeTextFile(`${worktree}/b`, "");
  }
  assert.match(seen, /event: tool_output\ndata: [^\n]*more[^]*event: tool_result\n/);
});

Deno.test("a turn of POST /chat is cancelled in the console", async () => {
  await using at = await server([hang()]);
  const turn = at.post("/chat", { prompt: "begin", session: "s" });
  await at.backend.arrived(1);
  const cookie = await signIn(at);
  const { text } = await visit(at, "/console/sessions/s", cookie);
  const id = /name="id" value="(\d+)"/.exec(text)![1]!;
  const form_token = await formToken(at, cookie);
  assert.equal(
    (await submit(at, "/console/sessions/s/cancel", cookie, { form_token, id })).status,
    303,
  );
  assert.equal((await turn).body.status, "cancelled");
});

Deno.test("what a turn changed is shown in the console, taken back and made again", async () => {
  await using at = await server([
    calls([["file_edit", { path: "a.txt", old: "<b>one", new: "<b>two" }]]),
    say("done"),
  ], { files: { "a.txt": "<b>one\n" }, config: { tool_permission: { edit: "allow" } } });
  await at.post("/chat", { prompt: "go", session: "mine" });
  const cookie = await signIn(at);
  const form_token = await formToken(at, cookie);
  const page = async (path: string) =>
    (await visit(at, `/console/sessions/mine${path}`, cookie)).text;
  assert.match(await page(""), /changes\?turn=1" title="a.txt">1 changed file</);
  const changes = await page("/changes?turn=1");
  assert.match(changes, /class="removed">-&lt;b&gt;one\n.*class="added">\+&lt;b&gt;two\n/s);
  assert.match(changes, />Take the changes back</);
  const undo = (redo: string) =>
    submit(at, "/console/sessions/mine/undo", cookie, { form_token, turn: "1", redo });
  assert.equal((await undo("false")).status, 303);
  assert.equal(await at.project.read("a.txt"), "<b>one\n");
  assert.match(await page(""), /taken back.*>Make the changes again</s);
  assert.equal((await undo("true")).status, 303);
  assert.equal(await at.project.read("a.txt"), "<b>two\n");
  await at.project.write("a.txt", "mine");
  const refused = await undo("false");
  assert.equal(refused.status, 409);
  assert.match(refused.text, /a\.txt \(changed since\)/);
  assert.equal((await visit(at, "/console/sessions/mine/changes?turn=7", cookie)).status, 404);
  const reader = await signIn(at, "answer");
  assert.doesNotMatch(
    (await visit(at, "/console/sessions/mine", reader)).text,
    /Take the changes back/,
  );
});

Deno.test("the event stream of a page names what changed, and a page is fetched without its frame", async () => {
  await using at = await server();
  addSession(at, "s", [[{ type: "user", text: "begin" }]]);
  const cookie = await signIn(at);
  const stop = new AbortController();
  const response = await fetch(`${at.http.url}/console/events?follows=s`, {
    headers: { cookie },
    signal: stop.signal,
  });
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let seen = (await reader.read()).value ?? "";
  const until = async (wanted: RegExp) => {
    while (!wanted.test(seen)) seen += (await reader.read()).value ?? assert.fail(seen);
  };
  await at.workspace.asks.park({ question: "What?", origin: "s" });
  await until(/event: change\ndata: \["asks"\]\n\n/);
  at.workspace.sessions.appendUserOnce("s", { marker: "m ", text: "more", since: "" });
  await until(/event: change\ndata: \["sessions","session"\]\n\n/);
  stop.abort();
  await reader.read().catch(() => {});
  const { text } = await visit(at, "/console", cookie, { "console-fragment": "1" });
  assert.match(text, /^<!doctype html>\n<main/);
  assert.match(text, /<section id="asks"[^>]* data-live="asks">.*What\?/s);
  assert.doesNotMatch(text, /<header/);
});

Deno.test("an event stream of the console ends when the server stops", async () => {
  const at = await server();
  const response = await fetch(`${at.http.url}/console/events`, {
    headers: { cookie: await signIn(at) },
  });
  await at[Symbol.asyncDispose]();
  await response.text();
});
