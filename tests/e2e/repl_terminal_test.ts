import assert from "node:assert/strict";
import { call, calls, hang, httpError, say, think } from "../support/backend.ts";
import { FORBIDDEN, HOSTILE } from "../support/hostile.ts";
import { session } from "../support/repl.ts";

const PROSE = "The quick brown fox jumps over the lazy dog again and again. ".repeat(12);

Deno.test("a terminal of 20 columns and 10 rows is enough", async () => {
  const replies = [
    call("run_command", { command: "echo one two three four five six" }),
    say(PROSE),
  ];
  await using open = await session([...replies, say("fine")], { columns: 20, rows: 10 });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until(/(because|all of it):$/);
  await pty.type("y");
  await pty.until(/s\n(sandbox:\s\S+\n)?›$/);
  assert.ok(pty.screen.lines().every((line) => line.length <= 20));
  assert.match(
    pty.screen.all(),
    /brown fox\njumps over the lazy\ndog again and again\.\nThe quick/,
  );
  await pty.type("/help\r");
  await pty.until(/its\s+arguments\.\n›$/);
  await pty.type("a message that is longer than a line");
  await pty.until(/› a message that is\s+longer than a line$/);
  await pty.type("\x15");
  await open.ready();
  await pty.type("/se\t");
  await pty.until(/\/session/);
  assert.deepEqual(pty.screen.unknown, []);
});

Deno.test("a window that is resized while a turn streams goes on in its new width", async () => {
  const words = PROSE.split(/(?<= )/);
  await using open = await session([say(words, { chunk_delay_ms: 8 })], { columns: 100, rows: 30 });
  await open.pty.type("go\r");
  await open.pty.until("fox");
  await open.pty.resize(40, 12);
  await open.ready();
  const lines = open.pty.screen.lines();
  assert.ok(lines.every((line) => line.length <= 40));
  assert.match(open.pty.screen.text(), /\n›$/);
  const shown = open.pty.screen.all().replace(/\s+/g, " ");
  assert.equal(shown.match(/fox/g)?.length, 12, "nothing is shown twice, nothing is lost");
});

