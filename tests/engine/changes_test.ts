import assert from "node:assert/strict";
import { openCheckpoints } from "../../src/engine/changes.ts";
import { teamTurn } from "../../src/engine/team_turn.ts";
import { planTeam } from "../../src/engine/teams.ts";
import { sessionChanges, undo, UndoRefused } from "../../src/engine/undo.ts";
import { Workspace } from "../../src/engine/workspace.ts";
import { exists } from "../../src/platform/files.ts";
import { beginCheckpoint } from "../../src/sessions/turn_checkpoint.ts";
import type { Operator } from "../../src/policy/operator.ts";
import { agent, collect, subs, type TestAgent } from "../support/agent.ts";
import { as, call, calls, type Reply, say } from "../support/backend.ts";
import { repository } from "../support/git.ts";
import { project } from "../support/project.ts";
import { frozen, mounts, tiny } from "../support/tiny_disk.ts";

const ALLOWED = { tool_permission: { edit: "allow", bash: "allow", delegate: "allow" } };

async function work(
  replies: Reply[],
  files: Record<string, string> = {},
  config: Record<string, unknown> = {},
): Promise<TestAgent> {
  return await agent(replies, { files, config: { ...ALLOWED, ...config } });
}

/** An agent in a Git worktree whose files are committed. */
async function committed(replies: Reply[], files: Record<string, string>): Promise<TestAgent> {
  const it = await work(replies);
  await repository(it.project, ".", files);
  return it;
}

async function changed(it: TestAgent, turn?: number) {
  const found = await sessionChanges(it.workspace, { session: it.session.name, turn });
  return found!.turns;
}

/** `<change> <path>` of each file. */
async function names(it: TestAgent): Promise<string[]> {
  const [turn] = (await changed(it)).slice(-1);
  return turn?.files.map(({ change, from, path }) => `${change} ${from && `${from} -> `}${path}`) ??
    [];
}

Deno.test("the changes of file tools are shown as a diff, taken back and made again", async () => {
  await using it = await work([
    calls([
      ["file_edit", { path: "a.txt", old: "one", new: "two" }],
      ["file_write", { path: "new/b.txt", content: "b\n" }],
    ]),
    say("done"),
  ], { "a.txt": "one\nrest\n" });
  await it.turn("go");
  const [turn] = await changed(it);
  assert.equal(turn!.state, "applied");
  assert.deepEqual(
    turn!.files.map(({ path, change, added, removed }) => [path, change, added, removed]),
    [
      ["a.txt", "changed", 1, 1],
      ["new/b.txt", "added", 1, 0],
    ],
  );
  assert.equal(
    turn!.files[0]!.diff,
    "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+two\n rest\n",
  );

  const done = await undo(it.workspace, { session: it.session.name });
  assert.deepEqual(done.files, ["a.txt", "new/b.txt"]);
  assert.equal(await it.project.read("a.txt"), "one\nrest\n");
  assert.equal(exists(`${it.project.path}/new`), false);
  assert.equal((await changed(it))[0]!.state, "undone");

  await undo(it.workspace, { session: it.session.name, redo: true });
  assert.equal(await it.project.read("a.txt"), "two\nrest\n");
  assert.equal(await it.project.read("new/b.txt"), "b\n");
  assert.equal((await changed(it))[0]!.state, "applied");
});

