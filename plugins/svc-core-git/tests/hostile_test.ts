import assert from "node:assert/strict";
import { chmod, exists } from "./files.ts";
import { call, repository, run } from "./support.ts";
import { project } from "../../../tests/support/project.ts";

/** Every call a model can make that reads or writes something. */
const CALLS: [string, Record<string, unknown>][] = [
  ["git", { operation: "status" }],
  ["git", { operation: "diff" }],
  ["git", { operation: "diff", rev: "HEAD~1" }],
  ["git", { operation: "log", rev: "HEAD" }],
  ["git", { operation: "branch" }],
  ["git", { operation: "show", rev: "HEAD" }],
  ["git", { operation: "show", rev: "HEAD:a.txt" }],
  ["git", { operation: "rev_parse" }],
  ["git_commit", { operation: "add", path: "plain.md" }],
  ["git_commit", { operation: "commit", message: "more" }],
  ["git_commit", { operation: "add", path: "a.txt" }],
  ["git_commit", { operation: "commit", message: "one", path: "a.txt" }],
  ["git_commit", { operation: "add", all: true }],
  ["git_commit", { operation: "commit", message: "all", all: true }],
];

/** Settings that name a program, which is written as `@`. */
const SETTINGS: string[][] = [
  ["core.fsmonitor", "@"],
  ["core.pager", "@"],
  ["pager.log", "@"],
  ["pager.status", "@"],
  ["core.editor", "@"],
  ["core.hooksPath", "hooks"],
  ["core.sshCommand", "@"],
  ["core.askPass", "@"],
  ["core.alternateRefsCommand", "@"],
  ["credential.helper", "!@"],
  ["credential.https://example.org.helper", "!@"],
  ["diff.external", "@"],
  ["diff.evil.command", "@"],
  ["diff.evil.textconv", "@"],
  ["diff.EVIL.textconv", "@"],
  ["filter.evil.clean", "@"],
  ["filter.evil.smudge", "@"],
  ["filter.evil.process", "@"],
  ["filter.evil.required", "true"],
  ["filter.dotted.name.clean", "@"],
  ["merge.evil.driver", "@"],
  ["trailer.evil.command", "@"],
  ["trailer.evil.cmd", "@"],
  ["gpg.program", "@"],
  ["gpg.openpgp.program", "@"],
  ["gpg.ssh.program", "@"],
  ["gpg.ssh.defaultKeyCommand", "@"],
  ["format.pretty", "%G? %GS %s"],
  ["color.diff", "always"],
  ["trace2.eventTarget", "@"],
  ["sequence.editor", "@"],
  ["core.gitProxy", "@"],
  ["uploadpack.packObjectsHook", "@"],
  ["remote.origin.uploadpack", "@"],
  ["remote.origin.vcs", "ext"],
  ["url.ext::@.insteadOf", "https://"],
  ["lfs.extension.evil.clean", "@"],
  ["lfs.customtransfer.evil.path", "@"],
  ["hook.evil.command", "@"],
  ["hook.evil.event", "pre-commit"],
  ["commit.verbose", "true"],
  ["commit.template", "a.txt"],
  ["commit.gpgSign", "true"],
  ["log.showSignature", "true"],
  ["interactive.diffFilter", "@"],
  ["alias.status", "!@"],
  ["alias.log", "!@"],
  ["remote.origin.url", "ext::@"],
  ["remote.origin.promisor", "true"],
  ["protocol.ext.allow", "always"],
  ["protocol.allow", "always"],
  ["submodule.recurse", "true"],
  ["status.submoduleSummary", "true"],
  ["diff.submodule", "diff"],
  ["gc.auto", "1"],
  ["maintenance.auto", "true"],
];

const ATTRIBUTES = "*.txt filter=evil diff=evil merge=evil\nb.txt filter=dotted.name diff=EVIL\n";

