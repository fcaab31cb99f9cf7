import assert from "node:assert/strict";
import fc from "fast-check";
import { type Project, project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import * as plugin from "../src/plugin.ts";
import { replaceText } from "../src/replace.ts";

const tools = pluginTools(plugin);

async function edit(work: Project, args: Record<string, unknown>): Promise<string> {
  const context = toolContext({ worktree: work.path });
  return (await tools.call("file_edit", { path: "a.txt", ...args }, context)).output;
}

Deno.test("file_edit replaces nothing where old occurs several times and no count is given [4.8]", async () => {
  await using work = await project({ "a.txt": "x\nx\ny\nx\n" });
  assert.equal(
    await edit(work, { old: "x", new: "z" }),
    "Error: old occurs 3 times in a.txt, at line 1, 2, 4; give more of the lines around the one that is meant, or " +
      "count: 0 for all of them",
  );
  assert.equal(await work.read("a.txt"), "x\nx\ny\nx\n");
});

Deno.test("with count 1, file_edit replaces the first occurrence, and points out the others [4.8]", async () => {
  await using work = await project({ "a.txt": "x\nx\ny\nx\n" });
  const output = await edit(work, { old: "x", new: "z\nz", count: 1 });
  assert.equal(await work.read("a.txt"), "z\nz\nx\ny\nx\n");
  assert.equal(
    output,
    "Edited a.txt (1 of 3 occurrences, at line 1, +2 -1 lines)\n" +
      "Left as they were: 2 more, at line 3, 5. Pass count=0 to replace all.",
  );
});

Deno.test("count of file_edit replaces that many occurrences, and 0 all [4.8]", async () => {
  await using work = await project({ "a.txt": "x x x" });
  assert.match(await edit(work, { old: "x", new: "y", count: 2 }), /^Edited a\.txt \(2 of 3 /);
  assert.equal(await work.read("a.txt"), "y y x");
  await work.write("a.txt", "x x x");
  assert.equal(
    await edit(work, { old_text: "x", new_text: "y", count: 0 }),
    "Edited a.txt (3 of 3 occurrences, at line 1, +3 -3 lines)",
  );
  assert.equal(await work.read("a.txt"), "y y y");
  assert.equal(tools.registry.find("edit")?.permission, "edit");
});

Deno.test("line ends, a byte order mark, a missing last newline and the mode are kept", async () => {
  await using work = await project({ "a.txt": "\ufeffone\r\ntwo\r\nthree" });
  await Deno.chmod(`${work.path}/a.txt`, 0o755);
  await edit(work, { old: "one\ntwo\n", new: "1\n2\n3\n" });
  const bytes = await Deno.readFile(`${work.path}/a.txt`);
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
  assert.equal(text, "\ufeff1\r\n2\r\n3\r\nthree");
  assert.equal((await Deno.stat(`${work.path}/a.txt`)).mode! & 0o7777, 0o755);
});

Deno.test("a file of mixed line ends is changed only where it is edited", async () => {
  await using work = await project({ "a.txt": "one\r\ntwo\nthree\r\nfour\n" });
  await edit(work, { old: "three\nfour", new: "3\n4" });
  assert.equal(await work.read("a.txt"), "one\r\ntwo\n3\r\n4\n");
  await edit(work, { old: "one\ntwo\n3", new: "1\n3" });
  assert.equal(await work.read("a.txt"), "1\r\n3\r\n4\n");
});

Deno.test("an escaped line end inside a string is not made a line end", async () => {
  await using work = await project({ "a.txt": 'print("x")\nfoo()\n' });
  const output = await edit(work, { old: 'print(\\"x\\")', new: 'print(\\"x\\n\\")' });
  assert.match(output, /^Error: old does not occur/);
  assert.equal(await work.read("a.txt"), 'print("x")\nfoo()\n');
});

Deno.test("a line that was copied with its number is no part of another line", async () => {
  await using work = await project({ "a.txt": "sub();\nc();\n" });
  const output = await edit(work, { old: "1|b();\n2|c();", new: "1|x();\n2|c();" });
  assert.match(output, /^Error: old does not occur/);
  assert.equal(await work.read("a.txt"), "sub();\nc();\n");
});

Deno.test("for text that does not occur, the error quotes the closest line", async () => {
  await using work = await project({
    "a.txt": "function one() {\n\treturn first;\n}\n\nfunction two() {\n\treturn Second;\n}\n",
  });
  const before = await work.read("a.txt");
  const closest: [string, RegExp][] = [
    ["function  two() {\n  return Second;", /line 5 differs in white space only.*\nfunction two/],
    ["\treturn second;", /line 6 differs in upper and lower case only.*\n\treturn Second;$/],
    ["return secnd;", /The closest is line \d:\n\treturn \w+;$/],
    ["2|\treturn last;\n7|}", /line numbers of file_read/],
    ["%%%%%%", /nor anything like it/],
  ];
  for (const [old, message] of closest) {
    const output = await edit(work, { old, new: "x" });
    assert.match(output, /^Error: old does not occur in a\.txt/);
    assert.match(output, message);
  }
  assert.equal(await work.read("a.txt"), before);
});

Deno.test("an edit that changes nothing, or of anything but a text file, is refused", async () => {
  await using work = await project({ "a.txt": "x" });
  await Deno.writeFile(`${work.path}/raw`, new Uint8Array([0x78, 0xff]));
  assert.match(await edit(work, { old: "", new: "y" }), /^Error: old is empty/);
  assert.match(await edit(work, { old: "x", new: "x" }), /^Error: old and new are the same/);
  assert.match(
    await edit(work, { path: "b.txt", old: "x", new: "y" }),
    /^Error: there is no b\.txt/,
  );
  assert.match(await edit(work, { path: ".", old: "x", new: "y" }), /^Error: \. is a directory/);
  assert.match(await edit(work, { path: "raw", old: "x", new: "y" }), /^Error: raw is not UTF-8/);
  assert.deepEqual(await Deno.readFile(`${work.path}/raw`), new Uint8Array([0x78, 0xff]));
});

Deno.test("a file that another program changes meanwhile is not overwritten", async () => {
  await using work = await project({ "a.txt": "x" });
  const context = toolContext({ worktree: work.path });
  // Asked after the file was read and before it is replaced.
  const contains = (path: string) => {
    Deno.writeTextFileSync(`${work.path}/a.txt`, "theirs");
    return context.paths.contains(path);
  };
  const outcome = await tools.call("file_edit", { path: "a.txt", old: "x", new: "y" }, {
    ...context,
    paths: { ...context.paths, contains },
  });
  assert.match(outcome.output, /^Error: .* was changed by someone else meanwhile/);
  assert.equal(await work.read("a.txt"), "theirs");
  assert.deepEqual(Array.from(Deno.readDirSync(work.path), (entry) => entry.name), ["a.txt"]);
});

Deno.test("a confirmation of file_edit shows the diff and changes nothing [4.8]", async () => {
  await using work = await project({ "a.txt": "one\ntwo\nthree\n" });
  const context = toolContext({ worktree: work.path });
  const args = { path: "a.txt", old: "two", new: "2" };
  const preview = await tools.preview("file_edit", args, context);
  assert.match(preview, /@@ -1,3 \+1,3 @@\n one\n-two\n\+2\n three\n$/);
  assert.equal(await work.read("a.txt"), "one\ntwo\nthree\n");
  const failing = await tools.preview("file_edit", { ...args, old: "zwei" }, context);
  assert.match(failing, /^Error: old does not occur/);
});

Deno.test("property: an edit is what String.replace does with a literal text", () => {
  const text = fc.string({ unit: fc.constantFrom("a", "b", "\n", "$", "&", "é"), maxLength: 40 });
  const part = fc.string({
    unit: fc.constantFrom("a", "b", "\n", "$", "&"),
    minLength: 1,
    maxLength: 3,
  });
  fc.assert(
    fc.property(text, part, text, fc.nat(4), (whole, old, replacement, count) => {
      const result = replaceText(whole, old, replacement, count);
      if (!whole.includes(old)) return assert.equal(result, undefined);
      let seen = 0;
      const expected = whole.replaceAll(
        old,
        () => ++seen <= (count || Infinity) ? replacement : old,
      );
      assert.equal(result!.text, expected);
      assert.equal(result!.total, seen);
      assert.equal(result!.replaced, Math.min(seen, count || Infinity));
      assert.equal(result!.left.length, result!.total - result!.replaced);
    }),
    { numRuns: 1000 },
  );
});

Deno.test("property: in a file of Windows line ends, an edit adds no other", () => {
  const lines = fc.string({ unit: fc.constantFrom("a", "b", "\n"), maxLength: 20 });
  fc.assert(fc.property(lines, lines, lines, (whole, old, replacement) => {
    const windows = (text: string) => text.replaceAll("\n", "\r\n");
    const text = windows(`${whole}\n`);
    const result = old === "" ? undefined : replaceText(text, old, replacement, 0);
    if (result === undefined) return;
    assert.equal(result.text, windows(`${whole}\n`.replaceAll(old, () => replacement)));
  }));
});

Deno.test("an edit with a huge result, or a long search for the closest line, is ended", async () => {
  await using work = await project({ "a.txt": "x".repeat(100_000) });
  const output = await edit(work, { old: "x", new: "y".repeat(1000), count: 0 });
  assert.equal(output, "Error: the result would have more than 67108864 characters");

  // Every line is the start of something that nearly matches.
  await work.write("a.txt", "x\n".repeat(60_000));
  const missing = await edit(work, { old: " x\n".repeat(30_000) + "z", new: "" });
  assert.match(missing, /^Error: old does not occur in a\.txt/);
});

Deno.test("the result of file_edit says what was done to find the place, and when new is there already [4.8]", async () => {
  await using work = await project({ "a.txt": "" });
  const file = "if (a) {\n  b();\n  it\u2019s();\n\n  c();\n}\n";
  const cases: [old: string, next: string, said: RegExp][] = [
    ["    b();\n", "    d();\n", /: the indentation was adapted to the file$/],
    [
      "2|  b();\n3|  it\u2019s();\n",
      "2|  d();\n3|  it\u2019s();\n",
      /: line numbers were left out$/,
    ],
    [
      "  it's();\n",
      "  d();\n",
      /: blanks and look-alike characters were taken as the file has them$/,
    ],
    [
      "  it\u2019s();\n  c();\n",
      "  it\u2019s();\n  d();\n",
      /: blank lines were taken as the file has them$/,
    ],
    ["  b();\\n  it\u2019s();", "  d();\\n  it\u2019s();", /: one level of escapes was undone$/],
    [
      "  x();\n",
      "  c();\n",
      /^Error: .* and new does, at line 5: the edit may have been made already$/,
    ],
    ["if (a) {\n", "if (b) {\n", /\(1 of 1 occurrences, at line 1, \+1 -1 lines\)$/],
  ];
  for (const [old, next, said] of cases) {
    await work.write("a.txt", file);
    assert.match(await edit(work, { old, new: next }), said);
  }
});
