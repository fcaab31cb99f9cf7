import assert from "node:assert/strict";
import { join } from "node:path";
import { startAgent } from "../../src/engine/start.ts";
import { Workspace } from "../../src/engine/workspace.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { headlessOperator } from "../../src/policy/operator.ts";
import { collect } from "../support/agent.ts";
import { call, cut, hang, say, startBackend, type TestBackend } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { commandLine, processOptions, startSvc, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";
import { mounts, tiny } from "../support/tiny_disk.ts";
import { trusting } from "../support/trust.ts";

function run(backend: TestBackend, ...args: string[]): string[] {
  return ["run", "--base-url", backend.url, "--model", "m", ...args];
}

function log(worktree: string, session: string) {
  return JSON.parse(Deno.readTextFileSync(join(worktree, ".svc", "sessions", `${session}.json`)));
}

function sessionFiles(worktree: string): string[] {
  return [...Deno.readDirSync(join(worktree, ".svc", "sessions"))].map(({ name }) => name)
    .filter((name) => name !== ".ids");
}

/** One sentence, perhaps a hint, and no stack trace. */
function saysPlainly(stderr: string, sentence: RegExp): void {
  assert.match(stderr, /^svc: .+\n(hint: .+\n)?$/);
  assert.match(stderr, sentence);
}

Deno.test(
  "on a full disk a run fails with a sentence, and what was logged is whole",
  mounts,
  async () => {
    await using place = await project();
    await using _ = await tiny(place);
    const cwd = join(place.path, "tiny");
    await using backend = startBackend([say("fits"), say("x".repeat(100_000)), say("after")]);
    const go = () => svc(run(backend, "--session-id", "s", "go"), { cwd, home: place.path });
    assert.equal((await go()).code, 0);
    const full = await go();
    assert.equal(full.code, 1);
    assert.match(full.stderr, /^error: Session s could not be written: No space left/);
    assert.equal(JSON.parse(full.stdout).status, "error");
    assert.equal((await go()).code, 0);
    const { turns } = log(cwd, "s");
    assert.deepEqual(turns.map(({ status }: { status: string }) => status), ["ok", "error", "ok"]);
  },
);

Deno.test("a disk too full for a session leaves no empty file of one", mounts, async () => {
  await using place = await project();
  await using _ = await tiny(place);
  const cwd = join(place.path, "tiny");
  await using backend = startBackend([say("never")]);
  await Deno.mkdir(join(cwd, ".svc", "sessions"), { recursive: true });
  await Deno.writeFile(join(cwd, "fill"), new Uint8Array(65536)).catch(() => {});
  const { code, stderr } = await svc(run(backend, "go"), { cwd, home: place.path });
  assert.equal(code, 1);
  saysPlainly(stderr, /could not be written: No space left/);
  assert.deepEqual(sessionFiles(cwd), []);
  assert.equal(backend.chats.length, 0);
});

Deno.test("on a full disk each command that writes says so, and what to do", mounts, async () => {
  await using place = await project();
  await using _ = await tiny(place);
  const cwd = join(place.path, "tiny");
  await Deno.mkdir(join(cwd, ".svc"));
  const backend = JSON.stringify({ base_url: "http://127.0.0.1:1", model: "m" });
  await Deno.writeTextFile(join(cwd, ".svc", "config.json"), backend); // so that a job could work
  await Deno.writeFile(join(cwd, "fill"), new Uint8Array(1_100_000)).catch(() => {});
  const lines = [
    "config set mode plan",
    "roles new clerk --description minutes",
    "skills new notes --file /etc/hostname",
    "jobs add n --interval 60 --prompt x",
    "fleet add n --dir .",
    "plugins new words",
  ];
  for (const line of lines) {
    const { code, stdout, stderr } = await svc(line.split(" "), { cwd, home: place.path });
    assert.deepEqual([line, code, stdout], [line, 1, ""]);
    saysPlainly(stderr, /No space left[^]*\nhint: The disk is full/);
  }
});

Deno.test("a read-only worktree: one sentence, and the model is not asked", mounts, async () => {
  await using place = await project();
  await using _ = await tiny(place, { flags: "ro" });
  await using backend = startBackend([say("never")]);
  const cwd = join(place.path, "tiny");
  const { code, stderr } = await svc(run(backend, "go"), { cwd, home: place.path });
  assert.equal(code, 1);
  saysPlainly(stderr, /could not be written: Read-only file system/);
  assert.equal(backend.chats.length, 0);
});

Deno.test("an unusable sessions directory: one sentence, nothing changed", async () => {
  for (const session of [[], ["--session-id", "s"]]) {
    await using file = await project({ ".svc": "mine" });
    await using dangling = await project({ ".svc/config.json": "{}" });
    await Deno.symlink("/no/such/folder", join(dangling.path, ".svc/sessions"));
    await using backend = startBackend([say("never")]);
    const kept = await svc(run(backend, ...session, "go"), { cwd: file.path });
    assert.equal(kept.code, 2);
    saysPlainly(kept.stderr, /\.svc is a file, and svc keeps its state in a directory/);
    const { code, stderr } = await svc(run(backend, ...session, "go"), { cwd: dangling.path });
    assert.equal(code, 2);
    saysPlainly(stderr, /\.svc\/sessions is a link that leads out of /);
    assert.equal(await file.read(".svc"), "mine");
    assert.equal(backend.chats.length, 0);
  }
});

Deno.test("a run works without a home directory", async () => {
  await using place = await project();
  await using backend = startBackend([say("hi")]);
  const home = join(place.path, "none");
  const { code, stderr } = await svc(run(backend, "go"), { cwd: place.path, home });
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
});

Deno.test("a run works with a read-only home directory", mounts, async () => {
  await using place = await project();
  await using _ = await tiny(place, { flags: "ro" });
  await using backend = startBackend([say("hi")]);
  const home = join(place.path, "tiny");
  const { code, stderr } = await svc(run(backend, "go"), { cwd: place.path, home });
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
});

Deno.test("without HOME a run says so, and help is there all the same", async () => {
  await using place = await project();
  const options = { cwd: place.path, env: { HOME: "" } };
  const { code, stderr } = await svc(["run", "go"], options);
  assert.equal(code, 2);
  saysPlainly(stderr, /HOME is not set/);
  for (const args of [["--version"], ["--help"], ["run", "--help"]]) {
    assert.equal((await svc(args, options)).code, 0, args.join(" "));
  }
});

Deno.test("a reader that closes the pipe does not end the run", async () => {
  await using place = await project();
  const replies = [call("file_write", { path: "out", content: "written" }), say("done")];
  await using backend = startBackend(replies);
  const output = ["--session-id", "s", "--output", "stream-json", "--verbose"];
  const child = startSvc(run(backend, ...output, "go"), { cwd: place.path });
  await child.stdout.cancel();
  await child.stderr.cancel();
  assert.equal((await child.status).code, 0);
  assert.equal(await place.read("out"), "written");
  assert.equal(log(place.path, "s").turns[0].status, "ok");
});

Deno.test("SIGTERM in the middle of a command: the command is gone, exit 130, the log says so", async () => {
  await using place = await project();
  const child = await startCommand(place, "echo begun > told; sleep 300");
  child.kill("SIGTERM");
  assert.equal((await child.status).code, 130);
  const [turn] = log(place.path, "s").turns;
  assert.equal(turn.status, "cancelled");
  assert.match(turn.parts.at(-1).output, /^Error: cancelled/);
  await noProcessesLeft(place.path);
  assert.deepEqual(sessionFiles(place.path), ["s.json"]);
});

Deno.test("a second Ctrl-C ends a run whose command ignores the first, and the command", async () => {
  await using place = await project();
  // `wait` ends when the signal comes; while a command in front runs, the shell would put the trap off.
  const child = await startCommand(
    place,
    "trap 'echo the command has been told to end > termed' TERM; sleep 300 & echo begun > told; wait; sleep 300",
  );
  const termed = told(place, "termed", child);
  child.kill("SIGINT");
  assert.equal(await termed, "the command has been told to end\n");
  child.kill("SIGINT");
  assert.equal((await child.status).code, 130);
  await noProcessesLeft(place.path);
});

/** A run in the middle of a shell command, which writes `begun` to `told`. */
async function startCommand(
  place: Project,
  command: string,
): Promise<Deno.ChildProcess> {
  await new Deno.Command("mkfifo", { args: ["told", "termed"], cwd: place.path }).output();
  await using backend = startBackend([call("run_command", { command, timeout: 600 })]);
  const args = run(backend, "--yes", "--session-id", "s", "go");
  const child = startSvc(args, { cwd: place.path });
  await child.stdout.cancel();
  await child.stderr.cancel();
  assert.equal(await told(place, "told", child), "begun\n");
  return child;
}

/** What a command writes to a named pipe, or that its run has ended. */
async function told(place: Project, name: string, child: Deno.ChildProcess): Promise<string> {
  using pipe = await Deno.open(join(place.path, name), { read: true, write: true });
  const bytes = new Uint8Array(100);
  child.status.then(() => pipe.write(new TextEncoder().encode("the run has ended\n")))
    .catch(() => {}); // closed, since the command has written
  const length = await pipe.read(bytes);
  return new TextDecoder().decode(bytes.subarray(0, length!));
}

Deno.test("two runs on one session wait for each other, and say so", async () => {
  await using place = await project();
  const first = Promise.withResolvers<void>();
  await using backend = startBackend({
    replies: [{ ...say("one"), when: { user: "first" } }, {
      ...say("two"),
      when: { user: "second" },
    }],
  }, { onRequest: ({ body }) => body.messages.at(-1).content === "first" && first.promise });
  const args = (prompt: string) => run(backend, "--session-id", "s", prompt);
  const one = svc(args("first"), { cwd: place.path });
  await backend.arrived(1);
  const two = startSvc(args("second"), { cwd: place.path });
  const reader = two.stderr.pipeThrough(new TextDecoderStream()).getReader();
  assert.match((await reader.read()).value ?? "", /busy with another turn; waiting/);
  assert.equal(backend.chats.length, 1);
  first.resolve();
  assert.equal((await one).code, 0);
  await two.stdout.cancel();
  assert.equal((await two.status).code, 0);
  await reader.cancel();
  const texts = log(place.path, "s").turns.map((turn: { parts: { text: string }[] }) =>
    turn.parts.map(({ text }) => text)
  );
  assert.deepEqual(texts, [["first", "one"], ["second", "two"]]);
  const history = backend.chats[1].messages.slice(1);
  assert.deepEqual(history.map(({ content }: { content: string }) => content), [
    "first",
    "one",
    "second",
  ]);
});

Deno.test("eight runs on eight sessions do not disturb each other", async () => {
  await using place = await project({ "a.txt": "x" });
  const names = Array.from({ length: 8 }, (_, i) => `s${i}`);
  const replies = names.flatMap((name) => [
    { ...call("file_read", { path: "a.txt" }), when: { user: name } },
    { ...say(`for ${name}`), when: { user: name } },
  ]);
  await using backend = startBackend({ replies });
  const ends = await Promise.all(
    names.map((name) => svc(run(backend, "--session-id", name, name), { cwd: place.path })),
  );
  ends.forEach(({ code, stdout, stderr }, i) => {
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "" });
    assert.equal(JSON.parse(stdout).content, `for ${names[i]}`);
    assert.deepEqual(
      log(place.path, names[i]!).turns[0].parts.map(({ type }: { type: string }) => type),
      ["user", "tool", "text"],
    );
  });
  assert.deepEqual(sessionFiles(place.path).sort(), names.map((name) => `${name}.json`));
});

