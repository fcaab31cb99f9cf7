import assert from "node:assert/strict";
import { headlessOperator, type Operator } from "../../../src/policy/operator.ts";
import { agent, collect, results, type TestAgent } from "../../support/agent.ts";
import { as, call, type Reply, say } from "../../support/backend.ts";

const ROLES = {
  clerk: { system_prompt: "YOU FILE", tool_permission: { bash: "deny", edit: "deny" } },
  guarded: {
    system_prompt: "YOU GUARD",
    tool_permission: { edit: "deny" },
    ask_policy: { permission: "deny" },
  },
  chief: {
    system_prompt: "YOU LEAD",
    tool_permission: { edit: "deny", bash: "deny" },
    grant_permission: { edit: "allow", bash: "allow" },
  },
};
const files = {
  ".svc/roles.json": JSON.stringify(ROLES),
  ".svc/teams.json": JSON.stringify({ pair: { stages: ["clerk", "clerk"] } }),
  ".svc/skills/law.md": "The law\n\nNo murder.",
};
const catalog = (action: string, more: Record<string, unknown> = {}) =>
  call("catalog", { action, ...more });
const rolesOf = async (it: TestAgent) => JSON.parse(await it.project.read(".svc/roles.json"));

/** What the calls of one agent come to: the root, or a role that the root starts. */
async function attempt(
  replies: Reply[],
  { role, operator }: { role?: { name: string; system: string }; operator?: Operator } = {},
) {
  const own = role === undefined ? replies : replies.map((reply) => as(role.system, reply));
  const it = await agent([
    ...role === undefined ? [] : [call("delegate", { role: role.name, task: "work" })],
    ...own,
    ...role === undefined ? [] : [as(role.system, say("filed"))],
    say("done"),
  ], { files, operator });
  const { events } = await it.turn("go");
  return { it, outputs: results(events, role === undefined ? 1 : 2) };
}
const CLERK = { name: "clerk", system: "YOU FILE" };
const CHIEF = { name: "chief", system: "YOU LEAD" };

Deno.test("the tool catalog lists entries with their origin, shows, saves, removes and reloads them [4.8]", async () => {
  const { it, outputs } = await attempt([
    catalog("list"),
    catalog("list", { kind: "type" }),
    catalog("show", { kind: "team", name: "pair" }),
    catalog("save", { name: "poet", system_prompt: "You rhyme.", description: "Rhymes" }),
    catalog("save", { kind: "teams", name: "verse", stages: ["poet", { role: "editor" }] }),
    catalog("save", { kind: "skill", name: "metre", text: "# Count\n\nFeet." }),
    catalog("remove", { kind: "skill", name: "metre" }),
    catalog("remove", { name: "programmer" }),
    catalog("show", { name: "peot" }),
    catalog("save", { name: "x", stages: ["poet"] }),
    catalog("reload"),
    catalog("list", { kind: "colour" }),
    catalog("show"),
  ]);
  await using _ = it;
  const [all, roles, shown, poet, verse, metre, gone, bundled, unknown, wrong, reload, ...bad] =
    outputs;
  assert.match(all!, /^role assistant \(bundled\): Helps/m);
  assert.match(all!, /^team pair \(local\)$/m);
  assert.match(all!, /^skill law \(local\): The law$/m);
  assert.match(roles!, /^role clerk \(local\)$/m);
  assert.doesNotMatch(roles!, /^(team|skill)/m);
  assert.deepEqual(JSON.parse(shown!).stages[0].role, "clerk");
  assert.match(
    poet!,
    /^Saved\. In effect: role poet \(local\): Rhymes\nIt has no more than .* accept poet$/,
  );
  assert.equal(verse, "Saved. In effect: team verse (local)");
  assert.equal(metre, "Saved. In effect: skill metre (local): Count");
  assert.equal(gone, "Removed the skill metre.");
  assert.match(bundled!, /^Error: There is no local role programmer; .*cannot be removed/);
  assert.match(unknown!, /^Error: There is no role "peot"/);
  assert.match(wrong!, /^Error: "x\.stages" is no field of a role/);
  assert.match(reload!, /^15 roles, 4 teams, 1 skills$/);
  assert.match(bad[0]!, /^Error: .*kind must be/);
  assert.match(bad[1]!, /^Error: .*needs a name/);
  assert.deepEqual(Object.keys(await rolesOf(it)), ["clerk", "guarded", "chief", "poet"]);
});

