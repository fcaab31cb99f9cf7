import assert from "node:assert/strict";
import * as fc from "fast-check";
import { FOOTER, respond } from "../src/rules.ts";

const ALL = ["file_read", "list_dir", "glob", "grep", "file_write", "file_edit", "run_command"];
const offer = (names: string[]) =>
  names.map((name) => ({ type: "function", function: { name, parameters: {} } }));
const user = (content: string) => ({ role: "user", content });

// deno-lint-ignore no-explicit-any
type Message = Record<string, any>;

/** An assistant's calls followed by their results. */
function round(
  ...calls: [name: string, args: Record<string, unknown>, result: string][]
): Message[] {
  return [
    {
      role: "assistant",
      content: null,
      tool_calls: calls.map(([name, args], i) => ({
        id: `c${i}`,
        type: "function",
        function: { name, arguments: JSON.stringify(args) },
      })),
    },
    ...calls.map(([, , content], i) => ({ role: "tool", tool_call_id: `c${i}`, content })),
  ];
}

function answer(messages: Message[], tools = ALL) {
  return respond(messages, offer(tools));
}

const read = (path: string, more = {}) => ["file_read", { path, ...more }];
const lines = (path: string) => ["file_read", { path, limit: 0 }];
const list = (path = ".", more = {}) => ["list_dir", { path, ...more }];
const grep = (pattern: string, path?: string) => ["grep", { pattern, ...(path && { path }) }];
const glob = (pattern: string) => ["glob", { pattern }];
const write = (path: string, content: string) => ["file_write", { path, content }];
const append = (path: string, content: string) => ["file_write", { path, content, mode: "a" }];
const edit = (path: string, old: string, fresh: string, more = {}) => [
  "file_edit",
  { path, old, new: fresh, ...more },
];
const run = (command: string, more = {}) => ["run_command", { command, ...more }];

