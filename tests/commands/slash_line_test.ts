import assert from "node:assert/strict";
import { readLine } from "../../src/commands/slash_line.ts";

Deno.test("a line is split at blanks, and quotes hold blanks together", () => {
  const cases: [string, string[]][] = [
    ["", []],
    ["  one  two ", ["one", "two"]],
    ['answer 3 "use staging"', ["answer", "3", "use staging"]],
    ["a 'b \"c\" d' e", ["a", 'b "c" d', "e"]],
    ['a"b c"d', ["ab cd"]],
    ['say \\"hi\\"', ["say", '"hi"']],
    ["C:\\temp", ["C:\\temp"]],
    ['""', [""]],
    ['open "never closed', ["open", "never closed"]],
  ];
  for (const [text, words] of cases) assert.deepEqual(readLine(text).words, words, text);
});

Deno.test("the rest of a line is as it was typed; a single quoted word loses its quotes", () => {
  assert.equal(readLine("answer 3 use  'the' staging ").rest(2), "use  'the' staging");
  assert.equal(readLine('answer 3 "use staging"').rest(2), "use staging");
  assert.equal(readLine('file_read {"path": "a b"}').rest(1), '{"path": "a b"}');
  assert.equal(readLine("answer 3").rest(2), "");
  assert.equal(readLine("answer 3 use  it --output json").rest(2, 4), "use  it");
  assert.equal(readLine('answer 3 "use it" --output json').rest(2, 3), "use it");
});
