import assert from "node:assert/strict";
import fc from "fast-check";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { grepWithin } from "../src/grep.ts";
import * as plugin from "../src/plugin.ts";
import { searchPattern } from "../src/search_pattern.ts";
import { runs } from "../../../tests/support/random.ts";

const tools = pluginTools(plugin);

function searcher(worktree: string) {
  const context = toolContext({ worktree });
  return (args: Record<string, unknown>) => tools.call("grep", args, context);
}

Deno.test("grep returns matching lines with file and line number [4.8]", async () => {
  await using work = await project({
    "b.ts": "const one = 1;\r\nlet two = 2;\nconst three = 3;",
    "a/c.ts": "\nconst four\n",
  });
  const expected = "a/c.ts:2: const four\nb.ts:1: const one = 1;\nb.ts:3: const three = 3;";
  assert.equal((await searcher(work.path)({ pattern: "^const\\b" })).output, expected);
  assert.equal((await searcher(work.path)({ query: "(?i)CONST" })).output, expected);
  assert.equal(tools.registry.find("find")?.name, "grep");
  assert.equal(tools.registry.find("grep")?.permission, "read");
});

Deno.test("path and glob narrow the search of grep [4.8]", async () => {
  await using work = await project({
    "src/a.ts": "x",
    "src/a.js": "x",
    "src/deep/a.ts": "x",
    "lib/a.ts": "x",
  });
  const grep = async (args: Record<string, unknown>) =>
    (await searcher(work.path)({ pattern: "x", ...args })).output;
  assert.equal(await grep({ path: "src", glob: "*.ts" }), "src/a.ts:1: x\nsrc/deep/a.ts:1: x");
  assert.equal(await grep({ glob: "src/*.{ts,js}" }), "src/a.js:1: x\nsrc/a.ts:1: x");
  assert.equal(await grep({ path: "src/a.js" }), "src/a.js:1: x");
  assert.match(await grep({ path: "scr" }), /^Error: .*Did you mean src\?$/);
});

Deno.test("hidden, binary and linked files, .git and node_modules are skipped unless named", async () => {
  await using work = await project({
    "a.txt": "x",
    ".env": "x",
    ".git/config": "x",
    "node_modules/m/a.js": "x",
    "raw": "x\0",
  });
  await using other = await project({ "secret.txt": "x" });
  await Deno.symlink(`${other.path}/secret.txt`, `${work.path}/link.txt`);
  await Deno.symlink(other.path, `${work.path}/out`);
  const grep = async (args: Record<string, unknown>) =>
    (await searcher(work.path)({ pattern: "x", ...args })).output;
  assert.equal(await grep({}), "a.txt:1: x");
  assert.equal(await grep({ glob: ".env" }), ".env:1: x");
  assert.equal(await grep({ path: "node_modules" }), "node_modules/m/a.js:1: x");
  assert.equal(await grep({ path: "raw" }), "(binary file raw, not searched)");
  assert.match(await grep({ path: "link.txt" }), /^Error: .*outside the worktree/);
});

Deno.test("searches of many files at once find all matches in the order of the paths, and end when they are told", async () => {
  const names = Array.from({ length: 2000 }, (_, i) => `${i % 40}/${i}.txt`);
  const texts = names.map((_, i) => i % 100 === 7 ? "a\nneedle\n" : "a\n");
  await using work = await project(Object.fromEntries(names.map((name, i) => [name, texts[i]!])));
  const expected = names.filter((_, i) => i % 100 === 7).sort((a, b) => a < b ? -1 : 1)
    .map((name) => `${name}:2: needle`).join("\n");
  const search = searcher(work.path);
  for (const { output } of await Promise.all([1, 2, 3].map(() => search({ pattern: "needle" })))) {
    assert.equal(output, expected);
  }
  const ended = new AbortController();
  const context = toolContext({ worktree: work.path, signal: ended.signal });
  const running = tools.call("grep", { pattern: "needle" }, context);
  ended.abort();
  assert.equal((await running).output, "Error: cancelled");
});

Deno.test("no match of grep is a soft note, and 100 matches at most are shown [7.3]", async () => {
  await using work = await project({ "a.txt": "x\n".repeat(150), "b.txt": "x\n".repeat(100) });
  const none = await searcher(work.path)({ pattern: "y" });
  assert.deepEqual([none.output, none.note], ['(no matches for "y")', "no matches"]);
  const lines = (await searcher(work.path)({ pattern: "x" })).output.split("\n");
  assert.equal(lines.length, 101);
  assert.equal(lines[99], "a.txt:100: x");
  assert.equal(lines[100], "... (showing the first 100 matches)");
  const exact = await searcher(work.path)({ pattern: "x", path: "b.txt" });
  assert.ok(!exact.output.includes("showing"));
});

