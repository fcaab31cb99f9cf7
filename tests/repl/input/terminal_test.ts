import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { project } from "../../support/project.ts";
import { Pty } from "../../support/pty.ts";

const FIXTURE = fileURLToPath(new URL("./fixture.ts", import.meta.url));

interface Started extends AsyncDisposable {
  pty: Pty;
  history: string;
  folder: string;
}

async function start(columns = 40, rows = 12, wrap: string[] = []): Promise<Started> {
  const folder = await project();
  const history = `${folder.path}/state/history`;
  const command = [
    ...wrap,
    Deno.execPath(),
    "run",
    "--no-prompt",
    "--allow-read",
    "--allow-write",
    "--allow-run",
    FIXTURE,
    history,
  ];
  const pty = new Pty(command, { cwd: folder.path }, columns, rows);
  await pty.until(">");
  return {
    pty,
    history,
    folder: folder.path,
    async [Symbol.asyncDispose]() {
      await pty[Symbol.asyncDispose]();
      await folder[Symbol.asyncDispose]();
    },
  };
}

Deno.test("a real terminal: keys, history across sessions, search, and the end", async () => {
  await using first = await start();
  const { pty } = first;
  await pty.type("helo");
  await pty.until("> helo");
  assert.match(await pty.settings(), /-icanon.* -echo /s);
  await pty.type("\x1b[Dl\r");
  await pty.until('got "hello"');
  await pty.type("second\r");
  await pty.until('got "second"');
  await pty.type("\x12hel");
  await pty.until("(search) hel: hello");
  await pty.type("\r");
  await pty.until(/got "hello"[^]*got "hello"/);
  await pty.type("\x04");
  assert.equal(await pty.ended, 0);
  assert.equal(pty.screen.lines().filter((line) => line === "got end").length, 1);
  assert.deepEqual([...pty.screen.modes], [25]);
  assert.deepEqual(pty.screen.unknown, []);
  assert.equal(
    await Deno.readTextFile(first.history),
    '"hello"\n"second"\n"hello"\n',
  );
  assert.equal((await Deno.stat(first.history)).mode! & 0o777, 0o600);
});

Deno.test("a real terminal: a paste and a block are one message, Tab completes, keys stay hidden", async () => {
  await using one = await start();
  const { pty } = one;
  await pty.type("\x1b[200~two\nlines\x1b[201~");
  await pty.until("... lines");
  await pty.type("\r");
  await pty.until('got "two\\nlines"');
  await pty.type("/h\t");
  await pty.until("/help     shows help");
  await pty.type("e\t\r");
  await pty.until('got "/help "');
  await pty.type("key\r");
  await pty.until("key:");
  await pty.type("sk-123\r");
  await pty.until("got 6 hidden characters");
  assert.ok(!pty.written.includes("sk-"));
  assert.ok(!(await Deno.readTextFile(one.history)).includes("sk-"));
});

Deno.test("a real terminal: a window that is resized shows the line as it fits", async () => {
  await using one = await start(20, 8);
  const { pty } = one;
  await pty.type("the quick brown fox jumps");
  await pty.until((screen) => screen.text() === "> the quick brown fo\nx jumps");
  await pty.resize(12, 8);
  await pty.until((screen) =>
    screen.text() === "> the quick \nbrown fox ju\nmps".replace(" \n", "\n")
  );
  assert.deepEqual(pty.screen.cursor, { row: 2, column: 3 });
  await pty.resize(40, 8);
  await pty.until((screen) => screen.text() === "> the quick brown fox jumps");
  assert.deepEqual(pty.screen.cursor, { row: 0, column: 27 });
  await pty.type("\r");
  await pty.until('got "the quick brown fox jumps"');
});

Deno.test("a real terminal: Ctrl-C interrupts a turn, and what was typed meanwhile comes after it", async () => {
  await using one = await start();
  const { pty } = one;
  await pty.type("turn\r");
  await pty.until("got a turn");
  await pty.type("next");
  await pty.type("\x03");
  await pty.until("got an interrupt");
  await pty.until("> next");
  await pty.type("\r");
  await pty.until('got "next"');
  await pty.type("\x03");
  await pty.until("got interrupted");
});

Deno.test("a real terminal is given back after SIGTERM and after an exception", async () => {
  for (const how of ["SIGTERM", "boom"]) {
    // A shell around it: the terminal outlives the program.
    const shell = '"$@" 2> errors; stty -a > settings; echo "gone with $?"; cat';
    await using one = await start(60, 12, ["sh", "-c", shell, "sh"]);
    const { pty, folder } = one;
    await pty.type("pid\r");
    await pty.until(/process \d+\./);
    await pty.type("half");
    await pty.until("> half");
    if (how === "boom") await pty.type("\x15boom\r");
    else Deno.kill(Number(/process (\d+)/.exec(pty.screen.text())![1]), "SIGTERM");
    await pty.until("gone with");
    assert.match(await Deno.readTextFile(`${folder}/settings`), / icanon iexten echo /);
    assert.deepEqual([...pty.screen.modes], [25]);
  }
});

Deno.test("a real terminal: Ctrl-Z leaves the line to the shell, and fg brings it back", async () => {
  await using one = await start(60, 20, [
    "bash",
    "--norc",
    "-i",
    "-c",
    'set -m; "$@"; stty -a | grep -o ".icanon"; fg',
    "sh",
  ]);
  const { pty } = one;
  await pty.type("half a");
  await pty.until("> half a");
  await pty.type("\x1a");
  await pty.until(/Stopped[^]* icanon[^]*> half a/);
  await pty.type(" line\r");
  await pty.until('got "half a line"');
  await pty.type("\x04");
  await pty.ended;
  assert.deepEqual([...pty.screen.modes], [25]);
});

Deno.test("standard input that is no terminal gives lines, and no escape sequence is written", async () => {
  await using folder = await project();
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--no-prompt",
      "--allow-read",
      "--allow-write",
      FIXTURE,
      `${folder.path}/history`,
    ],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const writer = child.stdin.getWriter();
  await writer.write(new TextEncoder().encode('one\n"""\na\nb\n"""\nlast'));
  await writer.close();
  const { code, stdout } = await child.output();
  assert.equal(code, 0);
  assert.equal(new TextDecoder().decode(stdout), 'got "one"\ngot "a\\nb"\ngot "last"\ngot end\n');
});
