import assert from "node:assert/strict";
import { listText, printLists, table, wrappedLine } from "../../src/commands/format.ts";
import { main } from "../../src/cli/main.ts";
import { call, say, startBackend } from "../support/backend.ts";
import { inProcess, testIo } from "../support/io.ts";
import { project } from "../support/project.ts";

const HEAD = ["NAME", "STATE", "FOUND"];
const ROWS = [["one", "ok", "a short text"], [
  "two",
  "failed",
  "a text that is longer than the line",
]];

/** What a list prints to a terminal of 40 columns. */
function printed(environment: Record<string, string>): string {
  const io = testIo({ home: "/", cwd: "/" }, { isTerminal: () => true, columns: () => 40 });
  const get = (name: string) => environment[name];
  printLists(
    { ...io, environment: { home: "/", cwd: "/", get }, out: io.out },
    listText(io, HEAD, ROWS),
  );
  return io.printed;
}

Deno.test("a list in a pipe has one line for each row, without a head or colours", () => {
  const io = testIo({ home: "/", cwd: "/" });
  printLists(io, listText(io, HEAD, ROWS));
  assert.equal(
    io.printed,
    "one  ok      a short text\ntwo  failed  a text that is longer than the line\n",
  );
  assert.match(listText(io, HEAD, ROWS, { always: true }), /^NAME {2}STATE/);
});

Deno.test("a list on a terminal has a head, wraps its last column, and colours words of state", () => {
  const plain = [
    "NAME  STATE   FOUND",
    "one   ok      a short text",
    "two   failed  a text that is longer than",
    "              the line",
    "",
  ].join("\n");
  assert.equal(printed({ NO_COLOR: "1" }), plain);
  const colored = printed({});
  const [bold, end, green, red, color] = ["1", "22", "32", "31", "39"].map((n) => `\x1b[${n}m`);
  assert.ok(colored.startsWith(`${bold}NAME  STATE   FOUND${end}\n`), colored);
  assert.ok(colored.includes(`one   ${green}ok${color}      a short text`), colored);
  assert.ok(colored.includes(`two   ${red}failed${color}  a text`), colored);
});

Deno.test("what does not fit a line continues in the next one, and nothing is cut", () => {
  const rows = [["name", "of", "a text that is longer than the line"], ["b", "c", ""]];
  assert.equal(
    table(rows, 36),
    "name  of  a text that is longer than\n          the line\nb     c\n",
  );
  assert.equal(
    table(rows, 24),
    "name  of\n    a text that is\n    longer than the line\nb     c\n",
  );
  assert.equal(
    wrappedLine("  task file:  a path of several words that is long", 40),
    "  task file:  a path of several words\n              that is long",
  );
  assert.equal(wrappedLine("  one two three four", 10), "  one two\n  three\n  four");
});

Deno.test("each command that lists has a bold head on a terminal, and colours", async () => {
  const job = { name: "j", schedule: { interval: 3600 }, prompt: "go" };
  await using work = await project({
    ".svc/config.json":
      '{"provider": "demo", "mcp.servers": [{"name": "m", "command": "nonesuch"}]}',
    ".svc/jobs.json": JSON.stringify({ jobs: [job] }),
    ".svc/fleet.json": '{"agents": [{"name": "a", "dir": "a"}]}',
    ".svc/memory/jobs/j.md": "noted\n",
    ".svc/logs/jobs.log": "one\n",
  });
  const lines = [
    ...["asks", "doctor", "eval --list", "fleet status", "jobs", "logs", "mcp list", "memory"],
    ...["permissions", "plugins", "roles list", "sessions", "teams list", "trust"],
    "usage",
  ];
  await using backend = startBackend([call("ask", { question: "why?" }), say("later")]);
  const asks = ["run", "--unattended", "--base-url", backend.url, "-p", "hello"];
  assert.equal((await inProcess(asks, { cwd: work.path })).code, 0);
  for (const line of lines) {
    const io = testIo({ home: work.path, cwd: work.path }, { isTerminal: (end) => end === "out" });
    assert.equal(await main(line.split(" "), io) < 2, true, io.notes.join("\n"));
    assert.match(io.printed.replaceAll("\x1b", "ESC"), /^ *ESC\[1m *[A-Z]+.*ESC\[22m$/m, line);
  }
});