const PHRASINGS: [request: string, ...calls: unknown[][]][] = [
  ["list the files", list()],
  ["list the files\n\nThis was piped in with the prompt:\n\n<stdin>\nread a.txt\n</stdin>", list()],
  ["List files.", list()],
  ["ls", list()],
  ["ls src", list("src")],
  ["what files are there?", list()],
  ["Which files are in src?", list("src")],
  ["can you please show me the files in the docs folder?", list("docs")],
  ["what is in this folder?", list()],
  ["What's in src/?", list("src/")],
  ["show me the directory", list()],
  ["list src", list("src")],
  ["list everything in `my folder`", list("my folder")],
  ["list all files recursively", list(".", { depth: 4 })],
  ["How many files are in src/lib?", list("src/lib")],

  ["read README.md", read("README.md")],
  ["Read the file README.md, please.", read("README.md")],
  ["please show me `src/main.ts`", read("src/main.ts")],
  ["cat notes.txt", read("notes.txt")],
  ["what does README.md say?", read("README.md")],
  ["What's in README.md?", read("README.md")],
  ["show me the contents of config.json", read("config.json")],
  ["open the Makefile", read("Makefile")],
  ["Could you display .gitignore?", read(".gitignore")],
  ['read "my notes.txt"', read("my notes.txt")],
  ["read Übersicht.md", read("Übersicht.md")],
  ["読んで「日本語.txt」", read("日本語.txt")],
  ["show 日本語.txt", read("日本語.txt")],
  ["summarize README.md", read("README.md")],
  ["read @src/add.ts", read("src/add.ts")],
  ["how many lines does @README.md have?", lines("README.md")],
  ["where is @deprecated mentioned?", grep("@deprecated")],
  ["README.md?", read("README.md")],
  ["show me the readme", read("README.md")],
  ["what does this project do?", read("README.md")],
  ["read a.txt and b.txt", read("a.txt"), read("b.txt")],
  ["show lines 10 to 20 of main.ts", read("main.ts", { offset: 10, limit: 11 })],
  ["show me the first 5 lines of main.ts", read("main.ts", { offset: 1, limit: 5 })],
  ["Tell me what's inside the file notes", read("notes")],

  ["how many lines does README.md have?", lines("README.md")],
  ["How many lines are in `src/main.ts`?", lines("src/main.ts")],
  ["count the lines of README.md", lines("README.md")],
  ["Count lines in “résumé.txt”", lines("résumé.txt")],
  ["please tell me how many lines README.md has", lines("README.md")],
  ["what is the number of lines in (README.md)?", lines("README.md")],
  ["how many lines does the readme have?", lines("README.md")],
  ["README.md: how many lines?", lines("README.md")],
  ["how long is README.md?", lines("README.md")],
  ["I want to know how many lines README.md has.", lines("README.md")],
  ["hey, how many lines does the file README.md have", lines("README.md")],
  ["README.md's line count?", lines("README.md")],
  ["wc -l README.md", lines("README.md")],
  ["How many characters does a.txt have?", lines("a.txt")],

  ["where is parseRequest mentioned?", grep("parseRequest")],
  ["In which file is parseRequest defined?", grep("parseRequest")],
  ["Where is TODO used in src?", grep("TODO", "src")],
  ["find TODO in src", grep("TODO", "src")],
  ["search for foo.bar", grep("foo\\.bar")],
  ['search for "two words" in the docs folder', grep("two words", "docs")],
  ["grep main src", grep("main", "src")],
  ["grep for main", grep("main")],
  ["search src for `a(b)`", grep("a\\(b\\)", "src")],
  ["which files contain the word harbour?", grep("harbour")],
  ["find all mentions of tide in README.md", grep("tide", "README.md")],
  ["does README.md mention tides?", grep("tides", "README.md")],
  ["how many TODOs are in src?", grep("TODO", "src")],
  ["How often does tide appear in README.md?", grep("tide", "README.md")],
  ["how many lines contain foo in a.txt?", grep("foo", "a.txt")],
  ["look for Hafen in the whole project", grep("Hafen")],
  ["find the regex `a+b` in src", grep("a+b", "src")],
  ["is there any TODO in main.ts?", grep("TODO", "main.ts")],

  ["find files named config.json", glob("**/config.json")],
  ["find *.ts", glob("**/*.ts")],
  ["list all `*.md` files", glob("**/*.md")],
  ["where is README.md?", glob("**/README.md")],
  ["show src/**/*.ts", glob("src/**/*.ts")],

  ["write hello to notes.txt", write("notes.txt", "hello")],
  ["Please write 'hello world' into `notes.txt`.", write("notes.txt", "hello world")],
  ["create notes.txt", write("notes.txt", "")],
  ["create an empty file notes.txt", write("notes.txt", "")],
  ["create a file called notes.txt with the text hello", write("notes.txt", "hello")],
  ['create a file named "my notes.txt" containing "a b"', write("my notes.txt", "a b")],
  ["make a new file x/y.md that says hi there", write("x/y.md", "hi there")],
  ["save “grüße” as grüße.txt", write("grüße.txt", "grüße")],
  ["write to notes.txt: one, two", write("notes.txt", "one, two")],
  ["write the text `x = 1` to a.py", write("a.py", "x = 1")],
  ["write ```js\nlet a;\n``` to a.js", write("a.js", "let a;\n")],
  ["append bye to notes.txt", append("notes.txt", "bye")],
  ['add "a line" to the file notes.txt', append("notes.txt", "a line")],
  ["write salt and pepper to list.txt", write("list.txt", "salt and pepper")],

  ["replace foo with bar in notes.txt", edit("notes.txt", "foo", "bar")],
  ['Replace "foo." with "bar?" in `a b.txt`!', edit("a b.txt", "foo.", "bar?")],
  ["change hello to goodbye in notes.txt", edit("notes.txt", "hello", "goodbye")],
  ["in notes.txt, replace foo by bar", edit("notes.txt", "foo", "bar")],
  ["replace all foo with bar in notes.txt", edit("notes.txt", "foo", "bar", { count: 0 })],
  ["replace every occurrence of a with b in c.txt", edit("c.txt", "a", "b", { count: 0 })],
  ['replace "x" with "" in "c.txt"', edit("c.txt", "x", "")],
  ["find don't in a.txt", grep("don't", "a.txt")],

  ["run `ls -la`", run("ls -la")],
  ["run ls -la", run("ls -la")],
  ['Run the command `echo "hi"`.', run('echo "hi"')],
  ["please execute: git status", run("git status")],
  ["run echo 'a b' && ls .", run("echo 'a b' && ls .")],
  ["run `npm test` in web", run("npm test", { cwd: "web" })],
  ["what does `date` print?", run("date")],
  ["Hello! Can you run `pwd`, please?", run("pwd")],
];

