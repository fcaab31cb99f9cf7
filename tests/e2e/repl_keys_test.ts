import assert from "node:assert/strict";
import { call, hang, type Reply, say } from "../support/backend.ts";
import { until } from "../support/processes.ts";
import { svc } from "../support/program.ts";
import { type Session, session } from "../support/repl.ts";

const run = (command: string) => call("run_command", { command });
/** A command that runs until the test lets it end. */
const waits = (more: Reply = {}) => ({
  ...run("until [ -e go ]; do sleep 0.02; done; rm go"),
  ...more,
});
const go = (open: Session) => Deno.writeTextFile(`${open.place.path}/go`, "");
const ALLOWED = { tool_permission: { bash: "allow" } };
interface Terminal {
  columns: number;
  env: Record<string, string>;
}
const [COLOURED, PLAIN]: Terminal["env"][] = [{}, { NO_COLOR: "1" }];
/** The widths at which the session is looked at, each with colours in one of these lists and without in the other. */
const ODD: Terminal[] = [
  { columns: 40, env: COLOURED! },
  { columns: 80, env: PLAIN! },
  { columns: 200, env: COLOURED! },
];
const EVEN: Terminal[] = [
  { columns: 40, env: PLAIN! },
  { columns: 80, env: COLOURED! },
  { columns: 200, env: PLAIN! },
];

