import assert from "node:assert/strict";
import { join } from "node:path";
import { call, say, startBackend } from "../support/backend.ts";
import { inProcess } from "../support/io.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

Deno.test("roles are listed, shown, written and removed from the command line [2.12, 4.7]", async () => {
  await using place = await project();
  const run = (...args: string[]) => svc(["roles", ...args], { cwd: place.path });

  const list = await run("list", "review");
  assert.equal(list.code, 0);
  assert.deepEqual(list.stdout.trim().split("\n").map((line) => line.split(/\s+/).slice(0, 2)), [
    ["code-reviewer", "bundled"],
    ["editor", "bundled"],
    ["tester", "bundled"],
  ]);
  const made = await run(
    ...["new", "tester", "--model", "demo/x", "--tags", "mine, other", "--skills", "brief"],
    ...["--tool-permission", "bash=deny", "--tool-permission", "vcs=ask"],
  );
  assert.equal(made.code, 0);
  assert.deepEqual(JSON.parse(await place.read(".svc/roles.json")), {
    tester: {
      model: "demo/x",
      tags: ["mine", "other"],
      skills: ["brief"],
      tool_permission: { bash: "deny", vcs: "ask" },
    },
  });
  const shown = JSON.parse((await run("show", "tester", "--output", "json")).stdout);
  assert.deepEqual(shown.layers, ["bundled", "local"]);
  assert.equal(shown.value.tool_permission.edit, "allow");
  assert.equal(shown.value.tool_permission.bash, "deny");
  const page = (await run("show", "tester")).stdout;
  assert.match(page, /^tester \(local, over bundled\)\n/);
  assert.match(page, /\ntool_permission: .*bash=deny/);
  assert.match(page, /\nsystem_prompt:\n\nYou test\./);

  const again = await run("new", "tester", "--model", "other");
  assert.deepEqual([again.code, again.stdout], [2, ""]);
  assert.match(again.stderr, /local role tester already.*\nhint: .*--force/);
  assert.equal((await run("new", "tester", "--model", "other", "--force")).code, 0);
  assert.deepEqual(JSON.parse(await place.read(".svc/roles.json")), { tester: { model: "other" } });

  const removed = await run("remove", "tester");
  assert.equal(removed.code, 0);
  assert.match(removed.stderr, /removed; the bundled one is in effect/);
  const refused = await run("remove", "tester");
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /bundled.*\nhint: .*cannot be removed/);
});

Deno.test("a role or team comes from a file, standard input, or a copy of the effective one [2.12]", async () => {
  await using place = await project({ "clerk.json": '{"model": "a", "ask_policy": {}}' });
  await using home = await project();
  const run = (args: string[], stdin?: string) =>
    inProcess(args, { cwd: place.path, home: home.path, stdin });
  await run(["roles", "new", "clerk", "--file", "clerk.json", "--model", "b", "--global"]);
  const file = join(".config", "svc", "roles.json");
  assert.deepEqual(JSON.parse(await home.read(file)), { clerk: { model: "b", ask_policy: {} } });
  await run(["teams", "new", "pair", "--file", "-"], '{"stages": ["clerk", {"role": "editor"}]}');
  await run(["teams", "new", "trio", "--stages", "clerk, writer,editor"]);
  await run(["roles", "new", "editor"]);
  assert.deepEqual(JSON.parse(await place.read(".svc/teams.json")), {
    pair: { stages: ["clerk", { role: "editor" }] },
    trio: { stages: ["clerk", "writer", "editor"] },
  });
  const { editor } = JSON.parse(await place.read(".svc/roles.json"));
  assert.deepEqual(Object.keys(editor), [
    "description",
    "system_prompt",
    "tags",
    "tool_permission",
  ]);
});

