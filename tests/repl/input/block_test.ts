import assert from "node:assert/strict";
import { readBlock } from "../../../src/repl/input/plain_lines.ts";
import { Folds } from "../../../src/repl/input/editor.ts";

Deno.test('a """ block is open until its closing quotes, and is sent without them', () => {
  const cases: [text: string, message: string | undefined][] = [
    ["plain", "plain"],
    ['what does """ mean?', 'what does """ mean?'],
    ['"""', undefined],
    ['"""\na', undefined],
    ['"""\na\n"""', "a"],
    ['  """  \n  a\n\nb\n """ ', "  a\n\nb"],
    ['"""one line"""', "one line"],
    ['"""a\nb"""', "a\nb"],
    ['"""\na\nb"""', "a\nb"],
    ['explain: """', undefined],
    ['explain: """\ncode\n"""', "explain:\ncode"],
    ['"""\nwhat is """ for?', undefined],
    ['"""\ndef f(): """doc"""', undefined],
    ['"""\ndef f(): """doc"""\n"""', 'def f(): """doc"""'],
    ['"""Docs."""\nimport x', '"""Docs."""\nimport x'],
    ['"""Docs\nmore\n"""\nimport x', '"""Docs\nmore\n"""\nimport x'],
    ['""""""', ""],
    ['"""\n"""', ""],
  ];
  for (const [text, message] of cases) {
    const expected = message === undefined ? { open: true } : { open: false, message };
    assert.deepEqual(readBlock(text), expected, text);
  }
});

Deno.test("long pastes are one character until they are sent; more of them than fit stay as they are", () => {
  const folds = new Folds();
  assert.equal(folds.fold("short\ntext"), "short\ntext");
  const long = "x".repeat(2000);
  const rows = "row\n".repeat(12);
  const [one, two] = [folds.fold(long), folds.fold(rows)];
  assert.deepEqual([one.length, two.length], [1, 1]);
  assert.equal(folds.label(one), "[pasted 2000 characters]");
  assert.equal(folds.label(two), "[pasted 12 lines]");
  assert.equal(folds.label("x"), undefined);
  assert.equal(folds.unfold(`a${two}b${one}${one}`), `a${rows}b${long}${long}`);
  for (let n = 2; n < 32; n++) assert.equal(folds.fold(long).length, 1);
  assert.equal(folds.fold(long), long);
});
