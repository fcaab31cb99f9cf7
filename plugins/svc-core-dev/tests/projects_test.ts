import assert from "node:assert/strict";
import { project } from "../../../tests/support/project.ts";
import { recorded } from "./support.ts";

async function commands(files: Record<string, string>, args: Record<string, unknown> = {}) {
  await using work = await project(files);
  const asked = ["test", "lint", "format"].map(async (task) => {
    const { request, output } = await recorded(work, `code_${task}`, args);
    return request?.command.join(" ") ?? output;
  });
  return await Promise.all(asked);
}

const scripts = { test: "x", lint: "x", format: "x" };

Deno.test("of several kinds of projects, the first that has a command for the task is used", async () => {
  const nothing = JSON.stringify({
    scripts: { test: 'echo "Error: no test specified" && exit 1' },
  });
  const python = ["python3 -m pytest", "ruff check", "ruff format"];
  assert.deepEqual(await commands({ "package.json": nothing, "pyproject.toml": "" }), python);
  assert.deepEqual(await commands({ "package.json": "not JSON", "setup.py": "" }), python);
  const mixed = { "package.json": '{"scripts":{"lint":"x"}}', "Makefile": "test:\nlint:\n" };
  const [test, lint, format] = await commands(mixed);
  assert.deepEqual([test, lint], ["make test", "npm run --silent lint"]);
  assert.match(format!, /^Error: the npm project here has no command for it; give it one, or set/);
});

Deno.test("a package is tested with its package manager, named by itself or by its lock file", async () => {
  const expected: [Record<string, string>, string, string][] = [
    [{ "package-lock.json": "" }, "npm run --silent test", "npm run --silent test -- a b"],
    [{ "pnpm-lock.yaml": "" }, "pnpm run --silent test", "pnpm run --silent test a b"],
    [{ "yarn.lock": "" }, "yarn run test", "yarn run test a b"],
    [{ "bun.lock": "" }, "bun run test", "bun run test a b"],
    [{ "bun.lockb": "" }, "bun run test", "bun run test a b"],
  ];
  for (const [lock, whole, part] of expected) {
    const files = { "package.json": JSON.stringify({ scripts }), ...lock };
    assert.equal((await commands(files))[0], whole);
    assert.equal((await commands(files, { target: "a b" }))[0], part);
  }
  const declared = JSON.stringify({ scripts, packageManager: "pnpm@10.0.0" });
  const [test] = await commands({ "package.json": declared, "package-lock.json": "" });
  assert.equal(test, "pnpm run --silent test");
  const inside = { "packages/a/package.json": JSON.stringify({ scripts }), "yarn.lock": "" };
  assert.equal((await commands(inside, { cwd: "packages/a" }))[0], "yarn run test");
});

Deno.test("a test task of a Deno project takes precedence over deno test", async () => {
  const config = '{\n  // a comment\n  "tasks": { "test": "deno test -A" },\n}\n';
  assert.deepEqual(await commands({ "deno.jsonc": config }), [
    "deno task test",
    "deno lint",
    "deno fmt",
  ]);
  const [named] = await commands({ "deno.jsonc": config }, { target: "adds" });
  assert.equal(named, "deno task test --filter=adds");
  const [other] = await commands({ "deno.json": '{"tasks":{"build":"x"}}' });
  assert.equal(other, "deno test");
});

Deno.test("a missing pytest is named", async () => {
  await using work = await project({ "pytest.ini": "" });
  const ended = { code: 1, output: "/usr/bin/python3: No module named pytest\n" };
  const { output, is_error } = await recorded(work, "code_test", {}, { ended });
  assert.equal(output, "Error: code_test requires the package pytest; install it for this python3");
  assert.equal(is_error, true);
});

Deno.test("a pipe, a link out of the worktree or a huge file does not identify a project", async () => {
  await using outside = await project({ "deno.json": "{}" });
  await using work = await project({ "Makefile": "test:\n", "package.json": "" });
  await Deno.symlink(`${outside.path}/deno.json`, `${work.path}/deno.json`);
  await new Deno.Command("mkfifo", { args: ["go.mod"], cwd: work.path }).output();
  await Deno.truncate(`${work.path}/package.json`, 2 ** 33);
  const { request } = await recorded(work, "code_test", {});
  assert.deepEqual(request?.command, ["make", "test"]);
});
