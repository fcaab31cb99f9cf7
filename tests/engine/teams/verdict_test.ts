import assert from "node:assert/strict";
import fc from "fast-check";
import { passes } from "../../../src/engine/team_brief.ts";

const PASSES = [
  "VERDICT: pass",
  "verdict: Pass.",
  "All is well.\n\nVERDICT: PASSED\n",
  "**VERDICT: pass**",
  "**Verdict:** pass",
  "**Verdict**: `pass`",
  "### VERDICT: pass",
  "> VERDICT: pass",
  "- VERDICT : pass",
  "`VERDICT: pass`",
  "```\nVERDICT: pass\n```",
  "VERDICT: ✅ pass",
  "VERDICT: pass — all findings are settled",
  "VERDICT: pass, no tests failing",
  "## Verdict:\n\nPass",
  "VERDICT：pass",
  "VERDICT: pass\r\n",
  "VERDICT: fail\n\nOn second thoughts:\nVERDICT: pass",
  "The work is sound. VERDICT: pass",
  "Both findings are settled (see above) VERDICT: PASS.",
  "VERDICT: pass with two remarks for later",
  "VERDICT: PASS all tests are green",
];
const NOT = [
  "",
  "pass",
  "It passes.",
  "VERDICT: fail",
  "VERDICT:",
  "VERDICT: not a pass",
  "VERDICT: no pass",
  "VERDICT: passable",
  "VERDICT: pass/fail",
  "VERDICT: pass | fail",
  "VERDICT: pass or fail",
  "VERDICT: pass (fails on Windows)",
  "VERDICT: pass if the tests are mended",
  "VERDICT: pass once the remarks are settled",
  "VERDICT: pass, but only on Linux",
  "VERDICT: pass. VERDICT: fail",
  "The last VERDICT: pass was wrong",
  "VERDICT: pass\nVERDICT: fail",
  "VERDICT: `pass` or `fail`",
  "VERDICT\npass",
];

Deno.test("a verdict is a pass whatever its case and Markdown, and the last one counts [2.12]", () => {
  for (const answer of PASSES) assert.ok(passes(answer, "VERDICT:"), answer);
});

Deno.test("no verdict, another word, or a pass under a condition is no pass [2.12]", () => {
  for (const answer of NOT) assert.ok(!passes(answer, "VERDICT:"), answer);
});

Deno.test("a team may have a mark of its own", () => {
  assert.ok(passes("Result => pass", "**Result** =>"));
  assert.ok(!passes("VERDICT: pass", "RESULT:"));
});

Deno.test("property: whatever stands before it, the last line decides", () => {
  fc.assert(
    fc.property(fc.string(), (before) => {
      assert.ok(passes(`${before}\nVERDICT: pass`, "VERDICT:"));
      assert.ok(!passes(`${before}\nVERDICT: fail`, "VERDICT:"));
    }),
  );
});
