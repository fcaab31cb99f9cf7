import assert from "node:assert/strict";
import fc from "fast-check";
import { ThinkingSplitter } from "../../src/engine/reply.ts";

function split(pieces: string[]): { thinking: string; answer: string } {
  const splitter = new ThinkingSplitter();
  const out = [...pieces.flatMap((piece) => splitter.push(piece)), ...splitter.end()];
  const of = (type: string) => out.filter((p) => p.type === type).map((p) => p.content).join("");
  return { thinking: of("thinking"), answer: of("token") };
}

const cases: [name: string, text: string, thinking: string, answer: string][] = [
  ["a marked beginning", "<think>why</think>\n\nanswer", "why", "answer"],
  ["the long marker", "<thinking>why</thinking>answer", "why", "answer"],
  ["white space before the marker", "\n <think>\nwhy</think>answer", "why", "answer"],
  ["no marker", "answer", "", "answer"],
  ["a marker inside the answer is text", "use <think> like this", "", "use <think> like this"],
  ["a marker that never closes", "<think>why", "why", ""],
  ["something like a marker", "<thin>ice</thin>", "", "<thin>ice</thin>"],
  ["a lesser sign alone", "<", "", "<"],
  ["nothing", "", "", ""],
  ["half a closing marker", "<think>a </thi b</think>c", "a </thi b", "c"],
];

for (const [name, text, thinking, answer] of cases) {
  Deno.test(`thinking markers: ${name} [6.2]`, () => {
    assert.deepEqual(split([text]), { thinking, answer });
  });
}

Deno.test("thinking markers: however the content is cut, the split is the same", () => {
  const text = fc.constantFrom(...cases.map(([, text]) => text));
  fc.assert(fc.property(text, fc.array(fc.nat(12)), (text, cuts) => {
    const pieces = [];
    let rest = text;
    for (const cut of cuts) {
      pieces.push(rest.slice(0, cut));
      rest = rest.slice(cut);
    }
    assert.deepEqual(split([...pieces, rest]), split([text]));
  }));
});
