import assert from "node:assert/strict";
import { History } from "../../../src/repl/input/history.ts";
import { Input } from "../../../src/repl/input/input.ts";
import { Widths } from "../../../src/repl/input/text.ts";
import { terminalSurface } from "../../../src/repl/input/view.ts";
import { until } from "../../support/processes.ts";
import { FakePort } from "./fake_port.ts";

const PROMPT = { prompt: "\x1b[1;36m>\x1b[0m " };

function start(columns = 40, rows = 10): { port: FakePort; input: Input } {
  const port = new FakePort(true, columns, rows);
  return { port, input: new Input({ port }) };
}

Deno.test("a line is edited and sent with Enter", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  await port.shows([">"], [0, 2]);
  port.type("helo", "\x1b[D", "l", "\x05", " you", "\x01", "O");
  await port.shows(["> Ohello you"], [0, 3]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: "Ohello you" });
  assert.deepEqual(port.screen.cursor, { row: 1, column: 0 });
});

Deno.test("several keys in one read are handled one by one", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  port.type("one two\x17\x1b[D\x1b[3~\x7f2\r");
  assert.deepEqual(await read, { type: "line", text: "on2" });
});

Deno.test("Ctrl-C clears a line, which Ctrl-Y brings back, and interrupts an empty one", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  port.type("precious", "\x03");
  await port.shows([">"], [0, 2]);
  port.type("\x19");
  await port.shows(["> precious"]);
  port.type("\x03", "\x03");
  assert.deepEqual(await read, { type: "interrupted" });
});

Deno.test("Ctrl-D deletes forward in a line and ends an empty one", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  port.type("ab", "\x01", "\x04");
  await port.shows(["> b"]);
  port.type("\x04", "\x04");
  assert.deepEqual(await read, { type: "end" });
});

Deno.test("the end of the terminal ends the read", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  port.end();
  assert.deepEqual(await read, { type: "end" });
  assert.deepEqual(await input.read(PROMPT), { type: "end" });
});

Deno.test('a """ block is one message of several lines', async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  port.type('"""', "\r", "first", "\r", "second", "\r");
  await port.shows(['> """', "... first", "... second", "..."], [3, 4]);
  port.type('"""', "\r");
  assert.deepEqual(await read, { type: "line", text: "first\nsecond" });
  assert.deepEqual(port.screen.cursor, { row: 4, column: 0 });
});

Deno.test("Alt-Enter begins a new line, and Up moves in the message before it recalls one", async () => {
  const { port, input } = start();
  const first = input.read(PROMPT);
  port.type("old", "\r");
  await first;
  const read = input.read(PROMPT);
  port.type("ab", "\x1b\r", "cde", "\x1b[A");
  await port.shows(["> old", "> ab", "... cde"], [1, 4]);
  port.type("\x1b[A");
  await port.shows(["> old", "> old"]);
  port.type("\x1b[B");
  await port.shows(["> old", "> ab", "... cde"], [2, 7]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: "ab\ncde" });
});

Deno.test("a bracketed paste is one message, whatever it holds", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  port.type("see: ", "\x1b[200~one\r\ntw", "o\rthr\x1b[31mee\x07\x1b[2", "01~");
  await port.shows(["> see: one", "... two", "... three"]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: "see: one\ntwo\nthree" });
});

Deno.test("lines that come in one read are a paste too, and are sent with the next Enter", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  port.type("one\ntwo\n");
  await port.shows(["> one", "... two"], [1, 7]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: "one\ntwo" });
});

Deno.test("a long paste is shown folded, deleted as one, and sent whole", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  const lines = Array.from({ length: 40 }, (_, n) => `line ${n}`).join("\n");
  port.type(`\x1b[200~${lines}\x1b[201~`);
  await port.shows(["> [pasted 40 lines]"]);
  port.type("\x7f");
  await port.shows([">"]);
  port.type("a ", `\x1b[200~${lines}\x1b[201~`, " b");
  await port.shows(["> a [pasted 40 lines] b"]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: `a ${lines} b` });
});

