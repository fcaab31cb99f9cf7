import assert from "node:assert/strict";
import { call, hang, say, startBackend } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { startSvc, svc } from "../support/program.ts";
import { project } from "../support/project.ts";

/** The standard output of a child; `until` resolves when it contains a text. */
function outputOf(child: Deno.ChildProcess) {
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  let out = "";
  return async (text: string) => {
    while (!out.includes(text)) {
      const { value, done } = await reader.read();
      assert.ok(!done, `the output ended without ${text}: ${out}`);
      out += value;
    }
    return out;
  };
}

Deno.test("a running session is listed, followed to its end, and not deleted", async () => {
  await using place = await project();
  await using backend = startBackend([call("list_dir", { path: "." }), hang("half an an")]);
  const sessions = (...args: string[]) => svc(["sessions", ...args], { cwd: place.path });
  const run = startSvc(
    ["run", "--base-url", backend.url, "--model", "m", "--session-id", "long", "-p", "look here"],
    { cwd: place.path },
  );
  await backend.arrived(2);
  const tail = startSvc(["sessions", "tail", "long", "-f"], { cwd: place.path });
  const printed = outputOf(tail);
  await printed(" tool: list_dir ");

  const list = await sessions("list");
  assert.match(
    list.stdout,
    /^ {2}long {2}running {2}1 turn {2}\d+ k?B {2}\d+ tokens +look here\n$/,
  );
  const [found] = JSON.parse((await sessions("list", "--output", "json")).stdout);
  assert.deepEqual([found.name, found.running, found.turns], ["long", true, 1]);
  const refused = await sessions("delete", "long");
  assert.deepEqual([refused.code, refused.stderr.includes("has a turn running")], [1, true]);

  run.kill("SIGINT");
  await run.output();
  const all = await printed("--- turn 1 ended: cancelled\n");
  assert.match(
    all,
    / user: look here\n.* tool: list_dir \{"path":"."\} -> .*\n.* text: half an an\n/,
  );
  tail.kill("SIGINT");
  assert.equal((await tail.status).code, 0);

  const show = await sessions("show", "long");
  assert.match(show.stdout, /^session: long\n[^]*^tools: list_dir 1$[^]*^begins: look here$/m);
  const log = JSON.parse((await sessions("show", "long", "--output", "json")).stdout);
  assert.deepEqual(log, JSON.parse(await place.read(".svc/sessions/long.json")));
  const last = await sessions("tail", "long", "--lines", "2", "--output", "json");
  assert.deepEqual(
    last.stdout.trim().split("\n").map((line) => JSON.parse(line).turn ?? "part"),
    ["part", 1],
  );
  assert.equal((await sessions("delete", "long")).code, 0);
  assert.equal((await sessions("list")).stdout, "");
});