Deno.test("no program from the configuration, attributes or hooks of a repository is run", async () => {
  await using outside = await project({ "evil.sh": '#!/bin/sh\ntouch "$0.ran"\ncat\nexit 0\n' });
  const program = `${outside.path}/evil.sh`;
  await chmod(program);
  await using work = await repository({ "a.txt": "one\n", "b.txt": "b\n" });
  await work.write("a.txt", "two\n");
  await run(work.path, "commit", "--quiet", "--all", "--message=second");
  for (const folder of [".git/hooks", "hooks"]) {
    for (
      const hook of [
        "pre-commit",
        "prepare-commit-msg",
        "commit-msg",
        "post-commit",
        "post-index-change",
        "reference-transaction",
        "fsmonitor-watchman",
        "pre-auto-gc",
      ]
    ) {
      await work.write(`${folder}/${hook}`, `#!/bin/sh\ntouch '${program}.ran'\n`);
      await chmod(`${work.path}/${folder}/${hook}`);
    }
  }
  for (const [key, value] of SETTINGS) {
    await run(work.path, "config", key!, value!.replace("@", program));
  }
  await work.write(".gitattributes", ATTRIBUTES);
  await work.write("a.txt", "three\n");
  await work.write("b.txt", "changed\n");
  await work.write("plain.md", "no filter\n");
  for (const [name, args] of CALLS) {
    const result = await call(work, name, args);
    // What a filter should have changed is not taken in without it.
    const filtered = name === "git_commit" && (args.all === true || args.path === "a.txt");
    const expected = filtered ? /^Error: a program of .* \(a filter\) / : /\nexit 0\n/;
    assert.match(result, expected, `${JSON.stringify(args)}: ${result}`);
    assert.equal(result.includes("\x1b"), false);
    assert.equal(exists(`${program}.ran`), false, JSON.stringify(args));
  }
  // The trap works: git by hand runs it.
  await work.write("a.txt", "four\n");
  await run(work.path, "-c", "core.fsmonitor=false", "diff").catch(() => {});
  assert.equal(exists(`${program}.ran`), true);
});

Deno.test("settings of an included file count as settings of the repository", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  const marker = `${work.path}/.git/ran`;
  await work.write(".git/more", `[filter "evil"]\n\tclean = touch '${marker}'; cat\n`);
  await run(work.path, "config", "include.path", "more");
  await work.write(".gitattributes", "* filter=evil\n");
  await work.write("a.txt", "two\n");
  assert.match(await call(work, "git", { operation: "diff" }), /\nexit 0\n/);
  assert.match(
    await call(work, "git_commit", { operation: "add", path: "a.txt" }),
    /^Error: a program of .* \(a filter\) .*\n\$ git add -- .*\nexit 128\n/,
  );
  assert.equal(exists(marker), false);
});

Deno.test("a revision that looks like an option writes and starts nothing", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  const revisions = [
    "--output=a.txt",
    "-O/etc/passwd",
    "--ext-diff",
    "--no-index",
    "--upload-pack=touch x",
    "-",
    "--",
    "",
    "HEAD\n--output=x",
    "HEAD\0x",
  ];
  for (const rev of revisions) {
    for (const operation of ["diff", "log", "show", "rev_parse"]) {
      const result = await call(work, "git", { operation, rev });
      assert.match(result, /^Error: .* is no revision$/, `${operation} ${rev}: ${result}`);
    }
  }
  const before = [...Deno.readDirSync(work.path)].map(({ name }) => name).sort();
  for (const rev of ["ext::sh -c touch%20x", "HEAD --output=x", "$(touch x)", "HEAD;touch x"]) {
    await call(work, "git", { operation: "show", rev });
  }
  assert.deepEqual([...Deno.readDirSync(work.path)].map(({ name }) => name).sort(), before);
  assert.equal(await work.read("a.txt"), "one\n");
});

Deno.test("a path is literal, and must be inside the worktree", async () => {
  await using work = await repository({ "a.txt": "one\n", "b.txt": "b\n" });
  await work.write("a.txt", "two\n");
  assert.match(await call(work, "git", { operation: "diff", path: ":(glob)*" }), /no output/);
  assert.match(await call(work, "git", { operation: "diff", path: "*.txt" }), /no output/);
  assert.match(await call(work, "git", { operation: "diff", path: "../x" }), /^Error: .*outside/);
  assert.match(await call(work, "git", { operation: "status", cwd: "/" }), /^Error: .*outside/);
});

