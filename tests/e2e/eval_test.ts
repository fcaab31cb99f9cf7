import assert from "node:assert/strict";
import { table } from "../../src/commands/eval.ts";
import type { FixtureResult } from "../../src/eval/run_fixture.ts";
import { call, hang, httpError, say, startBackend, usage } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const BUNDLED = [
  "find-then-read",
  "grep-symbol",
  "list-directory",
  "page-large-file",
  "read-file-lines",
];

Deno.test("svc eval: the bundled fixtures of single calls pass on the demo model, and leave no files [4.4]", async () => {
  await using work = await project();
  await using temporary = await project();
  const { code, stdout, stderr } = await svc(["eval", ...BUNDLED, "--provider", "demo"], {
    cwd: work.path,
    env: { TMPDIR: temporary.path },
  });
  assert.equal(code, 0, stderr);
  const lines = stdout.trimEnd().split("\n");
  assert.equal(lines[0], "demo/demo");
  assert.deepEqual(lines.slice(2, 7).map((line) => line.split(/ +/).slice(0, 4).join(" ")), [
    ...BUNDLED.map((id) => `${id} pass 100 %`),
  ]);
  assert.equal(lines[7], "5 of 5 passed (100 %)");
  assert.deepEqual([...Deno.readDirSync(temporary.path)], []);
  assert.deepEqual([...Deno.readDirSync(work.path)], []);
});

Deno.test("svc eval: fixtures of the user and of the worktree replace and join the bundled ones [4.4]", async () => {
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
  const { code, stdout, stderr } = await inProcess(["eval", "--list", "--output", "json"], {
    cwd: work.path,
    home: home.path,
  });
  assert.equal(code, 0);
  const described = Object.fromEntries(
    JSON.parse(stdout).map(({ id, description }: Record<string, string>) => [id, description]),
  );
  const ids = Object.keys(described).filter((id) => !id.startsWith("work-"));
  assert.deepEqual(ids, [...BUNDLED.slice(0, 3), "mine", ...BUNDLED.slice(3)]);
  assert.equal(described.mine, "local");
  assert.equal(described["list-directory"], "replaced");
  assert.match(stderr, /broken\.json cannot be read/);
  assert.match(stderr, /wrong\.json cannot be used: task: /);
});