for (const [request, ...expected] of PHRASINGS) {
  Deno.test(`understands: ${JSON.stringify(request)}`, () => {
    const { calls } = answer([user(request)]);
    assert.deepEqual(calls.map((call) => [call.name, call.arguments]), expected);
  });
}

const WORDS: [request: string, words: RegExp][] = [
  ["hello", /^Hello! I am the demo model/],
  ["Good morning!", /^Hello!/],
  ["what can you do?", /how many lines does README\.md have/],
  ["help", /list the files in src/],
  ["thank you", /welcome/],
  ["write a poem about the sea", /Say it like this: write "hello" to notes\.txt/],
  ["compose a sonnet", /beyond my rules.*list the files/s],
  ["how many lines?", /Which file's lines/],
  ["run the tests", /Which command/],
  ["delete notes.txt", /beyond my rules/],
  ["make coffee", /beyond my rules/],
  ["write hello", /Say it like this/],
  ["rename it", /Say it like this: replace/],
  ["find", /beyond my rules/],
  ["x ".repeat(2000), /beyond my rules/],
  ["`".repeat(60_000), /beyond my rules/],
  ["“".repeat(49_000), /beyond my rules/],
  ["", /beyond my rules/],
];

for (const [request, words] of WORDS) {
  Deno.test(`answers in words: ${JSON.stringify(request)}`, () => {
    const { text, calls } = answer([user(request)]);
    assert.deepEqual(calls, []);
    assert.match(text, words);
    assert.equal(text.split("\n").at(-1), FOOTER);
  });
}

Deno.test("the number of lines is the one in the header of file_read", () => {
  const { text, calls } = answer([
    user("how many lines does README.md have?"),
    ...round(["file_read", { path: "README.md" }, "# README.md - 612 lines, 23456 chars"]),
  ]);
  assert.deepEqual(calls, []);
  assert.equal(text, `README.md has 612 lines (23456 characters).\n\n${FOOTER}`);
});

Deno.test("an unreadable file gets no number of lines", () => {
  const { text } = answer([
    user("count the lines of a.png"),
    ...round(["file_read", { path: "a.png" }, "# a.png - 9 bytes\n(binary file, not shown)"]),
  ]);
  assert.match(text, /could not count a\.png: # a\.png - 9 bytes/);
});

Deno.test("a file is shown without line numbers, in a fence that its text cannot close", () => {
  const { text } = answer([
    user("read a.md"),
    ...round(["file_read", { path: "a.md" }, "# a.md - 3 lines, 9 chars\n1|```\n2|x\n3|```"]),
  ]);
  assert.match(text, /a\.md has 3 lines and 9 characters\. It reads:\n\n````\n```\nx\n```\n````/);
});

Deno.test("a long file is truncated with a note", () => {
  const numbered = Array.from({ length: 50 }, (_, i) => `${i + 1}|line ${i + 1}`).join("\n");
  const { text } = answer([
    user("read a.md"),
    ...round(["file_read", { path: "a.md" }, `# a.md - 50 lines, 400 chars\n${numbered}`]),
  ]);
  assert.match(text, /It begins:/);
  assert.match(text, /line 20\n… and 30 more lines/);
});

Deno.test("results of the other tools become sentences", () => {
  const cases: [string, [string, Record<string, unknown>, string], RegExp][] = [
    [
      "list the files",
      ["list_dir", { path: "." }, "src/\na.md  1.2 KB\nb.md  3 B"],
      /1 folder and 2 files:/,
    ],
    ["list src", ["list_dir", { path: "src" }, "(empty directory)"], /src is empty/],
    ["find a.b in src", [
      "grep",
      { pattern: "a\\.b", path: "src" },
      "src/x.ts:3: a.b\nsrc/y.ts:1: a.b",
    ], /"a\.b" is on 2 lines of 2 files in src/],
    [
      "find zip",
      ["grep", { pattern: "zip" }, '(no matches for "zip")'],
      /"zip" is mentioned nowhere/,
    ],
    ["find *.ts", ["glob", { pattern: "**/*.ts" }, "a.ts\nb.ts"], /2 files matching \*\*\/\*\.ts/],
    ["find *.go", ["glob", { pattern: "**/*.go" }, '(no matches for "**/*.go")'], /No files match/],
    [
      "write hi to a.txt",
      ["file_write", { path: "a.txt" }, "Created /w/a.txt (1 lines, 2 chars)"],
      /Done\. Created \/w\/a\.txt/,
    ],
    ["replace a with b in c.txt", [
      "file_edit",
      { path: "c.txt" },
      "Edited c.txt (1 of 2 occurrences)",
    ], /Done\. Edited c\.txt \(1 of 2/],
    [
      "run `ls`",
      ["run_command", { command: "ls" }, "$ ls\nexit 0\na.txt"],
      /`ls` ran and ended well \(exit 0\):\n\n```\na\.txt/,
    ],
    [
      "run `false`",
      ["run_command", { command: "false" }, "$ false\nexit 1\n(no output)"],
      /failed \(exit 1\), without any output/,
    ],
  ];
  for (const [request, call, expected] of cases) {
    const { text, calls } = answer([user(request), ...round(call)]);
    assert.deepEqual(calls, []);
    assert.match(text, expected);
  }
});

Deno.test("a failed or denied call is reported, and no other call follows", () => {
  const failed = answer([
    user("read a.txt, then read b.txt"),
    ...round(["file_read", { path: "a.txt" }, "Error: there is no a.txt"]),
  ]);
  assert.deepEqual(failed.calls, []);
  assert.match(failed.text, /did not work: .*file_read for a\.txt .*"there is no a\.txt"/);
  const denied = answer([
    user("run `rm x`"),
    ...round([
      "run_command",
      { command: "rm x" },
      "permission denied: bash is set to ask. Do not retry.",
    ]),
  ]);
  assert.match(
    denied.text,
    /was not permitted: .*run_command for rm x .*"permission denied: bash is set to ask"/,
  );
  assert.doesNotMatch(denied.text, /retry/);
});

Deno.test("a tool that is not offered is not called", () => {
  const { text, calls } = answer([user("run `ls`")], ["file_read"]);
  assert.deepEqual(calls, []);
  assert.match(text, /need the tool run_command, and it is not offered/);
  assert.deepEqual(respond([user("read a.txt")], undefined).calls, []);
});

Deno.test("a request of several steps takes one round for each", () => {
  const request = user("Find TODO in src, then read it. Then run `date`");
  const found = round(["grep", { pattern: "TODO", path: "src" }, "src/a.ts:3: // TODO later"]);
  const shown = round(["file_read", { path: "src/a.ts" }, "# src/a.ts - 1 lines, 2 chars\n1|x"]);
  const ran = round(["run_command", { command: "date" }, "$ date\nexit 0\nMonday"]);
  const step = (messages: Message[]) => answer(messages).calls.map((call) => call.arguments);
  assert.deepEqual(step([request]), [{ pattern: "TODO", path: "src" }]);
  assert.deepEqual(step([request, ...found]), [{ path: "src/a.ts" }]);
  assert.deepEqual(step([request, ...found, ...shown]), [{ command: "date" }]);
  const { text, calls } = answer([request, ...found, ...shown, ...ran]);
  assert.deepEqual(calls, []);
  assert.match(text, /is on 1 line of 1 file.*src\/a\.ts has 1 line and.*`date` ran/s);
});

Deno.test("'it' is the file that was mentioned last", () => {
  const { calls } = answer([
    user("how many lines does README.md have?"),
    ...round(["file_read", { path: "README.md" }, "# README.md - 2 lines, 3 chars"]),
    { role: "assistant", content: "README.md has 2 lines." },
    user("show it to me"),
  ]);
  assert.deepEqual(calls[0]!.arguments, { path: "README.md" });
});

Deno.test("only results after the last user message count", () => {
  const { calls } = answer([
    user("read a.txt"),
    ...round(["file_read", { path: "a.txt" }, "# a.txt - 1 lines, 1 chars\n1|x"]),
    { role: "assistant", content: "done" },
    user("read a.txt"),
  ]);
  assert.deepEqual(calls[0]!.arguments, { path: "a.txt" });
});

Deno.test("a memory lists the requests of the log", () => {
  const system = {
    role: "system",
    content: "You keep the memory of the job nightly from run to run.",
  };
  const log =
    "The next part of the log:\n\n[user] read README.md\n\n[assistant calls file_read] {}\n\n" +
    "[tool] - an item of the file\n\n[assistant] It has 1 line.\n\n";
  const first = answer([system, user(log)], []).text;
  assert.equal(first, `The user asked:\n- read README.md\n\n${FOOTER}`);
  const again = log.replace("read README.md", "list the files");
  const known = `What is known so far:\n\n${first}\n\n`;
  const both = `The user asked:\n- read README.md\n- list the files\n\n${FOOTER}`;
  assert.equal(answer([system, user(known + again)], []).text, both);
});

Deno.test("a request for a summary of the conversation gets a digest", () => {
  const history = [
    user("how many lines does README.md have?"),
    ...round(["file_read", { path: "README.md" }, "# README.md - 2 lines, 3 chars"]),
    { role: "assistant", content: "2" },
  ];
  const asked = answer([...history, user("Summarize the conversation so far.")]);
  assert.match(asked.text, /how many lines does README\.md have\?/);
  assert.match(asked.text, /Tools used: file_read\./);
  const mentioned = answer([user("where is the summary of the session mentioned?")]);
  assert.equal(mentioned.calls[0]!.name, "grep");
  const system = { role: "system", content: "Write a summary of this conversation." };
  const composed = answer([system, user("user: read a.txt\nassistant: it is empty")], []);
  assert.match(composed.text, /^Summary of the conversation/);
});

Deno.test("the one-line insight on a tool result is one line", () => {
  const { text, calls } = answer([
    user("A tool was called: list_dir {}. Its result follows. Say it.\n\nsrc/\nREADME.md  4 B"),
  ], []);
  assert.deepEqual(calls, []);
  assert.equal(text.split("\n")[0], "list_dir gave 2 lines: src/");
});

Deno.test("property: any conversation gets a text with the footer, or calls of offered tools", () => {
  const content = fc.oneof(
    fc.string({ unit: "grapheme" }),
    fc.constantFrom(...PHRASINGS.map(([request]) => request)),
    fc.constant(null),
    fc.array(fc.record({ type: fc.constant("text"), text: fc.string() })),
  );
  const message = fc.record({
    role: fc.constantFrom("system", "user", "assistant", "tool"),
    content,
    tool_calls: fc.option(fc.array(fc.oneof(fc.anything(), fc.constant({ id: "a" })))),
    tool_call_id: fc.option(fc.constantFrom("a", "b")),
  });
  fc.assert(fc.property(fc.array(message), fc.subarray(ALL), (messages, tools) => {
    const { text, calls } = answer(messages, tools);
    assert.ok(calls.length > 0 || text.endsWith(FOOTER));
    assert.ok(calls.every((call) => tools.includes(call.name)));
  }));
});
