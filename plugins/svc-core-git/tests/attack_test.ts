import assert from "node:assert/strict";
import { project } from "../../../tests/support/project.ts";
import { chmod, exists } from "./files.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { call, repository, run, tools } from "./support.ts";

/** A program outside every worktree that says, once it was run, that it was. */
async function trap() {
  const outside = await project({ "evil.sh": '#!/bin/sh\ntouch "$0.ran"\ncat\n' });
  const program = `${outside.path}/evil.sh`;
  await chmod(program);
  return {
    program,
    sprung: () => exists(`${program}.ran`),
    [Symbol.asyncDispose]: () => outside[Symbol.asyncDispose](),
  };
}

const READS = ["status", "diff", "log", "branch", "show"].map((operation) => ({ operation }));
const RECORDS = [
  { operation: "add", path: "b.txt" },
  { operation: "commit", message: "what is staged" },
  { operation: "add", path: "sub" },
  { operation: "add", all: true },
  { operation: "commit", message: "sub", path: "sub" },
  { operation: "commit", message: "all", all: true },
];

Deno.test("a format of the repository's own does not have a signature checked", async () => {
  await using evil = await trap();
  await using work = await repository({ "a.txt": "one\n" });
  const person = "A <a@b> 1 +0000";
  const signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----";
  const tree = await run(work.path, "write-tree");
  await work.write(
    ".git/signed",
    `tree ${tree}\nauthor ${person}\ncommitter ${person}\n${signature}\n\nsigned\n`,
  );
  const signed = await run(work.path, "hash-object", "-t", "commit", "-w", ".git/signed");
  await run(work.path, "update-ref", "HEAD", signed);
  await run(work.path, "config", "gpg.program", evil.program);
  await run(work.path, "config", "format.pretty", "%G? %s");
  for (const args of READS) assert.match(await call(work, "git", args), /\nexit 0\n/);
  assert.equal(evil.sprung(), false);
  await run(work.path, "show"); // the trap works
  assert.equal(evil.sprung(), true);
});

Deno.test("a program named far inside a configuration of megabytes is not overlooked", async () => {
  await using evil = await trap();
  await using work = await repository({ "a.txt": "one\n", ".gitattributes": "* filter=evil\n" });
  const rubble = `[x]\n${"\tkey = value\n".repeat(400_000)}`;
  const filter = `[filter "evil"]\n\tclean = ${evil.program}\n`;
  await work.write(".git/config", `${await work.read(".git/config")}${rubble}${filter}${rubble}`);
  await work.write("a.txt", "changed\n");
  assert.equal(
    await call(work, "git", { operation: "diff" }),
    "Error: the repository's configuration is too long to be looked through",
  );
  assert.equal(evil.sprung(), false);
});

Deno.test("what a submodule's own configuration names is not run, even where .gitmodules wants it", async () => {
  await using evil = await trap();
  await using part = await repository({ "a.txt": "one\n", ".gitattributes": "* filter=evil\n" });
  await using work = await repository({ "b.txt": "b\n" });
  await run(work.path, "submodule", "--quiet", "add", part.path, "sub");
  await run(work.path, "config", "--file", ".gitmodules", "submodule.sub.ignore", "none");
  await run(work.path, "commit", "--quiet", "--all", "--message=sub");
  for (const kind of ["clean", "process"]) {
    await run(`${work.path}/sub`, "config", `filter.evil.${kind}`, evil.program);
  }
  await run(`${work.path}/sub`, "config", "core.fsmonitor", evil.program);
  await work.write("sub/a.txt", "two\n");
  for (const args of READS) assert.match(await call(work, "git", args), /\nexit 0\n/);
  for (const args of RECORDS) {
    await work.write("b.txt", `${JSON.stringify(args)}\n`);
    assert.match(await call(work, "git_commit", args), /\nexit \d+\n/);
    assert.equal(evil.sprung(), false, JSON.stringify(args));
  }
  // One that has nothing to hide is taken in as ever.
  for (const kind of ["clean", "process"]) {
    await run(`${work.path}/sub`, "config", "--unset", `filter.evil.${kind}`);
  }
  await run(`${work.path}/sub`, "-c", "core.fsmonitor=", "commit", "--quiet", "--all", "-m", "two");
  assert.match(await call(work, "git_commit", { operation: "add", path: "sub" }), /\nexit 0\n/);
  assert.match(await call(work, "git", { operation: "status" }), /\nM {2}sub$/);
});

Deno.test("objects that a partial clone lacks are not fetched", async () => {
  await using evil = await trap();
  await using origin = await repository({ "a.txt": "one\n" });
  await run(origin.path, "config", "uploadpack.allowFilter", "true");
  await using place = await project();
  const from = `file://${origin.path}`;
  await run(place.path, "clone", "--quiet", "--no-checkout", "--filter=blob:none", from, "part");
  const work = { path: `${place.path}/part` };
  await run(work.path, "config", "remote.origin.uploadpack", evil.program);
  const addresses = [from, `ext::${evil.program}`, "ssh://example.invalid/x", "none::x"];
  for (const url of addresses) {
    await run(work.path, "config", "remote.origin.url", url);
    const result = await call(work, "git", { operation: "show", rev: "HEAD" });
    assert.match(result, /\nexit 128\n/, url);
    assert.match(result, /transport '\w+' not allowed|promisor|lazy/, url);
    assert.equal(evil.sprung(), false, url);
  }
});