Deno.test("changing and running are denied to fixtures, and the exit code depends on the rate", async () => {
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
  const { code, stdout, stderr } = await inProcess([...args, "--output", "json"], {
    cwd: work.path,
  });
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

Deno.test("svc eval: several backends are compared, and a sufficient rate is success [4.4]", async () => {
  await using model = startBackend([say("I do not know.")]);
  await using work = await project({
    ".config/svc/providers.json": JSON.stringify({ other: { base_url: model.url, api_key: "" } }),
  });
  const run = (...args: string[]) =>
    inProcess(["eval", "list-directory", ...args], { cwd: work.path });
  const { code, stdout, stderr } = await run("--compare", "demo,other/m", "--output", "json");
  assert.equal(code, 1, stderr);
  assert.deepEqual(
    JSON.parse(stdout).map(({ provider, rate }: Record<string, unknown>) => [provider, rate]),
    [["demo", 1], ["other", 0]],
  );
  assert.equal((await run("--compare", "demo,other/m", "--min-rate", "0")).code, 0);
  assert.equal((await run("--compare", "demo")).code, 2);
  const unknown = await inProcess(["eval", "list-directry"], { cwd: work.path });
  assert.match(unknown.stderr, /Did you mean "list-directory"\?/);
  assert.equal(unknown.code, 2);
});

Deno.test("a fixture that hangs is cancelled, one whose backend fails has a reason, and the others run", async () => {
  await using model = startBackend([
    hang(),
    httpError(400, "no such thing"),
    call("list_dir", { path: "." }),
    say("done"),
  ]);
  const fixture = (id: string) => ({ id, task: "list", expected: ["list_dir"] });
  await using work = await project({
    ".svc/eval/all.json": JSON.stringify(["a", "b", "c"].map(fixture)),
  });
  const { code, stdout, stderr } = await inProcess([
    ...["eval", "a", "b", "c", "--timeout", "4", "--output", "json"],
    ...["--base-url", model.url, "--model", "m"],
  ], { cwd: work.path });
  assert.equal(code, 1, stderr);
  const { rate, results } = JSON.parse(stdout);
  assert.equal(rate, 1 / 3);
  assert.deepEqual(
    results.map(({ id, pass, status }: Record<string, unknown>) => [id, pass, status]),
    [["a", false, "cancelled"], ["b", false, "error"], ["c", true, "ok"]],
  );
  assert.equal(results[0].reasons[0], "ended cancelled after 4 seconds");
  assert.match(results[1].reasons[0], /^ended error: .*400/);
});

Deno.test("an interrupt ends the measurement with 130, and its worktree is removed", async () => {
  await using model = startBackend([hang()]);
  await using work = await project();
  const child = startSvc(
    ["eval", "list-directory", "--base-url", model.url, "--model", "m"],
    { cwd: work.path, env: { TMPDIR: work.path } },
  );
  await model.arrived(1);
  child.kill("SIGINT");
  const { code, stdout } = await child.output();
  assert.equal(code, 130);
  assert.equal(stdout.length, 0);
  assert.deepEqual([...Deno.readDirSync(work.path)].map(({ name }) => name), []);
});

Deno.test("a third-party plugin registers a fixture for its tool", async () => {
  await using model = startBackend([call("tide", { harbour: "Husum" }), say("high")]);
  await using work = await project({
    ".svc/config.json": JSON.stringify({ plugins: ["svc-core-fs", "harbour"] }),
    ".svc/plugins/harbour.js": `
      export function register_tools(registry) {
        registry.register({
          name: "tide", description: "The tide.", permission: "read",
          parameters: { type: "object", properties: { harbour: { type: "string" } } },
          handler: () => "high at noon",
        });
      }
      export function register_fixtures(fixtures) {
        fixtures.register({
          id: "tide", task: "How is the tide in Husum?", expected: ["tide"],
          verifier: { exact: true, args: { tide: { harbour: "Husum" } } },
        });
        fixtures.register({ id: "../no", task: "x" });
      }`,
  });
  const { code, stdout, stderr } = await inProcess(
    ["eval", "tide", "--output", "json", "--base-url", model.url, "--model", "m"],
    { cwd: work.path },
  );
  assert.equal(code, 0, stderr + stdout);
  const [{ names, errors }] = JSON.parse(stdout).results;
  assert.deepEqual([names, errors], [["tide"], 0]);
  assert.match(JSON.stringify(model.chats.at(-1)), /high at noon/);
  assert.match(stderr, /plugin harbour cannot be used: id: /);
});

Deno.test("svc eval --repeat: each fixture runs several times, with its passes, spread and cost [4.4]", async () => {
  await using model = startBackend([
    { ...call("list_dir", { path: "." }), ...usage(100, 10) },
    { ...say("done"), ...usage(200, 10) },
    { ...say("I do not know."), ...usage(100, 20) },
    { ...call("list_dir", { path: "." }), ...usage(100, 10) },
    { ...call("list_dir", { path: "src" }), ...usage(200, 10) },
    { ...say("done"), ...usage(300, 10) },
  ]);
  const listing = { task: "list", files: { "src/a": "" }, expected: ["list_dir"] };
  await using work = await project({
    ".svc/eval/all.json": JSON.stringify([{ id: "list-1", ...listing }, {
      id: "other",
      ...listing,
    }]),
    ".config/svc/config.json": JSON.stringify({
      prices: { "generic-compatible/m": { in: 1000, out: 10000 } },
    }),
  });
  const args = ["eval", "list-1*", "--repeat", "3", "--base-url", model.url, "--model", "m"];
  const { code, stdout, stderr } = await inProcess([...args, "--output", "json"], {
    cwd: work.path,
  });
  assert.equal(code, 1, stderr);
  const { rate, cost, cost_per_pass, spread: [{ seconds, ...spread }], results } = JSON.parse(
    stdout,
  );
  assert.equal(rate, 2 / 3);
  assert.deepEqual(results.map(({ pass }: { pass: boolean }) => pass), [true, false, true]);
  assert.deepEqual(spread, {
    id: "list-1",
    runs: 3,
    passes: 2,
    rounds: { min: 1, median: 2, max: 3 },
    tokens: { min: 120, median: 320, max: 630 },
    cost,
    cost_per_pass,
  });
  assert.ok(seconds.min <= seconds.median && seconds.median <= seconds.max);
  assert.deepEqual([cost, cost_per_pass], [1.7, 0.85]);
});

Deno.test("svc eval --repeat: the table has a line for each fixture", () => {
  const result = (tokens: number, pass: boolean) => ({ tokens, pass }) as FixtureResult;
  const range = { min: 1, median: 1.5, max: 2 };
  const shared = { id: "a", runs: 2, passes: 1, tokens: { min: 90, median: 95, max: 100 } };
  const spread = [{ ...shared, rounds: range, seconds: range, cost: 0.02, cost_per_pass: 0.02 }];
  const results = [result(90, true), result(100, false)];
  const report = { provider: "p", model: "m", rate: 0.5, cost: 0.02, cost_per_pass: 0.02 };
  assert.deepEqual(
    table([{ ...report, spread, results }]).split("\n").map((line) => line.split(/  +/)),
    [
      ["p/m"],
      ["fixture", "passes", "rounds", "tokens", "seconds", "cost a pass"],
      ["a", "1 of 2", "1/1.5/2", "90/95/100", "1/1.5/2", "0.02"],
      ["1 of 2 passed (50 %), cost 0.02, 0.02 a pass"],
      [""],
    ],
  );
});

Deno.test("a fixture of a worktree that runs a command, or allows more, is left out until it is trusted [5.3]", async () => {
  await using work = await project({
    ".svc/eval/all.json": JSON.stringify([
      { id: "a", task: "t", verifier: { command: "touch ran" } },
      { id: "b", task: "t", verifier: { files: { "x.txt": "x" } } },
    ]),
  });
  const { stdout, stderr } = await inProcess(["eval", "--list", "--output", "json"], {
    cwd: work.path,
    env: { SVC_TRUST: "" },
  });
  const ids = JSON.parse(stdout).map(({ id }: { id: string }) => id);
  assert.deepEqual([ids.includes("a"), ids.includes("b")], [false, true]);
  assert.match(stderr, /The fixture a is left out, not being trusted/);
});

const PAGE = Deno.readTextFileSync(new URL("../../docs/eval.md", import.meta.url));

Deno.test("the fixture of docs/eval.md runs with the printed output", async () => {
  const [, fixture] = /```json\n(.*?)```/s.exec(PAGE)!;
  const [, command, printed] = /```console\n\$ svc (.*?)\n(.*?)```/s.exec(PAGE)!;
  await using work = await project({ ".svc/eval/hours.json": fixture! });
  const { code, stdout, stderr } = await inProcess(command!.split(" "), { cwd: work.path });
  assert.deepEqual([code, stderr], [0, ""]);
  const tokens = /\d+(?=\n1 of)/; // they depend on the length of the temporary folder's name
  assert.equal(stdout.replace(tokens, "N"), printed!.replace(tokens, "N"));
});