Deno.test("prune keeps what has a parked ask, says what it would do, and needs something to go by", async () => {
  await using place = await project();
  await using backend = startBackend([
    call("ask", { question: "Which?" }),
    say("waiting"),
    say("b"),
  ]);
  const cwd = place.path;
  const run = (name: string) =>
    svc([
      "run",
      "--base-url",
      backend.url,
      "--model",
      "m",
      "--session-id",
      name,
      "-p",
      "go",
      "--unattended",
    ], {
      cwd,
    });
  const prune = (...args: string[]) => svc(["sessions", "prune", ...args], { cwd });
  assert.equal((await run("asks")).code, 0);
  assert.equal((await run("done")).code, 0);
  assert.equal((await run("new")).code, 1); // the script is over; the session is there
  for (const name of ["asks", "done"]) {
    const file = `.svc/sessions/${name}.json`;
    const old = (await place.read(file)).replace(/"updated_at":"\d+/, '"updated_at":"2000');
    await place.write(file, old);
  }
  const bare = await prune();
  assert.deepEqual([bare.code, bare.stdout], [2, ""]);
  assert.match(bare.stderr, /Nothing says which sessions to keep/);
  const dry = await prune("--keep-days", "30", "--dry-run");
  assert.match(dry.stdout, /^done .*\n$/);
  assert.match(dry.stderr, /1 session would be deleted/);
  const done = await prune("--keep-days", "30", "--output", "json");
  assert.deepEqual(JSON.parse(done.stdout).map(({ name }: { name: string }) => name), ["done"]);

  const waits = await svc(["sessions", "delete", "asks"], { cwd });
  assert.equal(waits.code, 2);
  assert.match(waits.stderr, /The question #1 of session asks waits for an answer/);
  assert.equal((await svc(["sessions", "delete", "asks", "--force"], { cwd })).code, 0);
  const list = await svc(["sessions", "list", "--output", "json"], { cwd });
  assert.deepEqual(JSON.parse(list.stdout).map(({ name }: { name: string }) => name), ["new"]);
});

Deno.test("the scheduler deletes the sessions of a job's runs beyond those that it keeps", async () => {
  await using place = await project();
  await using backend = startBackend([say("1"), say("2"), say("3")]);
  const cwd = place.path;
  const config = { base_url: backend.url, model: "m", "memory.job": false };
  await place.write(".svc/config.json", JSON.stringify(config));
  const add = ["jobs", "add", "a", "--interval", "3600", "--prompt", "go", "--approval", "auto"];
  const added = await svc([...add, "--keep-count", "1"], { cwd });
  assert.equal(added.code, 0, added.stderr);
  for (let n = 0; n < 3; n++) assert.equal((await svc(["jobs", "run", "a"], { cwd })).code, 0);
  const { history } = JSON.parse(await place.read(".svc/jobs.json")).jobs[0];
  const daemon = startSvc(["jobs", "daemon"], { cwd });
  await outputOf(daemon)("scheduler: 2 old sessions deleted");
  daemon.kill("SIGTERM");
  await daemon.status;
  const list = await svc(["sessions", "list", "--output", "json"], { cwd });
  const [left, ...more] = JSON.parse(list.stdout);
  assert.deepEqual([left.name, left.job, more], [history.at(-1).session, "a", []]);
});

Deno.test("a handle continues its session in run and jobs, and never makes one of that name [2.1]", async () => {
  await using place = await project();
  await using backend = startBackend([say("one"), say("two"), say("three"), say("four")]);
  const cwd = place.path;
  const config = { base_url: backend.url, model: "m", "memory.job": false };
  await place.write(".svc/config.json", JSON.stringify(config));
  const { session } = JSON.parse((await svc(["run", "-p", "go"], { cwd })).stdout);
  const handle = `#${session.slice(-6)}`;
  const run = await svc(["run", "--session-id", handle, "-p", "on"], { cwd });
  assert.equal(JSON.parse(run.stdout).session, session);
  const named = await svc(["run", "--session-id", `session:${session}`, "-p", "on"], { cwd });
  assert.equal(JSON.parse(named.stdout).session, session);
  const add = ["jobs", "add", "a", "--interval", "60", "--prompt", "go", "--approval", "auto"];
  assert.equal((await svc([...add, "--session", handle], { cwd })).code, 0);
  assert.equal((await svc(["jobs", "run", "a"], { cwd })).code, 0);
  const { turns } = JSON.parse(await place.read(`.svc/sessions/${session}.json`));
  assert.equal(turns.length, 4);
  assert.deepEqual(sessionFiles(cwd), [`${session}.json`]);
});

Deno.test("no front end makes a session named like a handle, and each continues that of one [2.1, 4.7]", async () => {
  const job = {
    name: "a",
    schedule: { interval: 60 },
    prompt: "x",
    status: "approved",
    retries: 0,
  };
  await using place = await project({
    ".svc/teams.json": JSON.stringify({ duo: { stages: ["writer"] } }),
    ".svc/jobs.json": JSON.stringify({
      jobs: [{ ...job, session: "#abcdef" }, { ...job, name: "b", session: "session:mine" }],
    }),
  });
  await using backend = startBackend({ replies: [{ ...say("ok"), repeat: 20 }] });
  const cwd = place.path;
  const settings = { base_url: backend.url, model: "m", memory_enabled: false };
  await place.write(".svc/config.json", JSON.stringify(settings));
  await svc(["run", "--session-id", "mine", "-p", "go"], { cwd });
  const wrong = (handle: string): [args: string[], stdin?: string][] => [
    [["run", "--session-id", handle, "-p", "x"]],
    [["teams", "run", "duo", "x", "--session-id", handle]],
    [["export", handle]],
    [["--session-id", handle], "x\n"],
    [[], `/session new ${handle}\n`],
    [[], `/session load ${handle}\n`],
  ];
  const taken: ReturnType<typeof wrong> = [[[], "/session new session:mine\n"]];
  for (const [args, stdin] of [...wrong("#abcdef"), ...wrong("session:nope"), ...taken]) {
    const { code, stderr } = stdin === undefined
      ? await inProcess(args, { cwd })
      : await svc(args, { cwd, stdin });
    assert.equal(code, 2, `${args.join(" ")} ${stdin}: ${stderr}`);
    assert.match(stderr, /There is no session|cannot be the name of a new session/);
  }
  const unknown = await inProcess(["jobs", "run", "a"], { cwd });
  assert.deepEqual([unknown.code, /There is no session/.test(unknown.stdout)], [1, true]);
  assert.equal((await inProcess(["jobs", "run", "b"], { cwd })).code, 0);
  await svc(["--session-id", "session:mine"], { cwd, stdin: "x\n" });
  assert.equal(JSON.parse(await place.read(".svc/sessions/mine.json")).turns.length, 3);
  assert.deepEqual(sessionFiles(cwd), ["mine.json"]);
});

Deno.test("a log with a damaged byte is not appended to, and repair shows what can be kept", async () => {
  await using place = await project();
  await using backend = startBackend([say("one"), say("two"), say("three")]);
  const cwd = place.path;
  const run = () =>
    svc(["run", "--base-url", backend.url, "--model", "m", "--session-id", "s", "-p", "go"], {
      cwd,
    });
  await run();
  await run();
  const path = ".svc/sessions/s.json";
  const damaged = (await place.read(path)).replace('"text":"one"', '"text:"one"');
  await place.write(path, damaged);
  const refused = await run();
  assert.deepEqual([refused.code, refused.stdout, backend.chats.length], [2, "", 2]);
  assert.match(
    refused.stderr,
    /s\.json is not valid JSON \(line \d+, column \d+\)\. The file stays as it is\./,
  );
  assert.match(refused.stderr, /hint: .*svc sessions repair s/);
  assert.equal(await place.read(path), damaged);

  const shown = await svc(["sessions", "repair", "s"], { cwd });
  assert.match(
    shown.stdout,
    /^2 turns with 3 parts can be kept; these lines of the file cannot: \d+\.$/m,
  );
  const written = await svc(["sessions", "repair", "s", "--into", "t"], { cwd });
  assert.equal(written.code, 0, written.stderr);
  const next = ["run", "--base-url", backend.url, "--model", "m", "--session-id", "t", "-p", "go"];
  assert.equal((await svc(next, { cwd })).code, 0);
  assert.equal(JSON.parse(await place.read(".svc/sessions/t.json")).turns.length, 3);
});

function sessionFiles(worktree: string): string[] {
  return [...Deno.readDirSync(`${worktree}/.svc/sessions`)].map(({ name }) => name)
    .filter((name) => name.endsWith(".json"));
}
