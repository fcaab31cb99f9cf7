import assert from "node:assert/strict";
import { project } from "../support/project.ts";
import { runMain } from "../support/io.ts";

Deno.test("an unknown name is a usage error everywhere, with a hint at the list of names [7.4]", async () => {
  await using work = await project();
  const cases: [string, string][] = [
    ["export nope", "See them with: svc sessions"],
    ["compact nope", "See them with: svc sessions"],
    ["sessions show nope", "See them with: svc sessions"],
    ["sessions tail nope", "See them with: svc sessions"],
    ["sessions delete nope", "See them with: svc sessions"],
    ["asks show 9", "See them with: svc asks list all"],
    ["asks answer 9 yes", "See them with: svc asks list all"],
    ["memory show role nope", "See what is remembered with: svc memory list"],
    ["memory clear job nope", "See what is remembered with: svc memory list"],
    ["roles show nope", "`svc roles list` shows those there are."],
    ["teams show nope", "`svc teams list` shows those there are."],
    ["skills show nope", "`svc skills list` shows those there are."],
    ["jobs show nope", "See the jobs with: svc jobs list"],
    ["jobs run nope", "See the jobs with: svc jobs list"],
    ["plugins show nope", "See them with: svc plugins list"],
    ["plugins enable nope", "See them with: svc plugins list"],
    ["fleet logs nope", "svc fleet status lists them."],
    ["mcp connect nope", "See them with: svc mcp list"],
    ["eval --fixture nope", "See them with: svc eval --list"],
    ["models list nope", "Known: "],
    ["config get zzzz", "svc config get lists all settings."],
    ["permissions --mode nope", "Modes are build, plan"],
    ["help nope", "Try: svc --help"],
    ["nope", "Try: svc --help"],
  ];
  for (const [line, hint] of cases) {
    const { code, out, notes } = await runMain(work.path, ...line.split(" "));
    assert.deepEqual([line, code, out], [line, 2, ""]);
    assert.ok(notes.at(-1)!.startsWith(`hint: ${hint}`), notes.join("\n"));
  }
});

Deno.test("a name that is nearly right is suggested", async () => {
  await using work = await project({
    ".svc/config.json": JSON.stringify({ "mcp.servers": [{ name: "notes", command: "x" }] }),
    ".svc/memory/roles/tester.md": "knows",
  });
  const near: [string, string][] = [
    ["mcp connect note", '"notes"'],
    ["memory show role testr", '"tester"'],
    ["roles show testr", "tester"],
    ["help jbos", '"svc jobs"'],
  ];
  for (const [line, name] of near) {
    const { code, notes } = await runMain(work.path, ...line.split(" "));
    assert.deepEqual([code, notes.at(-1)], [2, `hint: Did you mean ${name}?`]);
  }
});

Deno.test("help of a subcommand is its page", async () => {
  await using work = await project();
  const page = await runMain(work.path, "help", "jobs", "add");
  assert.deepEqual(page, await runMain(work.path, "jobs", "add", "--help"));
  assert.match(page.out, /^Usage: svc jobs add /);
});

Deno.test("a team whose stages name no role is saved with a warning", async () => {
  await using work = await project();
  const { code, notes } = await runMain(
    work.path,
    "teams",
    "new",
    "t",
    "--stages",
    "tester,testr,testr",
  );
  assert.deepEqual([code, notes.slice(1)], [
    0,
    ['warning: There is no role "testr", and no run without it. Did you mean tester?'],
  ]);
});
