import assert from "node:assert/strict";
import { agent, results, subs, systemOf } from "../../support/agent.ts";
import { as, call, type Reply, say } from "../../support/backend.ts";
import { bubblewrap } from "../../support/sandbox.ts";

/** Commands run without a sandbox. */
const bare = { config: { "sandbox.mode": "off" } };
/** A bundled role opens commands only where a full sandbox is in force. */
const BUBBLEWRAP = await bubblewrap();
const smith = { system_prompt: "YOU FORGE", tool_permission: { bash: "allow", mcp: "allow" } };
const user = { "roles.json": JSON.stringify({ smith }) };
const run = (command: string) => call("run_command", { command });
const to = (role: string, task = "work") => call("delegate", { role, task });
const PROGRAMMER = "You program.";

Deno.test("a role that a person wrote runs commands unattended, as a root and as a sub-agent [5.3]", async () => {
  const script = [run("echo forged > out.txt"), say("done")];
  await using root = await agent(script, { ...bare, user, role: "smith" });
  const { result } = await root.turn("go");
  assert.deepEqual([result.status, result.refused], ["ok", []]);
  assert.equal(await root.project.read("out.txt"), "forged\n");
  assert.doesNotMatch(systemOf(root), /refused: [^.]*bash/);
  await using under = await agent([
    to("smith"),
    ...script.map((reply) => as("YOU FORGE", reply)),
    run("echo root > root.txt"),
    say("done"),
  ], { ...bare, user });
  const { events } = await under.turn("go");
  assert.match(results(events)[0]!, /^done\n\n\[smith #2, session \w+\]$/);
  assert.match(results(events)[1]!, /^Error: permission denied: run_command/);
  assert.equal(await under.project.read("out.txt"), "forged\n");
  await assert.rejects(under.project.read("root.txt"));
});

Deno.test("a bundled role runs commands while a full sandbox is in force", BUBBLEWRAP, async () => {
  await using it = await agent([
    to("programmer"),
    ...[
      run("git init -q . && git config user.email a@b.example && git config user.name A"),
      run("echo made > out.txt"),
      run("git add out.txt && git commit -q -m made"),
      run("git log --oneline"),
      run("touch /usr/svc-outside"),
      say("done"),
    ].map((reply) => as(PROGRAMMER, reply)),
    say("done"),
  ]);
  const { events } = await it.turn("go");
  assert.match(results(events)[0]!, /^done/);
  const outputs = results(events, 2);
  assert.match(outputs[3]!, /made/);
  assert.match(outputs[4]!, /Read-only file system|Permission denied/);
});

Deno.test("a bundled role runs no command where no full sandbox is in force, and is told so [5.3]", async () => {
  for (const options of [bare, { env: { PATH: "" } }]) {
    await using it = await agent([
      to("programmer"),
      as(PROGRAMMER, run("true")),
      as(PROGRAMMER, say("refused")),
      say("done"),
    ], options);
    const { events } = await it.turn("go");
    assert.match(
      results(events)[0]!,
      /had less than its role asks for: bash \(ask\); was refused: run_command \(bash\)\]$/,
    );
    assert.match(systemOf(it, 1), /are refused: web, .*bash/);
  }
});

Deno.test("a role opens nothing that is denied, that plan mode denies, or that bash_allow does not list", async () => {
  const configs = [
    { tool_permission: { bash: "deny" } },
    { mode: "plan" },
    { tool_permission: { bash_allow: ["echo"] } },
    { "tools.deny": ["run_command"] },
  ];
  for (const config of configs) {
    await using it = await agent([run("touch x.txt"), say("done")], {
      user,
      config,
      role: "smith",
    });
    const { result } = await it.turn("go");
    assert.equal(result.tool_calls[0]!.is_error, true, JSON.stringify(config));
    await assert.rejects(it.project.read("x.txt"));
  }
});

Deno.test("a path outside the worktree still needs an approval in an opened category", async () => {
  const maker = { system_prompt: "YOU MAKE", tool_permission: { edit: "allow" } };
  await using it = await agent([
    call("file_write", { path: "in.txt", content: "x" }),
    call("file_write", { path: "/tmp/svc-roles-outside.txt", content: "x" }),
    say("done"),
  ], {
    user: { "roles.json": JSON.stringify({ maker }) },
    config: { tool_permission: { edit: "ask" } },
    role: "maker",
  });
  const { events, result } = await it.turn("go");
  const [inside, outside] = results(events);
  assert.match(inside!, /^Created/);
  assert.match(outside!, /^Error: permission denied: .*outside the worktree/);
  assert.deepEqual(result.refused, ["file_write (edit)"]);
});

Deno.test("a role that an agent saved runs no command until a person accepts it", async () => {
  const save: Reply = call("catalog", {
    action: "save",
    name: "helper",
    system_prompt: "YOU HELP",
    tool_permission: { edit: "allow", web: "deny", bash: "allow", vcs: "allow", mcp: "allow" },
  });
  await using it = await agent([
    save,
    to("helper"),
    as("YOU HELP", run("echo x > x.txt")),
    as("YOU HELP", say("refused")),
    say("done"),
    to("helper"),
    as("YOU HELP", run("echo x > x.txt")),
    as("YOU HELP", say("made")),
    say("done"),
  ]);
  const { events } = await it.turn("go");
  assert.match(
    results(events)[0]!,
    /^Saved\. In effect: role helper \(local\).*svc roles accept helper/s,
  );
  assert.match(results(events, 2)[0]!, /^Error: permission denied: run_command/);
  const catalog = await it.workspace.catalog();
  assert.equal(JSON.parse(await it.project.read(".svc/roles.json")).helper.accepted, false);
  await catalog.accept("local", "helper");
  assert.equal("accepted" in JSON.parse(await it.project.read(".svc/roles.json")).helper, false);
  await it.turn("again");
  assert.equal(await it.project.read("x.txt"), "x\n");
});

Deno.test(
  "an agent's change of a bundled role closes what that role would open",
  BUBBLEWRAP,
  async () => {
    await using it = await agent([
      call("catalog", { action: "save", name: "programmer", system_prompt: "YOU HACK" }),
      to("programmer"),
      as("YOU HACK", run("true")),
      as("YOU HACK", say("refused")),
      say("done"),
    ]);
    const { events } = await it.turn("go");
    assert.match(results(events)[0]!, /^Saved/);
    assert.match(results(events, 2)[0]!, /^Error: permission denied: run_command/);
  },
);

Deno.test("a person's override of another field leaves the categories of a bundled role to the sandbox", async () => {
  const roles = { programmer: { description: "Ours" } };
  await using it = await agent([
    to("programmer"),
    as(PROGRAMMER, run("true")),
    as(PROGRAMMER, say("refused")),
    say("done"),
  ], { ...bare, user: { "roles.json": JSON.stringify(roles) } });
  const { events } = await it.turn("go");
  assert.match(results(events, 2)[0]!, /^Error: permission denied: run_command/);
});

Deno.test("a leader hands down what its role opens; a saved role under it gets what the configuration allows", async () => {
  const lead = {
    system_prompt: "YOU LEAD",
    tool_permission: { bash: "deny" },
    grant_permission: { bash: "allow" },
  };
  const roles = {
    lead,
    hand: { system_prompt: "YOU ARE A HAND" },
    saved: { system_prompt: "YOU ARE SAVED", accepted: false },
  };
  await using it = await agent([
    to("lead"),
    as("YOU LEAD", run("touch lead.txt")),
    as("YOU LEAD", to("hand")),
    as("YOU ARE A HAND", run("touch hand.txt")),
    as("YOU ARE A HAND", say("ok")),
    as("YOU LEAD", to("saved")),
    as("YOU ARE SAVED", run("touch saved.txt")),
    as("YOU ARE SAVED", say("ok")),
    as("YOU LEAD", say("led")),
    say("done"),
  ], { ...bare, user: { "roles.json": JSON.stringify(roles) } });
  const { events } = await it.turn("go");
  const names = [...Deno.readDirSync(it.project.path)].map(({ name }) => name).sort();
  assert.deepEqual(names, [".svc", "hand.txt"], results(events).join("\n"));
  assert.equal(subs(events).length, 3);
});

Deno.test("every category that is refused is named in the prompt, of roots and sub-agents alike", async () => {
  const clerk = { system_prompt: "YOU FILE", tool_permission: { edit: "deny", web: "deny" } };
  await using it = await agent([to("clerk"), as("YOU FILE", say("filed")), say("done")], {
    user: { "roles.json": JSON.stringify({ clerk }) },
    config: { "mcp.servers": [{ name: "none", command: "none" }] },
  });
  await it.turn("go");
  const refused = (n: number) =>
    /Tools of these categories are refused: (.*?)\. Do not/.exec(systemOf(it, n))![1]!
      .replace(/ \(.*?\)/g, "").split(", ").sort();
  assert.deepEqual(refused(0), ["bash", "dev", "mcp", "vcs"]);
  assert.deepEqual(refused(1), ["bash", "dev", "edit", "mcp", "vcs", "web"]);
});