Deno.test("Ctrl-R finds older and older messages; Enter sends, Escape leaves", async () => {
  const { port, input } = start();
  for (const text of ["fix the parser", "run tests", "fix the lexer"]) {
    const read = input.read(PROMPT);
    port.type(text, "\r");
    await read;
  }
  port.type("\x0c");
  const read = input.read(PROMPT);
  port.type("draft", "\x12", "fix");
  await port.shows(["(search) fix: fix the lexer"], [0, 14]);
  port.type("\x12");
  await port.shows(["(search) fix: fix the parser"]);
  port.type("\x12");
  await port.shows(["(nothing older) fix: fix the parser"]);
  port.type("\x1b");
  await port.shows(["> draft"]);
  port.type("\x12", "tests", "\r");
  assert.deepEqual(await read, { type: "line", text: "run tests" });
  const edited = input.read(PROMPT);
  port.type("\x12", "LEX".toLowerCase(), "\x1b[C", "!", "\r");
  assert.deepEqual(await edited, { type: "line", text: "fix the lexer!" });
});

Deno.test("Tab completes what is common, lists the rest, and goes through it", async () => {
  const { port, input } = start();
  const names = ["/model", "/models", "/mode", "/help"];
  const complete = (line: string) => ({
    from: 0,
    candidates: names.filter((name) => name.startsWith(line)).map((text) => ({ text })),
  });
  const read = input.read({ ...PROMPT, complete });
  port.type("/m\t");
  await port.shows(["> /mode"], [0, 7]);
  port.type("\t");
  await port.shows(["> /mode", "/model   /models  /mode"], [0, 7]);
  port.type("\t\t");
  await port.shows(["> /models", "/model   /models  /mode"], [0, 9]);
  port.type("\x1b[Z");
  await port.shows(["> /model", "/model   /models  /mode"]);
  port.type("\x1b");
  await port.shows(["> /mode"]);
  port.type("\x15/", "\t");
  await port.shows(["> /", "/model   /models  /mode    /help"]);
  port.type("h");
  await port.shows(["> /h", "/help"]);
  port.type("\t");
  await port.shows(["> /help"]);
  port.type("x", "\x15", "/h\t\r");
  assert.deepEqual(await read, { type: "line", text: "/help " });
  assert.deepEqual(port.screen.cursor.column, 0);
});

Deno.test("candidates with descriptions are listed one per row; those beyond the screen are counted", async () => {
  const { port, input } = start(30, 6);
  const candidates = Array.from({ length: 9 }, (_, n) => ({
    text: `s${n}`,
    description: `the ${n}th \x1b[2Jsession, which has a name`,
  }));
  const read = input.read({ ...PROMPT, complete: () => ({ from: 0, candidates }) });
  port.type("\t", "\t");
  await port.shows([
    "> s",
    "s0  the 0th session, which h…",
    "s1  the 1th session, which h…",
    "s2  the 2th session, which h…",
    "s3  the 3th session, which h…",
    "… 5 more",
  ], [0, 3]);
  port.type("\t\t\t\t\t");
  await port.shows([
    "> s4",
    "s4  the 4th session, which h…",
    "s5  the 5th session, which h…",
    "s6  the 6th session, which h…",
    "s7  the 7th session, which h…",
    "… 5 more",
  ], [0, 4]);
  port.type("\x03", "\x03");
  assert.deepEqual(await read, { type: "interrupted" });
});

Deno.test("Ctrl-C cancels a completion that hangs", async () => {
  const { port, input } = start();
  const asked = Promise.withResolvers<void>();
  const complete = () => {
    asked.resolve();
    return new Promise<never>(() => {});
  };
  const read = input.read({ ...PROMPT, complete });
  port.type("x\t");
  await asked.promise;
  port.type("\x03");
  await port.shows([">"]);
  port.type("y", "\r");
  assert.deepEqual(await read, { type: "line", text: "y" });
});