Deno.test("in a Git worktree, the changes of commands are found by comparing", async () => {
  await using it = await committed([
    call("run_command", {
      command:
        "sed -i s/one/two/ clean.txt dirty.txt untracked.txt && rm gone.txt && git mv old.txt moved.txt && " +
        "echo x > made.txt && chmod +x run.sh && ln -s clean.txt link && git commit -qam x 2>/dev/null; " +
        "git checkout -q -- reverted.txt",
    }),
    say("done"),
  ], {
    "clean.txt": "one\n",
    "dirty.txt": "0\n",
    "gone.txt": "gone\n",
    "old.txt": "moved\n",
    "run.sh": "true\n",
    "reverted.txt": "committed\n",
    "same.txt": "same\n",
  });
  await it.project.write("dirty.txt", "one dirty\n");
  await it.project.write("untracked.txt", "one untracked\n");
  await it.project.write("reverted.txt", "not committed\n");
  await it.turn("go");
  assert.deepEqual(await names(it), [
    "changed clean.txt",
    "changed dirty.txt",
    "deleted gone.txt",
    "added link",
    "added made.txt",
    "renamed old.txt -> moved.txt",
    "changed reverted.txt",
    "mode run.sh",
    "changed untracked.txt",
  ]);
  await undo(it.workspace, { session: it.session.name });
  const read = (file: string) => it.project.read(file);
  assert.equal(await read("clean.txt"), "one\n");
  assert.equal(await read("dirty.txt"), "one dirty\n");
  assert.equal(await read("gone.txt"), "gone\n");
  assert.equal(await read("old.txt"), "moved\n");
  assert.equal(await read("reverted.txt"), "not committed\n");
  assert.equal(await read("untracked.txt"), "one untracked\n");
  assert.equal(Deno.statSync(`${it.project.path}/run.sh`).mode! & 0o111, 0);
  for (const file of ["link", "made.txt", "moved.txt"]) {
    assert.equal(exists(`${it.project.path}/${file}`), false, file);
  }
  await undo(it.workspace, { session: it.session.name, redo: true });
  assert.equal(Deno.readLinkSync(`${it.project.path}/link`), "clean.txt");
  assert.equal(await read("clean.txt"), "two\n");
  assert.equal(await read("reverted.txt"), "committed\n");
});

Deno.test("undo changes nothing when a file has changed since, and names the file", async () => {
  await using it = await work([
    calls([
      ["file_write", { path: "a.txt", content: "a\n" }],
      ["file_write", { path: "b.txt", content: "b\n" }],
    ]),
    say("done"),
  ]);
  await it.turn("go");
  await it.project.write("b.txt", "mine\n");
  const undone = undo(it.workspace, { session: it.session.name });
  await assert.rejects(undone, (error) => {
    assert.ok(error instanceof UndoRefused);
    assert.deepEqual(error.files, [{ path: "b.txt", reason: "changed since" }]);
    return true;
  });
  assert.equal(await it.project.read("a.txt"), "a\n");
});

Deno.test("the changes of a sub-agent belong to the turn that started it, and are told with its session", async () => {
  await using it = await work([
    { ...call("delegate", { role: "maker", task: "make it" }), when: { user: "go" } },
    as("YOU MAKE", call("file_write", { path: "made.txt", content: "made\n" })),
    as("YOU MAKE", say("made")),
    say("all done"),
  ], {
    ".svc/roles.json": JSON.stringify({
      maker: { system_prompt: "YOU MAKE", tool_permission: { edit: "allow" } },
    }),
  });
  const { events } = await it.turn("go");
  const [sub] = subs(events);
  const [turn] = await changed(it);
  assert.deepEqual(turn!.files.map(({ path, agents }) => [path, agents]), [["made.txt", [sub]]]);
  const asked = await sessionChanges(it.workspace, { session: sub });
  assert.equal(asked!.session, it.session.name);
});

Deno.test("what a team changes belongs to the turn of the team", async () => {
  await using it = await work([
    as("YOU MAKE", call("file_write", { path: "made.txt", content: "made\n" })),
    as("YOU MAKE", say("made")),
  ], {
    ".svc/roles.json": JSON.stringify({
      maker: { system_prompt: "YOU MAKE", tool_permission: { edit: "allow" } },
    }),
    ".svc/teams.json": JSON.stringify({ one: { stages: ["maker"] } }),
  });
  const started = (await it.prepare()).open(it.session);
  const plan = await planTeam(started.agents, "one");
  const { signal } = new AbortController();
  await collect(teamTurn(started, { plan, task: "go", command: "/teams run one go" }, { signal }));
  assert.deepEqual(await names(it), ["added made.txt"]);
});

