import assert from "node:assert/strict";
import type { TurnEvent } from "../../../src/engine/events.ts";
import { RunRegistry } from "../../../src/engine/runs.ts";

const session = (name: string, id = "") => ({ name, id });

function family() {
  const runs = new RunRegistry(3);
  runs.start({ parent: 0, role: "", session: session("nightly"), task: "all" });
  runs.start({
    parent: 1,
    role: "tester",
    session: session("sub_1_2_abc123", "abc123"),
    task: "a",
  });
  runs.start({ parent: 2, role: "writer", session: session("sub_1_2_3", "000002"), task: "b" });
  runs.start({ parent: 1, role: "tester", session: session("sub_4"), task: "c" });
  return runs;
}

Deno.test("runs are numbered as they come, and form a log and a tree [1, 2.5]", () => {
  const runs = family().list();
  assert.deepEqual(runs.map(({ id, parent, children }) => [id, parent, children]), [
    [1, 0, [2, 4]],
    [2, 1, [3]],
    [3, 2, []],
    [4, 1, []],
  ]);
  assert.deepEqual(runs[1], {
    id: 2,
    parent: 1,
    children: [3],
    role: "tester",
    session: "sub_1_2_abc123",
    session_id: "abc123",
    task: "a",
    status: "running",
  });
});

Deno.test("a run is found by its number, its session's id or name, or as the root [2.5, 3.6]", () => {
  const runs = family();
  const found: [string, number | undefined][] = [
    ["#2", 2],
    ["2", 2],
    ["#abc123", 2],
    ["abc123", 2],
    ["#000002", 3], // an id of digits is no number of a run
    ["session:sub_4", 4],
    ["sub_4", 4],
    ["root", 1],
    ["nightly", 1],
    ["#5", undefined],
    ["#0", undefined],
    ["#", undefined],
    ["", undefined],
    ["tester", undefined],
  ];
  for (const [target, id] of found) assert.equal(runs.resolve(target)?.id, id, target);
  assert.equal(new RunRegistry(1).resolve("root"), undefined);
});

Deno.test("a run ends once, until it is resumed with another task [2.5]", () => {
  const runs = family();
  runs.finish(2, "cancelled");
  runs.finish(2, "ok");
  assert.equal(runs.resolve("#2")!.status, "cancelled");
  const { status, role, task } = runs.resume(2, { role: "editor", task: "again" });
  assert.deepEqual([status, role, task], ["running", "editor", "again"]);
  runs.finish(2, "ok");
  assert.equal(runs.resolve("#2")!.status, "ok");
  assert.equal(runs.list().length, 4);
});

Deno.test("the output of a run is bounded, also where a line has no end [2.5, 8]", () => {
  const runs = family();
  for (let i = 0; i < 10_000; i++) runs.record({ type: "token", run: 2, content: `${i} ` });
  const lines = runs.output(2);
  assert.equal(lines.length, 3);
  assert.ok(lines.every((line) => line.length < 1010));
  assert.ok(lines.join("").endsWith("9997 9998 9999 "));
});

Deno.test("a run keeps the newest lines of its own output as plain text [2.5]", () => {
  const runs = family();
  const token = (content: string, run = 2): TurnEvent => ({ type: "token", run, content });
  runs.record(token("one\ntw"));
  runs.record(token("\x1b[31mo"));
  runs.record(token("else", 3));
  runs.record({ type: "thinking", run: 2, content: "hm" });
  assert.deepEqual(runs.output(2), ["one", "two"]);
  runs.record({
    type: "tool_call",
    run: 2,
    id: "1",
    name: "grep",
    arguments: {},
    category: "read",
    status: "grep x",
  });
  runs.record(token("three\n"));
  assert.deepEqual(runs.output(2), ["> grep x", "three", ""]);
  runs.record({ type: "notice", run: 2, level: "error", message: "lost\nit" });
  assert.deepEqual(runs.output(2), ["three", "lost", "it"]);
  assert.deepEqual(runs.output(3), ["else"]);
  assert.deepEqual(runs.output(9), []);
  runs.record(token("unknown run", 9));
  const none = new RunRegistry(0);
  none.start({ parent: 0, role: "", session: session("s"), task: "" });
  for (const content of ["a", "b"]) none.record(token(content, 1));
  assert.deepEqual(none.output(1), []);
});
