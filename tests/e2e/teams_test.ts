import assert from "node:assert/strict";
import { call, hang, httpError, type Reply, say, startBackend, usage } from "../support/backend.ts";
import { noProcessesLeft } from "../support/processes.ts";
import { inProcess } from "../support/io.ts";
import { startSvc, svc } from "../support/program.ts";
import { type Project, project } from "../support/project.ts";

const as = (system: string, reply: Reply): Reply => ({ ...reply, when: { system } });

const ROLES = {
  scout: { system_prompt: "YOU SCOUT" },
  maker: { system_prompt: "YOU MAKE" },
  judge: { system_prompt: "YOU JUDGE", tool_permission: { edit: "deny" } },
  remote: { system_prompt: "YOU ARE FAR", model: "far/big" },
};
const TEAMS = {
  trio: {
    stages: ["scout", "maker", "judge"],
    loop: { from: "maker", until: "judge", max_iterations: 2 },
  },
  far: { stages: ["scout", "remote"] },
};

/** Scouts, makes, is sent back, makes again. */
const story = (verdict: string): Reply[] => [
  as("YOU SCOUT", say("wood is near", usage(10, 1))),
  as("YOU MAKE", call("file_write", { path: "hut.txt", content: "a hut" }, usage(20, 2))),
  as("YOU MAKE", say("made", usage(30, 3))),
  as("YOU JUDGE", say("it leaks\n\nVERDICT: fail")),
  as("YOU MAKE", call("file_write", { path: "hut.txt", content: "a dry hut" })),
  as("YOU MAKE", say("mended")),
  as("YOU JUDGE", say(`well\n\nVERDICT: ${verdict}`)),
];

function worktree(url: string, memory_enabled = false): Promise<Project> {
  const settings = { base_url: url, model: "test", stream_retry_delay: 0, memory_enabled };
  return project({
    ".svc/config.json": JSON.stringify(settings),
    ".svc/roles.json": JSON.stringify(ROLES),
    ".svc/teams.json": JSON.stringify(TEAMS),
  });
}

async function session(place: Project, name: string) {
  return JSON.parse(await place.read(`.svc/sessions/${name}.json`));
}

function sessionNames(place: Project): string[] {
  try {
    return [...Deno.readDirSync(`${place.path}/.svc/sessions`)].map(({ name }) => name)
      .filter((name) => name.endsWith(".json") && !name.startsWith("."));
  } catch {
    return [];
  }
}