Deno.test("a completion that fails changes nothing", async () => {
  const { port, input } = start();
  const read = input.read({ ...PROMPT, complete: () => Promise.reject(new Error("no")) });
  port.type("a\tb\r");
  assert.deepEqual(await read, { type: "line", text: "ab" });
});

Deno.test("a hidden read shows nothing and leaves nothing behind", async () => {
  await using file = await historyFile();
  const port = new FakePort();
  const input = new Input({ port, history: new History(file.path) });
  const read = input.read({
    prompt: "key: ",
    hidden: true,
    complete: () => ({ from: 0, candidates: [] }),
  });
  port.type("sk-secret", "\x15", "sk-se", "\x12", "\t", "\x1b[A", "cret2", "\r");
  assert.deepEqual(await read, { type: "line", text: "sk-secret2" });
  await port.shows(["key:"]);
  assert.doesNotMatch(port.written, /secret|sk-/);
  const next = input.read(PROMPT);
  port.type("\x19", "\x1b[A", "x", "\r");
  assert.deepEqual(await next, { type: "line", text: "x" });
  assert.equal(await Deno.readTextFile(file.path), '"x"\n');
});

Deno.test("messages with remember: false are not kept", async () => {
  await using file = await historyFile();
  const port = new FakePort();
  const input = new Input({ port, history: new History(file.path) });
  for (const [text, remember] of [["yes", false], ["hello", true]] as const) {
    const read = input.read({ ...PROMPT, remember });
    port.type(text, "\r");
    await read;
  }
  assert.equal(await Deno.readTextFile(file.path), '"hello"\n');
});

Deno.test("wide characters and clusters are moved over and deleted as one", async () => {
  const { port, input } = start(12);
  const read = input.read(PROMPT);
  port.type("日本語", "e\u0301", "👩‍💻", "\x1b[D");
  await port.shows(["> 日本語e\u0301👩‍💻"], [0, 9]);
  port.type("\x7f", "\x7f");
  await port.shows(["> 日本👩‍💻"], [0, 6]);
  port.type("\x1b[C", "\x7f", "語語語");
  await port.shows(["> 日本語語語"], [1, 0]);
  port.type("字");
  await port.shows(["> 日本語語語", "字"], [1, 2]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: "日本語語語字" });
});

Deno.test("characters in UTF-8 may be split between reads", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  const bytes = new TextEncoder().encode("é日👍");
  port.type(...Array.from(bytes, (byte) => new Uint8Array([byte])), "\r");
  assert.deepEqual(await read, { type: "line", text: "é日👍" });
});

Deno.test("a line longer than the terminal wraps, and is drawn anew when the window changes", async () => {
  const { port, input } = start(10, 6);
  port.write("before\r\n");
  const read = input.read(PROMPT);
  port.type("abcdefgh");
  await port.shows(["before", "> abcdefgh"], [2, 0]);
  port.type("ijklmnopqrst");
  await port.shows(["before", "> abcdefgh", "ijklmnopqr", "st"], [3, 2]);
  port.resize(7, 6);
  await port.shows(["before", "> abcde", "fghijkl", "mnopqrs", "t"], [4, 1]);
  port.resize(30, 6);
  await port.shows(["before", "> abcdefghijklmnopqrst"], [1, 22]);
  port.type("\x15");
  await port.shows(["before", ">"]);
  port.type("\r");
  await read;
});

Deno.test("a message higher than the terminal scrolls in it", async () => {
  const { port, input } = start(20, 4);
  const read = input.read(PROMPT);
  for (let n = 1; n <= 6; n++) port.type(`row ${n}`, "\x1b\r");
  await port.shows(["... row 4", "... row 5", "... row 6", "..."], [3, 4]);
  for (let n = 0; n < 6; n++) port.type("\x1b[A");
  await port.shows(["> row 1", "... row 2", "... row 3", "... row 4"], [0, 2]);
  port.type("\r");
  assert.equal((await read as { text: string }).text.split("\n").length, 7);
});