Deno.test("an unreadable session file: exit 2, and it stays unchanged", async () => {
  const files = { old: '{"messages":[]}', broken: '{"turns": [', other: "[]" };
  await using place = await project(
    Object.fromEntries(
      Object.entries(files).map(([name, text]) => [`.svc/sessions/${name}.json`, text]),
    ),
  );
  await using backend = startBackend([say("never")]);
  for (const [name, text] of Object.entries(files)) {
    const { code, stderr } = await svc(run(backend, "--session-id", name, "go"), {
      cwd: place.path,
    });
    assert.equal(code, 2, name);
    saysPlainly(stderr, /cannot be continued/);
    assert.equal(await place.read(`.svc/sessions/${name}.json`), text);
  }
  assert.deepEqual(sessionFiles(place.path).sort(), ["broken.json", "old.json", "other.json"]);
});

Deno.test("an invalid journal is set aside with a warning, and the run continues", async () => {
  await using place = await project();
  await using backend = startBackend([say("one"), say("two")]);
  const args = run(backend, "--session-id", "s", "go");
  await svc(args, { cwd: place.path });
  await place.write(".svc/sessions/.s.journal", "no journal\n\u0000\n");
  const { code, stderr } = await svc(args, { cwd: place.path });
  assert.equal(code, 0);
  assert.match(stderr, /^warning: The journal of session s .* kept as .*\n$/);
  assert.equal(log(place.path, "s").turns.length, 2);
  const aside = sessionFiles(place.path).find((name) => name.startsWith(".s.journal."));
  assert.equal(await place.read(`.svc/sessions/${aside}`), "no journal\n\u0000\n");
});

