import assert from "node:assert/strict";
import { goRanNothing, ranNothing } from "../src/plugin.ts";

/** Outputs of runners for a target, or a project, without tests. */
const EMPTY: Record<string, string> = {
  "deno, name": "\nok | 0 passed | 0 failed | 1 filtered out (16ms)",
  "deno, project": "error: No test modules found",
  "node, file": "Could not find '/srv/site/gone.test.js'",
  "node, project": "# tests 0\n# pass 0",
  "go, folder": "stat /srv/site/gone: directory not found\nFAIL\t./gone [setup failed]\nFAIL",
  "go, package": "package gone is not in std (/usr/local/go/src/gone)",
  "go, project": 'go: warning: "./..." matched no packages\nno packages to test',
  "go, name": "ok  \tx\t0.003s [no tests to run]",
  "cargo, name": "test result: ok. 0 passed; 0 failed; 0 ignored; 1 filtered out",
  "pytest, file": "============ no tests ran in 0.00s ============",
  "make, rule": "make: *** No rule to make target 'gone'.  Stop.",
};

for (const [which, output] of Object.entries(EMPTY)) {
  Deno.test(`a run without a test is detected: ${which}`, () => {
    assert.equal(ranNothing(output) || goRanNothing(output), true);
  });
}

/** Outputs of runs with tests that report an empty package. */
const FULL: Record<string, string> = {
  "vitest, workspaces": "No test files found, exiting with code 0\n Tests  4 passed (4)",
  "a test of a runner": "No tests found\nok | 2 passed | 0 failed (3ms)",
  "node, workspaces": "# tests 0\n# pass 0\n# tests 3\n# pass 3",
  "go, a folder that is gone": "stat /srv/x: directory not found\nok  \texample.com/x\t(cached)",
};

for (const [which, output] of Object.entries(FULL)) {
  Deno.test(`a run with a test is not empty: ${which}`, () => {
    assert.equal(ranNothing(output) || goRanNothing(output), false);
  });
}