Deno.test("an announcement stands above the line being edited", async () => {
  const { port, input } = start(12, 8);
  const read = input.read(PROMPT);
  port.type("a long line that wraps", "\x1b[D");
  await port.shows(["> a long lin", "e that wraps"], [1, 11]);
  input.announce("ask #3 is\nwaiting");
  await port.shows(["ask #3 is", "waiting", "> a long lin", "e that wraps"], [3, 11]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: "a long line that wraps" });
  input.announce("done");
  await port.shows(["ask #3 is", "waiting", "> a long lin", "e that wraps", "done"], [5, 0]);
});

Deno.test("during a turn Ctrl-C interrupts, and other keys are kept for the next read", async () => {
  const { port, input } = start();
  let interrupts = 0;
  const interrupted = Promise.withResolvers<void>();
  const watch = input.watch({
    interrupt: () => {
      interrupts++;
      interrupted.resolve();
    },
  });
  assert.equal(port.raw, true);
  port.type("ne", "\x03", "xt");
  await interrupted.promise;
  watch.stop();
  const read = input.read(PROMPT);
  await port.shows(["> next"]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: "next" });
  assert.equal(interrupts, 1);
});

Deno.test("keys that were typed before anything read them answer no question", async () => {
  const { port, input } = start();
  port.type("yes\r");
  const asked = input.key({ prompt: "Run it? ", accepts: (key) => key === "y" || key === "n" });
  await port.shows(["Run it?"], [0, 8]);
  port.type("n");
  assert.deepEqual(await asked, { type: "key", key: "n" });
  assert.deepEqual(await input.read(PROMPT), { type: "line", text: "yes" });
  port.type("\x03");
  const left = input.key({ prompt: "Run it? ", accepts: (key) => key === "y" });
  assert.deepEqual(await left, { type: "interrupted" });
  input.close();
});

Deno.test("a fresh read ignores keys typed before it", async () => {
  const { port, input } = start();
  const watch = input.watch({ interrupt() {} });
  port.type("y", "\r");
  await new Promise((resolve) => setTimeout(resolve));
  const asked = input.read({ prompt: "Run it? ", fresh: true });
  await port.shows(["Run it?"], [0, 8]);
  port.type("n", "\r", "kept");
  assert.deepEqual(await asked, { type: "line", text: "n" });
  watch.stop();
  const next = input.read(PROMPT);
  assert.deepEqual(await next, { type: "line", text: "y" });
  const last = input.read(PROMPT);
  await port.shows(["Run it? n", "> y", "> kept"]);
  input.close();
  assert.deepEqual(await last, { type: "end" });
});

/** A message that is written during a turn, on a surface of its own below what is there. */
function write(port: FakePort, input: Input, waiting: string[] = []) {
  const sent: string[] = [];
  const left: string[] = [];
  const widths = new Widths();
  const messages = input.messages({
    prompt: "> ",
    placeholder: () => "(type)",
    waiting: () => waiting,
    takeBack: () => waiting.pop(),
    surface: terminalSurface(port, widths),
    sent: (text) => void sent.push(text),
    interrupted: () => void left.push("interrupted"),
    ended: () => void left.push("ended"),
  });
  return { ...messages, sent, left };
}

Deno.test("a message that is written during a turn is sent by Enter, and its rest is the next line", async () => {
  const { port, input } = start();
  const writing = write(port, input, ["one", "two"]);
  await port.shows(["one", "two", "> (type)"], [2, 2]);
  port.type("ab");
  await port.shows(["one", "two", "> ab"], [2, 4]);
  port.type("\r", "rest");
  await port.shows(["one", "two", "> rest"]);
  assert.deepEqual(writing.sent, ["ab"]);
  port.type("\x1b[A");
  await port.shows(["one", "> two", "... rest"], [1, 5]);
  port.type("\x1b[A");
  await port.shows(["> one", "... two", "... rest"], [0, 5]);
  await writing.close();
  port.screen.write("\x1b[2J\x1b[H");
  const read = input.read(PROMPT);
  await port.shows(["> one", "... two", "... rest"], [0, 5]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: "one\ntwo\nrest" });
});

