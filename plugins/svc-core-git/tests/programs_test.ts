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

Deno.test("a log format of the repository does not start the signature program", async () => {
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

Deno.test("a program in the middle of a configuration of megabytes is found", async () => {
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

Deno.test("programs from the configuration of a submodule are not run", async () => {
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

Deno.test("missing objects of a partial clone are not fetched", async () => {
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

Deno.test("inherited variables of git do not select another repository", async () => {
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

Deno.test("names, messages, replaced commits and notes are handled as text", async () => {
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
  assert.ok(shown.length < 2_010_000);
  assert.match(shown, /\n\.\.\. \(\d+ characters dropped\) \.\.\.\n/);
});

Deno.test("settings of other versions of git and of Git LFS are blanked, too", async () => {
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

Deno.test("a filter of the user runs, and a hook of the user does not", async () => {
  await using home = await project({
    ".gitconfig":
      '[filter "louder"]\n\tclean = tr a-z A-Z\n\trequired\n[core]\n\thooksPath = hooks\n',
  });
  await using work = await repository({ ".gitattributes": "*.txt filter=louder\n" });
  await work.write("hooks/pre-commit", "#!/bin/sh\nexit 1\n");
  await chmod(`${work.path}/hooks/pre-commit`);
  await work.write("a.txt", "quiet\n");
  const env = { HOME: home.path };
  for (
    const args of [{ operation: "add", path: "a.txt" }, { operation: "commit", message: "x" }]
  ) {
    assert.match(await call(work, "git_commit", args, env), /\nexit 0\n/);
  }
  assert.equal(await run(work.path, "show", "HEAD:a.txt"), "QUIET");
});
