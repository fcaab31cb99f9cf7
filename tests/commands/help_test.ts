import assert from "node:assert/strict";
import { runCommand } from "../../src/commands/command.ts";
import { SHARED } from "../../src/commands/table.ts";
import { project } from "../support/project.ts";
import { runMain, testIo } from "../support/io.ts";

Deno.test("a help page fits into 80 columns and breaks no option apart", async () => {
  const run = await runMain("/", "run", "--help");
  assert.equal(run.code, 0);
  assert.match(run.out, /^Usage: svc run \[-p\/--prompt TEXT\] /);
  assert.doesNotMatch(run.out, /\[$|^ +\]|[ \t]$/m);
  for (const command of ["run", "jobs add", "fleet config", "plugins install", "config get"]) {
    const { out } = await runMain("/", ...command.split(" "), "--help");
    const [page = ""] = out.split("\nExamples:\n");
    assert.deepEqual(page.split("\n").filter((line) => line.length > 80), [], command);
  }
});

Deno.test("in a narrow terminal session a help page fits into its columns", async () => {
  for (const command of [SHARED.jobs, SHARED.teams, SHARED.connect]) {
    for (const columns of [40, 60]) {
      const io = testIo({ home: "/", cwd: "/" }, { program: "/", columns: () => columns });
      const { parser: { name } } = await command.load();
      await runCommand(await command.load(), [name, "--help"], io);
      const [page = ""] = io.printed.split("\nExamples:\n");
      assert.deepEqual(page.split("\n").filter((line) => line.length > columns), [], name);
    }
  }
});

Deno.test("a command with subcommands lists them below its usage only", async () => {
  assert.match(
    (await runMain("/", "jobs", "--help")).out,
    /^Usage: svc jobs SUBCOMMAND \.\.\.\n\n/,
  );
});

Deno.test("a command that may be named without a subcommand shows the options of that use", async () => {
  for (const [command, option] of [["serve", "--host HOST"], ["mcp", "--trust"]] as const) {
    const { out } = await runMain("/", command, "--help");
    assert.match(out, new RegExp(`^Without a subcommand, as \\w+:\n  ([^]*\n  )?${option} `, "m"));
  }
  assert.doesNotMatch((await runMain("/", "serve", "token", "--help")).out, /^ +--host/m);
});

Deno.test("a mistake in a subcommand leads to the subcommand's help", async () => {
  const hints = [
    [["jobs", "add"], "svc jobs add --help"],
    [["jobs", "zork"], "svc jobs --help"],
    [["run", "--zork"], "svc run --help"],
  ] as const;
  for (const [args, page] of hints) {
    const { code, notes } = await runMain("/", ...args);
    assert.equal(code, 2);
    assert.equal(notes.at(-1), `hint: Try: ${page}`);
  }
});

Deno.test("completion has a help page", async () => {
  const { code, out } = await runMain("/", "completion", "--help");
  assert.equal(code, 0);
  assert.match(out, /^Usage: svc completion SHELL\n/);
});

Deno.test("an empty list prints a note", async () => {
  await using work = await project();
  assert.match((await runMain(work.path, "jobs")).notes[0]!, /There are no jobs/);
  assert.match((await runMain(work.path, "skills")).notes[0]!, /There are no skills/);
  assert.match((await runMain(work.path, "models")).notes[0]!, /No provider is connected/);
  assert.match(
    (await runMain(work.path, "roles", "list", "zork")).notes[0]!,
    /No role has the tag "zork"/,
  );
  const json = await runMain(work.path, "memory", "list", "--output", "json");
  assert.deepEqual(json, { code: 0, out: "[]\n", notes: [] });
});

Deno.test("a file named .svc is reported before anything starts", async () => {
  await using work = await project();
  await Deno.remove(`${work.path}/.svc`, { recursive: true }).catch(() => {});
  await Deno.writeTextFile(`${work.path}/.svc`, "mine");
  for (const args of [["jobs", "list"], ["run", "--provider", "demo", "hello"], ["asks"]]) {
    const { code, notes } = await runMain(work.path, ...args);
    assert.equal(code, 2);
    assert.match(notes.join("\n"), /\.svc is a file.*\nhint: Move the file away/);
  }
  assert.equal(await Deno.readTextFile(`${work.path}/.svc`), "mine");
});

Deno.test("an invalid address of a backend is wrong usage, and no session begins", async () => {
  await using work = await project();
  const args = ["run", "--provider", "demo", "--base-url", "notaurl", "hello"];
  const { code, out, notes } = await runMain(work.path, ...args);
  assert.deepEqual([code, out], [2, ""]);
  assert.match(notes[0]!, /The base URL "notaurl" is no web address\./);
});
