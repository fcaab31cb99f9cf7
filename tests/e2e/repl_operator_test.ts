import assert from "node:assert/strict";
import { call, calls, type Reply, say } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { session } from "../support/repl.ts";

const run = (command: string) => call("run_command", { command });
const as = (system: string, reply: Reply): Reply => ({ ...reply, when: { system } });

Deno.test("a confirmation shows the whole command; y runs it once, a for the session, n declines it", async () => {
  const replies = [run("touch one"), run("touch one"), run("touch two"), say("done")];
  await using open = await session([...replies, run("touch one"), say("still granted")]);
  const { pty } = open;
  await open.enter("go", /run_command.*bash[^]*touch one[^]*\[a\] always/);
  await pty.type("a");
  await pty.until("Esc to go back:");
  await pty.type("1");
  await pty.until(/touch two[^]*because:$/);
  await pty.type("n");
  await pty.until("done");
  await open.ready();
  assert.deepEqual(files(open.place.path), ["one"]);
  await open.enter("/config set temperature 0", "temperature is set");
  await open.enter("again", "still granted");
  const decisions = open.saved()[0].permissions.map(
    (entry: { decision: string; scope?: string; granted_by?: string }) => [
      entry.decision,
      entry.scope,
      entry.granted_by,
    ],
  );
  const always = ["granted", "always", "operator"];
  assert.deepEqual(decisions, [always, always, ["declined", undefined, undefined], always]);
});

Deno.test("Ctrl-C at a confirmation cancels the turn, and nothing ran", async () => {
  await using open = await session([run("touch one"), say("never")]);
  await open.enter("go", "[a] always");
  await open.pty.type("\x03");
  await open.ready();
  assert.deepEqual(files(open.place.path), []);
  assert.equal(open.saved()[0].turns[0].status, "cancelled");
});

Deno.test("a question of the agent takes the number of an option", async () => {
  const ask = call("ask", { question: "Which colour?", options: ["red", "blue"] });
  await using open = await session([ask, say("blue it is")]);
  await open.enter("go", /Which colour\?\n[^]*2\. blue/);
  await open.pty.type("2\r");
  await open.pty.until("blue it is");
  assert.match(JSON.stringify(open.backend.chats[1].messages), /"blue"/);
});

