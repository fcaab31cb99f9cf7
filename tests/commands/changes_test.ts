import assert from "node:assert/strict";
import { changesOf } from "../../src/commands/changes.ts";
import type { Part } from "../../src/sessions/schema.ts";

function call(input: Record<string, unknown>, more: { is_error?: boolean } = {}): Part {
  const timestamp = "2026-01-02T03:04:05.000Z";
  return {
    type: "tool",
    name: "file_edit",
    input,
    output: "",
    is_error: false,
    timestamp,
    ...more,
  };
}

Deno.test("the changes of a file by several calls are one diff with its counts", () => {
  const changes = changesOf([
    { type: "text", text: "I edit.", timestamp: "" },
    call({ path: "a.txt", old: "one\ntwo\n", new: "one\n2\nthree\n" }),
    call({ path: "b.txt", content: "new\x1b[31m\n\tline\n" }),
    call({ path: "a.txt", old: "x", new: "y" }, { is_error: true }),
    call({ path: "a.txt", old: "four", new: "4" }),
    call({ path: "c.txt" }),
    call({ command: "rm d.txt" }),
  ]);
  assert.deepEqual(changes, [
    {
      path: "a.txt",
      added: 3,
      removed: 2,
      lines: [" one", "-two", "+2", "+three", "⋮", "-four", "+4"],
    },
    { path: "b.txt", added: 2, removed: 0, lines: ["+new", "+    line"] },
  ]);
});

Deno.test("a huge change is cut", () => {
  const [change] = changesOf([call({ path: "a", content: "x".repeat(10_000_000) })]);
  assert.equal(change!.lines.length, 2);
  assert.ok(change!.lines[0]!.length <= 100_001);
});
