import assert from "node:assert/strict";
import type { SessionDocument } from "../../src/sessions/schema.ts";
import { call, calls, hang, say, startBackend } from "../support/backend.ts";
import { repository } from "../support/git.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { session } from "../support/repl.ts";

const ALLOWED = JSON.stringify({ tool_permission: { edit: "allow", bash: "allow" } });

Deno.test("a headless run keeps what it changes, for svc changes, svc undo and svc redo", async () => {
  await using place = await project({ ".svc/config.json": ALLOWED });
  await repository(place, ".", { "a.txt": "one\n", "b.txt": "one\n" });
  await using backend = startBackend([
    calls([
      ["file_edit", { path: "a.txt", old: "one", new: "two" }],
      ["run_command", { command: "sed -i s/one/two/ b.txt" }],
    ]),
    say("done"),
  ]);
  const at = { cwd: place.path };
  const run = ["run", "--base-url", backend.url, "--model", "m", "--session-id", "night"];
  assert.equal((await svc([...run, "-p", "go"], at)).code, 0);
  const shown = await svc(["changes"], at);
  assert.match(
    shown.stdout,
    /^Turn 1 of night, .* UTC \(.*\): 2 files\n {2}changed a\.txt \(\+1 -1\)\n {2}changed b\.txt \(\+1 -1\)\n\n--- a\/a\.txt\n/,
  );
  const undone = await svc(["undo", "night"], at);
  assert.equal(
    undone.stdout,
    "The changes of turn 1 of night are taken back: 2 files\n  a.txt\n  b.txt\n",
  );
  assert.deepEqual([await place.read("a.txt"), await place.read("b.txt")], ["one\n", "one\n"]);
  const again = await svc(["undo"], at);
  assert.deepEqual([again.code, again.stderr.includes("No turn of this session")], [1, true]);
  assert.match((await svc(["changes"], at)).stdout, /: 2 files, taken back\n/);

  await place.write("b.txt", "mine\n");
  const refused = await svc(["redo", "--turn", "1", "--output", "json"], at);
  assert.equal(refused.code, 1);
  assert.deepEqual(JSON.parse(refused.stdout), {
    session: "night",
    turn: 1,
    refused: [{ path: "b.txt", reason: "changed since" }],
  });
  await place.write("b.txt", "one\n");
  assert.deepEqual(
    JSON.parse((await svc(["redo", "--output", "json"], at)).stdout).state,
    "applied",
  );
  assert.equal(await place.read("a.txt"), "two\n");

  const unknown = await svc(["changes", "nihgt"], at);
  assert.deepEqual([unknown.code, unknown.stderr.includes('Did you mean "night"?')], [2, true]);
  const { turns }: SessionDocument = JSON.parse(await place.read(".svc/sessions/night.json"));
  assert.deepEqual(
    turns.slice(1).map(({ parts, status }) => [status, ...parts.map(({ type }) => type)]),
    [["ok", "command", "system"], ["ok", "command", "system"]],
  );
  // The worktree stays clean for Git.
  const status = await new Deno.Command("git", { args: ["status", "--porcelain"], cwd: place.path })
    .output();
  assert.doesNotMatch(new TextDecoder().decode(status.stdout), /checkpoints/);
  assert.equal((await svc(["sessions", "delete", "night"], at)).code, 0);
  const left = [...Deno.readDirSync(`${place.path}/.svc/checkpoints/sessions`)];
  const contents = [...Deno.readDirSync(`${place.path}/.svc/checkpoints/contents`)];
  assert.deepEqual([left, contents], [[], []]);
});

Deno.test("what a killed run changed is found, and can be taken back", async () => {
  await using place = await project({ ".svc/config.json": ALLOWED });
  await repository(place, ".", { "a.txt": "one\n", "b.txt": "one\n" });
  await using backend = startBackend([
    calls([
      ["file_edit", { path: "a.txt", old: "one", new: "two" }],
      ["run_command", { command: "sed -i s/one/two/ b.txt; echo made > c.txt" }],
    ]),
    hang("I am"),
  ]);
  const at = { cwd: place.path };
  const args = ["run", "--base-url", backend.url, "--model", "m", "--session-id", "x", "-p", "go"];
  const run = startSvc(args, at);
  await backend.arrived(2);
  const busy = await svc(["undo", "x"], at);
  assert.deepEqual([busy.code, busy.stderr.includes("has a turn running")], [1, true]);
  assert.match((await svc(["changes", "x"], at)).stdout, /still running\n.*\n {2}changed a\.txt/);
  run.kill("SIGKILL");
  await run.output();
  const shown = await svc(["changes", "x"], at);
  assert.match(
    shown.stdout,
    /: 3 files\n {2}The process ended in this turn\..*\n {2}changed a\.txt/,
  );
  const undone = await svc(["undo", "x"], at);
  assert.deepEqual([undone.code, undone.stderr.includes("svc redo x --turn 1")], [0, true]);
  assert.deepEqual([await place.read("a.txt"), await place.read("b.txt")], ["one\n", "one\n"]);
});

Deno.test("outside of Git, svc changes says that the changes of commands are not known", async () => {
  await using place = await project({ ".svc/config.json": ALLOWED });
  await using backend = startBackend([
    call("run_command", { command: "cat a.txt; ls" }),
    say("read"),
    call("run_command", { command: "echo x > a.txt" }),
    say("written"),
  ]);
  const at = { cwd: place.path };
  const run = ["run", "--base-url", backend.url, "--model", "m", "--session-id", "x", "-p", "go"];
  await svc(run, at);
  assert.match((await svc(["changes"], at)).stderr, /No session has changed a file/);
  await svc(run, at);
  assert.match(
    (await svc(["changes"], at)).stdout,
    /^Turn 2 of x, .*: 0 files\n {2}What commands changed is not known: the worktree is not in a Git repository\.\n$/,
  );
});

Deno.test("/undo and /redo take back and redo the turn of a terminal session, and the model is told", async () => {
  await using it = await session([
    call("file_write", { path: "a.txt", content: "hello\n" }),
    say("written"),
    say("understood"),
  ], { config: { tool_permission: { edit: "allow" } } });
  await it.enter("/undo", "No turn");
  await it.enter("write it", "written");
  await it.enter("/changes", "added a.txt (+1 -0)");
  await it.enter("/undo", "taken back: 1 file");
  assert.equal(await it.place.read("a.txt").catch(() => "gone"), "gone");
  await it.enter("and now?", "understood");
  const { messages } = it.backend.chats.at(-1);
  assert.match(JSON.stringify(messages), /taken back the changes of turn 1: a\.txt/);
  await it.enter("/redo", "made again: 1 file");
  assert.equal(await it.place.read("a.txt"), "hello\n");
  assert.equal(await it.leave(), 0);
});
