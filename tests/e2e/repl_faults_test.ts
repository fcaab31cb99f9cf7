import assert from "node:assert/strict";
import { call, hang, say } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { session } from "../support/repl.ts";
import { mounts, tiny } from "../support/tiny_disk.ts";

/** Outside a sandbox, where the number is the one that svc has. */
const NOTE_PID = call("run_command", { command: "echo $PPID > pid" });
const BASH = { tool_permission: { bash: "allow" }, sandbox: "off" };

Deno.test("SIGHUP, the window closed, ends a turn with its log whole", async () => {
  await using open = await session([NOTE_PID, hang("half of it all")], {
    config: BASH,
    files: { ".svc/roles.json": "{" },
  });
  await open.enter("go", "half of it");
  const screen = open.pty.screen.text();
  assert.match(
    screen,
    /^warning:\s[^]*roles\.json\s+is\s+not\s+valid\s+JSON/m,
    `on a line of its own: ${screen}`,
  );
  Deno.kill(Number(await open.place.read("pid")), "SIGHUP");
  assert.equal(await open.pty.ended, 129);
  const [{ turns, permissions }] = open.saved();
  assert.equal(permissions[0].sandbox, "none");
  assert.equal(turns[0].status, "cancelled");
  assert.match(turns[0].parts.at(-1).text, /^half of it /);
});

Deno.test("a turn waits for the process that holds the session, says so, and can be cancelled", async () => {
  const setup = { args: ["--session-id", "s"], config: { retry_budget: 0 } };
  await using open = await session([say("first"), hang("theirs")], setup);
  await open.enter("one", "first");
  await open.ready();
  const options = { cwd: open.place.path, home: open.home.path };
  const other = svc(["run", "--session-id", "s", "-p", "two"], options);
  await open.backend.arrived(2);
  await open.pty.type("three\r");
  await open.pty.until("Session s is busy with another turn; waiting for it.");
  await open.pty.until(/ s · waiting for the session$/m);
  await open.pty.type("\x03");
  await open.ready();
  await open.backend.close();
  await other;
});

