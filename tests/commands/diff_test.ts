import assert from "node:assert/strict";
import { createTwoFilesPatch, FILE_HEADERS_ONLY } from "diff";
import { editHunks } from "../../src/commands/changes.ts";
import { diffRows, patchRows, previewRows } from "../../src/commands/diff.ts";
import { style } from "../../src/platform/style.ts";
import { hardWrapped, textWidth, withoutStyle } from "../../src/platform/text.ts";

const PLAIN = { style: style({ enabled: false }), columns: 80 };
const COLORED = { style: style({ enabled: true }), columns: 80 };

function patch(before: string, after: string, path = "src/a.ts"): string {
  const options = { headerOptions: FILE_HEADERS_ONLY, context: 1 };
  return createTwoFilesPatch(path, path, before, after, "", "", options)!;
}

Deno.test("a diff has the numbers of its lines in the old and the new file", () => {
  const before = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
  const after = before.replace("two\n", "2\nand\n").replace("nine\n", "");
  assert.deepEqual(patchRows(patch(before, after), PLAIN), [
    "src/a.ts",
    " 1   one",
    " 2 - two",
    " 2 + 2",
    " 3 + and",
    " 4   three",
    " ⋮",
    " 9   eight",
    " 9 - nine",
    "10   ten",
  ]);
  assert.deepEqual(diffRows(editHunks({ old: "a\nb\n", new: "a\nc\n" }, 99), PLAIN), [
    " 99   a",
    "100 - b",
    "100 + c",
  ]);
  assert.deepEqual(diffRows(editHunks({ old: "b", new: "c" }), PLAIN), ["- b", "+ c"]);
  const edits = [{ old: "a", new: "b" }, { old: "c", new: "d" }];
  const rows = diffRows(editHunks({ path: "f", edits }, 7), PLAIN);
  assert.deepEqual(rows.filter((row) => /^[-+]/.test(row)), ["- a", "+ b", "- c", "+ d"]);
});

Deno.test("a line of the old file that looks like a header of a diff is a line", () => {
  const rows = patchRows(patch("-- a\n++ b\n", "@@ -1 +1 @@\n"), PLAIN);
  assert.deepEqual(rows, ["src/a.ts", "1 - -- a", "2 - ++ b", "1 + @@ -1 +1 @@"]);
  const two = patch("a\n", "b\n") + patch("c\n", "d\n", "b.py");
  assert.deepEqual(patchRows(two, PLAIN), [
    ...["src/a.ts", "1 - a", "1 + b"],
    ...["b.py", "1 - c", "1 + d"],
  ]);
});

Deno.test("changed words are marked, and code has the colours of its language", () => {
  const rows = patchRows(patch("const a = 1;\n", "const a = 2;\n"), COLORED)!;
  assert.deepEqual(rows.slice(1), [
    "\x1b[31m1 - \x1b[39m\x1b[35mconst\x1b[39m a = \x1b[33m\x1b[48;5;52m1\x1b[49m\x1b[39m;",
    "\x1b[32m1 + \x1b[39m\x1b[35mconst\x1b[39m a = \x1b[33m\x1b[48;5;22m2\x1b[49m\x1b[39m;",
  ]);
  const other = patchRows(patch("all of this\n", "something quite else\n"), COLORED)!;
  assert.ok(!other.join().includes("\x1b[48"), "lines with little in common have no marks");
});

Deno.test("changed words are those of the line that replaces another, wherever it is among the added ones", () => {
  const before = "  return max(all, height);\n";
  const after = "  if (all.length === 0) throw new Error();\n  return max(all, width);\n";
  const marked = patchRows(patch(before, after), COLORED)!.filter((row) => row.includes("\x1b[48"));
  assert.equal(marked.length, 2);
  assert.ok(marked[0]!.includes("\x1b[48;5;52mheight\x1b[49m"));
  assert.ok(marked[1]!.includes("\x1b[48;5;22mwidth\x1b[49m"));
});

Deno.test("a row of a diff is never wider than the terminal, and loses nothing", () => {
  const long = `const text = "${"漢字 and words ".repeat(30)}";`;
  for (const columns of [40, 80, 200]) {
    for (const { style } of [PLAIN, COLORED]) {
      const rows = patchRows(patch("\tx\n", `\t${long}\n`), { style, columns })!;
      assert.deepEqual(rows.filter((row) => textWidth(row) > columns), []);
      const text = rows.map(withoutStyle).join("").replace(/\s/g, "");
      assert.ok(text.includes(long.replace(/\s/g, "")));
    }
  }
});

Deno.test("the rows of a long line have the colours that hold, and not all that were before", () => {
  const line = 'var a="x",b=1;if(a){return 2}'.repeat(700);
  const rows = previewRows(`New file a.js:\n${line}`, COLORED);
  const text = rows.slice(1).map((row) => withoutStyle(row).replace(/^(1 \+ | {3})/, ""));
  assert.ok(text.join("") === line);
  assert.ok(rows.every(({ length }) => length < 1000));
  const { red, bold } = COLORED.style;
  assert.deepEqual(hardWrapped(red(`${bold("ab")}cdef`), 3), [
    "\x1b[31m\x1b[1mab\x1b[22mc\x1b[0m",
    "\x1b[31mdef\x1b[39m",
  ]);
});

Deno.test("what a confirmation shows is a diff, a file, a command, or text as it is", () => {
  const view = { ...PLAIN, columns: 30 };
  const show = (text: string) => previewRows(text, view);
  assert.deepEqual(show(patch("a\n", "b\n")), ["src/a.ts", "1 - a", "1 + b"]);
  assert.deepEqual(show("New file a.py:\nx = 1\n\ty\n"), [
    "New file a.py:",
    "1 + x = 1",
    "2 +     y",
  ]);
  assert.deepEqual(show("Append to a.py:\nx"), ["Append to a.py:", "+ x"]);
  assert.deepEqual(show("in /work\n$ echo a\necho b"), ["in /work", "$ echo a", "echo b"]);
  assert.deepEqual(show('{\n  "a": 1\n}'), ["{", '  "a": 1', "}"]);
  const colored = previewRows("in /work\n$ for x in a; do y; done", COLORED);
  assert.ok(colored[1]!.startsWith("$ \x1b[35mfor\x1b[39m x"));
});
