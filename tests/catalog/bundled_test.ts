import assert from "node:assert/strict";
import { openCatalog } from "./support.ts";

const PERMISSIONS: Record<string, Record<string, string>> = {
  assistant: {},
  composer: {
    edit: "deny",
    bash: "deny",
    team: "deny",
    web: "allow",
    read: "allow",
    list: "allow",
    catalog: "allow",
  },
  leader: { bash: "deny", web: "deny" },
  researcher: { edit: "deny", bash: "deny", web: "allow", read: "allow" },
  writer: { bash: "deny", web: "deny", edit: "allow", read: "allow" },
  referencer: { bash: "deny", web: "deny", edit: "allow", read: "allow" },
  editor: { edit: "deny", bash: "deny", web: "deny", read: "allow" },
  planner: { edit: "deny", bash: "deny", web: "allow", read: "allow" },
  programmer: { web: "deny", edit: "allow", bash: "allow", read: "allow" },
  tester: { web: "deny", edit: "allow", bash: "allow", read: "allow" },
  "code-reviewer": { edit: "deny", web: "deny", bash: "allow", read: "allow" },
};

Deno.test("the bundled roles keep their permissions, and each prompt is short [2.12]", async () => {
  await using place = await openCatalog();
  const roles = place.catalog.list("role");
  assert.deepEqual(roles.map(({ name }) => name), Object.keys(PERMISSIONS).sort());
  const tags = new Set(["management", "research", "writing", "programming", "review"]);
  for (const { name, origin, layers, value } of roles) {
    assert.deepEqual(value.tool_permission, PERMISSIONS[name], name);
    assert.deepEqual([origin, layers], ["bundled", ["bundled"]]);
    assert.ok(value.tags.length > 0 && value.tags.every((tag) => tags.has(tag)), name);
    assert.ok(value.description.length > 0 && value.description.length < 100, name);
    const lines = value.system_prompt.split("\n").length;
    assert.ok(lines >= 5 && lines <= 20, `${name} has ${lines} lines`);
  }
  const { grant_permission } = place.catalog.need("role", "leader").value;
  assert.deepEqual(
    Object.keys(grant_permission!).sort(),
    ["ask", "bash", "edit", "list", "read", "web"],
  );
  assert.deepEqual(place.warnings, []);
});

Deno.test("the bundled teams are chains of bundled roles whose loops end at a role that gives a verdict [2.12]", async () => {
  await using place = await openCatalog();
  const chains = place.catalog.list("team").map(({ name, value }) => [
    name,
    value.stages.map(({ role }) => role),
  ]);
  assert.deepEqual(Object.fromEntries(chains), {
    writing: ["researcher", "writer", "referencer", "editor"],
    programming: ["planner", "programmer", "tester", "code-reviewer"],
  });
  for (const { name, value: { stages, loop } } of place.catalog.list("team")) {
    assert.ok(stages.every((stage) => stage.task_hint !== ""), name);
    assert.ok(stages.slice(1).every((stage) => stage.handoff_note !== ""), name);
    assert.deepEqual(loop, { from: 2, until: 4, max_iterations: 3, verdict: "VERDICT:" }, name);
    const { system_prompt } = place.catalog.need("role", stages[loop.until - 1]!.role).value;
    assert.match(system_prompt, /`VERDICT: pass`[^]*`VERDICT: fail`/, name);
  }
  assert.deepEqual(place.warnings, []);
});