Deno.test("a link in the repository's folder that leads out of the worktree is not written through", async () => {
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

Deno.test("objects are not read through a link out of the worktree, and links inside are none of it", async () => {
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

Deno.test("a pipe in the repository's folder, or a list without end, does not keep a call waiting", async () => {
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

Deno.test("objects borrowed inside the worktree are not read through a link out of it", async () => {
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

Deno.test("a folder of git's outside the worktree that names one inside as its history is not opened", async () => {
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

Deno.test("the name of a folder cannot speak for git", async () => {
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

Deno.test("a repository of somebody else, or a bare one without a worktree, is not opened", async () => {
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

Deno.test("what svc inherited from another git does not say which repository is meant", async () => {
  await using other = await repository({ "secret.txt": "secret\n" });
  await using evil = await trap();
  await using work = await repository({ "a.txt": "one\n" });
  await work.write("a.txt", "two\n");
  const inherited = {
    GIT_DIR: `${other.path}/.git`,
    GIT_WORK_TREE: other.path,
    GIT_INDEX_FILE: `${other.path}/.git/index`,
    GIT_OBJECT_DIRECTORY: `${other.path}/.git/objects`,
    GIT_COMMON_DIR: `${other.path}/.git`,
    GIT_EXTERNAL_DIFF: evil.program,
    GIT_PAGER: evil.program,
    GIT_EDITOR: evil.program,
    GIT_GLOB_PATHSPECS: "1",
  };
  assert.match(await call(work, "git", { operation: "diff" }, inherited), /\n-one\n\+two$/);
  for (
    const args of [{ operation: "add", path: "a.txt" }, { operation: "commit", message: "x" }]
  ) {
    assert.match(await call(work, "git_commit", args, inherited), /\nexit 0\n/);
  }
  assert.equal(await run(work.path, "log", "--format=%s"), "x\nfirst");
  assert.equal(await run(other.path, "log", "--format=%s"), "first");
  assert.equal(evil.sprung(), false);
});

Deno.test("a link is the link, and a revision is none the less one where a file has its name", async () => {
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

Deno.test("a revision is no file to compare with", async () => {
  await using work = await repository({ "a.txt": "one\n", "--": "" });
  for (const rev of ["/etc/passwd", "../x", "a/../../x", "a.txt/..", ".."]) {
    assert.equal(
      await call(work, "git", { operation: "diff", rev }),
      `Error: ${JSON.stringify(rev)} is no revision`,
    );
  }
});

Deno.test("names and messages of any kind, replaced commits and notes are only text", async () => {
  await using work = await repository({ "-x": "", "a\n\x1b[31mred": "", ":(top)": "" });
  await run(work.path, "commit", "--quiet", "--allow-empty", "--message=--output=made");
  await run(work.path, "update-ref", "refs/heads/-O", "HEAD");
  await run(
    work.path,
    "update-ref",
    "refs/replace/" + await run(work.path, "rev-parse", "HEAD"),
    "HEAD~1",
  );
  await run(work.path, "notes", "add", "--message=a note");
  for (const name of ["-x", "a\n\x1b[31mred", ":(top)"]) {
    await work.write(name, "changed\n");
    assert.match(await call(work, "git", { operation: "diff", path: name }), /\n\+changed$/);
    assert.match(await call(work, "git_commit", { operation: "add", path: name }), /\nexit 0\n/);
  }
  const status = await call(work, "git", { operation: "status" });
  assert.match(status, /\nM {2}"a\\n\\033\[31mred"$/);
  for (const args of READS) assert.match(await call(work, "git", args), /\nexit 0\n/);
  assert.equal(exists(`${work.path}/made`), false);
});

Deno.test("an output of megabytes is cut in the middle", async () => {
  await using work = await repository({ "a.txt": "one line\n".repeat(500_000) });
  const shown = await call(work, "git", { operation: "show", rev: "HEAD:a.txt" });
  assert.equal(shown.length < 210_000, true);
  assert.match(shown, /\n\.\.\. \(\d+ characters dropped\) \.\.\.\n/);
});

Deno.test("what another git, or a program of the user's, would run or write to is blanked too", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  const settings = ["hook.evil.event", "lfs.extension.evil.clean", "lfs.storage"];
  for (const name of settings) await run(work.path, "config", name, "/elsewhere");
  const context = toolContext({ worktree: work.path });
  const commands: string[][] = [];
  await tools.call("git_commit", { operation: "commit", message: "x" }, {
    ...context,
    run: (request) => {
      commands.push(request.command);
      return context.run(request);
    },
  });
  const last = commands.at(-1)!;
  for (const name of settings) assert.equal(last[last.indexOf(`${name}=`) - 1], "-c", name);
});

Deno.test("a repository whose configuration keeps its branches elsewhere is not opened", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  await run(work.path, "config", "extensions.refStorage", "files:///elsewhere");
  // Gits that know branches but not such a place say so themselves.
  assert.match(await call(work, "git", { operation: "log" }), /^Error: /);
});
