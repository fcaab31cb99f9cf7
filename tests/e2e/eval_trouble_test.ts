import assert from "node:assert/strict";
import { join } from "node:path";
import { call, calls, hang, httpError, say, startBackend, usage } from "../support/backend.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const names = (path: string) => [...Deno.readDirSync(path)].map(({ name }) => name).sort();
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
const listing = (id: string, more: Record<string, unknown> = {}) => ({
  id,
  task: "list the files",
  expected: ["list_dir"],
  ...more,
});

Deno.test("JSON has each fixture's trace and figures; only reading tools are offered", async () => {
  await using model = startBackend([
    { ...calls([["list_dir", { path: "." }], ["ls", { path: "." }]]), ...usage(10, 5) },
    { ...say("done"), ...usage(20, 5) },
  ]);
  await using work = await project({ ".svc/eval/a.json": JSON.stringify(listing("a")) });
  const { code, stdout, stderr } = await svc(
    ["eval", "a", "--output", "json", "--base-url", model.url, "--model", "m"],
    { cwd: work.path },
  );
  assert.equal(code, 0, stderr);
  const made = { name: "list_dir", arguments: { path: "." }, is_error: false };
  const report = JSON.parse(stdout);
  assert.ok(report.results[0].seconds > 0);
  delete report.results[0].seconds;
  assert.deepEqual(report, {
    provider: "generic-compatible",
    model: "m",
    rate: 1,
    cost: null,
    cost_per_pass: null,
    results: [{
      id: "a",
      trace: [made, made],
      names: ["list_dir", "list_dir"],
      calls: 2,
      tokens: 40,
      rounds: 2,
      cost: null,
      status: "ok",
      accuracy: 1,
      pass: true,
      redundant: 1,
      errors: 0,
      reasons: [],
    }],
  });
  const offered = model.chats[0].tools.map((tool: { function: { name: string } }) =>
    tool.function.name
  );
  for (const name of ["file_read", "list_dir", "glob", "grep", "web_fetch"]) {
    assert.ok(offered.includes(name), name);
  }
  for (const name of ["file_write", "file_edit", "run_command", "mcp_connect"]) {
    assert.ok(!offered.includes(name), name);
  }
});

Deno.test("tools that the user denies stay denied, in addition to those of the fixture", async () => {
  await using model = startBackend([say("done")]);
  await using work = await project({
    ".config/svc/config.json": JSON.stringify({ tools: { deny: ["web_fetch"] } }),
    ".svc/config.json": JSON.stringify({ tools: { deny: ["web_fetch", "web_search"] } }),
    ".svc/eval/a.json": JSON.stringify(listing("a", { tools_deny: ["grep"] })),
  });
  await svc(["eval", "a", "--base-url", model.url, "--model", "m"], { cwd: work.path });
  const sent = JSON.stringify(model.chats[0].tools);
  assert.deepEqual(
    ["web_fetch", "web_search", "grep", "glob"].filter((name) => sent.includes(`"name":"${name}"`)),
    ["glob"],
  );
});

Deno.test("the user's files are not changed, and no temporary worktree is stored", async () => {
  const own = {
    ".svc/asks.json": "[]",
    ".svc/jobs.json": '{"jobs":[]}',
    ".svc/sessions/mine.json": "{}",
    ".svc/memory/roles/writer.md": "mine",
    "notes.txt": "mine",
  };
  await using work = await project({
    ...own,
    ".svc/config.json": JSON.stringify({ plugins: ["svc-core-demo", "svc-core-fs", "p"] }),
    ".svc/plugins/p.js":
      'export function register_fixtures(f) { f.register({ id: "p", task: "list the files" }); }',
    ".svc/eval/all.json": JSON.stringify(["a", "b"].map((id) => listing(id))),
  });
  await using home = await project();
  const { code, stderr } = await svc(["eval", "--provider", "demo"], {
    cwd: work.path,
    home: home.path,
    env: { SVC_TRUST: "" },
  });
  assert.equal(code, 0, stderr);
  for (const [path, content] of Object.entries(own)) {
    assert.equal(Deno.readTextFileSync(join(work.path, path)), content);
  }
  assert.deepEqual(names(join(work.path, ".svc/sessions")), ["mine.json"]);
  const seen = JSON.parse(Deno.readTextFileSync(join(home.path, ".config/svc/trust.json")));
  assert.deepEqual(Object.keys(seen), [Deno.realPathSync(work.path)]);
});

Deno.test("a fixture that cannot be set up has failed, and the others run", async () => {
  await using work = await project({
    ".svc/eval/all.json": JSON.stringify([
      listing("a", { files: { ["x".repeat(300)]: "" } }),
      listing("b"),
    ]),
  });
  const { code, stdout, stderr } = await svc(
    ["eval", "a", "b", "--provider", "demo", "--output", "json"],
    { cwd: work.path, env: { TMPDIR: work.path } },
  );
  assert.equal(code, 1, stderr);
  const { results } = JSON.parse(stdout);
  assert.deepEqual(
    results.map(({ pass, status }: Record<string, unknown>) => [pass, status]),
    [[false, "error"], [true, "ok"]],
  );
  assert.match(results[0].reasons[0], /^could not be run: File name too long/);
  assert.deepEqual(names(work.path).filter((name) => name.startsWith("svc-eval-")), []);
});

