import assert from "node:assert/strict";
import { call, say, startBackend } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const BUNDLED = [
  "find-then-read",
  "grep-symbol",
  "list-directory",
  "page-large-file",
  "read-file-lines",
];

Deno.test("the bundled fixtures pass on the demo model, and leave nothing behind", async () => {
  await using work = await project();
  const before = [...Deno.readDirSync("/tmp")].filter(({ name }) => name.startsWith("svc-eval-"));
  const { code, stdout, stderr } = await svc(["eval", "--provider", "demo"], { cwd: work.path });
  assert.equal(code, 0, stderr);
  const lines = stdout.trimEnd().split("\n");
  assert.equal(lines[0], "demo/demo");
  assert.deepEqual(lines.slice(2, 7).map((line) => line.split(/ +/).slice(0, 4).join(" ")), [
    ...BUNDLED.map((id) => `${id} pass 100 %`),
  ]);
  assert.equal(lines[7], "5 of 5 passed (100 %)");
  const after = [...Deno.readDirSync("/tmp")].filter(({ name }) => name.startsWith("svc-eval-"));
  assert.equal(after.length, before.length);
  assert.deepEqual([...Deno.readDirSync(work.path)], []);
});

Deno.test("fixtures of the user and of the worktree replace and join the bundled ones", async () => {
  await using home = await project({
    ".config/svc/eval/mine.json": JSON.stringify([
      { id: "mine", task: "list the files", description: "global" },
      { id: "list-directory", task: "list the files", description: "replaced" },
    ]),
  });
  await using work = await project({
    ".svc/eval/a.json": JSON.stringify({
      id: "mine",
      task: "list the files",
      description: "local",
    }),
    ".svc/eval/broken.json": "{",
    ".svc/eval/wrong.json": '{"id":"w","task":1}',
  });
  const { code, stdout, stderr } = await svc(["eval", "--list", "--output", "json"], {
    cwd: work.path,
    home: home.path,
  });
  assert.equal(code, 0);
  const described = Object.fromEntries(
    JSON.parse(stdout).map(({ id, description }: Record<string, string>) => [id, description]),
  );
  assert.deepEqual(Object.keys(described), [...BUNDLED.slice(0, 3), "mine", ...BUNDLED.slice(3)]);
  assert.equal(described.mine, "local");
  assert.equal(described["list-directory"], "replaced");
  assert.match(stderr, /broken\.json cannot be read/);
  assert.match(stderr, /wrong\.json cannot be used: task: /);
});

Deno.test("a fixture's worktree lets nothing be changed or run, and the exit code tells the rate", async () => {
  await using model = startBackend([
    call("file_write", { path: "x", content: "" }),
    call("run_command", { command: "true" }),
    say("done"),
    call("list_dir", { path: "." }),
    say("done"),
  ]);
  await using work = await project({
    ".svc/eval/all.json": JSON.stringify([
      { id: "a", task: "write", expected: ["list_dir"] },
      { id: "b", task: "list", files: { "deep/x.txt": "x" }, expected: ["list_dir"] },
    ]),
  });
  const args = ["eval", "a", "--fixture", "b", "--base-url", model.url, "--model", "m"];
  const { code, stdout, stderr } = await svc([...args, "--output", "json"], { cwd: work.path });
  assert.equal(code, 1, stderr);
  const { rate, results } = JSON.parse(stdout);
  assert.equal(rate, 0.5);
  assert.deepEqual(
    results.map(({ id, names, pass, calls, errors, status, reasons }: Record<string, unknown>) => [
      id,
      names,
      pass,
      calls,
      errors,
      status,
      reasons,
    ]),
    [
      ["a", ["file_write", "run_command"], false, 2, 2, "ok", ["expected list_dir"]],
      ["b", ["list_dir"], true, 1, 0, "ok", []],
    ],
  );
  assert.match(JSON.stringify(model.chats.at(-1)), /deep\//);
});

Deno.test("several backends are compared, and a rate that suffices is success", async () => {
  await using model = startBackend([say("I do not know.")]);
  await using work = await project({
    ".config/svc/providers.json": JSON.stringify({ other: { base_url: model.url, api_key: "" } }),
  });
  const run = (...args: string[]) => svc(["eval", "list-directory", ...args], { cwd: work.path });
  const { code, stdout, stderr } = await run("--compare", "demo,other/m", "--output", "json");
  assert.equal(code, 1, stderr);
  assert.deepEqual(
    JSON.parse(stdout).map(({ provider, rate }: Record<string, unknown>) => [provider, rate]),
    [["demo", 1], ["other", 0]],
  );
  assert.equal((await run("--compare", "demo,other/m", "--min-rate", "0")).code, 0);
  assert.equal((await run("--compare", "demo")).code, 2);
  const unknown = await svc(["eval", "list-directry"], { cwd: work.path });
  assert.match(unknown.stderr, /Did you mean "list-directory"\?/);
  assert.equal(unknown.code, 2);
});
