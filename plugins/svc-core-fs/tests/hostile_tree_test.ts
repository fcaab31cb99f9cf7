import assert from "node:assert/strict";
import { join } from "node:path";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { globWithin } from "../src/glob_tool.ts";
import { grepWithin } from "../src/grep.ts";
import * as plugin from "../src/plugin.ts";
import { searchPattern } from "../src/search_pattern.ts";
import { Pace } from "../src/walk.ts";

const tools = pluginTools(plugin);

/** Several batches of files, with one match in `m/match.txt`. */
function manyFiles(root: string): void {
  for (let i = 0; i < 30; i++) {
    Deno.mkdirSync(`${root}/d${i}`);
    for (let j = 0; j < 50; j++) Deno.writeTextFileSync(`${root}/d${i}/${j}.txt`, `line ${j}\n`);
  }
  Deno.mkdirSync(`${root}/m`);
  Deno.writeTextFileSync(`${root}/m/match.txt`, "\nA1 needle\r\n");
}

Deno.test("many files are searched with all kinds of patterns", async () => {
  await using work = await project();
  manyFiles(work.path);
  Deno.writeTextFileSync(`${work.path}/m/binary`, "needle\0");
  Deno.writeTextFileSync(`${work.path}/m/large.txt`, "filler\n".repeat(60_000) + "needle\n");
  const context = toolContext({ worktree: work.path });
  const match = "m/match.txt:2: A1 needle";
  const table: [string, string][] = [
    ["needle", `m/large.txt:60001: needle\n${match}`],
    ["needle$", `m/large.txt:60001: needle\n${match}`],
    ["(?i)NEEDL[E]", `m/large.txt:60001: needle\n${match}`],
    ["^A1 needle$", match],
    ["A\\d \\w+e$", match],
    ["(?<=A)1", match],
    ["(A|B)[0-9] (n|m)e+dle", match],
    ["(\\w\\d|\\d\\w)+ [a-z]{6}\\b", match],
    ["(?<!\\w)A1 (n)e\\w*", match],
    ["(\\w\\d){9}", '(no matches for "(\\w\\d){9}")'],
    ["[xy]{3}", '(no matches for "[xy]{3}")'],
  ];
  for (const [pattern, expected] of table) {
    assert.equal((await tools.call("grep", { pattern }, context)).output, expected, pattern);
  }
  const first = (await tools.call("grep", { pattern: "line" }, context)).output.split("\n");
  assert.equal(first.length, 101);
  assert.equal(first[0], "d0/0.txt:1: line 0");
  assert.equal(first[1], "d0/1.txt:1: line 1");
  assert.equal(first[99], "d1/9.txt:1: line 9");
});

Deno.test("the text that every match contains is found in a pattern", () => {
  const table: [string, string][] = [
    ["import .* from", "import "],
    ["(?i)a\\.b\\(\\w*", "a\\.b\\("],
    ["fo+ba[r]", "ba"],
    ["x?yz", "yz"],
    ["(ab)+cd", "cd"],
    ["a\\dbc", "bc"],
    ["abc{0,2}", "ab"],
    ["foo(bar|baz)quux", "quux"],
    ["^a|b$", ""],
    ["\\w+", ""],
    ["[abc]\\x61", ""],
  ];
  for (const [pattern, required] of table) {
    assert.equal(searchPattern(pattern).required.source, required || "(?:)", pattern);
  }
});

Deno.test("a cancelled search ends during the search", async () => {
  await using work = await project();
  manyFiles(work.path);
  const controller = new AbortController();
  const context = toolContext({ worktree: work.path, signal: controller.signal });
  for (const name of ["grep", "glob"]) {
    const calling = tools.call(name, { pattern: "needle" }, context);
    controller.abort();
    assert.equal((await calling).output, "Error: cancelled");
  }
});

Deno.test("timers and sockets are served during a search", async () => {
  const pace = new Pace(new AbortController().signal);
  let ran = 0;
  const timer = setInterval(() => ran++, 0);
  for (let i = 0; i < 20; i++) {
    while (!pace.due);
    await pace.rest();
  }
  clearInterval(timer);
  assert.ok(ran > 5, `${ran} of 20`);
  const numbers = Array.from({ length: 10_001 }, (_, i) => (i * 7919) % 10_001);
  const sorted = await pace.sort(numbers, (a, b) => a < b);
  assert.deepEqual(sorted, numbers.toSorted((a, b) => a - b));
});