Deno.test("a repository with files or history outside the worktree is not opened", async () => {
  await using other = await repository({ "secret.txt": "secret\n" });
  await using work = await project({ "a.txt": "" });
  const refused = async (expected: RegExp) => {
    for (const operation of ["log", "show", "status"]) {
      const result = await call(work, "git", { operation });
      assert.match(result, expected);
      assert.doesNotMatch(result, /secret/);
    }
  };
  await refused(/^Error: not a git repository/);
  await work.write(".git", `gitdir: ${other.path}/.git\n`);
  await refused(/^Error: the history of this repository lies in .*, outside the worktree$/);
  await Deno.remove(`${work.path}/.git`);
  await Deno.symlink(`${other.path}/.git`, `${work.path}/.git`);
  await refused(/^Error: .*outside the worktree/);
  await Deno.remove(`${work.path}/.git`);
  await run(work.path, "init", "--quiet");
  await run(work.path, "config", "core.worktree", other.path);
  await refused(/^Error: .*outside the worktree/);
});

Deno.test("a repository that borrows its objects from outside the worktree is not opened", async () => {
  await using other = await repository({ "secret.txt": "secret\n" });
  const stolen = await run(other.path, "rev-parse", "HEAD");
  const borrow: Record<string, (path: string) => Promise<void>> = {
    alternates: (path) =>
      Deno.writeTextFile(`${path}/info/alternates`, `${other.path}/.git/objects\n`),
    "quoted alternates": (path) =>
      Deno.writeTextFile(`${path}/info/alternates`, `"${other.path}/.git/objects"\n`),
    "a link": async (path) => {
      await Deno.remove(path, { recursive: true });
      await Deno.symlink(`${other.path}/.git/objects`, path);
    },
  };
  for (const [how, make] of Object.entries(borrow)) {
    await using work = await repository({ "a.txt": "" });
    await make(`${work.path}/.git/objects`);
    const result = await call(work, "git", { operation: "show", rev: stolen });
    assert.match(result, /^Error: .*(outside the worktree|are quoted)$/, how);
  }
  await using work = await repository({ "inner/a.txt": "" });
  await run(work.path, "clone", "--quiet", "--shared", ".", "clone");
  const log = await call(work, "git", { operation: "log", cwd: "clone" });
  assert.match(log, /\nexit 0\n/);
});

Deno.test("settings for submodules and for a single worktree start no program", async () => {
  await using work = await repository({
    "a.txt": "one\n",
    ".gitmodules":
      '[submodule "x"]\n\tpath = x\n\turl = ext::sh -c touch% ran\n\tupdate = !touch ran\n',
  });
  await run(work.path, "config", "extensions.worktreeConfig", "true");
  const marker = `${work.path}/.git/ran`;
  await work.write(".git/config.worktree", `[filter "evil"]\n\tclean = touch '${marker}'; cat\n`);
  await work.write(".gitattributes", "* filter=evil\n");
  await work.write("a.txt", "two\n");
  for (const [name, args] of CALLS.filter(([, { rev }]) => rev !== "HEAD~1")) {
    assert.match(await call(work, name, args), /\nexit \d+\n/);
    assert.equal(exists(marker) || exists(`${work.path}/ran`), false, JSON.stringify(args));
  }
});

Deno.test("a subfolder of a repository does not give access to the whole repository", async () => {
  await using work = await repository({ "inner/a.txt": "", "secret.txt": "secret\n" });
  const result = await call({ path: `${work.path}/inner` }, "git", { operation: "show" });
  assert.match(result, /^Error: the repository begins at .*; start svc in that folder to use it$/);
});

Deno.test("a linked worktree is opened when its repository lists it", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  await using place = await project();
  await run(work.path, "worktree", "add", "--quiet", `${place.path}/linked`);
  const linked = { path: `${place.path}/linked` };
  assert.match(await call(linked, "git", { operation: "log" }), /\nexit 0\n.*\n {4}first$/);
});