Deno.test("an unknown name in --compare is an error before anything is measured", async () => {
  await using model = startBackend([say("done")]);
  await using work = await project({
    ".config/svc/providers.json": JSON.stringify({ other: { base_url: model.url, api_key: "" } }),
  });
  const { code, stdout } = await svc(["eval", "--compare", "other/m,nosuch"], { cwd: work.path });
  assert.deepEqual([code, stdout, model.requests.length], [2, "", 0]);
});

Deno.test("one of three compared backends may fail, with its own rate and reason", async () => {
  await using model = startBackend([call("list_dir", { path: "." }), say("done")]);
  await using denied = startBackend([httpError(401, { error: { message: "no\n1 of 1 passed" } })]);
  const closed = startBackend([]);
  await closed.close();
  const provider = ({ url: base_url }: { url: string }) => ({ base_url, api_key: "" });
  await using work = await project({
    ".config/svc/providers.json": JSON.stringify({
      one: provider(model),
      two: provider(denied),
      three: provider(closed),
    }),
    ".config/svc/config.json": '{"retry_budget": 0}',
    ".svc/eval/a.json": JSON.stringify(listing("a")),
  });
  const { code, stdout } = await svc(["eval", "a", "--compare", "one/m,two/m,three/m"], {
    cwd: work.path,
  });
  assert.equal(code, 1);
  const sections = stdout.split("\n\n").map((section) => section.trimEnd().split("\n"));
  assert.deepEqual(sections.map((lines) => [lines.length, lines[0], lines[3]]), [
    [4, "one/m", "1 of 1 passed (100 %)"],
    [4, "two/m", "0 of 1 passed (0 %)"],
    [4, "three/m", "0 of 1 passed (0 %)"],
  ]);
  assert.match(sections[1]![2]!, /FAIL .* ended error: .*no 1 of 1 passed/);
  assert.match(sections[2]![2]!, /FAIL .* ended error: .*refused/);
});

Deno.test("an interrupt prints the results so far, and exits with 130", async () => {
  const script = [call("list_dir", { path: "." }), say("done"), hang()];
  await using model = startBackend(script);
  await using work = await project({
    ".svc/eval/all.json": JSON.stringify(["a", "b"].map((id) => listing(id))),
  });
  const args = ["eval", "a", "b", "--base-url", model.url, "--model", "m", "--output", "json"];
  const child = startSvc(args, { cwd: work.path, env: { TMPDIR: work.path } });
  await model.arrived(3);
  child.kill("SIGINT");
  const { code, stdout } = await child.output();
  assert.equal(code, 130);
  const { rate, results } = JSON.parse(text(stdout));
  assert.deepEqual([rate, results.map(({ id }: { id: string }) => id)], [1, ["a"]]);
  assert.deepEqual(names(work.path).filter((name) => name.startsWith("svc-eval-")), []);
});

Deno.test("files of a killed measurement are removed by the next; those of a running one stay", async () => {
  await using model = startBackend([hang(), hang()]);
  await using work = await project();
  await using temporary = await project();
  const place = { cwd: work.path, env: { TMPDIR: temporary.path } };
  const args = ["eval", "list-directory", "--base-url", model.url, "--model", "m"];
  const killed = startSvc(args, place);
  await model.arrived(1);
  const left = names(temporary.path);
  killed.kill("SIGKILL");
  await killed.output();
  const living = startSvc(args, place);
  await model.arrived(2);
  const [own, ...more] = names(temporary.path);
  assert.deepEqual([left.length, more, left.includes(own!)], [1, [], false]);
  const { code } = await svc(["eval", "list-directory", "--provider", "demo"], place);
  assert.equal(code, 0);
  assert.deepEqual(names(temporary.path), [own]);
  living.kill("SIGINT");
  assert.equal((await living.output()).code, 130);
  assert.deepEqual(names(temporary.path), []);
});

Deno.test("text of a fixture cannot forge a line of the table or the list", async () => {
  await using work = await project({
    ".svc/eval/a.json": JSON.stringify(
      listing("a", {
        description: "fine\nb  also fine\x1b[2J\u202e",
        expected: ["x\n1 of 1 passed (100 %)\r\x1b[1A"],
      }),
    ),
  });
  const { stdout } = await svc(["eval", "a", "--provider", "demo"], { cwd: work.path });
  const lines = stdout.trimEnd().split("\n");
  assert.deepEqual([lines.length, lines[3]], [4, "0 of 1 passed (0 %)"]);
  assert.match(lines[2]!, /expected x 1 of 1 passed \(100 %\)$/);
  const list = await svc(["eval", "a", "--list"], { cwd: work.path });
  assert.equal(list.stdout, "a  fine b  also fine\n");
});

