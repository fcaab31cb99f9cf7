import assert from "node:assert/strict";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import * as plugin from "../src/plugin.ts";

const tools = pluginTools(plugin);

Deno.test("file_write creates a file, with its folders [4.8]", async () => {
  await using work = await project();
  const context = toolContext({ worktree: work.path });
  const args = { path: "a/b/c.txt", content: "one\ntwo 😀" };
  const outcome = await tools.call("file_write", args, context);
  assert.equal(outcome.output, `Created ${work.path}/a/b/c.txt (2 lines, 9 chars)`);
  assert.equal(await work.read("a/b/c.txt"), "one\ntwo 😀");
});

Deno.test("file_write overwrites a file or appends to it [4.8]", async () => {
  await using work = await project({ "a.txt": "old\n" });
  const context = toolContext({ worktree: work.path });
  const over = await tools.call("write", { path: "a.txt", content: "new\n" }, context);
  assert.equal(over.output, `Overwritten ${work.path}/a.txt (1 lines, 4 chars)`);
  const more = await tools.call(
    "write_file",
    { path: "a.txt", content: "x\ny\n", mode: "a" },
    context,
  );
  assert.equal(more.output, `Appended ${work.path}/a.txt (2 lines, 4 chars)`);
  assert.equal(await work.read("a.txt"), "new\nx\ny\n");
  const fresh = await tools.call("write", { path: "b.txt", content: "", mode: "a" }, context);
  assert.equal(fresh.output, `Created ${work.path}/b.txt (0 lines, 0 chars)`);
  assert.equal(tools.registry.find("file_write")?.permission, "edit");
});

Deno.test("an overwritten file is replaced whole, keeps its mode, and leaves no temporary file", async () => {
  await using work = await project({ "run.sh": "old" });
  await Deno.chmod(`${work.path}/run.sh`, 0o775);
  const before = await Deno.stat(`${work.path}/run.sh`);
  const context = toolContext({ worktree: work.path });
  await tools.call("file_write", { path: "run.sh", content: "new" }, context);
  const after = await Deno.stat(`${work.path}/run.sh`);
  assert.equal(after.mode! & 0o7777, 0o775);
  assert.notEqual(after.ino, before.ino);
  assert.deepEqual(Array.from(Deno.readDirSync(work.path), (entry) => entry.name), ["run.sh"]);
});

Deno.test("a file with hard links is replaced, and its other names keep the old text", async () => {
  await using work = await project({ "a.txt": "a longer old text" });
  await Deno.link(`${work.path}/a.txt`, `${work.path}/b.txt`);
  const context = toolContext({ worktree: work.path });
  await tools.call("file_write", { path: "a.txt", content: "new" }, context);
  assert.deepEqual([await work.read("a.txt"), await work.read("b.txt")], [
    "new",
    "a longer old text",
  ]);
  await Deno.link(`${work.path}/a.txt`, `${work.path}/c.txt`);
  await tools.call("file_write", { path: "a.txt", content: "er", mode: "a" }, context);
  assert.deepEqual([await work.read("a.txt"), await work.read("c.txt")], ["newer", "new"]);
  await Deno.link(`${work.path}/a.txt`, `${work.path}/d.txt`);
  await tools.call("file_edit", { path: "d.txt", old: "newer", new: "old" }, context);
  assert.deepEqual([await work.read("a.txt"), await work.read("d.txt")], ["newer", "old"]);
});

Deno.test("a symbolic link stays one, and its target is written", async () => {
  await using work = await project({ "real/a.txt": "old" });
  await Deno.symlink("real/a.txt", `${work.path}/link.txt`);
  const context = toolContext({ worktree: work.path });
  const outcome = await tools.call("file_write", { path: "link.txt", content: "new" }, context);
  assert.equal(outcome.output, `Overwritten ${work.path}/real/a.txt (1 lines, 3 chars)`);
  assert.ok((await Deno.lstat(`${work.path}/link.txt`)).isSymlink);
  assert.equal(await work.read("real/a.txt"), "new");
});

Deno.test("a file approved without its folder is written in place", async () => {
  await using work = await project({ "a.txt": "a longer old text" });
  const context = toolContext({ worktree: work.path });
  const paths = { ...context.paths, contains: (path: string) => path === `${work.path}/a.txt` };
  const { ino } = await Deno.stat(`${work.path}/a.txt`);
  await tools.call("file_write", { path: "a.txt", content: "new" }, { ...context, paths });
  assert.equal(await work.read("a.txt"), "new");
  assert.equal((await Deno.stat(`${work.path}/a.txt`)).ino, ino);
});