Deno.test("a long line is shown around its match, and searched up to a limit", async () => {
  const line = "a".repeat(1000) + "needle" + "b".repeat(10_000) + "pin";
  await using work = await project({ "a.txt": `${line}\nneedle\n` });
  const { output } = await searcher(work.path)({ pattern: "needle" });
  const [first, second] = output.split("\n");
  assert.match(first!, /^a\.txt:1: …a{100}needleb{194}…$/);
  assert.equal(second, "a.txt:2: needle");
  assert.equal((await searcher(work.path)({ pattern: "pin" })).note, "no matches");
});

Deno.test("lines are found across the chunks of a large file", async () => {
  const filler = "ü".repeat(99) + "\n";
  await using work = await project({ "a.txt": filler.repeat(5000) + "nädle\n" + filler });
  const { output } = await searcher(work.path)({ pattern: "nädle" });
  assert.equal(output, "a.txt:5001: nädle");
  const every = await searcher(work.path)({ pattern: "[^ü]" });
  assert.equal(every.output, "a.txt:5001: nädle");
});

Deno.test("a byte order mark does not hide the start of the first line", async () => {
  await using work = await project({ "a.txt": "\ufeffx" });
  assert.equal((await searcher(work.path)({ pattern: "^x$" })).output, "a.txt:1: x");
});

Deno.test("an invalid pattern is a clear error", async () => {
  await using work = await project();
  const { output } = await searcher(work.path)({ pattern: "(" });
  assert.match(output, /^Error: invalid pattern: .*Unterminated group/);
});

/** Patterns that JavaScript matches in time that is exponential in the line, and the answer. */
const HOSTILE: [pattern: string, answer: string][] = [
  ["(a+)+$", "b"],
  ["(a|a)*b", "b"],
  ["(.*)*x", "x"],
  ["(a|a){60}b", ""],
  ["(?i)(a|A|å)*B", "b"],
  ["(?i)([a-f]+)+$", "b"],
  ["(?<=(a|a)*)c", ""],
  ["(a?){60}a{60}b", ""],
  ["a+a{0,5}a{2,30}^", ""],
  ["(.{0,150}c){2}", ""],
  ["(?=(a+)+$)a", "Error: a pattern cannot look ahead ((?=); search for the rest of it"],
  ["(a*)*\\1b", "Error: a pattern cannot refer back to a group (\\1); write the text out"],
];

Deno.test("a hostile pattern is answered or refused", async () => {
  await using work = await project({ "a.txt": `${"a".repeat(3000)}!\nb x a\n`.repeat(3) });
  for (const [pattern, answer] of HOSTILE) {
    for (const path of ["a.txt", "."]) {
      const { output } = await searcher(work.path)({ pattern, path });
      const [first] = output.split("\n") as [string];
      if (answer.startsWith("Error")) assert.ok(first.startsWith(answer), first);
      else if (answer === "") assert.equal(first, `(no matches for "${pattern}")`);
      else assert.match(first, /^a\.txt:2: b x a$/, pattern);
    }
  }
});

Deno.test("a search with a costly pattern leaves the event loop free, and ends when it is told", async () => {
  await using work = await project({ "a.txt": `${"a".repeat(3000)}!\n`.repeat(300) });
  const costly = "(a?){300}b";
  const controller = new AbortController();
  const context = toolContext({ worktree: work.path, signal: controller.signal });
  const stopped = await grepWithin({ pattern: costly }, context, { entries: 100, ms: 20 });
  assert.match(stopped, /\(stopped after 0.02 seconds; search a smaller folder\)$/);
  const calling = tools.call("grep", { pattern: costly }, context);
  setTimeout(() => controller.abort(), 20);
  assert.equal((await calling).output, "Error: cancelled");
});