Deno.test("a backend that goes away between rounds: exit 1, the tool results are kept", async () => {
  await using place = await project({ "a.txt": "x" });
  const backend = startBackend([call("file_read", { path: "a.txt" }), hang()]);
  const running = svc(run(backend, "--session-id", "s", "go"), { cwd: place.path });
  await place.write(".svc/config.json", '{ "stream_retries": 0, "retry_budget": 0 }');
  await backend.arrived(2);
  await backend.close();
  const { code, stdout, stderr } = await running;
  assert.equal(code, 1);
  assert.equal(JSON.parse(stdout).status, "error");
  assert.match(stderr, /tool results so far are saved/);
  const [turn] = log(place.path, "s").turns;
  assert.deepEqual(turn.parts.map(({ type }: { type: string }) => type), ["user", "tool"]);
  assert.equal(turn.status, "error");
});

Deno.test("nothing a backend sends reaches the terminal as an escape sequence", async () => {
  await using place = await project();
  const bad = "\u001b]0;owned\u0007\u001b[2J\u009b31m\u202edanger\r";
  await using backend = startBackend({
    replies: [
      call("file_read", { path: bad }, { text: bad, thinking: bad }),
      call(`no_such_${bad}`, { [bad]: bad }),
      call("file_write", { path: "x", content: bad }),
      cut(bad),
      { status: 400, body: { error: { message: bad } } },
    ],
  });
  for (const output of ["text", "json", "stream-json"]) {
    const args = run(backend, "--verbose", "--yes", "--output", output, "go");
    const { stdout, stderr } = await svc(args, { cwd: place.path });
    // deno-lint-ignore no-control-regex
    assert.doesNotMatch(stdout + stderr, /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]/, output);
  }
});

