import assert from "node:assert/strict";
import fc from "fast-check";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { compileLineSearch } from "../src/line_pattern.ts";
import { LinearPattern } from "../src/linear_pattern.ts";
import { Pace } from "../src/pace.ts";
import * as plugin from "../src/plugin.ts";

const tools = pluginTools(plugin);
const pace = new Pace(new AbortController().signal);

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

Deno.test("hidden, binary and linked files, .git and node_modules are passed over unless named", async () => {
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

Deno.test("a line is found wherever the chunks of a large file end", async () => {
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

Deno.test("no pattern can keep the search busy", async () => {
  const line = "a".repeat(4000) + "!";
  const evil = [
    "(a+)+$",
    "(a|a)*b",
    "(a|aa)+$",
    "(.*)*x",
    "(a?){50}b",
    ".*.*.*.*x",
    "(a{1,9}){1,9}b",
  ];
  for (const pattern of evil) {
    assert.equal(await compileLineSearch(pattern)(line, pace), -1, pattern);
  }
  assert.throws(() => compileLineSearch("(a*)*\\1"), /a back-reference with repetition/);
  assert.throws(() => compileLineSearch("(?=a)(a*)*"), /look-around with repetition/);
  assert.throws(() => compileLineSearch("((a{999}){999}){999}"), /repeats too much/);
  assert.throws(() => compileLineSearch("(((){4999}){4999}){4999}a{9999}"), /repeats too much/);
});

Deno.test("a pattern of several repetitions finds what it says", async () => {
  const find = compileLineSearch("import .* from .*fs");
  assert.ok(await find('import { join } from "node:fs"', pace) > 0);
  assert.equal(await find('import { join } from "node:path"', pace), -1);
  assert.ok(await compileLineSearch("(?i)IMPORT .* FROM .*fs")("import a from fs", pace) > 0);
});

Deno.test("harmless patterns keep all of JavaScript's syntax", async () => {
  assert.equal(await compileLineSearch("(?<=a)b")("ab", pace), 1);
  assert.equal(await compileLineSearch("(.)\\1")("abb", pace), 1);
});

Deno.test("property: the linear search finds a match where RegExp does", () => {
  const atoms = "a b A é ] } . [ab] [^a] [] [^] \\w \\W \\d \\s \\. \\n \\x61 \\u0062 ^ $ \\b \\B";
  const atom = fc.constantFrom(...atoms.split(" "));
  const quantifier = fc.constantFrom("", "", "*", "+", "?", "*?", "{2}", "{1,}", "{0,2}", "{1,2}?");
  const { pattern } = fc.letrec<{ pattern: string; term: string }>((tie) => ({
    pattern: fc.array(fc.array(tie("term"), { maxLength: 3 }).map((terms) => terms.join("")), {
      minLength: 1,
      maxLength: 2,
    }).map((choices) => choices.join("|")),
    term: fc.oneof(
      { maxDepth: 2 },
      fc.tuple(atom, quantifier).map(([what, many]) =>
        /^(\^|\$|\\b|\\B)$/.test(what) ? what : what + many
      ),
      fc.tuple(fc.constantFrom("(", "(?:", "(?<n>"), tie("pattern"), quantifier)
        .map(([open, inner, many]) => `${open}${inner})${many}`),
    ),
  }));
  const line = fc.string({
    unit: fc.constantFrom("a", "b", "A", " ", ".", "1", "é", "]"),
    maxLength: 8,
  });
  fc.assert(
    fc.property(pattern, line, fc.constantFrom("", "i"), (source, text, flags) => {
      // V8 takes this for its own search for a start, and misses matches: /[^]*?a^|/ on "".
      fc.pre(!source.includes("[^]*?"));
      let regex: RegExp;
      try {
        regex = new RegExp(source, flags);
      } catch {
        return fc.pre(false); // such as two groups of one name
      }
      const search = new LinearPattern(source, flags).search(text);
      assert.equal(search.next().value !== -1, regex.test(text));
    }),
    { numRuns: 1000 },
  );
});

Deno.test("no pattern keeps a line busy: alternatives multiply as repetitions do", async () => {
  // Each of these would take JavaScript's own engine from seconds to for ever on such a line.
  const line = "a".repeat(4000);
  assert.equal(await compileLineSearch("(a|a)".repeat(60) + "b")(line, pace), -1);
  assert.equal(await compileLineSearch("a?".repeat(8) + "a*b")(line, pace), -1);
  assert.throws(() => compileLineSearch("(a*)\\1b"), /back-reference/);
  assert.throws(() => compileLineSearch("(".repeat(600) + ")".repeat(600)), /1000 characters/);
  // What cannot do harm stays JavaScript's: look-around, back-references, alternatives side by side.
  assert.equal(await compileLineSearch("(?<=x)(\\w)\\1")("xaa", pace), 1);
  assert.equal(await compileLineSearch("a|b|c|d|e|f|g+")("..g", pace), 2);
});

Deno.test("a line is searched in slices, and others get their turn between them", async () => {
  // The clock says after each look at it that a slice is over, so every slice ends with a rest.
  let time = 0;
  let rests = 0;
  class Counting extends Pace {
    override rest(): Promise<void> {
      rests++;
      return super.rest();
    }
  }
  const counting = new Counting(new AbortController().signal, () => time += 100);
  const line = "a".repeat(4000);
  // JavaScript's own engine gets no such line as a whole: `String.search` is how it would.
  const { search } = String.prototype;
  String.prototype.search = () => assert.fail("a whole line");
  try {
    for (const pattern of ["a*b", "(a|aa)+b", "(a|b)?(a|b)?a*c", `a*${"[ab]".repeat(90)}c`]) {
      assert.equal(await compileLineSearch(pattern)(line, counting), -1, pattern);
    }
    assert.equal(await compileLineSearch("(?<!x)a*c")("a".repeat(300), counting), -1);
  } finally {
    String.prototype.search = search;
  }
  assert.equal(rests, 301, "look-behind is searched start by start");
  rests = 0;
  // After each character another set of ways is open, of thousands that there are.
  let seed = 1;
  const mixed = Array.from(
    { length: 4000 },
    () => "ab"[(seed = (seed * 16807) % 2147483647) >> 8 & 1],
  ).join("");
  assert.equal(await compileLineSearch("(a|b)*a(a|b){12}[cC]")(mixed, counting), -1);
  assert.ok(rests >= 20, `${rests} rests`);
});
