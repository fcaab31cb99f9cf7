import assert from "node:assert/strict";
import { call, say, startBackend, think } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";
import { session } from "../support/repl.ts";

Deno.test("/help lists every command; /help of one shows its arguments, and of tool the tools [4.7]", async () => {
  await using open = await session([], { rows: 70 });
  await open.enter("/help", "shows its arguments");
  const names = [
    ...["help", "session", "sessions", "history", "print", "compact", "focus", "connect", "model"],
    ...["models", "provider", "config", "roles", "teams", "skills", "tool", "asks", "memorize"],
    ...["unattended", "exit", "jobs", "mode", "thinking", "version", "status", "permissions"],
  ];
  for (const name of names) assert.match(open.pty.screen.all(), new RegExp(`^/${name} `, "m"));
  assert.match(open.pty.screen.all(), /\/exit .* \(\/quit, \/q\)$/m);
  assert.match(open.pty.screen.all(), /\/sessions list\|show\|tail\|… /);
  assert.match(open.pty.screen.all(), /\/tool runs: .*file_read/);
  await open.enter("/help print", /^Usage: \/print \[--full\] \[--run TARGET\] TURN\[\.PART\]$/m);
  await open.enter("/help tool", /file_read +\S/);
  await open.enter("/version", /svc \d+\.\d+\.\d+/);
});

Deno.test("an unknown command suggests the nearest, and a path is a message", async () => {
  await using open = await session([say("a path it is")]);
  await open.enter("/sesions", "Did you mean /sessions?");
  await open.enter("/etc/hosts is what?", "a path it is");
});