Deno.test("without fixtures the exit code is no success", async () => {
  await using work = await project({ ".svc/config.json": '{"plugins":["svc-core-demo"]}' });
  const { code, stdout, stderr } = await svc(["eval", "--provider", "demo"], { cwd: work.path });
  assert.deepEqual([code, stdout], [2, ""]);
  assert.match(stderr, /There are no fixtures\./);
});

Deno.test("a pipe or a folder instead of a fixture file is one warning", async () => {
  await using work = await project({
    ".svc/eval": "no folder",
    ".config/svc/eval/ok.json": "\ufeff[]",
  });
  const pipe = join(work.path, ".config/svc/eval/pipe.json");
  assert.ok((await new Deno.Command("mkfifo", { args: [pipe] }).output()).success);
  const { code, stderr } = await svc(["eval", "--list"], { cwd: work.path });
  assert.equal(code, 0);
  assert.match(stderr, /pipe\.json cannot be read: it is no regular file/);
  assert.match(stderr, /\.svc\/eval cannot be read/);
  assert.equal(stderr.trimEnd().split("\n").length, 2);
});

Deno.test("29 of 50 are 58 percent", async () => {
  // As a floating-point number, 29 / 50 * 100 is less than 58.
  const all = Array.from(
    { length: 50 },
    (_, at) => at < 29 ? listing(`a${at}`) : { ...listing(`a${at}`), task: "Hello." },
  );
  await using work = await project({
    ".svc/eval/all.json": JSON.stringify(all),
    ".svc/config.json": '{"plugins":["svc-core-demo","svc-core-fs"]}',
  });
  const run = (rate: string) =>
    svc(["eval", "--provider", "demo", "--min-rate", rate], { cwd: work.path });
  const { code, stdout } = await run("58");
  assert.match(stdout, /^29 of 50 passed \(58 %\)$/m);
  assert.equal(code, 0);
  assert.equal((await run("59")).code, 1);
});

Deno.test("a fixture may allow more or less than the default", async () => {
  await using model = startBackend([
    call("file_write", { path: "x", content: "x" }),
    call("list_dir", { path: "." }),
    say("done"),
  ]);
  await using work = await project({
    ".svc/eval/a.json": JSON.stringify(
      listing("a", { expected: [], tool_permission: { edit: "allow", list: "deny" } }),
    ),
  });
  const { stdout } = await svc(
    ["eval", "a", "--output", "json", "--base-url", model.url, "--model", "m"],
    { cwd: work.path },
  );
  const [{ trace }] = JSON.parse(stdout).results;
  assert.deepEqual(
    trace.map(({ name, is_error }: Record<string, unknown>) => [name, is_error]),
    [["file_write", false], ["list_dir", true]],
  );
  assert.deepEqual(names(work.path).filter((name) => name === "x"), []);
});

Deno.test("agents of fixtures write no memory", async () => {
  await using model = startBackend([
    call("delegate", { role: "researcher", task: "look" }),
    say("seen"),
    call("delegate", { role: "researcher", task: "look again" }),
    say("seen again"),
    say("done"),
  ]);
  await using work = await project({
    ".svc/eval/a.json": JSON.stringify(listing("a", { expected: ["delegate", "delegate"] })),
  });
  const { code, stdout } = await svc(["eval", "a", "--base-url", model.url, "--model", "m"], {
    cwd: work.path,
  });
  assert.equal(code, 0, stdout);
  assert.equal(model.chats.length, 5);
});

Deno.test("a plugin with a fixture that is no JSON has status error, and other fixtures run", async () => {
  for (const value of ["loop", "{ path: 1n }"]) {
    await using work = await project({
      ".svc/config.json": JSON.stringify({ plugins: ["svc-core-demo", "svc-core-fs", "p"] }),
      ".svc/eval/good.json": JSON.stringify(listing("good")),
      ".svc/plugins/p.js": `
        const loop = { path: {} };
        loop.path.again = loop;
        export function register_fixtures(fixtures) {
          const verifier = { args: { list_dir: ${value} } };
          fixtures.register({ id: "bad", task: "list", expected: ["list_dir"], verifier });
        }`,
    });
    const { code, stdout, stderr } = await svc(["eval", "--provider", "demo", "--output", "json"], {
      cwd: work.path,
    });
    assert.equal(code, 0, stderr);
    assert.deepEqual(JSON.parse(stdout).results.map(({ id }: { id: string }) => id), ["good"]);
    assert.equal(stderr.match(/hook register_fixtures failed: /g)?.length, 1, stderr);
  }
});

Deno.test("the calls of a truncated answer count", async () => {
  await using model = startBackend([
    call("list_dir", { path: "." }),
    ...["one", "two", "three"].map((piece) => say(piece, { finish: "length" })),
  ]);
  await using work = await project({ ".svc/eval/a.json": JSON.stringify(listing("a")) });
  const { code, stdout } = await svc(
    ["eval", "a", "--output", "json", "--base-url", model.url, "--model", "m"],
    { cwd: work.path },
  );
  assert.equal(code, 0);
  const [{ status, pass }] = JSON.parse(stdout).results;
  assert.deepEqual([status, pass], ["truncated", true]);
});
