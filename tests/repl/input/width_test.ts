import assert from "node:assert/strict";
import { Widths } from "../../../src/repl/input/text.ts";

Deno.test("a coloured prompt and a text in a European language need no tables", () => {
  const widths = new Widths();
  assert.equal(widths.ready("\x1b[1;32msvc ❯\x1b[0m "), undefined);
  assert.equal(
    widths.ready("Größe – “naïve” … Привет Ωμέγα".normalize("NFC").replace("έ", "ε")),
    undefined,
  );
  assert.deepEqual(["a", "ü", "…", "Ж", "❯"].map((one) => widths.of(one)), [1, 1, 1, 1, 1]);
});

Deno.test("wide, combining and joined characters take the cells that a terminal gives them", async () => {
  const widths = new Widths();
  await widths.ready("日");
  assert.equal(widths.ready("日"), undefined);
  const shown = ["日", "e\u0301", "\u0301", "👩‍💻", "🇫🇷", "1️⃣", "각", "ﾊﾞ"];
  assert.deepEqual(shown.map((one) => widths.of(one)), [2, 1, 0, 2, 2, 2, 2, 2]);
});
