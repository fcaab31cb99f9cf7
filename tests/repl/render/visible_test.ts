import assert from "node:assert/strict";
import { toJson } from "../../../src/commands/io.ts";
import { visible } from "../../../src/platform/terminal.ts";

Deno.test("a text to approve hides nothing", () => {
  assert.equal(
    visible("rm \x1b[2Ka\rb\u202e\u200b\x7f\x9b \u00a0\ud800\ttab\r\nnext\n漢字 é"),
    "rm ^[[2Ka^Mb<U+202E><U+200B>^?<U+009B> <U+00A0>\ufffd\ttab\nnext\n漢字 é",
  );
});

Deno.test("every character that is not seen, or seen as another, is written out", () => {
  const hidden = [
    0x00,
    0x1b,
    0x85,
    0xa0,
    0xad,
    0x34f,
    0x61c,
    0x115f,
    0x17b4,
    0x180b,
    0x180e,
    0x200b,
    0x200d,
  ];
  hidden.push(
    0x2028,
    0x2029,
    0x202e,
    0x2060,
    0x2065,
    0x2069,
    0x206f,
    0x2800,
    0x3000,
    0x3164,
    0xe000,
    0xfe0f,
  );
  hidden.push(
    0xfeff,
    0xffa0,
    0xfff0,
    0xfff9,
    0x1bca0,
    0x1d173,
    0xe0001,
    0xe0041,
    0xe007f,
    0xe0100,
    0xe01ef,
  );
  for (const code of hidden) {
    const shown = visible(`ls${String.fromCodePoint(code)}x`);
    assert.match(shown, /^ls[\x20-\x7e]+x$/, code.toString(16));
    const json = toJson({ a: `ls${String.fromCodePoint(code)}` });
    assert.equal(JSON.parse(json).a, `ls${String.fromCodePoint(code)}`);
  }
  assert.doesNotMatch(toJson({ a: "\u200b\u2028\u{e0041}\u202e" }), /[^\x20-\x7e]/);
  assert.equal(visible("äöü 漢字 ñ 😀 Ω é\n\tx"), "äöü 漢字 ñ 😀 Ω é\n\tx");
});