Deno.test("binary files, modes and links are said, and contents are readable by the owner alone", async () => {
  await using it = await committed([
    call("run_command", { command: "printf 'a\\0c' > bin; chmod +x run.sh; ln -sf b link; ls" }),
    say("done"),
  ], { bin: "a\0b", "run.sh": "true\n" });
  Deno.symlinkSync("a", `${it.project.path}/link`);
  await it.turn("go");
  const [turn] = await changed(it);
  assert.deepEqual(turn!.files.map(({ path, binary, note }) => [path, binary, note]), [
    ["bin", true, "binary, 3 to 3 bytes"],
    ["link", false, "a symbolic link"],
    ["run.sh", false, "mode 644 became 755"],
  ]);
  const folder = `${it.project.path}/.svc/checkpoints/sessions/${it.session.name}`;
  for (const { name } of Deno.readDirSync(folder)) {
    assert.equal(Deno.statSync(`${folder}/${name}`).mode! & 0o777, 0o600, name);
  }
  assert.equal(Deno.statSync(folder).mode! & 0o777, 0o700);
  await undo(it.workspace, { session: it.session.name });
  assert.equal(await it.project.read("bin"), "a\0b");
  assert.equal(Deno.readLinkSync(`${it.project.path}/link`), "a");
});

Deno.test("files outside the worktree are only taken back when that is allowed", async () => {
  await using outside = await project({ "o.txt": "one\n" });
  const path = `${outside.path}/o.txt`;
  const operator: Operator = {
    confirm: () => Promise.resolve({ granted: true, by: "user", scope: "once" as const }),
    ask: () => Promise.reject(new Error("no question")),
  };
  await using it = await agent([
    call("file_edit", { path, old: "one", new: "two" }),
    say("done"),
  ], { operator, headless: false, config: ALLOWED });
  await it.turn("go");
  assert.equal(await outside.read("o.txt"), "two\n");
  const session = it.session.name;
  await assert.rejects(undo(it.workspace, { session }), /outside the worktree, or protected/);
  assert.equal(await outside.read("o.txt"), "two\n");
  const asked: string[][] = [];
  await undo(it.workspace, {
    session,
    allow: (paths) => Promise.resolve(asked.push(paths) > 0),
  });
  assert.deepEqual(asked, [[path]]);
  assert.equal(await outside.read("o.txt"), "one\n");
});

Deno.test("a turn goes on with one warning when its changes cannot be kept", async () => {
  await using it = await work([
    calls([
      ["file_write", { path: "a.txt", content: "a\n" }],
      ["file_write", { path: "b.txt", content: "b\n" }],
    ]),
    say("done"),
  ], { ".svc/checkpoints": "not a folder" });
  const { events, result } = await it.turn("go");
  assert.equal(result.status, "ok");
  const warnings = events.flatMap((each) => each.type === "notice" ? [each.message] : []);
  assert.equal(warnings.length, 1);
  assert.match(warnings[0]!, /^What this turn changes cannot all be taken back: /);
  assert.equal(await it.project.read("b.txt"), "b\n");
});

Deno.test("a turn goes on when the disk is full", mounts, async () => {
  await using it = await work([
    call("file_edit", { path: "a.txt", old: "one", new: "two" }),
    say("done"),
  ], { "a.txt": `one${"x".repeat(100_000)}` });
  await using _ = await tiny(it.project, { at: ".svc/checkpoints" });
  const { events, result } = await it.turn("go");
  assert.equal(result.status, "ok");
  const warnings = events.flatMap((each) => each.type === "notice" ? [each.message] : []);
  assert.deepEqual(warnings, [
    "What this turn changes cannot all be taken back: No space left on device (os error 28)",
  ]);
  assert.match(await it.project.read("a.txt"), /^two/);
  assert.deepEqual(await names(it), []);
});

Deno.test("a link in the place of the checkpoints' folder is not followed", async () => {
  await using elsewhere = await project();
  await using it = await work([call("file_write", { path: "a.txt", content: "a" }), say("done")]);
  await Deno.mkdir(`${it.project.path}/.svc`, { recursive: true });
  await Deno.symlink(elsewhere.path, `${it.project.path}/.svc/checkpoints`);
  const { result } = await it.turn("go");
  assert.equal(result.status, "ok");
  assert.deepEqual([...Deno.readDirSync(elsewhere.path)], []);
});

