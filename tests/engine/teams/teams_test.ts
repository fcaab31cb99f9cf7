import assert from "node:assert/strict";
import type { TurnEvent } from "../../../src/engine/events.ts";
import { RunRegistry } from "../../../src/engine/runs.ts";
import { headlessOperator, type Operator } from "../../../src/policy/operator.ts";
import { agent, collect, results, subs, systemOf, type TestAgent } from "../../support/agent.ts";
import { as, call, calls, hang, httpError, say } from "../../support/backend.ts";

const ROLES = {
  scout: { system_prompt: "YOU SCOUT" },
  maker: { system_prompt: "YOU MAKE", tool_permission: { bash: "allow" } },
  judge: { system_prompt: "YOU JUDGE", tool_permission: { edit: "deny" }, skills: ["law"] },
  remote: { system_prompt: "YOU ARE FAR", model: "far/big" },
  near: { system_prompt: "YOU ARE NEAR", model: "far/small" },
};
const TEAMS = {
  trio: {
    stages: [
      { role: "scout", task_hint: "Only look." },
      { role: "maker", task_hint: "Make it.", handoff_note: "Scouted above." },
      { role: "judge", handoff_note: "It is made.", skills: ["law", "order"] },
    ],
    loop: { from: "maker", until: "judge" },
  },
  pair: { stages: ["scout", "maker"] },
  careful: { stages: [{ role: "maker", mode: "plan" }] },
  custom: { stages: [{ role: "maker", mode: "quiet" }] },
  odd: { stages: ["scout", { role: "maker", mode: "plam" }] },
  none: { stages: [] },
  ghost: { stages: ["scout", "phantom"] },
  far: { stages: ["scout", "remote", "near", "remote"] },
};
const files = {
  ".svc/roles.json": JSON.stringify(ROLES),
  ".svc/teams.json": JSON.stringify(TEAMS),
  ".svc/skills/law.md": "The law\n\nNo murder.",
  ".svc/skills/order.md": "Order\n\nTidy up.",
  ".svc/skills/haste.md": "Haste\n\nBe quick.",
};
const config = { tool_permission: { bash: "deny" } };
const team = (name: string, task: string, more: Record<string, unknown> = {}) =>
  call("team", { name, task, ...more });
/** What a brief ends with. */
const part = (number: number, of: number, name: string, hint = "") =>
  `## Your part\n\nYou are stage ${number} of ${of} of the team ${name}.\n` +
  (number === of
    ? "Whoever gave the task reads your answer and nothing else: begin with what was made, and where."
    : "The stages after you see the first 4000 characters of your answer, and of your work what it " +
      "leaves in the project.") +
  hint;
const prompt = (it: TestAgent, n: number): string => it.backend.chats[n].messages.at(-1).content;