// deno-lint-ignore no-control-regex
const COLOURS = /\x1b\[[1-9][\d;]*m/;

/** What holds at every width: no row is wider than the terminal, and there are colours only where they are wanted. */
function checkScreen(open: Session, columns: number, env: Record<string, string>): void {
  assert.ok(open.pty.screen.all().split("\n").every((row) => row.length <= columns));
  assert.equal(COLOURS.test(open.pty.written), env.NO_COLOR === undefined);
  assert.deepEqual(open.pty.screen.unknown, []);
}

/** The screen as one line, so that it does not matter where rows end. */
function words(open: Session): string {
  return open.pty.screen.all().replace(/\s+/g, " ");
}

Deno.test("a rewrite of 200 lines is asked with both sides, v shows all, one key answers, at any width", async () => {
  const side = (word: string) => Array.from({ length: 200 }, (_, n) => `${word} ${n}\n`).join("");
  for (const { columns, env } of ODD) {
    await using open = await session([
      call("file_write", { path: "a.txt", content: side("neu") }),
      say("written"),
    ], {
      columns,
      env,
      rows: 30,
      files: { "a.txt": side("alt") },
      config: { tool_permission: { edit: "ask" } },
    });
    const { pty } = open;
    await pty.type("go\r");
    await pty.until(/\[v\]\s+all of it:$/);
    const asked = pty.screen.text();
    assert.match(asked, / 1 - alt 0\n[^]*\n {2}… 19\d more removed lines, v shows them\n/);
    assert.match(asked, / 1 \+ neu 0\n[^]*\n {2}… 19\d more added lines, v shows them\n/);
    assert.ok(!asked.includes("alt 150"));
    await pty.type("v");
    await pty.until((screen) => /: v\n[^]*because:$/.test(screen.all()));
    assert.match(pty.screen.all(), / 200 - alt 199\n[^]* 200 \+ neu 199\n/);
    await pty.type("y");
    await open.ready();
    assert.equal(Deno.readTextFileSync(`${open.place.path}/a.txt`), side("neu"));
    checkScreen(open, columns, env);
  }
});

Deno.test("always covers what the operator chooses: commands that begin so, and no other [2.4]", async () => {
  await using open = await session([
    run("ls -a"),
    run("ls src"),
    run("ls; touch two"),
    say("done"),
  ], { files: { "src/x": "" } });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until(/because:$/);
  await pty.type("a");
  await pty.until(/Esc to go back:$/);
  assert.match(
    pty.screen.text(),
    /Always, until this session ends:\n {2}\[1\] this very command\n {2}\[2\] commands that begin with: ls\n {2}\[3\] every bash call\n/,
  );
  await pty.type("2");
  await pty.until(/ls; touch two\n\[y\][^]*because:$/);
  await pty.type("n");
  await pty.until("done");
  await open.enter(
    "/permissions",
    "You allowed until this session ends:\n  commands that begin with: ls\n",
  );
  await open.ready();
  // deno-lint-ignore no-explicit-any
  const audit = open.saved()[0].permissions.map((entry: any) => [entry.scope, entry.covers]);
  const covered = ["always", "commands that begin with: ls"];
  assert.deepEqual(audit, [covered, covered, [undefined, undefined]]);
  assert.ok(![...Deno.readDirSync(open.place.path)].some(({ name }) => name === "two"));
});

Deno.test("a no with a reason is the tool's result; Escape goes back to the question", async () => {
  for (const { columns, env } of EVEN) {
    await using open = await session([run("gcc x.c"), say("I will use make")], { columns, env });
    const { pty } = open;
    await pty.type("go\r");
    await pty.until(/because:$/);
    await pty.type("e");
    await pty.until(/Why not\?$/);
    await pty.type("no, wait\x1b");
    await pty.until(/no, wait\n\[y\][^]*because:$/);
    await pty.type("e");
    await pty.until(/Why not\?$/);
    await pty.type("use make\r");
    await pty.until("I will use make");
    await open.ready();
    const told = open.backend.chats[1].messages.at(-1);
    assert.equal(told.content, "[cancelled] User declined the run_command call: use make");
    assert.match(words(open), /declined: use make/);
    checkScreen(open, columns, env);
  }
});

Deno.test("Escape at a confirmation cancels the turn, and nothing ran", async () => {
  await using open = await session([run("touch one"), say("never")]);
  await open.enter("go", "[a] always");
  await open.pty.type("\x1b");
  await open.ready();
  assert.equal(open.saved()[0].turns[0].status, "cancelled");
  assert.equal(open.backend.chats.length, 1);
});

Deno.test("what is typed during a turn waits above the prompt, is taken back by Up, and reaches the model in its next round", async () => {
  for (const { columns, env } of ODD) {
    await using open = await session([waits(), say("as you wish"), say("later")], {
      columns,
      env,
      config: ALLOWED,
    });
    const { pty } = open;
    await pty.type("go\r");
    await pty.until(/\n› \(Enter adds a message, Esc\s+interrupts\)$/);
    await pty.type("make it blue\r");
    await pty.until(/\n↳ make it blue\n› \(↑ takes the last one back\)$/);
    await pty.type("and flat\r");
    await pty.until(/\n↳ make it blue\n↳ and flat\n› \(/);
    await pty.type("\x1b[A");
    await pty.until(/\n↳ make it blue\n› and flat$/);
    await pty.type("\x15and round\r");
    await pty.until(/\n↳ make it blue\n↳ and round\n› \(/);
    await pty.type("draft");
    await pty.until(/› draft$/);
    await go(open);
    await pty.until(/\n› make it blue\n› and round\n\nas you wish\n[^]*\n› draft$/);
    checkScreen(open, columns, env);
    const [, second] = open.backend.chats;
    // deno-lint-ignore no-explicit-any
    const sent = second.messages.slice(-3).map(({ role, content }: any) => [role, content]);
    assert.deepEqual(sent.slice(1), [
      ["user", "[message] make it blue"],
      ["user", "[message] and round"],
    ]);
    assert.equal(sent[0]![0], "tool");
    const [{ turns: [turn] }] = open.saved();
    assert.deepEqual(turn.parts.map(({ type }: { type: string }) => type), [
      "user",
      "tool",
      "user",
      "user",
      "text",
    ]);
    if (columns !== 80) continue;
    // A later process sends the same conversation again.
    const name = open.saved()[0].session_name;
    const { code } = await svc(["run", "--session-id", name, "and now?"], {
      cwd: open.place.path,
      home: open.home.path,
    });
    assert.equal(code, 0);
    const after = open.backend.chats[2].messages.slice(0, second.messages.length);
    assert.deepEqual(after.slice(1), second.messages.slice(1));
  }
});

Deno.test("repl.typed after_turn sends what was typed as turns of their own, commands in their place", async () => {
  await using open = await session([waits(), say("one"), say("two"), say("three")], {
    config: { ...ALLOWED, "repl.typed": "after_turn" },
    rows: 60,
  });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until("(Enter adds a message");
  await pty.type("first\r");
  await pty.until("↳ first");
  await pty.type("/mode plan\r");
  await pty.until("↳ /mode plan");
  await pty.type("second\r");
  await pty.until("↳ second");
  await go(open);
  await pty.until(/› first\n[^]*two\n[^]*› \/mode plan\n[^]*plan › second\n[^]*three\n[^]*›$/);
  await open.ready();
  const modes = open.saved()[0].turns.map(({ mode }: { mode: string }) => mode);
  assert.deepEqual(modes, ["build", "build", "plan"]);
});

Deno.test("a slash command that is typed during a turn runs after it, and is never sent to the model", async () => {
  await using open = await session([waits(), say("one")], { config: ALLOWED });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until("(Enter adds a message");
  await pty.type("/version\r");
  await pty.until("↳ /version");
  await go(open);
  await pty.until(/one\n[^]*› \/version\n[^]*svc \d/);
  assert.ok(!JSON.stringify(open.backend.chats).includes("/version"));
});

Deno.test("!!cmd that is typed during a turn waits for Enter, and then has all keys of the terminal", async () => {
  await using open = await session([waits(), say("one")], { config: ALLOWED });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until("(Enter adds a message");
  await pty.type("!!echo ready; read it; echo got $it\r");
  await pty.until("↳ !!echo");
  await go(open);
  await pty.until(/one[^]*\n› !!echo ready; read it; echo got \$it$/);
  await pty.type("\r");
  await pty.until(/\nready/);
  await pty.type("mine\r");
  await pty.until("got mine");
  await open.ready();
});

Deno.test("a message that reached the turn stays in it when that is cancelled, in later processes too", async () => {
  await using open = await session([waits(), hang("It goes on here"), say("fine")], {
    config: ALLOWED,
  });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until("(Enter adds a message");
  await pty.type("make it blue\r");
  await pty.until("↳ make it blue");
  await go(open);
  await pty.until(/\n› make it blue\n[^]*It goes on/);
  await pty.type("not sent\r");
  await pty.until("↳ not sent");
  await pty.type("\x1b");
  await pty.until(/cancelled [^]*\n› not sent$/);
  const name = open.saved()[0].session_name;
  const options = { cwd: open.place.path, home: open.home.path };
  assert.equal((await svc(["run", "--session-id", name, "and now?"], options)).code, 0);
  const sent = JSON.stringify(open.backend.chats[2].messages);
  assert.match(sent, /\[message\] make it blue.*It goes on.*was cancelled here.*and now\?/);
  assert.ok(!sent.includes("not sent"));
});

Deno.test("a file that a message during a turn names is attached, as to a prompt", async () => {
  await using open = await session([waits(), say("read it")], {
    config: ALLOWED,
    files: { "notes.txt": "water at noon" },
  });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until("(Enter adds a message");
  await pty.type("see @notes.txt\r");
  await pty.until("↳ see @notes.txt");
  await go(open);
  await pty.until(/attached: notes\.txt[^]*› see @notes\.txt\n[^]*read it/);
  assert.match(open.backend.chats[1].messages.at(-1).content, /see @notes\.txt[^]*water at noon/);
});

Deno.test("a message that is written while the window is resized stays whole, and nothing is left behind", async () => {
  await using open = await session([hang("It begins here")], { columns: 80, rows: 20 });
  const { pty } = open;
  const draft = "a draft that is long enough to take more than one row of a narrow window";
  await pty.type("go\r");
  await pty.until("It begins");
  await pty.type("this waits\r");
  await pty.until("↳ this waits");
  await pty.type(draft);
  await pty.until(/ narrow window$/);
  for (const columns of [40, 200, 60]) {
    await pty.resize(columns, 20);
    await pty.until((screen) =>
      screen.text().replace(/\s+/g, "").endsWith(`↳thiswaits›${draft.replaceAll(" ", "")}`)
    );
  }
  await pty.type("\x1b");
  await pty.until(/cancelled [^]*› this waits\n[^]*window$/);
  const shown = pty.screen.all().replace(/\s+/g, "");
  assert.equal(shown.split("thiswaits").length, 2, shown);
  assert.equal(shown.split("answering").length, 1, shown);
});

Deno.test("Escape interrupts a turn; what waits returns to the editor and is not sent, Escape twice drops it", async () => {
  for (const { columns, env } of EVEN) {
    await using open = await session([hang("It begins here"), say("fresh start")], {
      columns,
      env,
    });
    const { pty } = open;
    await pty.type("go\r");
    await pty.until("It begins");
    await pty.type("do more\r");
    await pty.until("↳ do more");
    await pty.type("half a li");
    await pty.until(/› half a li$/);
    await pty.type("\x1b");
    await pty.until(/cancelled [^]*\n› do more\n\.\.\. half a li$/);
    assert.equal(open.backend.chats.length, 1);
    await pty.type("\x1b");
    await pty.until(/half a li\n\(Esc again clears the line\)$/);
    await pty.type("\x1b");
    await open.ready();
    await pty.type("\x1b[A");
    await pty.until(/› do more\n\.\.\. half a li$/);
    await pty.type("\x03");
    await open.ready();
    await pty.type("again\r");
    await pty.until("fresh start");
    await open.ready();
    const turns = open.saved()[0].turns;
    assert.deepEqual(turns.map(({ status }: { status: string }) => status), ["cancelled", "ok"]);
    assert.ok(!JSON.stringify(open.backend.chats).includes("do more"));
    checkScreen(open, columns, env);
  }
});

Deno.test("what is typed during a turn that fails returns to the editor", async () => {
  const broken = { status: 400, body: { error: { message: "broken" } } };
  await using open = await session([waits(), broken], { config: ALLOWED });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until("(Enter adds a message");
  await pty.type("/mode plan\r");
  await pty.until("↳ /mode plan");
  await go(open);
  await pty.until(/broken[^]*\n› \/mode plan$/);
});

Deno.test("a draft that is being typed is no answer to a question, and is there again after it", async () => {
  await using open = await session([run("sh wait.sh"), run("touch one"), say("done")], {
    config: { tool_permission: { bash: "ask", bash_allow: ["sh wait.sh"] } },
    files: { "wait.sh": "until [ -e go ]; do sleep 0.02; done" },
  });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until("(Enter adds a message");
  await pty.type("yes, and");
  await pty.until(/› yes, and$/);
  await go(open);
  await pty.until(/touch one\n\[y\][^]*because:$/);
  await pty.type("n");
  await pty.until(/done\n[^]*› yes, and$/);
  assert.ok(![...Deno.readDirSync(open.place.path)].some(({ name }) => name === "one"));
});

Deno.test("a warning about the settings is shown at the start", async () => {
  await using open = await session([], {
    config: { tool_permission: { bash_allow: ["until"] } },
  });
  assert.match(words(open), /warning: The entry "until" of tool_permission.bash_allow/);
});

Deno.test("Escape cancels a command of the session too; Ctrl-D during a turn leaves after it", async () => {
  await using open = await session([hang(), waits(), say("done")], { config: ALLOWED });
  const { pty } = open;
  await open.enter('/tool run_command {"command": "touch begun; sleep 60"}', "");
  await until(() => open.place.read("begun").then(() => true, () => false));
  await pty.type("\x1b");
  await open.ready();
  await open.enter("go", "(Enter adds a message");
  await open.backend.arrived(1);
  await pty.type("\x1b");
  await open.ready();
  await pty.type("on\r");
  await pty.until("(Enter adds a message");
  await pty.type("\x04");
  await go(open);
  assert.equal(await pty.ended, 0);
  assert.match(pty.screen.all(), /done\n/);
});
