import assert from "node:assert/strict";
import { sessionChanges, undo, UndoRefused } from "../../src/engine/undo.ts";
import { agent, type TestAgent } from "../support/agent.ts";
import { call, calls, type Reply, say } from "../support/backend.ts";
import { repository } from "../support/git.ts";
import { exists } from "../../src/platform/files.ts";

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
