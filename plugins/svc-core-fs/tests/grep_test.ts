import assert from "node:assert/strict";
import fc from "fast-check";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { grepWithin } from "../src/grep.ts";
import * as plugin from "../src/plugin.ts";
import { searchPattern } from "../src/search_threads.ts";
import { runs } from "../../../tests/support/random.ts";

const tools = pluginTools(plugin);

function searcher(worktree: string) {
  const context = toolContext({ worktree });
  return (args: Record<string, unknown>) => tools.call("grep", args, context);
}

Deno.test("matching lines are given with file and line number", async () => {
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

Deno.test("path and glob narrow the search", async () => {
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

Deno.test("no match is a soft note, and 100 matches at most are shown", async () => {
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

/** Patterns that JavaScript matches in time that is exponential in the line. */
// Deno does not end a thread inside of a regular expression, so that each of these keeps one busy for the rest of
// the process.
const HOSTILE = ["(a|a){60}b", "(a*)*\\1b"];

Deno.test("a hostile pattern ends with an error, and does not block the event loop", async () => {
  await using work = await project({ "a.txt": "a".repeat(3000) + "!\nb x\n" });
  const context = toolContext({ worktree: work.path });
  const limits = { entries: 100, ms: 60_000, match_ms: 100 };
  for (const pattern of HOSTILE) {
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await assert.rejects(
      grepWithin({ pattern, path: "a.txt" }, context, limits),
      /^Error: the pattern takes more than 0.1 seconds on a few files; repeat less in it/,
    );
    clearInterval(timer);
    assert.ok(turns > 0, `${pattern}: ${turns} turns`);
  }
});

Deno.test("a search with a hostile pattern ends when it is cancelled, or after its time", async () => {
  await using work = await project({ "a.txt": "a".repeat(3000) + "!\nb\n" });
  const controller = new AbortController();
  const context = toolContext({ worktree: work.path, signal: controller.signal });
  const stopped = await grepWithin({ pattern: "(a|a){60}b" }, context, {
    entries: 100,
    ms: 50,
    match_ms: 60_000,
  });
  assert.match(stopped, /\(stopped after 0.05 seconds; search a smaller folder\)$/);
  const calling = tools.call("grep", { pattern: "(a|a){60}b" }, context);
  setTimeout(() => controller.abort(), 50);
  assert.equal((await calling).output, "Error: cancelled");
});

Deno.test("large counts are matched, and a pattern that is too long is a clear error", async () => {
  await using work = await project({ "a.txt": "a\n" });
  const grep = async (pattern: string) => (await searcher(work.path)({ pattern })).output;
  assert.match(await grep("((a{999}){999}){999}"), /^\(no matches for /);
  assert.match(await grep("(".repeat(600) + ")".repeat(600)), /^Error: .* than 1000 characters/);
});

Deno.test("patterns have all of JavaScript's syntax", async () => {
  await using work = await project({ "a.txt": "abb\nimport { join } from 'node:fs'\n[]\n" });
  const grep = async (pattern: string) => (await searcher(work.path)({ pattern })).output;
  for (const pattern of ["(?<=a)b", "(.)\\1$", "a(?!c)", "^(?<x>a)\\w*$", "(?i)^ABB$", "b{2}"]) {
    assert.equal(await grep(pattern), "a.txt:1: abb", pattern);
  }
  for (const pattern of ["import .* from .*fs", "\\bjoin\\b", "\\x6aoin", "node:[ef]s", "fo|fs"]) {
    assert.equal(await grep(pattern), "a.txt:2: import { join } from 'node:fs'", pattern);
  }
  assert.equal(await grep("^\\[\\]$"), "a.txt:3: []");
});

Deno.test("property: every match contains the required text", () => {
  const atoms =
    "a b A é ] } . [ab] [^a] [] [^] \\w \\W \\d \\s \\. \\n \\x61 \\u0062 \\cJ ^ $ \\b (?=a)";
  const atom = fc.constantFrom(...atoms.split(" "));
  const quantifier = fc.constantFrom("", "", "*", "+", "?", "*?", "{2}", "{0,2}", "{0}", "{1,2}?");
  const { pattern } = fc.letrec<{ pattern: string; term: string }>((tie) => ({
    pattern: fc.array(fc.array(tie("term"), { maxLength: 4 }).map((terms) => terms.join("")), {
      minLength: 1,
      maxLength: 2,
    }).map((choices) => choices.join("|")),
    term: fc.oneof(
      { maxDepth: 2, withCrossShrink: true },
      fc.tuple(atom, quantifier).map(([what, many]) =>
        /^(\^|\$|\\b|\(\?=a\))$/.test(what) ? what : what + many
      ),
      fc.tuple(fc.constantFrom("(", "(?:", "(?<n>", "(?!", "(?<=", "(?<!"), tie("pattern"))
        .map(([open, inner]) => `${open}${inner})`),
      fc.tuple(fc.constantFrom("(", "(?:"), tie("pattern"), quantifier)
        .map(([open, inner, many]) => `${open}${inner})${many}`),
    ),
  }));
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
      const { flags, required } = pattern;
      const matches = new RegExp(source, flags).test(text);
      assert.ok(!matches || new RegExp(required, flags).test(text), required);
    }),
    runs(2000),
  );
});