Deno.test("a team loops until its review passes: its answer, its log, its sessions [2.12]", async () => {
  await using backend = startBackend(story("pass"));
  await using place = await worktree(backend.url);
  const { code, stdout, stderr } = await svc(["teams", "run", "trio", "build a hut"], {
    cwd: place.path,
  });
  assert.equal(code, 0, stderr);
  assert.equal(stderr, "");
  const result = JSON.parse(stdout);
  assert.deepEqual([result.status, result.content], ["ok", "well\n\nVERDICT: pass"]);
  assert.deepEqual(result.verdict, { passed: true, rounds: 2 });
  assert.deepEqual([result.model, result.errors, result.tool_calls], ["test", [], []]);
  assert.equal(result.usage.total_tokens, 66);
  assert.equal(await place.read("hut.txt"), "a dry hut");

  assert.match(result.session, /^ses_/);
  const root = await session(place, result.session);
  assert.deepEqual(
    root.turns[0].parts.map(({ type, text }: { type: string; text: string }) => [type, text]),
    [["command", "/teams run trio build a hut"], ["text", "well\n\nVERDICT: pass"]],
  );
  assert.equal(root.turns[0].status, "ok");
  assert.equal(root.sub_sessions.length, 5);
  const subs = await Promise.all(root.sub_sessions.map((name: string) => session(place, name)));
  assert.deepEqual(subs.map(({ role, parent_id }) => [role, parent_id]), [
    ["scout", root.session_name],
    ["maker", root.session_name],
    ["judge", root.session_name],
    ["maker", root.session_name],
    ["judge", root.session_name],
  ]);
  assert.match(subs[3].turns[0].parts[0].text, /## Findings from the previous review\n\nit leaks/);

  // Another run goes on in the session.
  await using more = startBackend([say("a roof")]);
  const next = await svc(
    ["run", "--session-id", root.session_name, "--base-url", more.url, "what is missing?"],
    { cwd: place.path },
  );
  assert.equal(next.code, 0, next.stderr);
  assert.deepEqual(
    more.chats[0].messages.slice(1).map(({ role }: { role: string }) => role),
    ["user", "assistant", "user"],
  );
});

Deno.test("text prints the last answer alone, and --verbose shows the stages as they go", async () => {
  await using backend = startBackend(story("fail"));
  await using place = await worktree(backend.url);
  const { code, stdout, stderr } = await inProcess(
    ["teams", "run", "trio", "--output", "text", "--verbose", "-"],
    { cwd: place.path, stdin: "build a hut\n" },
  );
  assert.equal(code, 1, stderr);
  assert.equal(stdout, "well\n\nVERDICT: fail\n");
  assert.match(stderr, /^Team trio: stage 1 of 3, scout\.$/m);
  assert.match(stderr, /^#2 {3}scout starts in session sub_\S+, for #1$/m);
  assert.match(stderr, /^Team trio: stage 2 of 3, maker, round 2 of 2\.$/m);
  assert.match(stderr, /^team trio: scout #2, .*; not passed in 2 rounds, which is the most$/m);
});

Deno.test("a team that never passes its review exits with 1, and its result has the verdict", async () => {
  await using backend = startBackend(story("fail"));
  await using place = await worktree(backend.url);
  const { code, stdout, stderr } = await inProcess(["teams", "run", "trio", "x"], {
    cwd: place.path,
  });
  assert.equal(code, 1);
  assert.match(stderr, /not passed in 2 rounds/);
  const { status, reason, verdict, content } = JSON.parse(stdout);
  assert.deepEqual([status, reason, verdict], ["error", "verify", { passed: false, rounds: 2 }]);
  assert.equal(content, "well\n\nVERDICT: fail");
});

Deno.test("stream-json has every stage's events with its run, between its start and its end", async () => {
  await using backend = startBackend(story("pass"));
  await using place = await worktree(backend.url);
  const { code, stdout } = await inProcess(
    ["teams", "run", "trio", "x", "--output", "stream-json"],
    {
      cwd: place.path,
    },
  );
  assert.equal(code, 0);
  const events = stdout.trimEnd().split("\n").map((line) => JSON.parse(line));
  assert.deepEqual(
    events.filter(({ type }) => /^(run|turn)_/.test(type)).map(({ type, run }) => `${type} ${run}`),
    [
      "turn_started 1",
      ...[2, 3, 4, 5, 6].flatMap((run) => [
        `run_started ${run}`,
        `turn_started ${run}`,
        `turn_finished ${run}`,
        `run_finished ${run}`,
      ]),
      "turn_finished 1",
    ],
  );
  assert.deepEqual(
    events.filter(({ type }) => type === "run_started").map(({ parent }) => parent),
    [
      1,
      1,
      1,
      1,
      1,
    ],
  );
});

Deno.test("a stage that fails ends the team with exit code 1, and the log says why", async () => {
  await using backend = startBackend([
    as("YOU SCOUT", say("wood")),
    as("YOU MAKE", httpError(401)),
  ]);
  await using place = await worktree(backend.url);
  const { code, stdout, stderr } = await inProcess(["teams", "run", "trio", "x"], {
    cwd: place.path,
  });
  assert.equal(code, 1);
  const result = JSON.parse(stdout);
  assert.equal(result.status, "error");
  const root = await session(place, result.session);
  const [, made] = root.sub_sessions;
  const message =
    `team "trio" failed: Stage 2, maker (#3, session ${made}), ended with status error`;
  assert.ok(result.errors[0].message.startsWith(message), result.errors[0].message);
  assert.ok(root.errors[0].message.startsWith(message));
  assert.ok(stderr.includes(`error: ${message}`));
  assert.equal(root.turns[0].status, "error");
});

Deno.test("the model resumes a stage that failed, and the team goes on from there", async () => {
  await using backend = startBackend([
    call("team", { name: "trio", task: "build" }),
    as("YOU SCOUT", say("wood")),
    as("YOU MAKE", httpError(401)),
    { ...call("team", { name: "trio", task: "build", resume: "#3" }), when: { tool_result: "#3" } },
    as("YOU MAKE", say("made")),
    as("YOU JUDGE", say("VERDICT: pass")),
    say("done"),
  ]);
  await using place = await worktree(backend.url);
  const { code, stdout, stderr } = await inProcess(["run", "go"], { cwd: place.path });
  assert.equal(code, 0, stderr);
  const root = await session(place, JSON.parse(stdout).session);
  assert.equal(root.sub_sessions.length, 3);
  const outputs = root.turns[0].parts.flatMap(({ output }: { output?: string }) => output ?? []);
  assert.match(outputs[0], /^Error: team "trio" failed: Stage 2, maker \(#3, /);
  assert.match(outputs[1], /^VERDICT: pass\n\n\[team trio: maker #3, .* > judge #4, /);
  const judged = await session(place, root.sub_sessions[2]);
  assert.match(judged.turns[0].parts[0].text, /## Stage 1 result .*\n\nwood\n\n## Stage 2 result/);
});

Deno.test("what the team remembers is written before the program ends", async () => {
  await using backend = startBackend([
    as("the memory of the team trio", say("huts leak")),
    { ...as("You keep the memory of the role", say("roles remember")), repeat: 9 },
    ...story("pass"),
  ]);
  await using place = await worktree(backend.url, true);
  const { code, stderr } = await inProcess(["teams", "run", "trio", "x"], { cwd: place.path });
  assert.equal(code, 0, stderr);
  assert.equal(await place.read(".svc/memory/teams/trio.md"), "huts leak\n");
});

Deno.test("SIGINT cancels the stage that runs: exit code 130, and both logs say so", async () => {
  await using backend = startBackend([as("YOU SCOUT", hang("half"))]);
  await using place = await worktree(backend.url);
  const child = startSvc(["teams", "run", "trio", "x", "--output", "stream-json"], {
    cwd: place.path,
  });
  let shown = "";
  let stopped = false;
  for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
    shown += text;
    if (stopped || !shown.includes('"token"')) continue;
    stopped = true;
    child.kill("SIGINT");
  }
  const { code } = await child.status;
  await child.stderr.cancel();
  assert.equal(code, 130);
  const [name] = sessionNames(place).filter((each) => each.startsWith("ses_"));
  const root = await session(place, name!.replace(".json", ""));
  assert.equal(root.turns[0].status, "cancelled");
  const sub = await session(place, root.sub_sessions[0]);
  assert.deepEqual(
    [sub.turns[0].status, sub.turns[0].parts.at(-1).text],
    ["cancelled", "half"],
  );
  await noProcessesLeft(place.path);
});

Deno.test("a model that is not approved stops the team before it starts; --approve-model lets it in [5.2, 7.4]", async () => {
  await using backend = startBackend([
    as("YOU SCOUT", say("wood")),
    as("YOU ARE FAR", { ...say("far away") }),
  ]);
  await using place = await worktree(backend.url);
  await place.write(
    ".config/svc/providers.json",
    JSON.stringify({ far: { base_url: backend.url, api_key: "" } }),
  );
  const denied = await inProcess(["teams", "run", "far", "x", "--yes"], { cwd: place.path });
  assert.equal(denied.code, 2);
  assert.match(denied.stderr, /^svc: model not approved: far\/big\.$/m);
  assert.equal(denied.stdout, "");
  assert.deepEqual(sessionNames(place), []);
  assert.equal(backend.chats.length, 0);
  const let_in = await inProcess(["teams", "run", "far", "x", "--approve-model"], {
    cwd: place.path,
  });
  assert.equal(let_in.code, 0, let_in.stderr);
  assert.equal(JSON.parse(let_in.stdout).content, "far away");
  assert.equal(backend.chats[1].model, "big");
});

Deno.test("wrong usage ends with exit code 2 before anything is made", async () => {
  await using backend = startBackend([]);
  await using place = await worktree(backend.url);
  const wrong: [string[], RegExp][] = [
    [["trioo", "x"], /no team "trioo"\.\nhint: Did you mean trio\?/],
    [["trio", " "], /There is no task\./],
    [["trio", "x", "--yes", "--no"], /--yes and --no exclude each other/],
    [["trio", "x", "--skills", "wit"], /Stage 1 of the team trio cannot run: .*no skill "wit"/],
    [["trio", "x", "--mode", "plam"], /There is no mode "plam"/],
  ];
  for (const [args, message] of wrong) {
    const { code, stdout, stderr } = await inProcess(["teams", "run", ...args], {
      cwd: place.path,
    });
    assert.equal(code, 2, args.join(" "));
    assert.equal(stdout, "");
    assert.match(stderr, message);
  }
  assert.deepEqual(sessionNames(place), []);
});

Deno.test("in plan mode no stage changes anything, whatever its role", async () => {
  await using backend = startBackend(story("pass"));
  await using place = await worktree(backend.url);
  const { code, stdout } = await inProcess(["teams", "run", "trio", "x", "--mode", "plan"], {
    cwd: place.path,
  });
  assert.equal(code, 1);
  assert.deepEqual(JSON.parse(stdout).refused, ["file_write (edit)"]);
  await assert.rejects(place.read("hut.txt"));
});
