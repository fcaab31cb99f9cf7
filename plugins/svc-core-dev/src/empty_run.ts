/** Whether the output of a test run says that no test ran, in the words of the common runners. */
export function ranNothing(output: string): boolean {
  // deno-lint-ignore no-control-regex
  const text = output.replaceAll(/\x1b\[[\d;]*m/g, "");
  if (RAN.test(text)) return false;
  if (SAID.some((phrase) => phrase.test(text))) return true;
  // Runners that sum up: every sum there is has to be nought.
  return SUMS.some((sum) => {
    const counts = [...text.matchAll(sum)].map(([, ...groups]) => groups.map(Number));
    return counts.length > 0 && counts.flat().every((count) => count === 0);
  });
}

/** A test that ran somewhere, in another package or under another name, is a test that ran. */
const RAN = new RegExp(
  "\\b[1-9]\\d* (?:passed|passing|failed|failing)\\b" +
    "|^(?:# |ℹ )tests [1-9]" +
    "|^(?:ok|FAIL)[ \\t]+\\S+[ \\t]+(?:\\(cached\\)|[\\d.]+s)(?:[ \\t]+coverage:.*)?$",
  "m",
);

const SAID = [
  /^error: No test modules found/m,
  /^no tests ran\b|^=+ no tests ran|\bcollected 0 items\b/m,
  /^No tests found/m,
  /^No test files found/m,
  /^Could not find '/m, // node --test
  /^no packages to test$|^stat .*: directory not found$|^package \S+ is not in std\b/m, // go
  /^make: \*\*\* No rule to make target/m,
];

const SUMS = [
  /^(?:ok|FAILED) \| (\d+) passed.*?\| (\d+) failed/gm, // deno
  /^test result: \w+\. (\d+) passed; (\d+) failed/gm, // cargo
  /^(?:# |ℹ )tests (\d+)$/gm, // node --test
  /^ +(\d+) passing\b/gm, // mocha
];

/** Go says it per package; a package with tests among them is enough. */
export function goRanNothing(output: string): boolean {
  const lines = output.split("\n").filter((line) => /^(ok|FAIL|---|\?)\s/.test(line));
  return lines.length > 0 &&
    lines.every((line) => /\[no test files\]|\[no tests to run\]/.test(line));
}
