import assert from "node:assert/strict";
import { nearest } from "../../src/platform/error.ts";

Deno.test("a suggestion is at most two edits away and shares a letter with the word", () => {
  const cases: [word: string, candidates: string[], guess: string | undefined][] = [
    ["rnu", ["run", "roles"], "run"],
    ["jbs", ["jobs", "logs"], "jobs"],
    ["comp", ["compact", "roles"], "compact"],
    ["zz", ["a", "bb"], undefined],
    ["ab", ["b"], "b"],
    ["x", ["y"], undefined],
    ["nightly", ["nightfall"], undefined],
  ];
  for (const [word, candidates, guess] of cases) assert.equal(nearest(word, candidates), guess);
});
