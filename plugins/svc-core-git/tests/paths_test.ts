import assert from "node:assert/strict";
import { project } from "../../../tests/support/project.ts";
import { exists } from "./files.ts";
import { call, repository, run } from "./support.ts";

Deno.test("git does not write through a link to a path outside the worktree", async () => {
  for (const name of ["logs/HEAD", "COMMIT_EDITMSG", "index", "refs/heads/main", "objects/pack"]) {
    await using outside = await project({ "kept/x": "" });
    await using work = await repository({ "a.txt": "one\n" });
    await work.write("a.txt", "two\n");
    await run(work.path, "add", "a.txt");
    const path = `${work.path}/.git/${name}`;
    await Deno.remove(path, { recursive: true }).catch(() => {});
    await Deno.symlink(`${outside.path}/made`, path);
    for (
      const args of [{ operation: "add", path: "a.txt" }, {
        operation: "commit",
        message: "$(evil)",
      }]
    ) {
      const result = await call(work, "git_commit", args);
      assert.match(
        result,
        /^Error: (in this repository .* is a link that leads outside the worktree|not a git rep)/,
        name,
      );
    }
    assert.deepEqual([...Deno.readDirSync(outside.path)].map(({ name }) => name), ["kept"]);
  }
});

Deno.test("objects are not read through a link to a path outside the worktree; links inside are allowed", async () => {
  await using other = await repository({ "secret.txt": "secret\n" });
  await run(other.path, "gc", "--quiet");
  const stolen = await run(other.path, "rev-parse", "HEAD");
  await using work = await repository({ "a.txt": "one\n" });
  const pack = `${work.path}/.git/objects/pack`;
  for (const { name } of Deno.readDirSync(`${other.path}/.git/objects/pack`)) {
    await Deno.symlink(`${other.path}/.git/objects/pack/${name}`, `${pack}/${name}`);
  }
  const result = await call(work, "git", { operation: "show", rev: stolen });
  assert.match(result, /^Error: in this repository .* is a link that leads outside the worktree$/);
  await using honest = await repository({ "a.txt": "one\n" });
  await Deno.rename(`${honest.path}/.git/logs`, `${honest.path}/.git/kept`);
  await Deno.symlink("kept", `${honest.path}/.git/logs`);
  await Deno.symlink("/dev/null", `${honest.path}/.git/hooks/pre-push`);
  assert.match(await call(honest, "git", { operation: "log" }), /\nexit 0\n/);
});

Deno.test("a pipe or an endless list in the folder of the repository does not block a call", async () => {
  for (const name of ["objects/info/alternates", "COMMIT_EDITMSG", "logs/pipe"]) {
    await using work = await repository({ "a.txt": "one\n" });
    await Deno.remove(`${work.path}/.git/${name}`).catch(() => {});
    await new Deno.Command("mkfifo", { args: [`${work.path}/.git/${name}`] }).output();
    const result = await call(work, "git", { operation: "log" });
    assert.equal(result, `Error: in this repository ${work.path}/.git/${name} is no file`);
  }
  await using work = await repository({ "a.txt": "one\n" });
  await work.write(".git/objects/info/alternates", "#");
  await Deno.truncate(`${work.path}/.git/objects/info/alternates`, 2 ** 33);
  assert.equal(
    await call(work, "git", { operation: "log" }),
    "Error: the repository's list of alternates cannot be read",
  );
});

Deno.test("borrowed objects inside the worktree are not read through a link to the outside", async () => {
  await using other = await repository({ "secret.txt": "secret\n" });
  const stolen = await run(other.path, "rev-parse", "HEAD");
  await using work = await repository({ "a.txt": "one\n", "lent/x": "" });
  await Deno.symlink(
    `${other.path}/.git/objects/${stolen.slice(0, 2)}`,
    `${work.path}/lent/${stolen.slice(0, 2)}`,
  );
  await work.write(".git/objects/info/alternates", `${work.path}/lent\n`);
  const result = await call(work, "git", { operation: "show", rev: stolen });
  assert.match(result, /^Error: in this repository .* is a link that leads outside the worktree$/);
});