Deno.test("a question during a turn gets its own keys, and what was typed before it stays in the message", async () => {
  const { port, input } = start();
  const writing = write(port, input);
  port.type("y");
  await port.shows(["> y"]);
  const accepts = (key: string) => "yn".includes(key);
  const asked = input.key({ prompt: "\r\nRun? ", accepts });
  port.type("x", "n");
  assert.deepEqual(await asked, { type: "key", key: "n" });
  port.type("es", "\r");
  await new Promise((resolve) => setTimeout(resolve));
  await writing.close();
  assert.deepEqual(writing.sent, ["yes"]);
});

Deno.test("a question has to wait while a message is typed, and shortly after an answer", async () => {
  const { now } = performance;
  let time = 1000;
  performance.now = () => time;
  try {
    const { port, input } = start();
    assert.equal(input.typing, false);
    const asked = input.key({ prompt: "Run? ", accepts: (key) => key === "y" });
    await port.shows(["Run?"]);
    port.type("y");
    await asked;
    time += 299;
    assert.equal(input.typing, true, "the same key may come again");
    time += 1;
    assert.equal(input.typing, false);
    const writing = write(port, input);
    port.type("a");
    await until(() => input.typing);
    time += 699;
    assert.equal(input.typing, true);
    time += 1;
    assert.equal(input.typing, false);
    port.type("b", "\r");
    await until(() => writing.sent.length === 1);
    assert.equal(input.typing, false);
    await writing.close();
  } finally {
    performance.now = now;
  }
});

Deno.test("Escape, Ctrl-C and Ctrl-D of a message that is written during a turn", async () => {
  const { port, input } = start();
  const writing = write(port, input);
  port.type("kept", "\x1b");
  await until(() => writing.left.length === 1);
  assert.equal(input.typing, false);
  port.type("\x03", "\x15", "\x04");
  await until(() => writing.left.length === 3);
  assert.deepEqual(writing.left, ["interrupted", "interrupted", "ended"]);
  await writing.close();
});

Deno.test("a message that is given back stands before what is written", async () => {
  const { port, input } = start();
  const writing = write(port, input);
  port.type("draft");
  await port.shows(["> draft"]);
  await writing.close();
  input.giveBack("first");
  port.screen.write("\x1b[2J\x1b[H");
  const read = input.read(PROMPT);
  await port.shows(["> first", "... draft"]);
  input.close();
  await read;
});

Deno.test("a line that is typed while a command runs is not sent when the command is interrupted", async () => {
  const { port, input } = start();
  const interrupted = Promise.withResolvers<void>();
  const watch = input.watch({ interrupt: interrupted.resolve });
  port.type("do it", "\r", "\x1b");
  await interrupted.promise;
  watch.stop();
  const read = input.read(PROMPT);
  await port.shows(["> do it"]);
  input.close();
  await read;
});

Deno.test("Escape twice clears a line; the history has it", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  port.type("a line", "\x1b");
  await port.shows(["> a line", "(Esc again clears the line)"], [0, 8]);
  port.type("!");
  await port.shows(["> a line!"]);
  port.type("\x1b\x1b");
  await port.shows([">"]);
  port.type("\x1b[A");
  await port.shows(["> a line!"]);
  port.type("\r");
  assert.deepEqual(await read, { type: "line", text: "a line!" });
});

Deno.test("reads that come together are asked one after the other", async () => {
  const { port, input } = start();
  const reads = [input.read({ prompt: "one? " }), input.read({ prompt: "two? " })];
  port.type("1", "\r", "2", "\r");
  assert.deepEqual(await Promise.all(reads), [
    { type: "line", text: "1" },
    { type: "line", text: "2" },
  ]);
  assert.equal(port.screen.text(), "one? 1\ntwo? 2");
});

