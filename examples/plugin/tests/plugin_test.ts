import assert from "node:assert/strict";
import { firstLine } from "../src/plugin.ts";

Deno.test("the first line of a tide table is the tide", () => {
  assert.equal(firstLine("\nhigh at noon\nlow at six\n"), "high at noon");
});