Deno.test("a git folder outside the worktree is not opened, even if its history is inside", async () => {
  await using outside = await project();
  await using work = await repository({ "a.txt": "one\n" });
  await Deno.rename(`${work.path}/.git`, `${work.path}/real`);
  await Deno.writeTextFile(`${outside.path}/commondir`, `${work.path}/real\n`);
  await Deno.writeTextFile(`${outside.path}/gitdir`, `${work.path}/.git\n`);
  await Deno.copyFile(`${work.path}/real/HEAD`, `${outside.path}/HEAD`);
  await work.write(".git", `gitdir: ${outside.path}\n`);
  const result = await call(work, "git_commit", { operation: "add", path: "a.txt" });
  assert.match(result, /^Error: the history of this repository lies in .*, outside the worktree$/);
  assert.equal(exists(`${outside.path}/index`), false);
});

Deno.test("the name of a folder cannot forge output of git", async () => {
  await using other = await repository({ "secret.txt": "secret\n" });
  await using work = await project({ "a/x": "" });
  // What git says of it reads: a folder inside, something, a repository inside.
  const inner = `a\nb\n${work.path}/.git`;
  await Deno.mkdir(`${work.path}/.git/objects`, { recursive: true });
  await Deno.mkdir(`${work.path}/${inner}`, { recursive: true });
  await work.write(`${inner}/.git`, `gitdir: ${other.path}/.git\n`);
  const result = await call(work, "git", { operation: "show", cwd: inner });
  assert.equal(result, "Error: the name of a folder on the way there has two lines");
});

Deno.test("a repository of another user, or a bare one without a worktree, is not opened", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  await run(work.path, "clone", "--quiet", "--bare", ".", "bare.git");
  assert.match(
    await call(work, "git", { operation: "log", cwd: "bare.git" }),
    /^Error: this operation must be run in a work tree$/,
  );
  if (Deno.uid() !== 0) return; // only root can give files away
  await Deno.chown(work.path, 12345, 12345);
  await Deno.chown(`${work.path}/.git`, 12345, 12345);
  assert.match(await call(work, "git", { operation: "log" }), /^Error: (detected dubious|unsafe)/);
});

Deno.test("a link is not followed, and a revision is not confused with a file of the same name", async () => {
  await using work = await repository({ "a.txt": "one\n", "main": "a file\n" });
  await Deno.symlink("/etc/passwd", `${work.path}/out`);
  await Deno.symlink("a.txt", `${work.path}/in`);
  await call(work, "git_commit", { operation: "add", path: "in" });
  assert.equal(await run(work.path, "diff", "--cached", "--name-only"), "in");
  await call(work, "git_commit", { operation: "add", path: "out" });
  assert.equal(await run(work.path, "show", ":out"), "/etc/passwd");
  assert.match(
    await call(work, "git", { operation: "log", rev: "main" }),
    /^\$ git log .* --end-of-options main --\nexit 0\n.*\n {4}first$/,
  );
  assert.match(
    await call(work, "git", { operation: "diff", rev: "a.txt" }),
    /\nexit 128\nfatal: bad revision/,
  );
});

Deno.test("a revision cannot be a file outside the repository", async () => {
  await using work = await repository({ "a.txt": "one\n", "--": "" });
  for (const rev of ["/etc/passwd", "../x", "a/../../x", "a.txt/..", ".."]) {
    assert.equal(
      await call(work, "git", { operation: "diff", rev }),
      `Error: ${JSON.stringify(rev)} is no revision`,
    );
  }
});

Deno.test("a repository with its branches in another folder is not opened", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  await run(work.path, "config", "extensions.refStorage", "files:///elsewhere");
  // Versions of git without this setting report it themselves.
  assert.match(await call(work, "git", { operation: "log" }), /^Error: /);
});

Deno.test("a path inside another repository of the worktree is not added", async () => {
  await using work = await repository({ "a.txt": "one\n", "in/b.txt": "" });
  await run(`${work.path}/in`, "init", "--quiet");
  const result = await call(work, "git_commit", { operation: "add", path: "a.txt", cwd: "in" });
  assert.match(result, /^Error: .*a\.txt' is outside repository at /);
});
