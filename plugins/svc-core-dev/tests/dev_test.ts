import assert from "node:assert/strict";
import { SvcError } from "../../../src/platform/error.ts";
import { type Project, project } from "../../../tests/support/project.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { type Ended, recorded, tools } from "./support.ts";

Deno.test("code_test, code_lint and code_format run the command of the project that is found, for 300 seconds at most [4.8, 8]", async () => {
  const scripts = { test: "node --test", lint: "eslint .", fmt: "prettier -w ." };
  const kinds: [Record<string, string>, string, string, string][] = [
    [{ "deno.json": "{}" }, "deno test", "deno lint", "deno fmt"],
    [{ "deno.jsonc": "", "package.json": "{}" }, "deno test", "deno lint", "deno fmt"],
    [{ "Cargo.toml": "" }, "cargo test", "cargo clippy", "cargo fmt"],
    [{ "go.mod": "" }, "go test ./...", "go vet ./...", "go fmt ./..."],
    [
      { "package.json": JSON.stringify({ scripts }) },
      "npm run --silent test",
      "npm run --silent lint",
      "npm run --silent fmt",
    ],
    [{ "pyproject.toml": "" }, "python3 -m pytest", "ruff check", "ruff format"],
    [{ "Makefile": "check:\n\ttrue\nlint:\nfmt: lint\n" }, "make check", "make lint", "make fmt"],
  ];
  for (const [files, ...commands] of kinds) {
    await using work = await project(files);
    for (const [at, task] of ["test", "lint", "format"].entries()) {
      const { request, output } = await recorded(work, `code_${task}`, {});
      assert.equal(request?.command.join(" "), commands[at]);
      assert.equal(output, `$ ${commands[at]}\nexit 0\n(no output)`);
      assert.deepEqual([request?.cwd, request?.timeout], [work.path, 300]);
      assert.deepEqual(request?.env, { CI: "true", NO_COLOR: "1" });
    }
  }
});

Deno.test("the target of code_test is one word of the command [4.8]", async () => {
  const target = "a b; touch x";
  const kinds: [Record<string, string>, string[]][] = [
    [{ "deno.json": "" }, ["deno", "test", `--filter=${target}`]],
    [{ "deno.json": "", [target]: "" }, ["deno", "test", target]],
    [{ "Cargo.toml": "" }, ["cargo", "test", target]],
    [{ "go.mod": "" }, ["go", "test", target]],
    [
      { "package.json": '{"scripts":{"test":"x"}}' },
      ["npm", "run", "--silent", "test", "--", target],
    ],
    [{ "pytest.ini": "" }, ["python3", "-m", "pytest", target]],
  ];
  for (const [files, expected] of kinds) {
    await using work = await project(files);
    const { request } = await recorded(work, "code_test", { target });
    assert.deepEqual(request?.command, expected);
  }
});

Deno.test("dev.test_cmd and its like come before the project's command; a shell reads them and takes the target as a word [4.8]", async () => {
  await using work = await project({ "deno.json": "", "run.sh": 'printf "<%s>" "$@"\n' });
  const config = { "dev.test_cmd": "sh run.sh fixed", "dev.lint_cmd": "echo one && echo two" };
  const context = toolContext({ worktree: work.path, config });
  const test = await tools.call("code_test", { target: "a b; touch x" }, context);
  assert.equal(test.output, '$ sh run.sh fixed "a b; touch x"\nexit 0\n<fixed><a b; touch x>');
  const lint = await tools.call("code_lint", {}, context);
  assert.equal(lint.output, "$ echo one && echo two\nexit 0\none\ntwo");
  assert.equal(
    await tools.preview("code_test", { target: "x" }, context),
    `in ${work.path}\n$ sh run.sh fixed x`,
  );
});

