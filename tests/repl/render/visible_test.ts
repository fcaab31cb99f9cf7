import assert from "node:assert/strict";
import { visible } from "../../../src/repl/render/text.ts";

Deno.test("a text to approve hides nothing", () => {
  assert.equal(
    visible("rm \x1b[2Ka\rb\u202e\u200b\x7f\x9b \u00a0\ud800\ttab\r\nnext\n漢字 é"),
    "rm ^[[2Ka^Mb<U+202E><U+200B>^?<U+009B> <U+00A0>\ufffd\ttab\nnext\n漢字 é",
  );
});
