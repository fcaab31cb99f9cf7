import assert from "node:assert/strict";
import { call, hang, say, startBackend } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { svcPty } from "../support/pty.ts";
import { session } from "../support/repl.ts";

/** The program's number goes into the file `pid`. */
/** Outside a sandbox, where the number is the one that svc has. */
const NOTE_PID = call("run_command", { command: "echo $PPID > pid" });

Deno.test("svc alone is the terminal session; its log is made with the first turn, and Ctrl-D saves and leaves it [4.4]", async () => {
  await using open = await session([say("hello there"), say("again")]);
  const { pty } = open;
  await pty.until(/^sandbox: (bubblewrap|landlock|sandbox-exec|none)$/m);
  assert.deepEqual([...Deno.readDirSync(`${open.place.path}/.svc`)].map(({ name }) => name), [
    "config.json",
  ]);
  await open.enter("hi", "hello there");
  await open.ready();
  await open.enter("and now?", "again");
  assert.equal(await open.leave(), 0);
  const [document] = open.saved();
  assert.match(pty.written, /svc --continue/);
  assert.deepEqual(
    document.turns.map((turn: { status: string; parts: { text: string }[] }) => [
      turn.status,
      ...turn.parts.map(({ text }) => text),
    ]),
    [["ok", "hi", "hello there"], ["ok", "and now?", "again"]],
  );
  assert.deepEqual(pty.screen.unknown, []);
});

Deno.test("Ctrl-C cancels the turn and keeps what had come; twice at the empty prompt it leaves", async () => {
  await using open = await session([hang("half of an answ"), say("fine")]);
  const { pty } = open;
  await open.enter("go", "half of an");
  await pty.type("\x03");
  await open.ready();
  assert.equal(open.saved()[0].turns[0].status, "cancelled");
  assert.equal(open.saved()[0].turns[0].parts[1].text, "half of an answ");
  await open.enter("once more", "fine");
  await open.ready();
  await pty.type("\x03");
  await pty.until("Ctrl-C again leaves");
  await open.ready();
  await pty.type("\x03");
  assert.equal(await pty.ended, 0);
  assert.ok(pty.screen.modes.has(25), "the cursor is visible again");
});

Deno.test("SIGTERM ends a session in the middle of a turn with its log whole and the terminal restored", async () => {
  await using open = await session([NOTE_PID, call("run_command", { command: "sleep 60" })], {
    config: { tool_permission: { bash: "allow" }, sandbox: "off" },
  });
  const { pty } = open;
  const before = await pty.settings();
  await pty.type("go\r");
  await open.backend.arrived(2);
  await pty.until(/sleep 60/);
  const pid = await programOf(open);
  Deno.kill(pid, "SIGTERM");
  assert.equal(await pty.ended, 143);
  const [document] = open.saved();
  assert.equal(document.turns[0].status, "cancelled");
  assert.match(before, /-icanon/);
  assert.ok(!pty.screen.modes.has(2004), "pastes are no longer marked");
});