Deno.test("a prompt of 5 MB reaches the model, and one that is not UTF-8 is refused", async () => {
  await using place = await project();
  await using backend = startBackend([say("one")]);
  const long = "long ".repeat(1_000_000).trim();
  assert.equal((await svc(run(backend), { cwd: place.path, stdin: long })).code, 0);
  assert.equal(backend.chats[0].messages.at(-1).content, long);
  const child = startSvc(run(backend, "--session-id", "s", "-"), { cwd: place.path, stdin: "" });
  const writer = child.stdin.getWriter();
  await writer.write(new Uint8Array([0x61, 0xff, 0x62, 0xc3]));
  await writer.close();
  const { code, stderr } = await child.output();
  assert.equal(code, 2);
  saysPlainly(new TextDecoder().decode(stderr), /Standard input is no text/);
  assert.deepEqual([backend.chats.length, sessionFiles(place.path).includes("s.json")], [1, false]);
});

Deno.test("a huge instructions file is skipped with a warning, and not read", async () => {
  await using place = await project({ "AGENTS.md": "" });
  await Deno.truncate(join(place.path, "AGENTS.md"), 3 * 1024 ** 3); // more than a string can hold
  await using backend = startBackend([say("one")]);
  const { code, stderr } = await svc(run(backend, "go"), { cwd: place.path });
  assert.equal(code, 0);
  assert.match(stderr, /^AGENTS\.md .*left out/);
});

