import assert from "node:assert/strict";
import { readFixture } from "../../src/eval/fixture.ts";
import { canonical, judge } from "../../src/eval/judge.ts";
import { ToolRegistry } from "../../src/tools/registry.ts";

const tools = new ToolRegistry();
tools.register({
  name: "file_read",
  description: "Reads.",
  parameters: { type: "object", properties: { path: { type: "string" } }, required: ["path"] },
  permission: "read",
  path_arg: "path",
  aliases: ["read"],
  param_aliases: { file: "path" },
  handler: () => "",
}, "test");

function verdict(given: Record<string, unknown>, ...paths: string[]) {
  const fixture = readFixture({ id: "f", task: "t", ...given }, "f");
  const calls = paths.map((path) => ({
    name: "file_read",
    arguments: { path },
    is_error: false,
  }));
  const same = canonical(fixture, calls, tools, "/work/tree");
  return judge(same.fixture, same.calls);
}

Deno.test("a fixture may use old names of tools and parameters", () => {
  const args = { read: { file: "a.txt" } };
  const verifier = { exact: true, must_include: ["read"], args };
  assert.equal(verdict({ expected: ["read"], verifier }, "a.txt").pass, true);
  assert.deepEqual(verdict({ verifier: { avoid: ["read"] } }, "a.txt").reasons, [
    "called file_read",
  ]);
});

Deno.test("paths are compared after normalisation", () => {
  const verifier = { args: { file_read: { path: "src/a.txt" } } };
  for (const path of ["src/a.txt", "./src/a.txt", "src//x/../a.txt", "/work/tree/src/a.txt"]) {
    assert.equal(verdict({ verifier }, path).pass, true, path);
  }
  for (const path of ["a.txt", "/src/a.txt", "/work/tree2/src/a.txt", "src/a.txt2"]) {
    assert.equal(verdict({ verifier }, path).pass, false, path);
  }
  assert.equal(verdict({}, "a.txt", "./a.txt").redundant, 1);
});