Deno.test("a run of code_test in which no test ran ends with an Error line [4.8]", async () => {
  await using work = await project({ "deno.json": "" });
  const empty: Ended[] = [
    { code: 1, output: "error: No test modules found" },
    {
      output: "running 0 tests from ./a_test.ts\n\nok | 0 passed | 0 failed | 4 filtered out (1ms)",
    },
    { code: 5, output: "collected 0 items\n\n=== no tests ran in 0.01s ===" },
    {
      output:
        "test result: ok. 0 passed; 0 failed; 0 ignored\n\ntest result: ok. 0 passed; 0 failed",
    },
    { output: "?   \texample/a\t[no test files]\nok  \texample/b\t0.1s [no tests to run]" },
    { code: 1, output: "No tests found, exiting with code 1" },
    { code: 1, output: "No test files found, exiting with code 1" },
    { output: "# tests 0\n# pass 0" },
    { output: "\x1b[32m  0 passing\x1b[0m (1ms)" },
    { code: 2, output: "make: *** No rule to make target 'x'.  Stop." },
  ];
  for (const ended of empty) {
    const { output, is_error } = await recorded(work, "code_test", { target: "x" }, { ended });
    assert.match(output, /\nError: no test ran for "x"$/, ended.output);
    assert.equal(is_error, true);
    const lint = await recorded(work, "code_lint", {}, { ended });
    assert.doesNotMatch(lint.output, /no test ran/);
  }
  const full: Ended[] = [
    { output: "ok | 3 passed | 0 failed (1s)" },
    { code: 1, output: "FAILED | 0 passed | 2 failed (1s)" },
    { output: "test result: ok. 0 passed; 0 failed\ntest result: ok. 7 passed; 0 failed" },
    { output: "ok  \texample/a\t0.1s\n?   \texample/b\t[no test files]" },
    {
      code: 1,
      output: "--- FAIL: TestX\nFAIL\nFAIL\texample/a\t0.1s\n? \texample/b\t[no test files]",
    },
    { output: "=== 5 passed in 0.1s ===" },
    { output: "done" },
  ];
  for (const ended of full) {
    const { output } = await recorded(work, "code_test", {}, { ended });
    assert.doesNotMatch(output, /no test ran/, ended.output);
  }
});

Deno.test("the real runner: passing tests, failing tests, and a target that matches none", async () => {
  await using work = await project({
    "test.sh": 'case "$1" in nothing) echo "ok | 0 passed | 0 failed (1ms)";; bad) exit 3;; esac\n',
  });
  const context = toolContext({
    worktree: work.path,
    config: { "dev.test_cmd": "sh test.sh" },
  });
  const results = [];
  for (const target of ["good", "bad", "nothing"]) {
    results.push((await tools.call("code_test", { target }, context)).output.split("\n").slice(1));
  }
  assert.deepEqual(results, [
    ["exit 0", "(no output)"],
    ["exit 3", "(no output)"],
    ["exit 0", "ok | 0 passed | 0 failed (1ms)", 'Error: no test ran for "nothing"'],
  ]);
});

Deno.test("a call that cannot be run gets a one-sentence error", async () => {
  await using nothing = await project();
  await using npm = await project({
    "package.json": '{"scripts":{"test":"echo \\"Error: no test specified\\" && exit 1"}}',
  });
  const output = async (work: Project, args: Record<string, unknown>) =>
    (await recorded(work, "code_test", args)).output;
  assert.equal(
    await output(nothing, {}),
    'Error: no project is recognised here; pass its folder as "cwd", or set dev.test_cmd in the configuration',
  );
  assert.match(
    await output(npm, {}),
    /^Error: the npm project here has no command for it; give it one, or set/,
  );
  for (const target of ["--watch", "", "a\nb"]) {
    assert.match(await output(npm, { target }), /^Error: .* is no target$/);
  }
  assert.match(await output(npm, { target: "../../x" }), /^Error: .*outside the worktree/);
  assert.match(await output(npm, { cwd: "/" }), /^Error: .*outside the worktree/);
});

Deno.test("a runner that is missing, takes too long or is cancelled is named", async () => {
  await using work = await project({ "go.mod": "" });
  const late = await recorded(work, "code_test", { timeout: 9999 }, {
    ended: { code: 143, output: "half", timed_out: true },
  });
  assert.match(late.output, /^Error: timed out after 3600 seconds and was ended\n\$ go test/);
  const stopped = await recorded(work, "code_test", {}, { ended: { cancelled: true } });
  assert.match(stopped.output, /^Error: cancelled\n/);
  const context = {
    ...toolContext({ worktree: work.path }),
    run: () => Promise.reject(new SvcError("program_not_found", "no go")),
  };
  const missing = await tools.call("code_lint", {}, context);
  assert.equal(
    missing.output,
    "Error: code_lint requires the program go, which is not installed; install it, or set dev.lint_cmd " +
      "in the configuration",
  );
});

Deno.test("code_test searches a Go test by name in every package [4.8]", async () => {
  await using work = await project({ "go.mod": "" });
  const { request } = await recorded(work, "code_test", { target: "TestOne" });
  assert.deepEqual(request?.command, ["go", "test", "-run=^TestOne$", "./..."]);
});
