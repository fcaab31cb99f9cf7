import assert from "node:assert/strict";
import { agent, systemOf } from "../../support/agent.ts";
import { call, type Reply, say } from "../../support/backend.ts";

const files = {
  ".svc/roles.json": JSON.stringify({
    digger: { system_prompt: "YOU DIG", description: `Digs\n${"deep ".repeat(100)}` },
    lost: { tags: 1 },
  }),
};

Deno.test("an agent is told the roles and teams that can work for it, a short line each", async () => {
  await using it = await agent([say("hi")], { files });
  await it.turn("go");
  assert.match(systemOf(it), /## Who can work for you\n\nRoles, for delegate:\n- assistant: Helps/);
  assert.match(systemOf(it), /\nTeams, for team:\n- programming: Plan, program/);
  const [digger] = /^- digger: .*$/m.exec(systemOf(it))!;
  assert.match(digger, /^- digger: Digs deep .*\.\.\.$/);
  assert.ok(digger.length < 140);
  assert.doesNotMatch(systemOf(it), /- lost/);
});

Deno.test("the prompt lists the first entries of a long catalog, and how many more there are", async () => {
  const roles = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`a${100 + i}`, {}]));
  await using it = await agent([say("hi")], {
    files: { ".svc/roles.json": JSON.stringify(roles) },
  });
  await it.turn("go");
  assert.equal(systemOf(it).match(/^- a1\d\d$/gm)!.length, 40);
  assert.match(systemOf(it), /^- and 31 more$/m);
});

Deno.test("the prompt lists nothing for a denied tool, for one that no one can approve, and at the last depth", async () => {
  const cases: [Record<string, unknown>, RegExp, RegExp][] = [
    [{ "tools.deny": ["delegate"] }, /Teams, for team/, /for delegate/],
    [{ tool_permission: { team: "deny" } }, /Roles, for delegate/, /for team/],
    [{ tool_permission: { delegate: "ask", team: "ask" } }, /are refused/, /Who can work/],
  ];
  for (const [config, there, missing] of cases) {
    await using it = await agent([say("hi")], { config });
    await it.turn("go");
    assert.match(systemOf(it), there);
    assert.doesNotMatch(systemOf(it), missing);
  }
  const dig = call("delegate", { role: "digger", task: "dig" });
  const as = (reply: Reply): Reply => ({ ...reply, when: { system: "YOU DIG" } });
  await using it = await agent([
    dig,
    as(dig),
    as(dig),
    as({ ...say("up"), repeat: 3 }),
    say("done"),
  ], { files });
  await it.turn("go");
  const told = [0, 1, 2, 3].map((n) => systemOf(it, n).includes("Who can work for you"));
  assert.deepEqual(told, [true, true, true, false]);
});
