import assert from "node:assert/strict";
import { type Project, project } from "../../../tests/support/project.ts";
import { recorded } from "./support.ts";

/** The command that is run for a target, or the error text. */
async function ran(work: Project, task: string, target: string, cwd?: string): Promise<string> {
  const { request, output } = await recorded(work, `code_${task}`, { target, cwd });
  return request?.command.join(" ") ?? output;
}

const REFUSED = /^Error: .* is no (target|rule for this|file or folder here)/;

Deno.test("code_test gives each runner a file or a folder in its own syntax [4.8]", async () => {
  await using go = await project({ "go.mod": "", "a_test.go": "", "in/b_test.go": "" });
  assert.equal(await ran(go, "test", "a_test.go"), "go test .");
  assert.equal(await ran(go, "test", "in/b_test.go"), "go test ./in");
  assert.equal(await ran(go, "test", "in"), "go test ./in/...");
  assert.equal(await ran(go, "test", "./in/"), "go test ./in/...");
  assert.equal(await ran(go, "test", "TestA/sub (x)"), "go test -run=^TestA$/^sub \\(x\\)$ ./...");
  assert.equal(await ran(go, "test", "example.com/x/in"), "go test example.com/x/in");
  assert.equal(await ran(go, "lint", "in/b_test.go"), "go vet ./in");
  assert.equal(await ran(go, "format", "in"), "go fmt ./in/...");

  await using cargo = await project({
    "Cargo.toml": "",
    "src/lib.rs": "",
    "tests/all.rs": "",
    "part/Cargo.toml": "",
    "part/src/lib.rs": "",
    "part/tests/one.rs": "",
  });
  assert.equal(await ran(cargo, "test", "src/lib.rs"), "cargo test");
  assert.equal(await ran(cargo, "test", "tests/all.rs"), "cargo test --test all");
  assert.equal(
    await ran(cargo, "test", "part/tests/one.rs"),
    "cargo test --manifest-path part/Cargo.toml --test one",
  );
  assert.equal(await ran(cargo, "test", "some::name"), "cargo test some::name");
  assert.equal(await ran(cargo, "lint", "part"), "cargo clippy --manifest-path part/Cargo.toml");
  assert.equal(await ran(cargo, "format", "src/lib.rs"), "cargo fmt");
  assert.equal(await ran(cargo, "lint", "part-of-it"), "cargo clippy --package part-of-it");

  await using python = await project({ "conftest.py": "", "test_a.py": "" });
  assert.equal(
    await ran(python, "test", "test_a.py::test_b"),
    "python3 -m pytest test_a.py::test_b",
  );
  assert.equal(await ran(python, "test", "test_b"), "python3 -m pytest -k test_b");
});

Deno.test("a target is a path in the worktree or a plain name", async () => {
  await using outside = await project({ "x.ts": "var x  = 1;\n" });
  await using deno = await project({ "deno.json": "", "in/deno.json": "", "b.ts": "" });
  await Deno.symlink(outside.path, `${deno.path}/link`);
  for (
    const target of ["link", "link/x.ts", "link/made.ts", `${outside.path}/x.ts`, "in/../../x"]
  ) {
    for (const task of ["test", "lint", "format"]) {
      assert.match(await ran(deno, task, target), /^Error: .*outside the worktree/, target);
    }
  }
  for (
    const target of [`file://${outside.path}/x.ts`, "https://example.org/x.ts", "{..,in}/a.ts"]
  ) {
    assert.match(await ran(deno, "format", target), REFUSED);
  }
  // Two dots are relative to the folder of the project, not to the worktree.
  assert.equal(await ran(deno, "lint", "../b.ts", "in"), "deno lint ../b.ts");
  assert.equal(await ran(deno, "test", "counts 1..10"), "deno test --filter=counts 1..10");
});

Deno.test("a target of make is a rule with the task in its name, and no assignment", async () => {
  const rules = "test:\nlint:\nfmt:\ntest-unit:\ndeploy:\n";
  await using make = await project({ "Makefile": rules });
  assert.equal(await ran(make, "test", "test-unit"), "make test-unit");
  for (
    const target of [
      "deploy",
      "X:=$(shell touch test)",
      "SHELL=test",
      "test$(x)",
      "test\\x",
      "a test",
    ]
  ) {
    for (const task of ["test", "lint", "format"]) {
      assert.match(await ran(make, task, target), REFUSED, target);
    }
  }
  await using go = await project({ "go.mod": "" });
  for (const target of ["fmt", "all", "std"]) {
    assert.match(await ran(go, "format", target), REFUSED);
  }
  await using python = await project({ "pytest.ini": "" });
  assert.match(await ran(python, "test", "@args.txt"), REFUSED);
});