Deno.test("--continue resumes a session after kill -9", async () => {
  await using open = await session([NOTE_PID, say("first"), hang("second half"), say("third")], {
    config: { tool_permission: { bash: "allow" }, sandbox: "off" },
  });
  await open.enter("one", "first");
  await open.ready();
  await open.enter("two", "second");
  Deno.kill(await programOf(open), "SIGKILL");
  await open.pty.ended;
  await using again = await session([], {
    args: ["--continue", "--path", open.place.path],
  });
  await again.pty.until(/Session ses_\S+: 2 turns/);
  const { code, stdout } = await svc(["export", sessionName(open.saved()), "--out", "-"], {
    cwd: open.place.path,
  });
  assert.equal(code, 0);
  assert.match(stdout, /first/);
  await again.enter("/history", /#1 \[ok\].*one\n#2 \[error\].*two/);
  await again.enter("three", "third");
});

Deno.test("--session-id begins a session of that name, --mode and --role say how, and prompt_role names the role [2.13]", async () => {
  await using open = await session([say("as told")], {
    args: ["--session-id", "nightly", "--mode", "plan", "--role", "planner"],
    config: { prompt_role: true },
  });
  await open.pty.until("plan planner ›");
  await open.enter("go", "as told");
  await open.ready();
  const [document] = open.saved();
  assert.deepEqual([document.session_name, document.session_id, document.role], [
    "nightly",
    "",
    "planner",
  ]);
  assert.equal(document.turns[0].mode, "plan");
  assert.equal(await open.leave(), 0);
});

Deno.test("wrong options give one sentence and start nothing", async () => {
  const cwd = await Deno.makeTempDir();
  for (const args of [["--bogus"], ["--continue", "--session-id", "x"], ["--mode", "none"]]) {
    const { code, stdout, stderr } = await svc(args, { cwd, stdin: "hello\n" });
    assert.deepEqual([code, stdout], [2, ""], args.join(" "));
    assert.match(stderr, /^svc: \S.*\n/);
  }
  const { stderr } = await svc(["--contnue"], { cwd });
  assert.match(stderr, /Did you mean `--continue`\?\nhint: .*svc --continue --help\n$/);
  await Deno.remove(cwd, { recursive: true });
});

function sessionName(saved: { session_name: string }[]): string {
  return saved[0]!.session_name;
}

/** The number of the program, which a command of the first turn has written down. */
async function programOf({ place }: { place: { read(file: string): Promise<string> } }) {
  return Number(await place.read("pid"));
}

Deno.test("every slash command is a command part of the log, without secrets, and the requests stay the same [2.2]", async () => {
  await using open = await session([say("one"), say("two"), say("three")], {
    files: { "plugins.txt": "" },
  });
  await open.enter("/mode", "build");
  await open.enter("first", "one");
  await open.enter("/history", "#1 [ok]");
  await open.enter("/config set report.secret abcdefgh12345678", "report.secret");
  await open.enter("/config set report.sekret abcdefgh87654321", "Error");
  await open.enter("second", "two");
  await open.enter('/tool list_dir {"path": "."}', "plugins.txt");
  await open.enter("third", "three");
  await open.enter("/version", "svc ");
  await open.ready();
  await open.enter("/exit", "is saved");
  assert.equal(await open.pty.ended, 0);
  const [document] = open.saved();
  assert.deepEqual(
    document.turns.map(({ parts }: { parts: { type: string; text: string }[] }) =>
      parts.filter(({ type }) => type === "user" || type === "command").map(({ text }) => text)
    ),
    [
      ["/mode", "first"],
      ["/history", "/config set report.secret [masked]", "/config set", "second"],
      ['/tool list_dir {"path": "."}'],
      ["third"],
      ["/version", "/exit"],
    ],
  );
  const [first, second, third] = open.backend.chats.map(({ messages }) => messages.slice(1));
  assert.deepEqual(second.slice(0, first.length), first);
  assert.deepEqual(third.slice(0, second.length), second);
  assert.ok(!JSON.stringify(third).includes("/config"));
});

Deno.test("svc --resume and /sessions let choose a session: by arrows, words, a number or a handle; sub-sessions are folded [4.7]", async () => {
  for (const columns of [40, 80, 200]) {
    await using place = await project({
      ".svc/config.json": '{"memory_enabled": false}',
      ".svc/roles.json": JSON.stringify({ smith: { system_prompt: "YOU FORGE" } }),
    });
    await using backend = startBackend([
      call("delegate", { role: "smith", task: "make a knife" }),
      { ...say("made"), when: { system: "YOU FORGE" } },
      say("done"),
      say("two"),
    ]);
    const args = ["run", "--base-url", backend.url, "--model", "test"];
    for (const prompt of ["forge something", "write a letter"]) {
      const { code, stderr } = await svc([...args, "-p", prompt], { cwd: place.path });
      assert.equal(code, 0, stderr);
    }
    const pty = svcPty(["--provider", "demo", "--resume"], { cwd: place.path }, columns);
    try {
      await pty.until(/1 write a[^]*2 forge so[^]*\+1/);
      assert.doesNotMatch(pty.screen.text(), /knife/);
      await pty.type("\x1b[B\t");
      await pty.until(/↳ make a k/);
      await pty.type("letter");
      await pty.until((screen) => !/forge so/.test(screen.text()));
      await pty.type("\x7f".repeat(6));
      await pty.until(/2 forge so/);
      await pty.type("2\r");
      await pty.until(/Session ses_/);
      await pty.until(/last: #1 \[ok\] forge/);
      await pty.type("/sessions\r");
      await pty.until(/this one/);
      await pty.type("\x1b");
      await pty.until((screen) => /›$/.test(screen.text().trimEnd()));
      assert.deepEqual(pty.screen.unknown, []);
      await pty.type("\x04");
      assert.equal(await pty.ended, 0);
    } finally {
      await pty[Symbol.asyncDispose]();
    }
  }
});

Deno.test("the id of a session without its # begins no session of that name [2.1]", async () => {
  await using open = await session([say("one"), say("two")]);
  await open.enter("hello", "one");
  await open.ready();
  const [{ session_id: id }] = open.saved();
  await open.enter(`/session new ${id}`, `Write #${id}`);
  const { code, stderr } = await svc(["run", "--provider", "demo", "--session-id", id, "-p", "x"], {
    cwd: open.place.path,
  });
  assert.equal(code, 2);
  assert.match(stderr, RegExp(`${id} is the id of a session[^]*#${id}`));
  assert.equal(open.saved().length, 1);
});