Deno.test("/history and /print show turns and parts, with thoughts, metadata and a cap of print_max_chars [2.13, 4.7, 8]", async () => {
  const replies = [
    think("first line\nsecond line", call("list_dir", { path: "." })),
    say("x".repeat(5000)),
  ];
  await using open = await session(replies, { rows: 120 });
  await open.enter("look around", /x{50}/);
  await open.ready();
  await open.enter("/history", /#1 \[ok\] \S+ ?s? 1 tool look around/);
  await open.enter("/history all --thoughts", "first line");
  await open.enter("/history --thoughts all", "second line");
  await open.enter("/print 1.3", "list_dir");
  await open.enter("/print 1.4", /1000 more characters/);
  await open.enter(
    "/print 1.1 --full",
    /turn: 1\nstatus: ok\nstarted: 20[^]*mode: build\nreasoning: auto\n/,
  );
  await open.enter("/print 9", "There is no turn 9");
  await open.enter("/history --run nobody", "There is no run or session");
});

Deno.test("/print renders an answer on a terminal, and prints it raw through a pipe", async () => {
  await using open = await session([say("Both **so** and\n\n| a | b |\n|---|---|\n| 1 | 2 |")]);
  await open.enter("go", "Both so and");
  await open.ready();
  await open.enter("/print 1.2", /^Both so and\n\n.*a.*b.*\n.*─/m);
  assert.doesNotMatch(open.pty.screen.text(), /\*\*|---/);
  await open.leave();
  const options = { cwd: open.place.path, home: open.home.path, stdin: "/print 1.2\n" };
  const { stdout } = await svc(["-c"], options);
  assert.ok(stdout.endsWith("Both **so** and\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"), stdout);
});

Deno.test("/session and /sessions: begin, save, load, list, preview, export and delete [4.7]", async () => {
  await using open = await session([say("one"), say("two")], { rows: 60 });
  await open.enter("/session new first", "Session first begins");
  await open.enter("go", /^one$/m);
  await open.ready();
  await open.enter("/session save", "Session first is saved");
  await open.enter("/session new second", "Session second begins");
  await open.enter("go on", /^two$/m);
  await open.ready();
  await open.enter("/session new first", "There is a session first already");
  await open.enter("/sessions list", /\* second .*\n {2}first /);
  await open.enter("/sessions preview first", /turns\S* +2/);
  await open.enter("/sessions export first", "Written to");
  assert.match(await open.place.read(".svc/exports/first.md"), /one/);
  await open.enter("/sessions export first -", /## /);
  await open.enter("/history --run first", /#1 \[ok\].* go$/m);
  await open.enter("/sessions delete second", "is in use here");
  await open.enter("/sessions delete first", "[y/n]");
  await open.enter("y", "Session first is deleted.");
  await open.enter("/session load second", "Session second: 2 turns");
  await open.enter("/session", /^second$/m);
  assert.deepEqual(open.saved().map(({ session_name }) => session_name), ["second"]);
});

Deno.test("/config, /mode, /model and /unattended hold from the next turn on [4.7]", async () => {
  await using open = await session([say("a"), say("b"), say("c")], { rows: 70 });
  await open.enter("one", /^a$/m);
  await open.ready();
  await open.enter("/config set system_prompt Be brief, and kind", "system_prompt is set");
  await open.enter("/model other", /\/other /);
  await open.enter("/mode plan", "The mode is plan");
  await open.enter("two", /^b$/m);
  await open.ready();
  const [, second] = open.backend.chats;
  assert.equal(second.model, "other");
  assert.match(second.messages[0].content, /Be brief, and kind/);
  assert.equal(second.messages.length, 4, "the conversation goes on");
  const { turns } = open.saved()[0];
  assert.deepEqual(turns.map(({ mode }: { mode: string }) => mode), ["build", "plan"]);
  await open.enter("/config get system_prompt", '"Be brief, and kind"');
  await open.enter("/config set bogus 1", "! Error:");
  await open.enter("/unattended", "attended: confirmations");
  await open.enter("/unattended on", "unattended: confirmations are denied");
  await open.enter("/thinking high", "Reasoning is high");
  await open.enter("/status", /mode +plan, unattended/);
});

Deno.test("/tool runs a tool under the policy and into the log [4.7]", async () => {
  await using open = await session([], { files: { "notes.txt": "remember the milk\n" } });
  await open.enter('/tool file_read {"path": "notes.txt"}', "remember the milk");
  await open.ready();
  const [{ turns, permissions }] = open.saved();
  assert.equal(turns[0].parts[0].type, "command");
  assert.equal(turns[0].parts[1].name, "file_read");
  assert.equal(permissions[0].decision, "granted");
  await open.enter('/tool file_reed {"path": "x"}', "Did you mean file_read?");
  await open.enter("/tool file_read {path}", "The arguments are no JSON");
});

Deno.test("/roles, /teams, /skills, /models, /provider, /permissions and /memory are the shared commands [4.7, 9]", async () => {
  await using open = await session([], { rows: 100 });
  await open.enter("/roles", /code-reviewer +bundled/);
  await open.enter("/roles list writing", /writer +bundled/);
  await open.enter("/roles remove writer", "! Error:");
  await open.enter('/roles new clerk --system-prompt "You keep the minutes"', "/roles show clerk");
  await open.enter("/roles show clerk", "You keep the minutes");
  await open.enter("/teams", /writing +bundled/);
  await open.enter("/skills new brief --file notes.md", "! Error:");
  await open.enter("/provider", "model test");
  await open.enter("/permissions", /bash +ask/);
  await open.enter("/memory", "Nothing is remembered");
});

Deno.test("parked asks announce themselves at the start and between turns, and /asks answers them [3.2, 4.7]", async () => {
  const ask = (id: number, question: string) => ({
    id,
    question,
    context: "",
    options: [],
    origin: "ses_x",
    kind: "direction",
    permission: "",
    status: "pending",
    answer: "",
    created_at: "2026-01-01T00:00:00.000Z",
    answered_at: "",
  });
  await using open = await session([], {
    files: { ".svc/asks.json": JSON.stringify([ask(1, "red?")]) },
    rows: 60,
  });
  await open.pty.until("1 question waits for your answer: /asks");
  await open.enter("/asks", /#1 .*red\?/);
  await open.ready();
  await open.place.write(".svc/asks.json", JSON.stringify([ask(1, "red?"), ask(2, "blue?")]));
  await open.enter("/version", /Ask #2 \(session ses_x\): blue\?/);
  await open.enter("/asks answer 2 use the staging 'one'", "Ask #2 is answered");
  const asks = JSON.parse(await open.place.read(".svc/asks.json"));
  assert.equal(asks[1].answer, "use the staging 'one'");
  await open.enter("/status", /asks +1 /);
});

Deno.test("/compact sends a summary instead of old turns, and /memorize writes a role's memory [4.7]", async () => {
  const replies = [say("one"), say("two"), say("SUMMARY OF IT"), say("three"), say("WHAT COUNTS")];
  await using open = await session(replies, { config: { compact_keep: 1, memory_enabled: true } });
  await open.enter("first", /^one$/m);
  await open.ready();
  await open.enter("second", /^two$/m);
  await open.ready();
  await open.enter("/compact", "SUMMARY OF IT");
  await open.ready();
  await open.enter("third", /^three$/m);
  await open.ready();
  const { messages } = open.backend.chats[3];
  assert.match(JSON.stringify(messages), /SUMMARY OF IT/);
  assert.doesNotMatch(JSON.stringify(messages), /"first"/);
  await open.enter("/memorize", "! Error:");
  await open.enter("/memorize role tester", "The role tester remembers");
  assert.match(await open.place.read(".svc/memory/roles/tester.md"), /WHAT COUNTS/);
});

Deno.test("/usage and /status show what requests have used, and the footer what a turn cost", async () => {
  const usage = { prompt_tokens: 1200, completion_tokens: 34 };
  const prices = { "generic-compatible/*": { in: 100, out: 100 } };
  await using open = await session([say("one", { usage }), say("two", { usage })], { rows: 70 });
  await open.enter("go", /1\.2k in, 34 out/);
  await open.ready();
  await open.enter("/usage --by session", /^SESSION +REQUESTS +IN +CACHED +OUT +REASONING$/m);
  await open.enter(`/config set --local prices ${JSON.stringify(prices)}`, "prices is set");
  await open.enter("again", /cost 0\.12/);
  await open.ready();
  await open.enter("/status", /^usage +2\.4k in, 68 out, cost 0\.12$/m);
  await open.pty.until(/^today +2\.4k in, 68 out, cost 0\.12$/m);
});

Deno.test("/memorize takes no more words than a name, and remembers for what there is [4.7]", async () => {
  await using backend = startBackend({ replies: [{ ...say("NOTES"), repeat: 9 }] });
  await using place = await project({
    ".svc/config.json": JSON.stringify({ base_url: backend.url, model: "m" }),
    ".svc/jobs.json": '{"jobs": [{"name": "nightly", "schedule": {"interval": 60}}]}',
  });
  const session = async (...lines: string[]) => {
    const stdin = lines.map((line) => `${line}\n`).join("");
    return (await svc([], { cwd: place.path, stdin })).stderr;
  };
  const refused = [
    ["/memorize that the tide is high", /Unexpected option or subcommand: `that`/],
    ["/memorize role tester and more", /Unexpected option or argument: `and`/],
    ["/memorize job nightli", /There is no job "nightli"\.\nhint: Did you mean "nightly"\?/],
    ["/memorize role testr", /There is no role "testr"\.\nhint: Did you mean tester\?/],
    ["/memorize team programing", /There is no team .*\nhint: Did you mean programming\?/],
  ] as const;
  const said = await session("hello", ...refused.map(([line]) => line));
  for (const [line, message] of refused) assert.match(said, message, line);
  assert.deepEqual(
    [...Deno.readDirSync(`${place.path}/.svc`)].filter(({ name }) => name === "memory"),
    [],
  );
  const kept = await session(
    "hello",
    "/memorize job nightly",
    "/config set memory.team false",
    "/memorize team programming",
  );
  assert.match(kept, /The job nightly remembers/);
  assert.match(kept, /Memory of teams is switched off/);
  assert.equal(await place.read(".svc/memory/jobs/nightly.md"), "NOTES\n");
});