Deno.test("a path outside the worktree is not written", async () => {
  await using work = await project();
  await using other = await project();
  await Deno.symlink(other.path, `${work.path}/out`);
  const context = toolContext({ worktree: work.path });
  for (const path of ["out/a.txt", `${other.path}/a.txt`, "../a.txt"]) {
    const outcome = await tools.call("file_write", { path, content: "x" }, context);
    assert.match(outcome.output, /^Error: .*outside the worktree/);
  }
  assert.deepEqual(Array.from(Deno.readDirSync(other.path)), []);
});

Deno.test("a protected file is not replaced without an approval of its own", async () => {
  await using work = await project({ ".git": "gitdir: elsewhere\n" });
  const context = toolContext({ worktree: work.path });
  const outcome = await tools.call("file_write", { path: ".git", content: "x" }, context);
  assert.match(outcome.output, /^Error: .*protected/);
  assert.equal(await work.read(".git"), "gitdir: elsewhere\n");
});

Deno.test("only a regular file is written", async () => {
  await using work = await project({ "sub/a.txt": "" });
  await new Deno.Command("mkfifo", { args: ["pipe"], cwd: work.path }).output();
  const context = toolContext({ worktree: work.path });
  const write = async (path: string) =>
    (await tools.call("file_write", { path, content: "x" }, context)).output;
  assert.equal(await write("sub"), "Error: sub is a directory");
  assert.equal(await write("pipe"), "Error: pipe is not a regular file");
});

Deno.test("a confirmation shows a new file's text, an addition, or a diff", async () => {
  await using work = await project({ "a.txt": "one\ntwo\n" });
  await Deno.writeFile(`${work.path}/raw`, new Uint8Array([0xff, 0xfe]));
  const context = toolContext({ worktree: work.path });
  const preview = (args: unknown) => tools.preview("file_write", args, context);
  assert.equal(await preview({ path: "n.txt", content: "new\n" }), "New file n.txt:\nnew\n");
  assert.equal(
    await preview({ path: "a.txt", content: "three\n", mode: "a" }),
    "Append to a.txt:\nthree\n",
  );
  const diff = await preview({ path: "a.txt", content: "one\n2\n" });
  assert.match(diff, /--- a\.txt\n\+\+\+ a\.txt\n@@ .*@@\n one\n-two\n\+2\n$/);
  assert.equal(await preview({ path: "raw", content: "x" }), "raw is replaced by:\nx");
  assert.equal(await work.read("a.txt"), "one\ntwo\n");
});

Deno.test("made folders are removed when the file may not be written, or leads elsewhere meanwhile", async () => {
  await using work = await project();
  await using outside = await project();
  const context = toolContext({ worktree: work.path });
  const refused = await tools.call("write", { path: ".svc/plugins/x.ts", content: "x" }, context);
  assert.match(refused.output, /^Error: .* is protected, and changing it was not approved$/);
  assert.deepEqual(await Array.fromAsync(Deno.readDir(work.path)), []);

  await work.write("a/keep", "");
  const resolve = context.paths.resolve;
  const asked = new Map<string, number>();
  context.paths.resolve = (path) => {
    const real = resolve(path);
    asked.set(path, (asked.get(path) ?? 0) + 1);
    // This runs between the check and the making of the first folder.
    if (path.startsWith("/") && asked.get(path) === 1) {
      Deno.renameSync(`${work.path}/a`, `${work.path}/b`);
      Deno.symlinkSync(outside.path, `${work.path}/a`);
    }
    return real;
  };
  const swapped = await tools.call("write", { path: "a/new/deep/x", content: "x" }, context);
  assert.match(swapped.output, /^Error: .* leads outside the worktree/);
  assert.deepEqual(await Array.fromAsync(Deno.readDir(outside.path)), []);
});

Deno.test("a file is not replaced when its folder was swapped for a link", async () => {
  await using work = await project({ "a/x": "old" });
  await using outside = await project();
  const context = toolContext({ worktree: work.path });
  const { open } = context.paths;
  context.paths.open = async (path, options) => {
    const file = await open(path, options);
    if (!options.createNew) return file;
    // The whole folder, with the file and its copy, moves out of the worktree.
    Deno.renameSync(`${work.path}/a`, `${outside.path}/a`);
    Deno.symlinkSync(`${outside.path}/a`, `${work.path}/a`);
    return file;
  };
  const { output } = await tools.call("write", { path: "a/x", content: "new" }, context);
  assert.match(output, /^Error: .* leads outside the worktree/);
  assert.equal(await outside.read("a/x"), "old");
});

Deno.test("a write removes set-id bits", async () => {
  await using work = await project({ tool: "old" });
  await Deno.chmod(`${work.path}/tool`, 0o4755);
  await tools.call("write", { path: "tool", content: "new" }, toolContext({ worktree: work.path }));
  assert.equal((await Deno.stat(`${work.path}/tool`)).mode! & 0o7777, 0o755);
});