Deno.test(
  "a disk that fills up during a turn: a sentence, and with room again it goes on",
  mounts,
  async () => {
    const full = Array.from({ length: 40 }, (_, n) => `${n} ${"x".repeat(2000)}\n`);
    await using open = await session([say("fits"), say(full), say("after")]);
    await using _ = await tiny(open.place, { at: ".svc/sessions" });
    await open.enter("one", "fits");
    await open.enter("two", /! Error: Session ses_\S+ could not be written: No space left/);
    await open.ready();
    await open.enter("/history", /#2 \[error\]/);
    await open.enter("three", "after");
    await open.ready();
    const [{ turns }] = open.saved();
    assert.deepEqual(turns.map(({ status }: { status: string }) => status), ["ok", "error", "ok"]);
  },
);

Deno.test("kill -9 in the middle of a turn, then svc -c: the partial turn is there, and the session continues", async () => {
  const replies = [NOTE_PID, say("first"), hang("a thought that ends"), say("goes on")];
  await using open = await session(replies, { config: BASH });
  await open.enter("one", "first");
  await open.ready();
  await open.enter("two", "a thought that");
  Deno.kill(Number(await open.place.read("pid")), "SIGKILL");
  await open.pty.ended;
  await using again = await session([], { args: ["-c", "--path", open.place.path] });
  await again.pty.until(/Session ses_\S+: 2 turns/);
  await again.pty.until(/last: #2 \[error\] two/);
  await again.enter("three", "goes on");
  await again.ready();
  const statuses = open.saved()[0].turns.map(({ status }: { status: string }) => status);
  assert.deepEqual(statuses, ["ok", "error", "ok"]);
});

Deno.test("/history lists the last ten of 2,000 turns at once, /print any of them, and a new turn runs [4.7]", async () => {
  const turns = Array.from({ length: 2000 }, (_, n) => ({
    index: n + 1,
    started_at: "2026-01-01T00:00:00.000Z",
    ended_at: "2026-01-01T00:00:01.500Z",
    status: "ok",
    model: "test",
    provider: "p",
    mode: "build",
    reasoning: "auto",
    parts: [
      { type: "user", timestamp: "2026-01-01T00:00:00.000Z", text: `question ${n + 1}` },
      { type: "text", timestamp: "2026-01-01T00:00:01.000Z", text: `answer ${n + 1} `.repeat(100) },
    ],
  }));
  const document = {
    session_name: "long",
    session_id: "",
    created_at: "2026-01-01T00:00:00.000Z",
    updated_at: "2026-01-01T00:00:00.000Z",
    parent_id: "",
    role: "",
    version: "",
    sub_sessions: [],
    permissions: [],
    errors: [],
    turns,
  };
  await using open = await session([say("the end")], {
    args: ["--session-id", "long"],
    files: { ".svc/sessions/long.json": JSON.stringify(document) },
    rows: 60,
  });
  await open.pty.until("Session long: 2000 turns");
  await open.enter("/history", "#2000 [ok] 1.5s 0 tools question 2000");
  assert.doesNotMatch(open.pty.screen.text(), /#1990 /);
  await open.enter("/print 1234.2", "answer 1234");
  await open.enter("/history 3 --run session:long", "1997 earlier: /history all");
  await open.enter("and then?", "the end");
});

Deno.test("focus_on_delegate ask asks after the turn; no leaves the focus, yes moves it, unattended skips the question [3.6]", async () => {
  const replies = Array.from({ length: 3 }, () => [
    call("delegate", { role: "smith", task: "make it" }),
    { ...say("it is made"), when: { system: "YOU FORGE" } },
    say("all done"),
  ]).flat();
  const roles = JSON.stringify({ smith: { system_prompt: "YOU FORGE" } });
  await using open = await session(replies, {
    files: { ".svc/roles.json": roles },
    config: { focus_on_delegate: "ask" },
    rows: 90,
  });
  await open.enter("go", /all done[^]*Focus run #2\? \[y\/n\]$/);
  await open.pty.type("n");
  await open.ready();
  await open.enter("/unattended on", "confirmations are denied");
  await open.enter("once more", /all done/);
  await open.pty.until("unattended ›");
  await open.enter("/unattended off", "attended: confirmations");
  await open.enter("and again", /all done[^]*Focus run #4\? \[y\/n\]$/);
  await open.pty.type("y");
  await open.pty.until("#4 smith ›");
});

Deno.test("--run takes every form of a target, live and saved, and switches nothing [4.7]", async () => {
  const replies = [
    call("delegate", { role: "smith", task: "make it" }),
    { ...say("it is made"), when: { system: "YOU FORGE" } },
    say("all done"),
    say("a new one"),
  ];
  const files = {
    ".svc/roles.json": JSON.stringify({ smith: { system_prompt: "YOU FORGE" } }),
    ".svc/sessions/old.json": JSON.stringify([{ role: "user", content: "flat" }]),
  };
  await using open = await session(replies, { files, rows: 90 });
  await open.enter("go", "all done");
  await open.ready();
  const sub = open.saved().find(({ role }) => role === "smith");
  const made = /#1 \[ok\] \S+ 0 tools make it/;
  const targets = [`#${sub.session_id}`, "#2", "smith", `session:${sub.session_name}`];
  for (const target of [...targets, sub.session_name]) {
    await open.enter(`/history --run ${target}`, made);
  }
  await open.enter("/print 1.2 --run #2", "it is made");
  await open.enter("/history --run old", "There is no run or session");
  await open.enter("/clear", "A new session begins");
  await open.enter("hello", "a new one");
  await open.ready();
  // Saved, where no run is live: the number means nothing now.
  for (const target of targets.filter((each) => each !== "#2")) {
    await open.enter(`/history 5 --run ${target}`, made);
  }
  await open.enter("/history 5 --run #2", "There is no run or session");
  await open.enter("/session", /^ses_\S+\n {2}turns: 1,/m);
});