Deno.test("nothing is kept with checkpoints.max_size 0, nor in a turn that only reads", async () => {
  const reading = calls([
    ["file_read", { path: "a.txt" }],
    ["run_command", { command: "cat a.txt | head -1 && git status" }],
  ]);
  const writing = call("file_write", { path: "a.txt", content: "b\n" });
  for (const [reply, size] of [[writing, 0], [reading, 1000]] as const) {
    await using it = await work([reply, say("done")], { "a.txt": "a\n" }, {
      "checkpoints.max_size": size,
    });
    await it.turn("go");
    assert.equal(exists(`${it.project.path}/.svc/checkpoints`), false);
  }
});

Deno.test("the contents of the oldest sessions are removed when more than checkpoints.max_size is kept", async () => {
  const write = (path: string) => call("file_write", { path, content: path.repeat(100) });
  await using it = await work(
    [write("aaa"), say("1"), write("bbb"), say("2"), write("ccc"), say("3")],
    {},
    { "checkpoints.max_size": 16 * 320 },
  );
  await it.turn("one");
  const first = it.session.name;
  // 5120 bytes in all, of which a file may have 320: the ninth session is too many.
  const old = `${it.project.path}/.svc/checkpoints/sessions`;
  for (let n = 0; n < 20; n++) {
    Deno.mkdirSync(`${old}/s${n}`);
    Deno.writeTextFileSync(`${old}/s${n}/${String(n).padStart(64, "0")}`, "x".repeat(300));
    Deno.writeTextFileSync(`${old}/s${n}/list.jsonl`, "");
    Deno.utimeSync(`${old}/s${n}/list.jsonl`, n, n);
  }
  await it.turn("two");
  await it.turn("three");
  const left = [...Deno.readDirSync(old)].map(({ name }) => name)
    .filter((name) => [...Deno.readDirSync(`${old}/${name}`)].length > 1);
  assert.ok(left.includes(first) && left.includes("s19") && !left.includes("s0"), String(left));
  await undo(it.workspace, { session: first });
});

Deno.test("a worktree in a folder of its repository, and files that Git converts, are compared", async () => {
  await using it = await work([
    call("run_command", { command: "echo two > a.txt; printf 'x\\r\\ny\\r\\n' > crlf.txt" }),
    say("done"),
    call("run_command", { command: "echo x > ../a.txt" }),
    say("done"),
  ]);
  const repo = await repository(it.project, ".", {
    "a.txt": "one\n",
    ".gitattributes": "crlf.txt text eol=crlf\n",
    "crlf.txt": "x\n",
  });
  await repo.git("rm", "-q", "--cached", "crlf.txt");
  await it.project.write("crlf.txt", "x\r\n");
  await repo.git("add", "crlf.txt");
  await it.turn("go");
  const [turn] = await changed(it);
  assert.deepEqual(turn!.files.map(({ path, note }) => [path, note]), [
    ["a.txt", ""],
    ["crlf.txt", "not shown: Git converts it"],
  ]);
  await assert.rejects(
    undo(it.workspace, { session: it.session.name }),
    /not kept: Git converts it/,
  );
  assert.equal(await it.project.read("a.txt"), "two\n");

  await it.project.write("sub/b.txt", "b\n");
  const sub = Workspace.open({
    path: `${it.project.path}/sub`,
    environment: it.workspace.environment,
  });
  const checkpoints = await openCheckpoints("x", sub);
  const began = await beginCheckpoint(checkpoints, 1);
  await began.scan();
  await it.project.write("sub/b.txt", "c\n");
  await it.project.write("a.txt", "not in the worktree\n");
  await began.end();
  const [end] = checkpoints.lines().filter(({ type }) => type === "end");
  assert.deepEqual(end?.type === "end" && end.changes.map(({ path }) => path), ["b.txt"]);

  await it.project.write(".gitignore", "/sub\n");
  await (await beginCheckpoint(checkpoints, 2)).scan();
  const last = checkpoints.lines().at(-1);
  assert.equal(last?.type === "commands" && last.unknown, "Git ignores the worktree");
});