Deno.test("counts are matched when they are not too large altogether", async () => {
  await using work = await project({
    "a.txt": "a".repeat(40) + "\n" + "b".repeat(39) + "\n" + "x" + ".".repeat(50) + "yz\n",
  });
  const grep = async (pattern: string) =>
    (await searcher(work.path)({ pattern })).output.replace(/^a\.txt:(\d+): .*$/gm, "$1");
  const table: [string, string][] = [
    ["a{40}", "1"],
    ["a{41}", '(no matches for "a{41}")'],
    ["^b{20,39}$", "2"],
    ["^b{20,38}$", '(no matches for "^b{20,38}$")'],
    ["^b{30,}?$", "2"],
    ["^([ab]{4}){10}$", "1"],
    ["^(?:(?<n>b){13}){3}$", "2"],
    ["x.{0,100}yz", "3"],
    ["x.{0,49}yz", '(no matches for "x.{0,49}yz")'],
    ["x.{0,50}?yz{0}", "3"],
    ["(a{0}|b){39}$", "1\n2\n3"],
  ];
  for (const [pattern, expected] of table) assert.equal(await grep(pattern), expected, pattern);
  const large =
    /^Error: the pattern has more than 1000 characters when its counts are written out; use \*/;
  for (
    const pattern of ["((a{999}){999}){999}", "a{1001}", "(ab){600}", "a{600}b{600}", "a{1e3}"]
  ) {
    if (pattern !== "a{1e3}") assert.match(await grep(pattern), large, pattern);
    else assert.match(await grep(pattern), /^\(no matches/); // these braces are plain text
  }
  assert.match(await grep("(".repeat(600) + ")".repeat(600)), /^Error: .* than 1000 characters/);
});

Deno.test("patterns have all of JavaScript's syntax that can be matched in linear time", async () => {
  await using work = await project({ "a.txt": "abb\nimport { join } from 'node:fs'\n[]\n" });
  const grep = async (pattern: string) => (await searcher(work.path)({ pattern })).output;
  for (const pattern of ["(?<=a)b", "(?<!b)b", "^(?<x>a)\\w*$", "(?i)^ABB$", "b{2}"]) {
    assert.equal(await grep(pattern), "a.txt:1: abb", pattern);
  }
  for (const pattern of ["import .* from .*fs", "\\bjoin\\b", "\\x6aoin", "node:[ef]s", "fo|fs"]) {
    assert.equal(await grep(pattern), "a.txt:2: import { join } from 'node:fs'", pattern);
  }
  assert.equal(await grep("^\\[\\]$"), "a.txt:3: []");
  assert.match(await grep("a(?!c)"), /^Error: a pattern cannot look ahead \(\(\?!\)/);
  assert.match(
    await grep("(?<x>a)\\k<x>"),
    /^Error: a pattern cannot refer back to a group \(\\k<x>\)/,
  );
  assert.match(
    await grep("(?i:a)b"),
    /^Error: the pattern cannot be matched in linear time; use simpler/,
  );
});

/** Patterns of the given atoms; some are not valid, such as two groups of one name. */
function patterns(atoms: string, ...quantifiers: string[]): fc.Arbitrary<string> {
  const atom = fc.constantFrom(...atoms.split(" "));
  const quantifier = fc.constantFrom("", "", "*", "+", "?", "*?", "{2}", "{0}", ...quantifiers);
  const group = fc.constantFrom("(", "(?:", "(?<n>");
  const { pattern } = fc.letrec<{ pattern: string; term: string }>((tie) => ({
    pattern: fc.array(fc.array(tie("term"), { maxLength: 4 }).map((terms) => terms.join("")), {
      minLength: 1,
      maxLength: 2,
    }).map((choices) => choices.join("|")),
    term: fc.oneof(
      { maxDepth: 2, withCrossShrink: true },
      fc.tuple(atom, quantifier).map(([what, many]) =>
        /^(\^|\$|\\b)$/.test(what) ? what : what + many
      ),
      fc.tuple(fc.constantFrom("(?<=", "(?<!"), tie("pattern")).map(([open, inner]) =>
        `${open}${inner})`
      ),
      fc.tuple(group, tie("pattern"), quantifier).map(([open, inner, many]) =>
        `${open}${inner})${many}`
      ),
    ),
  }));
  return pattern;
}

Deno.test("property: a pattern matches what JavaScript's own matcher does", () => {
  const pattern = patterns(
    "a B é ß σ Σ k K \u212a µ . [ab] [^a] [a-fX] [\\wé] [] [^] \\w \\W \\d \\. \\x61 \\u00c9 ^ $ \\b",
    "{1,3}",
    "{1,2}?",
    "{2,}",
  );
  const units = [..."abBAxXéÉßσςΣkK\u212aµμ1.] "];
  const line = fc.string({ unit: fc.constantFrom(...units), maxLength: 6 });
  fc.assert(
    fc.property(pattern, line, fc.boolean(), (source, text, ignore) => {
      let native: RegExp;
      try {
        native = new RegExp(source, ignore ? "i" : "");
      } catch {
        return fc.pre(false); // such as two groups of one name
      }
      const { regex } = searchPattern((ignore ? "(?i)" : "") + source);
      assert.equal(text.search(regex), text.search(native));
    }),
    runs(1000),
  );
});

Deno.test("property: every match contains the required text", () => {
  const pattern = patterns(
    "a b A é ] } . [ab] [^a] [] [^] \\w \\W \\d \\s \\. \\n \\x61 \\u0062 \\cJ ^ $ \\b",
    "{0,2}",
    "{1,2}?",
  );
  const line = fc.string({
    unit: fc.constantFrom("a", "b", "A", " ", ".", "1", "é", "]"),
    maxLength: 8,
  });
  fc.assert(
    fc.property(pattern, line, fc.constantFrom("", "(?i)"), (source, text, flag) => {
      let pattern: ReturnType<typeof searchPattern>;
      try {
        pattern = searchPattern(flag + source);
      } catch {
        return fc.pre(false); // such as two groups of one name
      }
      const { regex, required } = pattern;
      assert.ok(!regex.test(text) || required.test(text), required.source);
    }),
    runs(1000),
  );
});