Deno.test("pipes, devices, link loops and odd names neither stop a search nor forge results", async () => {
  await using work = await project({ "a.txt": "x", "b\nfake.txt:1: x": "x", "c\x1b[2J": "x" });
  await new Deno.Command("mkfifo", { args: ["pipe"], cwd: work.path }).output();
  await Deno.symlink("loop", `${work.path}/loop`);
  await Deno.symlink(".", `${work.path}/self`);
  await Deno.symlink("/dev/zero", `${work.path}/zero`);
  const context = toolContext({ worktree: work.path });
  const { output } = await tools.call("grep", { pattern: "x" }, context);
  assert.equal(output, "a.txt:1: x\nb\\nfake.txt:1: x:1: x\nc\\u001b[2J:1: x");
  const listed = (await tools.call("glob", { pattern: "*" }, context)).output;
  assert.equal(listed, "a.txt\nb\\nfake.txt:1: x\nc\\u001b[2J\nloop\npipe\nself\nzero");
});

Deno.test("folders that are nested deeper than the longest path are skipped", async () => {
  await using work = await project({ "a.txt": "x" });
  const name = "d".repeat(250);
  // The shell goes down a folder at a time, since the whole path would be too long.
  const script = `for i in $(seq 20); do mkdir ${name} && cd ${name} && echo x > f; done`;
  await new Deno.Command("sh", { args: ["-c", script], cwd: work.path }).output();
  const context = toolContext({ worktree: work.path });
  const { output } = await tools.call("grep", { pattern: "x" }, context);
  const lines = output.split("\n");
  assert.equal(lines[0], "a.txt:1: x");
  assert.ok(lines.length > 10 && lines.length < 20, String(lines.length));
  await new Deno.Command("rm", { args: ["-rf", name], cwd: work.path }).output();
});

Deno.test("a folder that is swapped for a link during a search reveals no content", async () => {
  await using work = await project();
  await using other = await project({ "match.txt": "A1 needle secret" });
  manyFiles(work.path);
  const paths = toolContext({ worktree: work.path }).paths;
  const swap = () => {
    Deno.renameSync(`${work.path}/m`, `${work.path}/.old`);
    Deno.symlinkSync(other.path, `${work.path}/m`);
  };
  const back = () => {
    Deno.removeSync(`${work.path}/m`);
    Deno.renameSync(`${work.path}/.old`, `${work.path}/m`);
  };
  // Between listing and reading, by hand: the search opens a file only when it may hold a match.
  const context = toolContext({ worktree: work.path });
  const open = (path: string, options: Deno.OpenOptions) => {
    swap();
    return paths.open(path, options).finally(back);
  };
  const { output } = await tools.call("grep", { pattern: "needle" }, {
    ...context,
    paths: { ...context.paths, open },
  });
  assert.equal(output, '(no matches for "needle")');
});

Deno.test("a folder that is swapped for a link during a listing reveals no names", async () => {
  await using work = await project({ "m/own.txt": "", "n/own.txt": "" });
  await using other = await project({ "secret.txt": "" });
  const { readDirSync } = Deno;
  Deno.readDirSync = (path) => {
    if (path !== join(work.path, "m/")) return readDirSync(path);
    Deno.renameSync(`${work.path}/m`, `${work.path}/.old`);
    Deno.symlinkSync(other.path, `${work.path}/m`);
    return readDirSync(path);
  };
  try {
    const context = toolContext({ worktree: work.path });
    const { output } = await tools.call("glob", { pattern: "*/*" }, context);
    assert.equal(output, "n/own.txt");
  } finally {
    Deno.readDirSync = readDirSync;
  }
});

Deno.test("only files that may match are opened with all checks", async () => {
  await using work = await project();
  manyFiles(work.path);
  const context = toolContext({ worktree: work.path });
  const opened: string[] = [];
  const open = (path: string, options: Deno.OpenOptions) => {
    opened.push(path);
    return context.paths.open(path, options);
  };
  const paths = { ...context.paths, open };
  await tools.call("grep", { pattern: "needle" }, { ...context, paths });
  assert.deepEqual(opened, [join(work.path, "m/match.txt")]);
});

Deno.test("a search stops at the limit of entries, with a note", async () => {
  await using work = await project();
  manyFiles(work.path);
  const context = toolContext({ worktree: work.path });
  const sentence = "... (stopped after 1,000 entries; search a smaller folder)";
  const grepped = await grepWithin({ pattern: "nowhere" }, context, {
    entries: 1000,
    ms: 60_000,
  });
  assert.equal(grepped, `(no matches for "nowhere")\n${sentence}`);
  const globbed = (await globWithin({ pattern: "**/*" }, context, 1000)).split("\n");
  assert.equal(globbed.length, 202);
  assert.equal(globbed[201], sentence);
  // The limit counts what is read of folders, not only what matches.
  const none = await globWithin({ pattern: "**/*.none" }, context, 1000);
  assert.equal(none, `(no matches for "**/*.none")\n${sentence}`);
});