Deno.test("unattended: calls are denied and questions parked", async () => {
  const replies = [run("touch one"), call("ask", { question: "Shall I?" }), say("parked it")];
  await using open = await session(replies, { args: ["--unattended"] });
  await open.enter("go", "parked it");
  await open.ready();
  assert.doesNotMatch(open.pty.written, /\[y\] once/);
  assert.deepEqual(files(open.place.path), []);
  await open.enter("/asks", /#1 .*Shall I\?/);
});

/** The root delegates to a smith, who runs a command. */
const STORY = [
  call("delegate", { role: "smith", task: "make it" }),
  as("YOU FORGE", run("touch made")),
  as("YOU FORGE", say("it is made")),
  say("all done"),
  as("YOU FORGE", say("the smith speaks")),
];
const ROLES = { ".svc/roles.json": JSON.stringify({ smith: { system_prompt: "YOU FORGE" } }) };

Deno.test("a sub-agent's confirmation names its run and session; /focus goes there and messages too [1, 4.7]", async () => {
  await using open = await session(STORY, { files: ROLES, rows: 80 });
  await open.enter("go", /touch made[^]*\[a\] always/);
  assert.match(open.pty.screen.text(), /run #2/);
  assert.match(open.pty.screen.text(), /session sub_/);
  await open.pty.type("y");
  await open.pty.until("all done");
  await open.ready();
  await open.enter("/focus", /#1 root[^]*#2 smith/);
  await open.enter("/focus child", "The focus is on run #2 (smith)");
  await open.pty.until("#2 smith ›");
  await open.enter("/focus log 5", "it is made");
  await open.enter("who are you?", "the smith speaks");
  await open.ready();
  const [root, sub] = open.saved();
  assert.deepEqual([root.turns.length, sub.turns.length, sub.role], [1, 2, "smith"]);
  assert.match(open.backend.chats.at(-1).messages[0].content, /YOU FORGE/);
  await open.enter("/history --run root-is-no-name", "There is no run or session");
  await open.enter("/history --run smith", /#1 \[ok\].*make it\n#2 \[ok\].*who are you/);
  await open.enter("/focus back", "The focus is on run #1");
  await open.enter("/focus nowhere", "There is no live run");
});

Deno.test("focus_on_delegate and handoff move the focus after the turn [3.6]", async () => {
  const replies = [
    call("delegate", { role: "smith", task: "make it" }),
    as("YOU FORGE", say("it is made")),
    say("all done"),
    as("YOU FORGE", call("handoff", { target: "root" })),
  ];
  await using open = await session(replies, {
    files: ROLES,
    config: { focus_on_delegate: "on" },
    rows: 60,
  });
  await open.enter("go", "all done");
  await open.pty.until("#2 smith ›");
  await open.enter("back to the root", "The focus is on run #1");
  await open.ready();
});

Deno.test("confirmations of parallel agents are queued", async () => {
  const replies = [
    calls([["delegate", { role: "smith", task: "a" }], ["delegate", { role: "smith", task: "b" }]]),
    as("YOU FORGE", run("touch made")),
    as("YOU FORGE", run("touch made")),
    as("YOU FORGE", say("made")),
    as("YOU FORGE", say("made")),
    say("all done"),
  ];
  await using open = await session(replies, { files: ROLES, rows: 60 });
  await open.enter("go", "[a] always");
  assert.equal(open.pty.screen.text().match(/\[y\] once/g)?.length, 1);
  await open.pty.type("y");
  await open.pty.until((screen) => screen.text().match(/\[y\] once/g)?.length === 2);
  await open.pty.type("n");
  await open.pty.until("all done");
});

Deno.test("/teams run has a team work in this session, its stages as runs [4.7]", async () => {
  const team = { ".svc/teams.json": JSON.stringify({ pair: { stages: ["smith", "smith"] } }) };
  const replies = [as("YOU FORGE", say("raw")), as("YOU FORGE", say("polished"))];
  await using open = await session(replies, { files: { ...ROLES, ...team }, rows: 60 });
  await open.enter("/teams run pair make a ring", "polished");
  await open.ready();
  await open.enter("/focus", /#2 smith[^]*#3 smith/);
  const root = open.saved().find(({ parent_id }) => parent_id === "");
  assert.equal(root.turns[0].parts[0].text, "/teams run pair make a ring");
  assert.equal(root.sub_sessions.length, 2);
});

Deno.test("without a terminal each line is a turn, confirms are denied, and the last turn's code counts", async () => {
  await using open = await session([say("one"), run("touch one"), say("two")]);
  const options = { cwd: open.place.path, home: open.home.path };
  const { code, stdout } = await svc([], { ...options, stdin: "first\nsecond\n" });
  assert.deepEqual([code, files(open.place.path)], [0, []]);
  assert.match(stdout, /one[^]*two/);
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(stdout, /\x1b/);
  const failed = await svc([], { ...options, stdin: "third\n" });
  assert.equal(failed.code, 1);
  assert.equal((await svc([], { ...options, stdin: "/nonsense\n" })).code, 2);
});

Deno.test("the first run without a provider offers one, and can be skipped", async () => {
  await using open = await session([], { config: { base_url: "", model: "" }, welcome: true });
  await open.pty.type("2\r");
  await open.pty.until("The demo model answers");
  await open.ready();
  await open.enter("how many lines does pid have?", "demo model");
});

function files(path: string): string[] {
  return [...Deno.readDirSync(path)].map(({ name }) => name).filter((name) => !name.startsWith("."))
    .sort();
}

Deno.test("a permission that an agent asks for is shown in words", async () => {
  const asks = call("ask", { kind: "permission", permission: "bash", question: "May I run it?" });
  await using open = await session([asks, say("fine")], {
    config: { ask_policy: { permission: "human" } },
  });
  await open.enter("go", /\[y\] once/);
  const shown = open.pty.screen.text();
  assert.match(shown, /permission for bash is requested: May I run it\?/);
  assert.match(shown, /Granted, its calls of bash run without a question\./);
  assert.doesNotMatch(shown, /"kind"|[{}]/);
  await open.pty.type("n");
  await open.pty.until("fine");
});