Deno.test("a worktree may have any name", async () => {
  await using place = await project();
  await using backend = startBackend({
    replies: [call("file_write", { path: "ä b/c", content: "x" }), say("done")],
    loop: true,
  });
  for (const name of ["with space", "Grüße 世界 🌍", "line\nbreak", "-p", "a'b\"c$d`e", "%2e%2e"]) {
    const worktree = join(place.path, name);
    await Deno.mkdir(worktree);
    const { code, stderr } = await svc(run(backend, "--path", worktree, "go"), { cwd: place.path });
    assert.deepEqual({ code, stderr }, { code: 0, stderr: "" }, name);
    assert.equal(await Deno.readTextFile(join(worktree, "ä b/c")), "x");
    assert.equal(sessionFiles(worktree).length, 1);
  }
});

Deno.test("a clock that is put back harms neither a turn nor its log", async () => {
  await using place = await project({ "a.txt": "x" });
  await using backend = startBackend([call("file_read", { path: "a.txt" }), say("done")]);
  let now = Date.now();
  const workspace = Workspace.open({
    path: place.path,
    environment: { home: place.path, cwd: place.path, get: trusting },
    overrides: { base_url: backend.url, model: "m" },
    clock: { ...systemClock, now: () => now -= 3_600_000 },
  });
  await workspace.load({ tools: "all" });
  const operator = headlessOperator(false);
  const started = await startAgent(workspace, { operator, headless: true });
  const { session } = started;
  const { events, result } = await collect(started.turn("go"));
  await started.close();
  assert.equal(result.status, "ok");
  assert.equal(result.duration, 0);
  const done = events.find((event) => event.type === "tool_result");
  assert.equal(done?.type === "tool_result" && done.duration, 0);
  assert.deepEqual(workspace.sessions.read(session.name), log(place.path, session.name));
  assert.equal(log(place.path, session.name).turns[0].status, "ok");
});

Deno.test("among 10,000 sessions a run creates its own, with a new id", async () => {
  await using place = await project({ ".svc/sessions/old.json": "{}" });
  const folder = join(place.path, ".svc/sessions");
  const name = (i: number) => `ses_20260101_000000_${i.toString(36).padStart(6, "0")}.json`;
  for (let i = 0; i < 10_000; i++) await Deno.link(join(folder, "old.json"), join(folder, name(i)));
  await using backend = startBackend([say("hi")]);
  const { code, stdout } = await svc(run(backend, "go"), { cwd: place.path });
  assert.equal(code, 0);
  assert.equal(log(place.path, JSON.parse(stdout).session).turns.length, 1);
  assert.equal(sessionFiles(place.path).length, 10_002);
});

Deno.test("a standard error that takes no bytes does not end the run", async () => {
  await using work = await project();
  await using backend = startBackend([say("done")]);
  const options = { cwd: work.path };
  const words = commandLine(run(backend, "--verbose", "-p", "go"));
  const child = new Deno.Command("sh", {
    args: ["-c", 'exec "$@" 2>/dev/full', "sh", ...words],
    ...processOptions(options),
    stdin: "null",
    stdout: "piped",
  });
  const { code, stdout } = await child.output();
  assert.equal(code, 0);
  assert.equal(JSON.parse(new TextDecoder().decode(stdout)).content, "done");
});
