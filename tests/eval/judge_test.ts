import assert from "node:assert/strict";
import fc from "fast-check";
import { readFixture } from "../../src/eval/fixture.ts";
import { judge, type TraceCall } from "../../src/eval/judge.ts";

const fixture = (given: Record<string, unknown>) =>
  readFixture({ id: "f", task: "t", ...given }, "f");
const calls = (...names: string[]): TraceCall[] =>
  names.map((name, at) => ({ name, arguments: { at }, is_error: false }));

Deno.test("accuracy is the share of the expected calls made in order", () => {
  const expected = ["a", "b", "c", "d"];
  const accuracy = (...names: string[]) => judge(fixture({ expected }), calls(...names)).accuracy;
  assert.deepEqual(
    [accuracy(), accuracy("a"), accuracy("d", "c"), accuracy("a", "x", "c", "d")],
    [0, 0.25, 0.25, 0.75],
  );
  assert.equal(accuracy("x", "a", "b", "b", "c", "x", "d"), 1);
  assert.equal(judge(fixture({}), calls("x")).accuracy, 1);
});

Deno.test("each condition of a verifier fails a run, with a reason", () => {
  const conditions: [Record<string, unknown>, string[], string[]][] = [
    [{ exact: true }, ["a", "b"], ["made other calls than the expected ones"]],
    [{ must_include: ["c"] }, ["a"], ["did not call c"]],
    [{ avoid: ["b"] }, ["a", "b"], ["called b"]],
    [{ max_calls: 1 }, ["a", "b"], ["made 2 calls, at most 1 wanted"]],
    [{ min_calls: 2 }, ["a"], ["made 1 calls, at least 2 wanted"]],
    [{ args: { a: { at: 5 } } }, ["a"], ["never called a with the wanted arguments"]],
  ];
  for (const [verifier, names, reasons] of conditions) {
    const verdict = judge(fixture({ expected: ["a"], verifier }), calls(...names));
    assert.deepEqual([verdict.pass, verdict.reasons], [false, reasons]);
  }
  const verifier = { must_include: ["b"], avoid: ["c"], max_calls: 2, args: { b: { at: 1 } } };
  assert.equal(judge(fixture({ expected: ["a"], verifier }), calls("a", "b")).pass, true);
});

Deno.test("repeated and failed calls are counted", () => {
  const call = (path: unknown, is_error = false) => ({ name: "a", arguments: { path }, is_error });
  const trace = [call({ x: 1, y: 2 }), call({ y: 2, x: 1 }), call("b", true), call("c")];
  const { redundant, errors } = judge(fixture({}), trace);
  assert.deepEqual([redundant, errors], [1, 1]);
});

Deno.test("property: a run with the expected calls passes, with other calls in between", () => {
  const name = fc.constantFrom("a", "b", "c");
  fc.assert(fc.property(fc.array(name), fc.array(fc.nat(9)), (expected, places) => {
    assert.equal(
      judge(fixture({ expected, verifier: { exact: true } }), calls(...expected)).pass,
      true,
    );
    const more = places.reduce<string[]>((list, at) => list.toSpliced(at, 0, "x"), expected);
    assert.equal(judge(fixture({ expected }), calls(...more)).accuracy, 1);
  }));
});

Deno.test("an invalid fixture is rejected with the name of the field", () => {
  const refused: [Record<string, unknown>, RegExp][] = [
    [{ task: "" }, /task: /],
    [{ id: "../x" }, /id: /],
    [{ expected: "a" }, /expected: /],
    [{ verifier: { exactly: true } }, /verifier: /],
    [{ tool_permission: { bash: "yes" } }, /tool_permission.bash: /],
    [{ files: { "../x": "" } }, /no place in the worktree/],
    [{ files: { "/x": "" } }, /no place in the worktree/],
    [{ files: { ".svc/config.json": "{}" } }, /no place in the worktree/],
    [{ files: { "a//b": "" } }, /no place in the worktree/],
    [{ files: { "a": "", "a/b": "" } }, /"a" as a file and as a folder/],
  ];
  for (const [given, expected] of refused) assert.throws(() => fixture(given), expected);
});