Deno.test("a repository that names programs is not compared, and what a hostile list names is not touched", async () => {
  await using it = await committed([
    call("run_command", { command: "echo two > a.txt" }),
    say("done"),
  ], { "a.txt": "one\n" });
  await it.project.write(".git/config", '[filter "x"]\n\tclean = touch pwned\n');
  await it.turn("go");
  const [turn] = await changed(it);
  assert.match(turn!.unknown, /names programs/);
  assert.equal(exists(`${it.project.path}/pwned`), false);

  await using outside = await project({ "o.txt": "o\n" });
  const folder = `.svc/checkpoints/sessions/${it.session.name}`;
  await Deno.symlink(outside.path, `${it.project.path}/link`);
  const name = outside.path.split("/").at(-1);
  const named = [`../${name}/o.txt`, `${outside.path}/o.txt`, "link/o.txt"];
  const lines = named.map((path) =>
    JSON.stringify({ type: "keep", turn: 9, at: "2026-01-01T00:00:00Z", path, before: null })
  );
  const list = await it.project.read(`${folder}/list.jsonl`);
  await it.project.write(`${folder}/list.jsonl`, `${list}\n${lines.join("\n")}`);
  await it.project.write(`${folder}/open`, '{"turn":9}');
  await it.project.write(
    `${folder}/9.files`,
    '[["a",{"sha256":"../../../../x","size":1,"mode":1}]]',
  );
  const turns = await changed(it);
  assert.deepEqual(turns.map(({ turn, files }) => [turn, files.length]), [[1, 0]]);
});

Deno.test("a comparison that came with a worktree reads no file outside it", async () => {
  await using it = await committed([call("run_command", { command: "true" }), say("done")], {
    "a.txt": "one\n",
  });
  await it.turn("go");
  await using outside = await project({ "key": "secret of the user" });
  await it.project.write("a.txt", "two\n");
  await Deno.symlink(outside.path, `${it.project.path}/link`);
  const folder = `.svc/checkpoints/sessions/${it.session.name}`;
  const at = "2026-01-01T00:00:00Z";
  const line = { type: "commands", turn: 9, at };
  await it.project.write(`${folder}/list.jsonl`, JSON.stringify(line));
  await it.project.write(`${folder}/open`, '{"turn":9}');
  const planted = [`${outside.path}/key`, "link/key"].map((path) => [path, null]);
  await it.project.write(`${folder}/9.files`, JSON.stringify(planted));
  await Deno.copyFile(`${it.project.path}/.git/index`, `${it.project.path}/${folder}/9.index`);
  const [turn] = await changed(it, 9);
  assert.doesNotMatch(JSON.stringify(turn), /secret of the user/);
  assert.deepEqual(turn!.files.map(({ path }) => path), ["a.txt", "link"]);
});

Deno.test("no copy is kept of a file with keys, under any name", async () => {
  await using home = await project({ ".config/svc/providers.json": "key" });
  const environment = { home: home.path, cwd: home.path, get: () => undefined };
  const workspace = Workspace.open({ path: home.path, environment });
  await Deno.link(`${home.path}/.config/svc/providers.json`, `${home.path}/link`);
  const checkpoints = await openCheckpoints("x", workspace);
  checkpoints.open(1);
  for (const name of [".config/svc/providers.json", "link"]) {
    const kept = await checkpoints.capture(checkpoints.path(name));
    assert.deepEqual([kept?.sha256, kept?.missing], [undefined, "it holds keys"], name);
  }
});

Deno.test("a turn is not taken back over a file that is too large to be put back", async () => {
  const large = "x".repeat(4096);
  await using it = await work(
    [call("file_write", { path: "a.txt", content: large }), say("done")],
    { "a.txt": "one\n" },
    { "checkpoints.max_size": 16 * 1024 },
  );
  await it.turn("go");
  await assert.rejects(
    undo(it.workspace, { session: it.session.name }),
    /a\.txt \(not kept: it is too large\)/,
  );
  assert.equal(await it.project.read("a.txt"), large);
});