Deno.test("NO_COLOR takes the colours away, and leaves what editing a line needs", async () => {
  await using open = await session([say("# Title\n\n**bold** `code`")], { env: { NO_COLOR: "1" } });
  await open.enter("go", "Title");
  await open.ready();
  // deno-lint-ignore no-control-regex
  const colours = open.pty.written.match(/\x1b\[[\d;]+m/g) ?? [];
  assert.deepEqual(colours.filter((sequence) => sequence !== "\x1b[0m"), []);
});

Deno.test("a dumb terminal is read in lines and sent no sequence", async () => {
  await using open = await session([say("# Title\n\nplain")], {
    env: { TERM: "dumb" },
    prompt: false,
  });
  await open.pty.type("go\n");
  await open.pty.until("plain");
  await open.pty.type("/version\n");
  await open.pty.until(/svc \d/);
  const ours = open.pty.written.replaceAll("\x1b[0G\x1b[2K\x1b[J", ""); // Deno's, while it loads
  // deno-lint-ignore no-control-regex
  assert.doesNotMatch(ours, /\x1b/);
  await open.pty.type("/exit\n");
  assert.equal(await open.pty.ended, 0);
});

Deno.test("a line of 20,000 characters is typed, sent and answered with as long a one", async () => {
  const long = "x".repeat(20_000);
  await using open = await session([say(long), say("fine")], { rows: 24 });
  await open.pty.type(long);
  await open.pty.until(/^x{90,}$/m);
  await open.pty.type("\r");
  await open.ready();
  assert.equal(open.saved()[0].turns[0].parts[0].text, long);
  assert.equal(open.saved()[0].turns[0].parts[1].text, long);
  await open.enter("and now?", "fine");
});

Deno.test("hostile texts of worktrees, models, tools and backends arrive as visible text", async () => {
  const replies = [
    think([...HOSTILE], call("ask", { question: HOSTILE, context: HOSTILE, options: [HOSTILE] })),
    calls([["file_read", { path: "a" }], ["run_command", { command: `printf '%s' '${HOSTILE}'` }], [
      HOSTILE,
      { [HOSTILE]: HOSTILE },
    ]]),
    say([
      ...HOSTILE,
      "# ",
      HOSTILE,
      "\n\n```\n",
      HOSTILE,
      "\n```\n| a |\n|-|\n| ",
      HOSTILE,
      " |\n[x](",
      HOSTILE,
      ")\n",
      "over",
    ]),
    httpError(400, { error: { message: HOSTILE } }),
  ];
  const role = { description: HOSTILE, system_prompt: HOSTILE, tags: [HOSTILE], model: HOSTILE };
  const ask = { id: 1, question: HOSTILE, options: [HOSTILE], origin: HOSTILE, status: "pending" };
  const job = { name: "j", schedule: { interval: 3600 }, prompt: HOSTILE, status: "failed" };
  await using open = await session(replies, {
    rows: 60,
    config: { tool_permission: { [HOSTILE]: "deny" }, modes: { [HOSTILE]: {} } },
    files: {
      a: HOSTILE,
      ".svc/asks.json": JSON.stringify([ask]),
      ".svc/jobs.json": JSON.stringify({ jobs: [job] }),
      ".svc/memory/roles/r.md": HOSTILE,
    },
    homeFiles: {
      ".config/svc/roles.json": JSON.stringify({ r: role, [HOSTILE]: role }),
      ".config/svc/skills/s.md": HOSTILE,
    },
  });
  const { pty } = open;
  await pty.type("go\r");
  await pty.until(/or a number:$/);
  await pty.type("1\r");
  await pty.until(/because:$/);
  await pty.type("y");
  await pty.until("over");
  await open.ready();
  const lines =
    "again|/asks list|/asks show 1|/jobs show j|/roles list|/roles show r|/skills list|/skills show s|" +
    "/memory list|/memory show role r|/permissions|/config get modes|/print 1 --full|" +
    '/tool file_read {"path": "a"}';
  for (const line of lines.split("|")) {
    await open.enter(line, "MARK");
    await open.ready();
  }
  // Ours: colours, the cursor and clearing of the edited line, bracketed paste.
  // deno-lint-ignore no-control-regex
  const rest = pty.written.replace(/\x1b\[(?:\??[\d;]*[mABCDGHJKhl])|\r/g, "");
  assert.equal(FORBIDDEN.exec(rest)?.[0], undefined, JSON.stringify(rest));
  for (const piece of ["\x1b[2J", "\x1b]", "\x1bP", "\x1bc"]) {
    assert.ok(!pty.written.includes(piece), JSON.stringify(piece));
  }
});

Deno.test("text typed while a sub-agent works is not taken as an answer and is sent afterwards", async () => {
  const replies = [
    call("delegate", { role: "smith", task: "make it" }),
    call("run_command", { command: "touch made" }, {
      when: { system: "YOU FORGE" },
      delay_ms: 300,
    }),
    { ...say("made"), when: { system: "YOU FORGE" } },
    say("all done"),
    say("here you are"),
  ];
  const roles = JSON.stringify({ smith: { system_prompt: "YOU FORGE" } });
  await using open = await session(replies, { files: { ".svc/roles.json": roles }, rows: 60 });
  await open.pty.type("go\r");
  await open.backend.arrived(2);
  await open.pty.type("yes, and more");
  await open.pty.until("because:");
  assert.match(open.pty.screen.text(), /because:$/, "nothing stands behind the question");
  await open.pty.type("n");
  await open.pty.until("all done");
  await open.pty.until(/› yes, and more$/);
  await open.pty.type("\r");
  await open.pty.until("here you are");
  assert.ok(![...Deno.readDirSync(open.place.path)].some(({ name }) => name === "made"));
});

Deno.test("repeated Ctrl-C ends a turn", async () => {
  await using open = await session([hang("one after another"), say("two")]);
  await open.enter("go", "one after");
  await open.pty.type("\x03\x03\x03");
  await open.pty.until(/›$/);
  await open.pty.type("on\r");
  await open.pty.until(/^two$/m);
});
