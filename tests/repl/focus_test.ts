import assert from "node:assert/strict";
import { RunRegistry } from "../../src/engine/runs.ts";
import { Focus } from "../../src/repl/focus.ts";

/** root(1) > writer(2) > editor(3); root > tester(4), root > planner(5) */
function tree(): RunRegistry {
  const runs = new RunRegistry(100);
  const add = (parent: number, role: string, id: string) =>
    runs.start({ parent, role, task: "", session: { name: id === "" ? "named" : `s_${id}`, id } });
  add(0, "", "");
  add(1, "writer", "aaaaaa");
  add(2, "editor", "bbbbbb");
  add(1, "tester", "cccccc");
  add(1, "planner", "123456");
  return runs;
}

Deno.test("/focus #<run>, #<session id>, session:<name> and root lead to their runs [3.6, 4.7]", () => {
  const cases: [string, number][] = [
    ["#3", 3],
    ["#cccccc", 4],
    ["#123456", 5],
    ["session:s_bbbbbb", 3],
    ["session:named", 1],
    ["root", 1],
  ];
  for (const [target, run] of cases) {
    const focus = new Focus(tree);
    focus.to(target);
    assert.equal(focus.run, run, target);
  }
});

Deno.test("/focus child, parent, sibling, next and prev step through the runs [3.6]", () => {
  const cases: [from: string, step: string, to: number][] = [
    ["root", "child", 5],
    ["#2", "child", 3],
    ["#3", "parent", 2],
    ["#2", "sibling", 4],
    ["#4", "sibling", 5],
    ["#5", "sibling", 2],
    ["#2", "next", 3],
    ["#4", "prev", 3],
    ["#3", "root", 1],
  ];
  for (const [from, step, to] of cases) {
    const focus = new Focus(tree);
    focus.to(from);
    focus.to(step);
    assert.equal(focus.run, to, `${from} ${step}`);
  }
});

Deno.test("/focus back goes through what was focused before, and root begins anew [3.6]", () => {
  const focus = new Focus(tree);
  for (const target of ["#3", "#5", "back"]) focus.to(target);
  assert.equal(focus.run, 3);
  focus.to("back");
  assert.equal(focus.run, 1);
  assert.throws(() => focus.to("back"), { code: "focus_target" });
  focus.to("#3");
  focus.to("root");
  assert.equal(focus.depth, 0);
});

Deno.test("/focus rejects a role, a bare name and unknown targets, and stays [3.6, 7.4]", () => {
  for (const target of ["writer", "s_aaaaaa", "#9", "#zzzzzz", "session:other", "sideways", ""]) {
    const focus = new Focus(tree);
    focus.to("#2");
    assert.throws(() => focus.to(target), { code: "focus_target" }, target);
    assert.equal(focus.run, 2);
  }
  const alone = new Focus(() => new RunRegistry(10));
  for (const step of ["child", "parent", "sibling", "next", "prev"]) {
    assert.throws(() => alone.to(step), { code: "focus_target" });
  }
});
