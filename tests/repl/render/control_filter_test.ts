import assert from "node:assert/strict";
import fc from "fast-check";
import { stripControl } from "../../../src/platform/terminal.ts";
import { ControlFilter } from "../../../src/platform/text.ts";

Deno.test("sequences are removed wherever the text is split", () => {
  const text = "a\x1b[31mb\x1b]0;title\x07c\x1b]8;;u\x1b\\d\x9b2Ke\x90q\x9cf\x1b(Bg\r\nh\u202ei😀";
  for (let cut = 0; cut <= text.length; cut++) {
    const filter = new ControlFilter();
    const shown = filter.write(text.slice(0, cut)) + filter.write(text.slice(cut));
    assert.equal(shown, "abcdefg\nhi😀");
  }
});

Deno.test("an unclosed sequence hides only its line", () => {
  assert.equal(new ControlFilter().write("a\x1b]0;gone\nstays"), "a\nstays");
  assert.equal(new ControlFilter().write("a\x1b["), "a");
});

Deno.test("the output is clean for every split", () => {
  const units = ["\x1b", "[", "]", "31m", "\x07", "\x9c", "\\", "a", "\n", "\x9d", "P", "\u200f"];
  fc.assert(fc.property(fc.array(fc.constantFrom(...units)), (pieces) => {
    const filter = new ControlFilter();
    const shown = pieces.map((piece) => filter.write(piece)).join("");
    assert.equal(shown, new ControlFilter().write(pieces.join("")));
    assert.equal(stripControl(shown), shown);
  }));
});

Deno.test("stripControl too: a control string that is never closed ends with its line", () => {
  assert.equal(stripControl("a\x1b]0;title\nb\x1bPq\nc\x9dd\ne"), "a\nb\nc\ne");
  assert.equal(stripControl("a\x1b]0;title\x07b\x1b]8;;x\x1b\\c"), "abc");
});
