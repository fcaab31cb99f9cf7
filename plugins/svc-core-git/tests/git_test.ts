import assert from "node:assert/strict";
import { call, repository, run, tools } from "./support.ts";

Deno.test("git reads the repository: status, diff, log, branch, show and rev_parse [4.8]", async () => {
  await using work = await repository({ "a.txt": "one\n", "b.txt": "b\n" });
  const head = await run(work.path, "rev-parse", "HEAD");
  await work.write("a.txt", "two\n");
  await work.write("new.txt", "");
  assert.equal(
    await call(work, "git", { operation: "status" }),
    "$ git status --short --branch --ignore-submodules=dirty\nexit 0\n## main\n M a.txt\n?? new.txt",
  );
  assert.match(await call(work, "git", { operation: "diff" }), /\n-one\n\+two$/);
  assert.match(
    await call(work, "git", { operation: "diff", staged: true }),
    /\n\(no output\)$/,
  );
  assert.match(await call(work, "git", { operation: "diff", path: "b.txt" }), /\n\(no output\)$/);
  assert.match(await call(work, "git", { operation: "diff", rev: "HEAD" }), /\+two$/);
  assert.match(
    await call(work, "git", { operation: "log" }),
    /exit 0\n\w+ \S+ Ann \(HEAD -> main\)\n {4}first$/,
  );
  assert.match(await call(work, "git", { operation: "branch" }), /\n\* main +\w+ first$/);
  assert.match(await call(work, "git", { operation: "show", rev: "HEAD", path: "b.txt" }), /\+b$/);
  assert.match(
    await call(work, "git", { operation: "rev_parse", rev: "main" }),
    new RegExp(`\n${head}$`),
  );
});

Deno.test("an alias sets the operation, unless the call sets another", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  assert.match(await call(work, "git_status", {}), /^\$ git status /);
  assert.match(await call(work, "git_rev_parse", {}), /^\$ git rev-parse .*\nexit 0\n\w{40}$/);
  assert.match(await call(work, "git_log", { operation: "branch" }), /^\$ git branch /);
  assert.equal(tools.registry.find("commit")?.name, "git_commit");
});

Deno.test("git log shows the requested number of commits [4.8]", async () => {
  await using work = await repository({ "a.txt": "" });
  for (const name of ["second", "third"]) {
    await run(work.path, "commit", "--quiet", "--allow-empty", `--message=${name}`);
  }
  const log = await call(work, "git", { operation: "log", limit: 2 });
  assert.deepEqual(log.match(/^ {4}\w+$/gm), ["    third", "    second"]);
  const ranged = await call(work, "git", { operation: "log", rev: "HEAD~2..HEAD~1" });
  assert.deepEqual(ranged.match(/^ {4}\w+$/gm), ["    second"]);
});

Deno.test("git_commit stages a path, and commits with any message [4.8]", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  await work.write("a.txt", "two\n");
  await work.write("-n", "odd name\n");
  assert.match(await call(work, "git_commit", { operation: "add", path: "a.txt" }), /\nexit 0\n/);
  assert.match(await call(work, "git_commit", { operation: "add", path: "-n" }), /\nexit 0\n/);
  const message = '--amend "; touch x\n\nBody $(touch y)';
  assert.match(await call(work, "commit", { message }), /\nexit 0\n\[main \w+\] --amend/);
  assert.equal(await run(work.path, "log", "-1", "--format=%B"), message);
  assert.equal(await run(work.path, "rev-list", "--count", "HEAD"), "2");
  assert.equal(await run(work.path, "show", "HEAD:-n"), "odd name");
});

Deno.test("all of git_commit stages every change, and always asks for approval [4.8]", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  await work.write("a.txt", "two\n");
  await work.write("b.txt", "b\n");
  const tool = tools.registry.find("git_commit")!;
  const config = { get: () => undefined };
  assert.equal(tool.permission_fn!({ operation: "add", all: true }, config), "ask");
  assert.equal(tool.permission_fn!({ operation: "add", path: "a.txt" }, config), undefined);
  await call(work, "git_add", { all: true });
  assert.equal(await run(work.path, "diff", "--cached", "--name-only"), "a.txt\nb.txt");
});

Deno.test("an invalid call returns an error of one sentence", async () => {
  await using work = await repository({ "a.txt": "one\n" });
  const refusals: [string, Record<string, unknown>, RegExp][] = [
    ["git", { operation: "status", rev: "HEAD" }, /^Error: status takes no "rev"$/],
    ["git", { operation: "show", rev: "nothing" }, /\nexit 128\nfatal: /],
    ["git_commit", { operation: "commit", message: " " }, /^Error: commit needs a "message"$/],
    ["git_commit", { operation: "add" }, /^Error: add needs a "path"$/],
    ["git_commit", { operation: "add", path: "a.txt", all: true }, /^Error: pass either/],
  ];
  for (const [name, args, expected] of refusals) {
    assert.match(await call(work, name, args), expected, JSON.stringify(args));
  }
  const operations = tools.registry.find("git")!.parameters.properties.operation!.enum;
  assert.deepEqual(operations, ["status", "diff", "log", "branch", "show", "rev_parse"]);
});
