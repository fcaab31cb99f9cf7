import assert from "node:assert/strict";
import { call, httpError, say, startBackend } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const ASK = call("ask", { question: "Which port?\nfake", options: ["8081", "9090"] });

function run(worktree: string, url: string, ...more: string[]) {
  return svc(["run", "--base-url", url, "--model", "test", ...more], { cwd: worktree });
}

Deno.test("a parked ask is answered from the command line, and the resumed session sees it [1, 3.2, 4.4]", async () => {
  await using place = await project();
  await using backend = startBackend([ASK, say("waiting"), say("thanks")]);
  const first = await run(place.path, backend.url, "--unattended", "-p", "serve it");
  assert.equal(first.code, 0, first.stderr);
  assert.equal(first.stderr, "");
  const { session, ...result } = JSON.parse(first.stdout);
  assert.equal("asks" in result, false);

  const list = await svc(["asks", "list"], { cwd: place.path });
  assert.match(list.stdout, new RegExp(`^#1  pending  .*  ${session}  Which port\\?\n$`));
  const show = await svc(["asks", "show", "1"], { cwd: place.path });
  assert.match(show.stdout, /Which port\?\n {2}fake[^]*- 8081\n {2}- 9090[^]*svc asks answer 1/);

  const answered = await svc(["asks", "answer", "#1", "-", "--output", "json"], {
    cwd: place.path,
    stdin: "8081\n",
  });
  assert.equal(answered.code, 0, answered.stderr);
  const body = JSON.parse(answered.stdout);
  assert.deepEqual(Object.keys(body), ["ask", "session", "resume", "injected"]);
  assert.deepEqual([body.ask.answer, body.session, body.injected], ["8081", session, true]);

  const words = body.resume.replaceAll('"', "").split(" ").slice(2);
  const second = await run(place.path, backend.url, ...words);
  assert.equal(JSON.parse(second.stdout).session, session);
  const { messages } = backend.chats.at(-1);
  const said = messages.map(({ content }: { content: string }) => content);
  assert.deepEqual(said.slice(-2), ["[answer to parked ask #1] 8081", "continue"]);

  const again = await svc(["asks", "answer", "1", "9090"], { cwd: place.path });
  assert.equal(again.code, 1);
  assert.match(again.stderr, /already answered: 8081/);
  const all = await svc(["asks", "list", "answered", "--output", "json"], { cwd: place.path });
  assert.deepEqual(JSON.parse(all.stdout), [body.ask]);
});

Deno.test("a run says where its ask waits and how to answer it, in text mode and when verbose", async () => {
  for (const flags of [["--output", "text"], ["--verbose"]]) {
    await using place = await project();
    await using backend = startBackend([ASK, say("waiting")]);
    const { code, stderr } = await run(place.path, backend.url, "--unattended", ...flags, "go");
    assert.equal(code, 0);
    assert.match(stderr, /^Ask #1 waits in .*\/\.svc\/asks\.json: Which port\? fake$/m);
    assert.match(stderr, /^Answer it with: svc asks answer 1 /m);
  }
});

Deno.test("the answer to a job's question in its own session names the job whose next run reads it", async () => {
  await using place = await project();
  await using backend = startBackend([ASK, say("waiting")]);
  const options = { cwd: place.path };
  await inProcess(["config", "set", "provider", "demo", "--local"], options);
  await inProcess(["config", "set", "base_url", backend.url, "--local"], options);
  const job = ["--interval", "3600", "--prompt", "serve it", "--session", "ports"];
  await inProcess(["jobs", "add", "port", ...job], options);
  const { code, stderr } = await inProcess(["jobs", "run", "port"], options);
  assert.equal(code, 0, stderr);
  const { stdout } = await inProcess(["asks", "answer", "1", "9090"], options);
  assert.match(stdout, /next run of the job port reads it.*:\n {2}svc jobs run port\n$/);
});

Deno.test("a headless run that is not unattended parks nothing [4.8]", async () => {
  await using place = await project();
  await using backend = startBackend([ASK, say("so be it")]);
  const { code, stdout } = await run(place.path, backend.url, "go");
  assert.equal(code, 0);
  assert.deepEqual(JSON.parse(stdout).tool_calls.map((c: { is_error: boolean }) => c.is_error), [
    true,
  ]);
  const list = await inProcess(["asks", "list"], { cwd: place.path });
  assert.deepEqual([list.code, list.stdout], [0, ""]);
  assert.match(list.stderr, /No ask is pending/);
});

Deno.test("a wrong id, a missing ask and an empty answer are one sentence each", async () => {
  await using place = await project();
  const cases: [string[], number, RegExp][] = [
    [["show", "x"], 2, /"x" is no id of an ask/],
    [["show", "7"], 2, /ask not found: 7/],
    [["answer", "7", "yes"], 2, /ask not found: 7/],
    [["answer", "7", " "], 2, /The answer is empty/],
  ];
  for (const [args, code, message] of cases) {
    const ended = await inProcess(["asks", ...args], { cwd: place.path });
    assert.equal(ended.code, code, ended.stderr);
    assert.match(ended.stderr, message);
    assert.equal(ended.stdout, "");
  }
  assert.deepEqual([...Deno.readDirSync(place.path)], []);
});

Deno.test("svc compact prints the summary, and the next turn sends it in place of the old turns", async () => {
  await using place = await project();
  await using backend = startBackend([say("one"), say("two"), say("they counted"), say("three")]);
  const named = ["--session-id", "nightly"];
  await run(place.path, backend.url, ...named, "first");
  await run(place.path, backend.url, ...named, "second");
  await place.write(
    ".svc/config.json",
    JSON.stringify({ base_url: backend.url, model: "test", compact_keep: 1 }),
  );
  const done = await inProcess(["compact", "nightly"], { cwd: place.path });
  assert.deepEqual([done.code, done.stdout], [0, "they counted\n"], done.stderr);
  assert.match(done.stderr, /stands for 1 turn of nightly, up to turn 1/);
  const again = await inProcess(["compact", "nightly"], { cwd: place.path });
  assert.deepEqual([again.code, again.stdout], [0, ""]);
  assert.match(again.stderr, /Nothing to compact/);
  await run(place.path, backend.url, ...named, "third");
  const said = backend.chats.at(-1).messages.map(({ content }: { content: string }) => content);
  assert.deepEqual(said.slice(1), [
    "Summary of the conversation so far:\n\nthey counted",
    "second",
    "two",
    "third",
  ]);
});

Deno.test("svc compact fails with the model, and without a session", async () => {
  await using place = await project();
  await using backend = startBackend([say("one"), httpError(401)]);
  await run(place.path, backend.url, "--session-id", "nightly", "first");
  await place.write(
    ".svc/config.json",
    JSON.stringify({ base_url: backend.url, model: "test", compact_keep: 0 }),
  );
  const before = await place.read(".svc/sessions/nightly.json");
  const failed = await inProcess(["compact", "nightly"], { cwd: place.path });
  assert.equal(failed.code, 1);
  assert.match(failed.stderr, /401/);
  assert.equal(await place.read(".svc/sessions/nightly.json"), before);
  const missing = await inProcess(["compact", "nighty"], { cwd: place.path });
  assert.equal(missing.code, 2);
  assert.match(missing.stderr, /no session "nighty"[^]*Did you mean "nightly"/);
});