Deno.test("of what commands change in one turn, no more is kept than checkpoints.max_size", async () => {
  await using it = await work(
    [call("run_command", { command: "for i in *.txt; do echo two >> $i; done" }), say("done")],
    {},
    { "checkpoints.max_size": 16 * 1024 },
  );
  const files = Array.from({ length: 20 }, (_, i) => [`${i}.txt`, `${i} ${"x".repeat(900)}\n`]);
  await repository(it.project, ".", Object.fromEntries(files));
  await it.turn("go");
  const checkpoints = await openCheckpoints(it.session.name, it.workspace);
  const end = checkpoints.lines().find(({ type }) => type === "end");
  const changes = end?.type === "end" ? end.changes : [];
  const whole = (side: "before" | "after") =>
    changes.filter((change) => change[side]?.missing === undefined).length;
  assert.deepEqual([changes.length, whole("before"), whole("after")], [20, 9, 9]);
});

Deno.test("two sessions that change the same file: the first change cannot be taken back before the second", async () => {
  await using it = await work([
    call("file_write", { path: "a.txt", content: "first\n" }),
    say("1"),
    call("file_write", { path: "a.txt", content: "second\n" }),
    say("2"),
  ]);
  await it.turn("one");
  const other = await (await it.prepare({ session: "other" })).start();
  await collect(other.turn("two"));
  await other.close();
  await assert.rejects(undo(it.workspace, { session: it.session.name }), /changed since/);
  await undo(it.workspace, { session: "other" });
  assert.equal(await it.project.read("a.txt"), "first\n");
  await undo(it.workspace, { session: it.session.name });
  assert.equal(exists(`${it.project.path}/a.txt`), false);
});

Deno.test("turns are taken back one after the other, the last one first, and an undo that was cut off is finished", async () => {
  await using it = await work([
    calls([
      ["file_write", { path: "a.txt", content: "1\n" }],
      ["file_write", { path: "b.txt", content: "1\n" }],
    ]),
    say("1"),
    call("file_write", { path: "a.txt", content: "2\n" }),
    say("2"),
  ]);
  const session = it.session.name;
  await it.turn("one");
  await it.turn("two");
  await assert.rejects(
    undo(it.workspace, { session, turn: 1 }),
    /a\.txt \(changed since, by turn 2\)/,
  );
  await assert.rejects(undo(it.workspace, { session, turn: 7 }), /Turn 7 of .* changed no file/);
  assert.equal((await undo(it.workspace, { session })).turn, 2);
  await Deno.remove(`${it.project.path}/b.txt`); // as the process that was killed had done
  assert.equal((await undo(it.workspace, { session })).turn, 1);
  assert.equal(exists(`${it.project.path}/a.txt`), false);
  assert.equal((await undo(it.workspace, { session, redo: true })).turn, 1);
  assert.equal(await it.project.read("b.txt"), "1\n");
  assert.equal((await undo(it.workspace, { session, redo: true })).turn, 2);
  await assert.rejects(
    undo(it.workspace, { session, redo: true }),
    /No turn of this session is taken back/,
  );
});

Deno.test({
  name: "an undo that fails in the middle puts back what it had written",
  ...mounts,
  async fn() {
    await using it = await work([
      calls([
        ["file_write", { path: "a.txt", content: "two\n" }],
        ["file_write", { path: "fixed/b.txt", content: "two\n" }],
      ]),
      say("done"),
    ], { "a.txt": "one\n", "fixed/b.txt": "one\n" });
    await it.turn("go");
    await using _ = await frozen(`${it.project.path}/fixed`);
    await assert.rejects(undo(it.workspace, { session: it.session.name }), /Nothing was changed: /);
    assert.equal(await it.project.read("a.txt"), "two\n");
    assert.equal((await changed(it))[0]!.state, "applied");
    assert.equal(it.session.document().turns.at(-1)!.status, "error");
  },
});