Deno.test("a team's stages run in order, each in a session and a run of its own, and see the earlier results [1, 2.12, 4.8]", async () => {
  await using it = await agent([
    call("team", { team: "pair", task: "build a hut", skills: ["haste"] }),
    as("YOU SCOUT", say("wood is near")),
    as("YOU MAKE", say("the hut stands")),
    say("all done"),
  ], { files, config });
  const { events, result } = await it.turn("go");
  assert.equal(result.content, "all done");
  const [first, second] = subs(events);
  assert.deepEqual(results(events), [
    `the hut stands\n\n[team pair: scout #2, session ${first} > maker #3, session ${second}; ` +
    "maker had less than its role asks for: bash (deny)]",
  ]);
  assert.equal(
    prompt(it, 1),
    `build a hut\n\n${part(1, 2, "pair")}`,
  );
  assert.equal(
    prompt(it, 2),
    `build a hut\n\n## Stage 1 result (${first})\n\nwood is near\n\n${part(2, 2, "pair")}`,
  );
  assert.match(systemOf(it, 1), /YOU SCOUT[^]*## Skills\n\n### haste/);

  assert.deepEqual(it.session.document().sub_sessions, [first, second]);
  const documents = [first, second].map((name) => it.workspace.sessions.read(name!)!);
  assert.deepEqual(documents.map(({ parent_id, role }) => [parent_id, role]), [
    [it.session.name, "scout"],
    [it.session.name, "maker"],
  ]);
  const order = events.flatMap(({ type, run }) => /^run_/.test(type) ? [`${type} ${run}`] : []);
  assert.deepEqual(order, ["run_started 2", "run_finished 2", "run_started 3", "run_finished 3"]);
  const [granted] = it.session.document().permissions;
  assert.deepEqual([granted!.tool, granted!.decision], ["team", "granted"]);
});

Deno.test("a team's loop goes back with the findings until the verdict is a pass; each round is afresh [2.12]", async () => {
  await using it = await agent([
    team("trio", "build"),
    as("YOU SCOUT", say("wood")),
    as("YOU MAKE", say("made one")),
    as("YOU JUDGE", say("1. it leaks\n\nVERDICT: fail")),
    as("YOU MAKE", say("made two")),
    as("YOU JUDGE", say("fine\n\n**Verdict:** PASS")),
    say("done"),
  ], { files, config });
  const { events } = await it.turn("go");
  const [s1, s2, , s4, s5] = subs(events);
  assert.equal(new Set(subs(events)).size, 5);
  assert.equal(
    prompt(it, 3),
    `build\n\n## Stage 1 result (${s1})\n\nwood\n\n## Stage 2 result (${s2})\n\nmade one\n\n` +
      `## Handoff note\n\nIt is made.\n\n${part(3, 3, "trio")}`,
  );
  assert.equal(
    prompt(it, 4),
    `build\n\n## Stage 1 result (${s1})\n\nwood\n\n` +
      `## Stage 2 result (${s2})\n\n(of the round before)\n\nmade one\n\n` +
      "## Findings from the previous review\n\n1. it leaks\n\nVERDICT: fail\n\n" +
      "## Handoff note\n\nScouted above.\n\n" +
      part(2, 3, "trio", "\n\nMake it."),
  );
  assert.match(
    prompt(it, 5),
    new RegExp(`## Stage 2 result \\(${s4}\\)\n\nmade two[^]*## Findings[^]*it leaks`),
  );
  assert.doesNotMatch(prompt(it, 5), /## Stage 3 result/);
  assert.equal(
    results(events)[0],
    `fine\n\n**Verdict:** PASS\n\n[team trio: scout #2, session ${s1} > maker #5, session ${s4} > ` +
      `judge #6, session ${s5}; passed in round 2; maker had less than its role asks for: bash (deny)]`,
  );
  // Its role's standing skill, the stage's own, none twice.
  assert.deepEqual(systemOf(it, 3).match(/### \w+/g), ["### law", "### order"]);
  const notices = events.flatMap((event) =>
    event.type === "notice" && event.run === 1 ? [event.message] : []
  );
  assert.deepEqual(notices.slice(-2), [
    "Team trio: stage 2 of 3, maker, round 2 of 3.",
    "Team trio: stage 3 of 3, judge, round 2 of 3.",
  ]);
});

Deno.test("a team whose review never passes ends at max_iterations, as a success that says so [2.12]", async () => {
  const { trio } = TEAMS;
  const teams = { trio: { ...trio, loop: { ...trio.loop, max_iterations: 2 } } };
  await using it = await agent([
    team("trio", "build"),
    as("YOU SCOUT", say("wood")),
    as("YOU MAKE", { ...say("made"), repeat: 2 }),
    as("YOU JUDGE", say("I would rather not judge")),
    as("YOU JUDGE", say("VERDICT: pass if it is dry")),
    say("done"),
  ], { files: { ...files, ".svc/teams.json": JSON.stringify(teams) } });
  const { events } = await it.turn("go");
  assert.equal(subs(events).length, 5);
  assert.match(results(events)[0]!, /^VERDICT: pass if[^]*; not passed in 2 rounds, which is the/);
  assert.ok(events.some((event) => event.type === "tool_result" && !event.is_error));
});

Deno.test("stages after a loop see the review as a result, and results are cut at 4000 characters", async () => {
  const teams = {
    long: { stages: ["maker", "judge", "scout"], loop: { until: "judge", max_iterations: 1 } },
  };
  await using it = await agent([
    team("long", "build"),
    as("YOU MAKE", say("x".repeat(5000))),
    as("YOU JUDGE", say("VERDICT: fail")),
    as("YOU SCOUT", say("end")),
    say("done"),
  ], { files: { ...files, ".svc/teams.json": JSON.stringify(teams) } });
  const { events } = await it.turn("go");
  const [made, judged] = subs(events);
  const [, result] = prompt(it, 2).split(`## Stage 1 result (${made})\n\n`);
  const shown = result!.split("\n\n## Your part")[0]!;
  assert.equal(shown.length, 4000);
  assert.ok(
    shown.endsWith(`(cut from 5000 characters; the whole is in .svc/sessions/${made}.json)`),
  );
  assert.match(prompt(it, 3), new RegExp(`## Stage 2 result \\(${judged}\\)\n\nVERDICT: fail`));
  assert.match(results(events)[0]!, /^end/);
});

Deno.test("a stage's brief has the team's memory, unless it is switched off [2.12]", async () => {
  for (const on of [true, false]) {
    await using it = await agent([
      team("pair", "build"),
      as("YOU SCOUT", say("wood")),
      as("YOU MAKE", say("made")),
      say("done"),
    ], {
      files: { ...files, ".svc/memory/teams/pair.md": "Mind the gap." },
      config: { memory_enabled: true, "memory.role": false, "memory.team": on },
    });
    await it.turn("go");
    await it.workspace.background.settle(AbortSignal.abort());
    assert.equal(/## Team memory\n\n.*\n\nMind the gap\.\n\n## Your part/.test(prompt(it, 1)), on);
  }
});

Deno.test("a team that is unknown, has no stages, or names an unknown role, mode or skill or an unapproved model is an error, and no stage has started [7.4]", async () => {
  const wrong: [string, RegExp][] = [
    ["missing", /^Error: team "missing" failed: There is no team "missing"\./],
    ["none", /^Error: team "none" failed: The team none has no stages\./],
    [
      "ghost",
      /^Error: team "ghost" failed: Stage 2 of the team ghost cannot run: There is no role "p/,
    ],
    ["odd", /^Error: team "odd" failed: Stage 2 .*There is no mode "plam"\. Did you mean "plan"\?/],
    ["far", /^Error: team "far" failed: model not approved: far\/big, far\/small\./],
  ];
  await using it = await agent([
    calls(wrong.map(([name]) => ["team", { name, task: "x" }])),
    calls([["team", { name: "pair", task: "x", skills: ["wit"] }], ["team", {
      name: "pair",
      task: " ",
    }]]),
    say("ready"),
  ], { files });
  await it.workspace.connections.save("far", { base_url: `${it.backend.url}/far`, api_key: "" });
  const { events } = await it.turn("go");
  const outputs = results(events);
  for (const [index, [, pattern]] of wrong.entries()) assert.match(outputs[index]!, pattern);
  assert.match(outputs[5]!, /^Error: team "pair" failed: Stage 1 .*no skill "wit"/);
  assert.equal(outputs[6], "Error: team needs a task");
  assert.deepEqual(subs(events), []);
  assert.equal(it.backend.chats.length, 3);
});

Deno.test("the models of a team's roles are asked for in one question, and a yes is remembered [5.2]", async () => {
  const asked: string[][] = [];
  let answer = false;
  const operator: Operator = {
    confirm: () => Promise.resolve({ granted: true, scope: "once", by: "operator" }),
    ask: () => Promise.resolve(undefined),
    approveModels(models) {
      asked.push(models);
      return Promise.resolve(answer);
    },
  };
  await using it = await agent([
    team("far", "x"),
    say("no"),
    team("far", "x"),
    as("YOU SCOUT", { ...say("seen"), repeat: 1 }),
    as("YOU ARE FAR", { ...say("far away"), repeat: 2 }),
    as("YOU ARE NEAR", say("not so far")),
    say("yes"),
  ], { files, operator, headless: false });
  await it.workspace.connections.save("far", { base_url: `${it.backend.url}`, api_key: "" });
  const denied = await it.turn("go");
  assert.match(results(denied.events)[0]!, /model not approved/);
  answer = true;
  const { events } = await it.turn("go");
  assert.match(results(events)[0]!, /^far away/);
  assert.deepEqual(asked, [["far/big", "far/small"], ["far/big", "far/small"]]);
  assert.deepEqual(it.backend.chats.slice(3, 7).map(({ model }) => model), [
    "test",
    "big",
    "small",
    "big",
  ]);
  assert.ok(it.workspace.models.isApproved("far", "small"));
});

Deno.test("no one is asked for a team's models in an unattended run [5.2]", async () => {
  const operator: Operator = {
    confirm: () => Promise.resolve({ granted: false, scope: "once", by: "operator" }),
    ask: () => Promise.resolve(undefined),
    approveModels: () => assert.fail("no one is there"),
  };
  await using it = await agent([team("far", "x"), say("no")], {
    files,
    operator,
    config: { unattended: true },
  });
  await it.workspace.connections.save("far", { base_url: it.backend.url, api_key: "" });
  const { events } = await it.turn("go");
  assert.match(results(events)[0]!, /model not approved/);
});

Deno.test("a stage that fails stops the team, and the error names status, run and session [7.4]", async () => {
  await using it = await agent([
    team("trio", "build"),
    as("YOU SCOUT", say("wood")),
    as("YOU MAKE", httpError(401)),
    say("never mind"),
  ], { files });
  const { events, result } = await it.turn("go");
  const [, made] = subs(events);
  assert.equal(subs(events).length, 2);
  assert.ok(results(events)[0]!.startsWith(
    `Error: team "trio" failed: Stage 2, maker (#3, session ${made}), ended with status error:`,
  ));
  assert.match(results(events)[0]!, /401/);
  assert.equal(result.status, "ok");
});

Deno.test("a stage that was cut off is good enough to go on from", async () => {
  await using it = await agent([
    team("pair", "build"),
    as("YOU SCOUT", say("wo", { finish: "length" })),
    as("YOU MAKE", say("made")),
    say("done"),
  ], { files, config: { auto_continue: false } });
  const { events } = await it.turn("go");
  assert.match(results(events)[0]!, /^made/);
});

Deno.test("a team cannot be started from within itself, not through an agent either, nor too deep [5.3, 7.4]", async () => {
  const nested = {
    outer: { stages: ["maker"] },
    inner: { stages: ["scout"] },
    third: { stages: ["judge"] },
  };
  await using it = await agent([
    team("outer", "1"),
    as(
      "YOU MAKE",
      calls([
        ["team", { name: "outer", task: "2" }],
        ["team", { name: "inner", task: "2" }],
      ]),
    ),
    as(
      "YOU SCOUT",
      calls([
        ["team", { name: "outer", task: "3" }],
        ["team", { name: "third", task: "3" }],
        ["delegate", { role: "judge", task: "3" }],
      ]),
    ),
    as("YOU JUDGE", team("outer", "4")),
    as("YOU JUDGE", say("cannot")),
    as("YOU SCOUT", say("no further")),
    as("YOU MAKE", say("made")),
    say("done"),
  ], { files: { ...files, ".svc/teams.json": JSON.stringify(nested) } });
  const { events } = await it.turn("go");
  assert.match(results(events)[0]!, /^made/);
  const [itself, inner] = results(events, 2);
  const within =
    /^Error: team "outer" failed: A team cannot be started from within itself: outer > /;
  assert.match(itself!, within);
  assert.match(inner!, /^no further/);
  const [indirect, deep, judged] = results(events, 3);
  assert.match(indirect!, within);
  assert.match(indirect!, /: outer > inner > outer\./);
  assert.match(deep!, /^Error: team "third" failed: Teams start teams 2 levels deep at most/);
  assert.match(judged!, /^cannot/);
  assert.match(results(events, 4)[0]!, /^Error: team "outer" failed: Agents start agents 3 levels/);
});

Deno.test("an agent that a stage delegates to is still in the team; max_team_depth 0 lets none run", async () => {
  const script = () => [
    team("pair", "1"),
    as("YOU SCOUT", call("delegate", { role: "judge", task: "2" })),
    as("YOU JUDGE", team("pair", "3")),
    as("YOU JUDGE", say("cannot")),
    as("YOU SCOUT", say("seen")),
    as("YOU MAKE", say("made")),
    say("done"),
  ];
  await using it = await agent(script(), { files });
  const { events } = await it.turn("go");
  assert.match(
    results(events, 3)[0]!,
    /A team cannot be started from within itself: pair > pair\./,
  );
  await using none = await agent([team("pair", "1"), say("done")], {
    files,
    config: { max_team_depth: 0 },
  });
  const refused = await none.turn("go");
  assert.match(results(refused.events)[0]!, /failed: No teams may run \(setting max_team_depth\)/);
});

Deno.test("a team continues from the stage whose session is resumed; later stages start afresh [3.6]", async () => {
  await using it = await agent([
    team("trio", "build"),
    as("YOU SCOUT", say("wood")),
    as("YOU MAKE", say("made")),
    as("YOU JUDGE", say("VERDICT: pass")),
    team("trio", "paint it", { resume: "#3" }),
    as("YOU MAKE", say("painted")),
    as("YOU JUDGE", say("VERDICT: pass, and pretty")),
    say("done"),
  ], { files });
  const { events } = await it.turn("go");
  const [s1, s2, s3, s4, s5] = subs(events);
  assert.equal(s4, s2);
  assert.notEqual(s5, s3);
  const said = it.backend.chats[5].messages.slice(2).map(({ content }: { content: string }) =>
    content
  );
  assert.deepEqual(said, ["made", "paint it"]);
  assert.match(
    prompt(it, 6),
    new RegExp(
      `^paint it\n\n## Stage 1 result \\(${s1}\\)\n\nwood\n\n## Stage 2 result \\(${s2}\\)\n\npainted`,
    ),
  );
  assert.match(
    results(events)[1]!,
    /^VERDICT: pass, and pretty[^]*maker #3, session .*passed in the/,
  );
});

Deno.test("another process resumes a stage by its session; a session of no stage is an error", async () => {
  await using it = await agent([
    team("pair", "build"),
    as("YOU SCOUT", say("wood")),
    as("YOU MAKE", say("made")),
    say("done"),
  ], { files });
  const { events } = await it.turn("go");
  const [scouted, made] = subs(events);
  await using other = await agent([
    team("pair", "once more", { resume: made, context: "compact" }),
    say("what was made"),
    as("YOU MAKE", say("remade")),
    team("pair", "x", { resume: "#1" }),
    team("trio", "x", { resume: made }),
    team("pair", "x", { resume: "plain" }),
    team("pair", "x", { resume: "nothing" }),
    team("pair", "new", { resume: made, context: "new" }),
    as("YOU SCOUT", say("seen")),
    as("YOU MAKE", say("all new")),
    say("done"),
  ], { files, config: { compact_keep: 0 } });
  for (const name of [scouted, made]) {
    const from = `${it.project.path}/.svc/sessions/${name}.json`;
    await Deno.copyFile(from, `${other.project.path}/.svc/sessions/${name}.json`);
  }
  const plain = other.workspace.sessions.open("plain");
  plain.appendUser("You are stage 1 of 2 of the team pair.");
  plain.close();
  const resumed = await other.turn("go");
  const [remade, own, foreign, none, unknown, fresh] = results(resumed.events);
  assert.match(remade!, /^remade/);
  assert.deepEqual(
    other.backend.chats[2].messages.slice(1).map(({ content }: { content: string }) => content),
    ["Summary of the conversation so far:\n\nwhat was made", "once more"],
  );
  assert.match(own!, /^Error: team "pair" failed: .* cannot be resumed/);
  assert.match(
    foreign!,
    /^Error: team "trio" failed: The session \S+ is none of the team's stages/,
  );
  assert.match(none!, /^Error: team "pair" failed: The session plain is none of the team's stages/);
  assert.match(unknown!, /^Error: team "pair" failed: There is no run or session "nothing"/);
  assert.match(fresh!, /^all new/);
});

Deno.test("cancelling the caller cancels the stage, and no other one starts", async () => {
  await using it = await agent([team("pair", "build"), as("YOU SCOUT", hang("half a"))], { files });
  const stop = new AbortController();
  const events: TurnEvent[] = [];
  for await (const event of it.engine.turn("go", { signal: stop.signal })) {
    events.push(event);
    if (event.type === "token" && event.run === 2) stop.abort();
  }
  const last = events.at(-1);
  assert.ok(last?.type === "turn_finished" && last.result.status === "cancelled");
  assert.equal(subs(events).length, 1);
  const [turn] = it.workspace.sessions.read(subs(events)[0]!)!.turns;
  assert.equal(turn!.status, "cancelled");
});

Deno.test("a stage's mode narrows its rights, and those of the agents that it starts [2.12]", async () => {
  const write = (path: string) => call("file_write", { path, content: "x" });
  await using it = await agent([
    team("careful", "build"),
    as("YOU MAKE", write("a.txt")),
    as("YOU MAKE", call("delegate", { role: "scout", task: "write" })),
    as("YOU SCOUT", write("b.txt")),
    as("YOU SCOUT", say("refused")),
    as("YOU MAKE", say("planned")),
    team("custom", "build"),
    as("YOU MAKE", write("c.txt")),
    as("YOU MAKE", say("loud")),
    team("pair", "build"),
    as("YOU SCOUT", write("d.txt")),
    as("YOU SCOUT", say("written")),
    as("YOU MAKE", say("made")),
    say("done"),
  ], {
    files,
    config: {
      ...config,
      modes: {
        quiet: {
          system_prompt: "BE QUIET",
          tool_permission: { bash: "allow" },
          tools: { deny: ["file_write"] },
        },
      },
    },
  });
  const { events, result } = await it.turn("go");
  assert.equal(result.status, "ok");
  assert.match(systemOf(it, 1), /You are in plan mode/);
  assert.match(results(events, 2)[0]!, /^Error: permission denied: file_write \(category edit\)/);
  assert.match(results(events, 3)[0]!, /^Error: permission denied: file_write \(category edit\)/);
  const careful = it.workspace.sessions.read(subs(events)[0]!)!;
  assert.equal(careful.turns[0]!.mode, "plan");
  assert.match(
    results(events)[0]!,
    /less than its role asks for: bash \(deny\); was refused: file_write \(edit\)\]/,
  );
  const custom = events.findIndex((event) => event.type === "run_started" && event.run === 4);
  assert.ok(custom > 0);
  assert.match(results(events, 4)[0]!, /tools\.deny names file_write/);
  const [, quiet] = results(events);
  assert.match(quiet!, /could do nothing: all its calls were refused: file_write \(edit\)$/m);
  const names = [...Deno.readDirSync(it.project.path)].map(({ name }) => name).sort();
  assert.deepEqual(names, [".svc", "d.txt"]);
});

Deno.test("a team remembers the results of its stages, also when one failed [2.12]", async () => {
  await using it = await agent([
    team("pair", "build it"),
    as("YOU SCOUT", say("wood")),
    as("YOU MAKE", say("a chair")),
    as("You keep the memory of the team pair", say("chairs are of wood")),
    { ...team("pair", "build more"), when: { tool_result: "a chair" } },
    as("YOU SCOUT", say("stone")),
    as("YOU MAKE", httpError(401)),
    as("You keep the memory of the team pair", say("stone fails")),
    say("done"),
  ], { files, config: { memory_enabled: true, "memory.role": false } });
  const { result } = await it.turn("go");
  assert.equal(result.content, "done");
  await it.workspace.background.settle();
  const asked = it.backend.chats.flatMap(({ messages }) =>
    messages[0].content.startsWith("You keep the memory") ? [messages[1].content as string] : []
  );
  assert.match(
    asked[0]!,
    /build it[^]*role scout answered:[^]*wood[^]*role maker? answered:[^]*a chair/,
  );
  assert.match(asked[1]!, /build more[^]*stone[^]*ended with status error:[^]*401/);
  assert.equal(it.workspace.memory.read("team", "pair"), "stone fails");
});

Deno.test("a stage that the operator continues keeps its mode and its position in the team", async () => {
  await using it = await agent([
    say("gone on"),
    call("file_write", { path: "x.txt", content: "x" }),
    call("team", { name: "careful", task: "again" }),
    say("neither"),
  ], { files });
  const { workspace, session } = it;
  const runs = new RunRegistry(100);
  runs.start({ parent: 0, role: "", session, task: "" });
  const sub = workspace.sessions.create("sub", { parent_id: session.name, role: "maker" });
  const stage = { team: "careful", mode: "plan" };
  const run = runs.start({ parent: 1, role: "maker", session: sub, task: "build", stage });
  sub.close();
  const prepared = await it.prepare({ operator: headlessOperator(true), headless: false, runs });
  const maker = await prepared.openRun(run);
  const first = await collect(maker.turn("go on"));
  assert.equal(first.result.content, "gone on");
  const { events } = await collect(maker.turn("change it"));
  await maker.close();
  assert.match(systemOf(it, 0), /You are in plan mode/);
  const [written, started] = results(events, 2);
  assert.match(written!, /^Error: permission denied: file_write \(category edit\)/);
  assert.match(started!, /A team cannot be started from within itself: careful > careful\./);
});