Deno.test("skills are Markdown texts that are listed, shown, written and removed from the command line [2.12, 4.7]", async () => {
  await using place = await project({ "how.md": "# How to\n\nBe brief.\n" });
  const run = (...args: string[]) => inProcess(["skills", ...args], { cwd: place.path });
  assert.equal((await run("new", "how", "--file", "how.md")).code, 0);
  assert.equal(await place.read(".svc/skills/how.md"), "# How to\n\nBe brief.\n");
  assert.equal((await run("list")).stdout, "how  local  How to\n");
  assert.match((await run("show", "how")).stdout, /\n\ntext:\n\n# How to\n\nBe brief\.\n$/);
  assert.equal((await run("new", "how", "--file", "how.md")).code, 2);
  assert.equal((await run("remove", "how")).code, 0);
  assert.equal((await run("list")).stdout, "");
});

Deno.test("wrong usage of the catalog exits 2 with a hint and writes nothing", async () => {
  await using place = await project({ "bad.json": "[", "list.json": "[]" });
  const cases: [args: string[], expected: RegExp][] = [
    [["roles", "show", "testr"], /no role "testr".*\nhint: .*tester/],
    [["roles", "new", "x"], /no field of a new one was passed.*\nhint: .*roles new --help/],
    [["roles", "new", "a/b", "--model", "m"], /cannot be the name of a role.*\nhint: /],
    [["roles", "new", "x", "--tool-permission", "bash"], /category=action/],
    [["roles", "new", "x", "--tool-permission", "bash=maybe"], /"allow", "ask" or "deny"/],
    [["roles", "new", "x", "--file", "bad.json"], /not valid JSON/],
    [["roles", "new", "x", "--file", "list.json"], /JSON object/],
    [["roles", "new", "x", "--file", "none.json"], /none\.json cannot be read/],
    [["teams", "remove", "nobody"], /no team "nobody"/],
    [["skills", "new", "x"], /no field of a new one was passed/],
    [["roles", "lst"], /\nhint: .*--help/],
  ];
  for (const [args, expected] of cases) {
    const { code, stdout, stderr } = await inProcess(args, { cwd: place.path });
    assert.equal(code, 2, args.join(" "));
    assert.equal(stdout, "", args.join(" "));
    assert.match(stderr, expected, args.join(" "));
  }
  const roles = await place.read(".svc/roles.json").catch(() => "");
  assert.equal(roles, "");
});

const ROLES = {
  clerk: {
    system_prompt: "You keep the minutes.",
    skills: ["brief"],
    tool_permission: { edit: "deny", bash: "allow" },
  },
  plain: { skills: ["brief"] },
  moved: { model: "demo/other" },
};

/** A worktree with roles and a skill. */
function withRoles(config: Record<string, unknown> = {}) {
  return project({
    ".svc/roles.json": JSON.stringify(ROLES),
    ".svc/skills/brief.md": "Be brief.",
    ".svc/config.json": JSON.stringify({ system_prompt: "You are configured.", ...config }),
  });
}

Deno.test("--role gives the run the role's prompt and skills, and the session its name [2.12, 4.4]", async () => {
  await using place = await withRoles();
  await using backend = startBackend([say("a"), say("b"), say("c")]);
  const run = (...args: string[]) =>
    inProcess(["run", "--base-url", backend.url, "--model", "test", "-p", "hi", ...args], {
      cwd: place.path,
    });
  const { code, stdout } = await run("--role", "clerk");
  assert.equal(code, 0);
  await run("--role", "plain");
  await run();
  const [clerk, plain, none] = backend.chats.map((chat) => chat.messages[0].content);
  const skills = "\n\n## Skills\n\n### brief\n\nBe brief.\n\n";
  assert.ok(clerk.startsWith(`You keep the minutes.${skills}`), "in place of the configured one");
  assert.ok(!clerk.includes("You are configured."));
  assert.ok(plain.startsWith(`You are configured.${skills}`), "a role without a prompt leaves it");
  assert.ok(none.startsWith("You are configured.\n\n") && !none.includes("## Skills"));
  const { session } = JSON.parse(stdout);
  assert.equal(JSON.parse(await place.read(`.svc/sessions/${session}.json`)).role, "clerk");
});

Deno.test("role permissions restrict the tools of a run, and open what the configuration asks about [2.12]", async () => {
  await using place = await withRoles({ tool_permission: { edit: "allow", bash: "ask" } });
  await using backend = startBackend([
    call("file_write", { path: "a.txt", content: "x" }),
    call("run_command", { command: "touch b.txt" }),
    say("done"),
  ]);
  const { code, stdout } = await inProcess(
    ["run", "--base-url", backend.url, "--model", "test", "--role", "clerk", "-p", "hi"],
    { cwd: place.path },
  );
  assert.equal(code, 0);
  const { session } = JSON.parse(stdout);
  const log = JSON.parse(await place.read(`.svc/sessions/${session}.json`));
  const decisions = log.permissions.map((entry: Record<string, string>) => [
    entry.tool,
    entry.action,
    entry.decision,
  ]);
  assert.deepEqual(decisions, [
    ["file_write", "deny", "denied"],
    ["run_command", "allow", "granted"],
  ]);
  const offered = backend.chats[0].tools.map((tool: { function: { name: string } }) =>
    tool.function.name
  );
  assert.ok(!offered.includes("file_write") && offered.includes("run_command"));
  await assert.rejects(place.read("a.txt"));
  await place.read("b.txt");
});

Deno.test("a role's model ref is used once it is approved, and --model overrides it [2.12, 4.4, 4.10, 5.2]", async () => {
  await using place = await withRoles();
  await using home = await project();
  await using backend = startBackend([say("a"), say("b"), say("c")]);
  const run = (...args: string[]) =>
    inProcess(["run", "--base-url", backend.url, "--role", "moved", "-p", "hi", ...args], {
      cwd: place.path,
      home: home.path,
    });
  const denied = await run();
  assert.equal(denied.code, 2);
  assert.match(denied.stderr, /model not approved: demo\/other.*\nhint: .*--approve-model/);
  assert.equal(backend.chats.length, 0);
  const given = await run("--model", "mine");
  assert.equal(JSON.parse(given.stdout).model, "mine");
  const approved = await run("--approve-model");
  assert.deepEqual(
    [JSON.parse(approved.stdout).provider, JSON.parse(approved.stdout).model],
    ["demo", "other"],
  );
  const later = await run();
  assert.equal(later.code, 0);
  assert.deepEqual(backend.chats.map((chat) => chat.model), ["mine", "other", "other"]);
});

Deno.test("the setting approve_models approves what --approve-model does [5.2]", async () => {
  await using place = await withRoles({ approve_models: true });
  await using backend = startBackend([say("a")]);
  const args = ["run", "--base-url", backend.url, "--role", "moved", "-p", "hi"];
  const { code, stderr } = await inProcess(args, { cwd: place.path });
  assert.equal(code, 0, stderr);
  assert.deepEqual(backend.chats.map((chat) => chat.model), ["other"]);
});

Deno.test("--provider ignores a role's model of another provider, and uses one of its own", async () => {
  await using place = await withRoles({ model: "configured" });
  await using backend = startBackend([say("a"), say("b")]);
  const run = (...args: string[]) =>
    inProcess(["run", "--base-url", backend.url, "--role", "moved", "-p", "hi", ...args], {
      cwd: place.path,
    });
  assert.equal((await run("--provider", "openai")).code, 0);
  const own = await run("--provider", "demo");
  assert.match(own.stderr, /model not approved: demo\/other/);
  assert.equal((await run("--provider", "demo", "--approve-model")).code, 0);
  assert.deepEqual(backend.chats.map((chat) => chat.model), ["configured", "other"]);
});

Deno.test("an unknown role, skill or instructions file exits 2 before anything is created [7.4]", async () => {
  await using place = await project({
    ".svc/roles.json": JSON.stringify({
      unskilled: { skills: ["none"] },
      lost: { instructions: "gone.md" },
    }),
  });
  const cases: [role: string, expected: RegExp][] = [
    ["resercher", /no role "resercher".*\nhint: Did you mean researcher/],
    ["unskilled", /no skill "none"/],
    ["lost", /gone\.md cannot be used: there is no such file/],
  ];
  for (const [role, expected] of cases) {
    const { code, stdout, stderr } = await inProcess(
      ["run", "--provider", "demo", "--role", role, "hi"],
      { cwd: place.path },
    );
    assert.equal(code, 2, role);
    assert.equal(stdout, "", role);
    assert.match(stderr, expected);
  }
  assert.deepEqual([...Deno.readDirSync(join(place.path, ".svc"))].map(({ name }) => name), [
    "roles.json",
  ]);
});

Deno.test("a session of another role keeps its role, with a warning", async () => {
  await using place = await withRoles();
  await using backend = startBackend({ replies: [{ text: "ok", repeat: 3 }] });
  const run = (role: string) =>
    inProcess(
      [
        ...["run", "--base-url", backend.url, "--model", "test"],
        ...["--session-id", "notes", "--role", role, "hi"],
      ],
      { cwd: place.path },
    );
  assert.equal((await run("clerk")).stderr, "");
  assert.equal((await run("clerk")).stderr, "");
  const other = await run("tester");
  assert.equal(other.code, 0);
  assert.match(other.stderr, /warning: Session notes belongs to the role clerk.*runs as tester/);
  assert.equal(JSON.parse(await place.read(".svc/sessions/notes.json")).role, "clerk");
});

Deno.test("plugins register roles, teams and skills", async () => {
  const source = `
    export function register_roles(roles) {
      roles.add_plugin({ name: "guide", system_prompt: "You guide." });
      roles.add_plugin({ name: "tester", description: "from the plugin" });
    }
    export function register_teams(teams) {
      teams.add_plugin({ name: "tour", stages: ["guide", "tester"] });
    }
    export function register_skills(skills) {
      skills.add_plugin({ name: "map", text: "Read the map." });
    }`;
  const manifest = {
    name: "guides",
    version: "1.0.0",
    description: "guides",
    entry: "plugin.ts",
    provides: { roles: ["guide"], teams: ["tour"], skills: ["map"] },
  };
  await using place = await project({
    ".svc/plugins/guides/manifest.json": JSON.stringify(manifest),
    ".svc/plugins/guides/plugin.ts": source,
    ".svc/config.json": JSON.stringify({ plugins: ["guides", "svc-core-fs"] }),
  });
  await using backend = startBackend([say("ok")]);
  const run = (...args: string[]) => inProcess(args, { cwd: place.path });
  const tester = JSON.parse((await run("roles", "show", "tester", "--output", "json")).stdout);
  assert.deepEqual(tester.layers, ["bundled", "plugin"]);
  assert.equal(tester.value.description, "from the plugin");
  assert.match((await run("teams", "list")).stdout, /^tour +plugin/m);
  assert.match((await run("skills", "list")).stdout, /^map +plugin +Read the map\./);
  await run("run", "--base-url", backend.url, "--model", "test", "--role", "guide", "hi");
  assert.match(backend.chats[0].messages[0].content, /^You guide\./);
});

Deno.test("a command without a subcommand lists, with its options", async () => {
  await using place = await project({ ".svc/roles.json": '{"clerk": {"tags": 1}}' });
  for (const kind of ["roles", "teams", "skills", "asks"]) {
    const bare = await inProcess([kind], { cwd: place.path });
    const named = await inProcess([kind, "list"], { cwd: place.path });
    assert.deepEqual(bare, named);
    assert.equal(bare.code, 0);
  }
  const json = await inProcess(["roles", "--output", "json"], { cwd: place.path });
  assert.equal(JSON.parse(json.stdout).length, 12);
  const { stdout } = await inProcess(["roles"], { cwd: place.path });
  assert.match(stdout, /^clerk +local +broken: .*roles\.json: "clerk\.tags" must be a list/m);
  assert.equal((await inProcess(["roles", "programmer"], { cwd: place.path })).code, 2);
  const run = await inProcess(["run", "--role", "clerk", "hi"], { cwd: place.path });
  assert.equal(run.code, 2);
  assert.match(run.stderr, /^svc: The role clerk cannot be used: /m);
});