Deno.test("a read ends as interrupted with its signal", async () => {
  const { port, input } = start();
  const controller = new AbortController();
  const read = input.read({ ...PROMPT, signal: controller.signal });
  port.type("half");
  await port.shows(["> half"]);
  controller.abort();
  assert.deepEqual(await read, { type: "interrupted" });
  assert.deepEqual(await input.read({ ...PROMPT, signal: controller.signal }), {
    type: "interrupted",
  });
});

Deno.test("the terminal is given back once, on close and when a port fails", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  await port.shows([">"]);
  assert.equal(port.raw, true);
  assert.ok(port.screen.modes.has(2004));
  input.close();
  assert.deepEqual(await read, { type: "end" });
  assert.equal(port.raw, false);
  assert.ok(!port.screen.modes.has(2004) && port.screen.modes.has(25));
  const written = port.written;
  input.restore();
  input.close();
  assert.equal(port.written, written);

  const failing = new FakePort();
  const other = new Input({ port: failing });
  const broken = other.read(PROMPT);
  await failing.shows([">"]);
  const write = failing.write.bind(failing);
  failing.write = (text) => {
    if (text.includes("x")) throw new Error("gone");
    write(text);
  };
  failing.type("x");
  await assert.rejects(broken, /gone/);
  assert.equal(failing.raw, false);
  assert.ok(!failing.screen.modes.has(2004));
});

Deno.test("Ctrl-Z gives the terminal back and takes it again when the process goes on", async () => {
  const { port, input } = start();
  const read = input.read(PROMPT);
  port.type("half a");
  await port.shows(["> half a"]);
  port.type("\x1a");
  await port.suspended.promise;
  assert.equal(port.raw, false);
  assert.ok(!port.screen.modes.has(2004));
  port.write("$ fg\r\n");
  port.continue();
  await port.shows(["> half a", "$ fg", "> half a"], [2, 8]);
  assert.equal(port.raw, true);
  port.raw = false; // stopped from outside
  port.write("\r\n$ fg\r\n");
  port.continue();
  await port.shows(["> half a", "$ fg", "> half a", "$ fg", "> half a"], [4, 8]);
  assert.equal(port.raw, true);
  port.type(" line", "\r");
  assert.deepEqual(await read, { type: "line", text: "half a line" });
});

Deno.test('without a terminal lines and """ blocks are read, and nothing is written', async () => {
  const port = new FakePort(false);
  const input = new Input({ port });
  const watch = input.watch({ interrupt() {} });
  port.type('one\r\n"""\nin', 'side\n"""\nlast');
  assert.deepEqual(await input.read(PROMPT), { type: "line", text: "one" });
  assert.deepEqual(await input.read(PROMPT), { type: "line", text: "inside" });
  assert.equal(port.written, "");
  input.announce("\x1b[31mred\x1b[0m");
  assert.equal(port.written, "red\n");
  port.end();
  assert.deepEqual(await input.read(PROMPT), { type: "line", text: "last" });
  assert.deepEqual(await input.read(PROMPT), { type: "end" });
  watch.stop();
  input.close();
  assert.equal(port.raw, false);
  assert.equal(port.written, "red\n");
});

Deno.test("without a terminal a read ends with its signal, and no line is lost by that", async () => {
  const port = new FakePort(false);
  const input = new Input({ port });
  const controller = new AbortController();
  const read = input.read({ ...PROMPT, signal: controller.signal });
  controller.abort();
  assert.deepEqual(await read, { type: "interrupted" });
  port.type("later\n");
  assert.deepEqual(await input.read(PROMPT), { type: "line", text: "later" });
  const open = input.read(PROMPT);
  input.close();
  assert.deepEqual(await open, { type: "end" });
});

async function historyFile(): Promise<{ path: string } & AsyncDisposable> {
  const folder = await Deno.makeTempDir();
  return {
    path: `${folder}/history`,
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}
