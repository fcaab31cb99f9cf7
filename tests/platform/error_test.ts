import assert from "node:assert/strict";
import { errorMessage, nearest, writeHint } from "../../src/platform/error.ts";

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

Deno.test("what Deno's permissions refuse is said without its flags, and with the profile of an executable", () => {
  const error = new Deno.errors.NotCapable(
    'Requires write access to "/x", run again with the --allow-write flag',
  );
  const said: [string | undefined, string, string][] = [
    [undefined, 'This process has no write access to "/x"', ""],
    ["archive build 1", 'This process has no write access to "/x"', ""],
    [
      "archive plan 1",
      'This svc, of the profile plan, has no write access to "/x"',
      "The profile plan writes into .svc alone and starts no program. Do this with an svc of the profile build.",
    ],
  ];
  const before = Deno.env.get("SVC_BUILD");
  try {
    for (const [build, message, hint] of said) {
      if (build === undefined) Deno.env.delete("SVC_BUILD");
      else Deno.env.set("SVC_BUILD", build);
      assert.deepEqual([errorMessage(error), writeHint(error)], [message, hint]);
    }
  } finally {
    if (before === undefined) Deno.env.delete("SVC_BUILD");
    else Deno.env.set("SVC_BUILD", before);
  }
});