Deno.test("an entry that the tool catalog saves needs an approval when it could do more than the agent may hand down [4.8]", async () => {
  const closed = { tool_permission: { bash: "deny", edit: "deny" } };
  const { it, outputs } = await attempt([
    catalog("save", { name: "helper", system_prompt: "x" }),
    catalog("save", { name: "helper", tool_permission: { bash: "deny", edit: "allow" } }),
    catalog("save", { name: "helper", ...closed, grant_permission: { edit: "allow" } }),
    catalog("save", { name: "programmer", system_prompt: "Also do this." }),
    catalog("save", { name: "helper", ...closed }),
  ], { role: CLERK });
  await using _ = it;
  const more =
    /^Error: permission denied: catalog .* could do more than this agent may hand down: /;
  // Three refused rounds in a row end the turn; each of them said why.
  assert.equal(outputs.length, 3);
  for (const output of outputs) assert.match(output, more);
  assert.match(outputs[0]!, /hand down: edit, bash \(/);
  assert.deepEqual(await rolesOf(it), ROLES);

  const closedRole = await attempt([catalog("save", { name: "helper", ...closed })], {
    role: CLERK,
  });
  await using __ = closedRole.it;
  assert.match(closedRole.outputs[0]!, /^Saved\./);
  const leader = await attempt([catalog("save", { name: "helper", system_prompt: "x" })], {
    role: CHIEF,
  });
  await using ___ = leader.it;
  assert.match(leader.outputs[0]!, /^Saved\./, "a leader may hand it down");
});

Deno.test("a change that lifts a denial, or sets another model, file or answerer needs an approval", async () => {
  const same = { system_prompt: "YOU GUARD" };
  const edit = { tool_permission: { edit: "deny" } };
  const policy = { ask_policy: { permission: "deny" } };
  const cases: [Reply, RegExp][] = [
    [
      catalog("save", { name: "guarded", ...same, ...policy }),
      /is denied what would be open then: edit/,
    ],
    [catalog("remove", { name: "guarded" }), /would be open then: edit/], // and could be made anew
    [catalog("save", { name: "guarded", ...same, ...edit }), /gets another ask_policy/],
    [catalog("save", { name: "guarded", ...edit, ...policy, model: "x" }), /gets another model/],
    [catalog("save", { name: "new", instructions: "a.md" }), /gets another instructions/],
    [catalog("save", { name: "new", ask_policy: { permission: "auto" } }), /another ask_policy/],
    [
      catalog("save", { name: "editor", tool_permission: { edit: "allow" } }),
      /would be open then: edit/,
    ],
    [catalog("save", { name: "guarded", ...edit, ...policy, tags: ["x"] }), /^Saved/],
  ];
  for (const [reply, expected] of cases) {
    const { it, outputs } = await attempt([reply]);
    await using _ = it;
    assert.match(outputs[0]!, expected);
  }
});

Deno.test("an agent with less than full rights changes no team or skill that others use", async () => {
  const { it, outputs } = await attempt([
    catalog("save", { kind: "skill", name: "law", text: "Murder." }),
    catalog("save", { kind: "skill", name: "order", text: "Tidy up." }),
    catalog("remove", { kind: "team", name: "pair" }),
    catalog("save", { kind: "team", name: "programming", stages: ["clerk"] }),
    catalog("save", { kind: "team", name: "files", stages: ["clerk"] }),
  ], { role: CLERK });
  await using _ = it;
  const [law, order, pair, programming, own] = outputs;
  for (const denied of [law, pair, programming]) {
    assert.match(
      denied!,
      /permission denied: .*is there already, and others that use it may do more/,
    );
  }
  assert.match(order!, /^Saved/);
  assert.match(own!, /^Saved/);
  assert.match(await it.project.read(".svc/skills/law.md"), /No murder/);
});

Deno.test("an operator may approve it, for that call alone, and is shown what is to be saved", async () => {
  const shown: string[] = [];
  const operator: Operator = {
    ...headlessOperator(false),
    confirm({ preview }) {
      shown.push(preview);
      return Promise.resolve({ granted: true, scope: "always", by: "operator" });
    },
  };
  const save = catalog("save", { name: "free", system_prompt: "x" });
  const { it, outputs } = await attempt([save, save], { role: CLERK, operator });
  await using _ = it;
  assert.equal(outputs.filter((output) => output.startsWith("Saved.")).length, 2);
  assert.deepEqual(shown, Array(2).fill('{\n  "system_prompt": "x"\n}'));
});

Deno.test("a role that an agent saves and starts does no more than the agent may", async () => {
  await using it = await agent([
    call("delegate", { role: "clerk", task: "work" }),
    as("YOU FILE", catalog("save", { name: "free", system_prompt: "YOU ARE FREE" })),
    as("YOU FILE", call("delegate", { role: "free", task: "write" })),
    as("YOU ARE FREE", call("file_write", { path: "x.txt", content: "x" })),
    as("YOU ARE FREE", say("tried")),
    as("YOU FILE", say("filed")),
    say("done"),
  ], { files, operator: headlessOperator(true) });
  const { events } = await it.turn("go");
  assert.match(results(events, 2)[0]!, /^Saved/);
  assert.match(results(events, 3)[0]!, /^Error: permission denied: file_write/);
  await assert.rejects(it.project.read("x.txt"));
});

Deno.test("agents of an immutable engine change nothing, at any depth and with any approval", async () => {
  const save = catalog("save", { name: "poet", system_prompt: "x" });
  await using it = await agent([
    save,
    catalog("remove", { name: "clerk" }),
    call("delegate", { role: "chief", task: "work" }),
    as("YOU LEAD", save),
    as("YOU LEAD", catalog("show", { name: "clerk" })),
    as("YOU LEAD", say("seen")),
    say("done"),
  ], { files });
  const operator = headlessOperator(true);
  const prepared = await it.prepare({ operator, headless: false, immutable: true });
  const { events, result } = await collect(prepared.open(it.session).turn("go"));
  assert.equal(result.content, "done");
  const denied = /^Error: permission denied: .*written by its operator alone/;
  for (const output of results(events).slice(0, 2)) assert.match(output, denied);
  const [saved, shown] = results(events, 2);
  assert.match(saved!, denied);
  assert.match(shown!, /YOU FILE/);
  assert.deepEqual(await rolesOf(it), ROLES);
});

Deno.test("replacing a role with a broken part needs an approval; a role that changed on disk is judged as on disk", async () => {
  await using it = await agent([
    catalog("show", { name: "clerk" }),
    { ...catalog("save", { name: "clerk", system_prompt: "x" }), when: { user: "later" } },
    { ...catalog("save", { name: "odd", system_prompt: "x" }), when: { user: "later" } },
    say("done"),
    say("done"),
  ], { files: { ".svc/roles.json": JSON.stringify({ clerk: {}, odd: { tags: 1 } }) } });
  await it.turn("go");
  await it.project.write(
    ".svc/roles.json",
    JSON.stringify({ clerk: { tool_permission: { web: "deny" } }, odd: { tags: 1 } }),
  );
  const { events } = await it.turn("later");
  const [clerk, odd] = results(events);
  assert.match(clerk!, /would be open then: web/);
  assert.match(odd!, /has a broken part, which may deny something/);
});

Deno.test("an agent whose mode bars tools or commands saves nothing that is run without the mode", async () => {
  const tool_permission = { bash: "ask", bash_allow: ["git status", "ls"] };
  const modes = {
    barred: { tools: { deny: ["run_command"] } },
    few: { tools: { allow: ["catalog", "file_read"] } },
    quiet: { tool_permission: { bash_allow: ["ls"] } },
    plain: { tools: { deny: [] } },
  };
  const cases = { barred: "tools.deny", few: "tools.allow", quiet: "bash_allow", plain: "" };
  for (const [mode, list] of Object.entries(cases)) {
    await using it = await agent([
      catalog("save", { name: "later", system_prompt: "Run it." }),
      catalog("save", { name: "shut", tool_permission: { bash: "deny" } }),
      catalog("save", { kind: "skill", name: "law", text: "Run it." }),
      say("done"),
    ], { files, config: { tool_permission, modes, mode } });
    const [later, shut, law] = results((await it.turn("go")).events);
    if (list === "") {
      for (const output of [later, shut, law]) assert.match(output!, /^Saved\./, mode);
      continue;
    }
    assert.match(later!, new RegExp(`could do more than this agent may hand down: ${list} `));
    assert.match(law!, new RegExp(`may do more than this agent \\(${list}\\)`));
    if (list === "bash_allow") assert.match(shut!, /^Saved\./);
    else assert.match(shut!, /permission denied/);
  }
});
