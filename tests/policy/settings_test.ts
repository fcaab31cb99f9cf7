import assert from "node:assert/strict";
import fc from "fast-check";
import { Policy } from "../../src/policy/policy.ts";
import { checkMode, policySettings } from "../../src/policy/settings.ts";
import { ACTIONS, config, site, tool } from "./support.ts";

const tool_permission = { read: "allow", edit: "allow", bash: "ask", bash_allow: ["ls"] };

Deno.test("mode build takes the configuration as it is [2.13]", () => {
  const view = config({ tool_permission, "tools.allow": ["a"], "tools.deny": ["b"] });
  assert.deepEqual(policySettings(view, "build"), {
    mode: "build",
    actions: { read: "allow", edit: "allow", bash: "ask" },
    bash_allow: ["ls"],
    allow: ["a"],
    deny: ["b"],
    read_only: false,
    warnings: [],
  });
});

Deno.test("mode plan denies edit and bash, whatever the configuration allows [5.3]", () => {
  const view = config({ tool_permission: { ...tool_permission, bash: "allow" } });
  const { mode, actions } = policySettings(view, "plan");
  assert.deepEqual([mode, actions.edit, actions.bash, actions.read], [
    "plan",
    "deny",
    "deny",
    "allow",
  ]);
});

Deno.test("modes.plan narrows plan and opens nothing", () => {
  const own = { bash: "ask", edit: "allow", dev: "allow", read: "deny" };
  const view = config({ tool_permission, modes: { plan: { tool_permission: own } } });
  const { actions, read_only } = policySettings(view, "plan");
  assert.deepEqual([actions.edit, actions.bash, actions.dev], ["deny", "deny", "deny"]);
  assert.deepEqual([actions.read, read_only], ["deny", true]);
  const prompt = config({ tool_permission, modes: { plan: { system_prompt: "think" } } });
  assert.equal(policySettings(prompt, "plan").actions.bash, "deny");
});

Deno.test("a custom mode wins per key, adds to tools.deny and replaces tools.allow [2.13]", () => {
  const modes = {
    review: {
      tool_permission: { edit: "deny", bash_allow: ["git diff"] },
      tools: { allow: ["file_read"], deny: ["grep"] },
    },
    open: { tools: { allow: [] } },
  };
  const view = config({ tool_permission, modes, "tools.allow": ["a"], "tools.deny": ["b"] });
  const review = policySettings(view, "review");
  assert.deepEqual(review.actions, { read: "allow", edit: "deny", bash: "ask" });
  assert.deepEqual(review.bash_allow, ["git diff"]);
  assert.deepEqual([review.allow, review.deny], [["file_read"], ["b", "grep"]]);
  assert.deepEqual(policySettings(view, "open").allow, ["a"]);
});

Deno.test("an unknown mode is build, with a warning; named for this run it is an error [2.13]", () => {
  for (const mode of ["plna", "", "constructor", "__proto__"]) {
    const view = config({ tool_permission });
    const settings = policySettings(view, mode);
    assert.equal(settings.mode, "build");
    assert.deepEqual(settings.actions, policySettings(view, "build").actions);
    assert.match(settings.warnings[0]!, /^There is no mode ".*"; build is used/);
    assert.throws(() => checkMode(view, mode), {
      code: "unknown_mode",
      exit: 2,
      hint: mode === "plna" ? 'Did you mean "plan"?' : /^Modes are build, plan and /,
    });
  }
  for (const mode of ["build", "plan", "own"]) {
    checkMode(config({ tool_permission, modes: { own: {} } }), mode);
  }
});

Deno.test("an entry of bash_allow that can never match is reported, not obeyed", () => {
  const useless = [
    "",
    "git *",
    "a && b",
    "eval",
    "PATH=/tmp git",
    "ls > x",
    "$SHELL",
    "a\nb",
    "'a",
  ];
  for (const entry of useless) {
    const view = config({ tool_permission: { bash_allow: [entry, "git status"] } });
    const { warnings } = policySettings(view, "build");
    assert.equal(warnings.length, 1, entry);
    assert.ok(warnings[0]!.includes(JSON.stringify(entry)), entry);
  }
});

Deno.test("without any configuration everything is asked for", () => {
  using place = site();
  const policy = new Policy(policySettings(config(), "build"), place.guard, config());
  assert.equal(policy.resolve(tool(), { path: "a" }).action, "ask");
});

Deno.test("property: plan never allows edit or bash unless modes.plan is defined", () => {
  using place = site();
  const action = fc.constantFrom(...ACTIONS);
  const permission = fc.record(
    {
      edit: action,
      bash: action,
      bash_allow: fc.array(fc.constantFrom("ls", "git", "")),
    },
    { requiredKeys: [] },
  );
  const names = fc.array(fc.constantFrom("file_write", "run_command", "other"));
  fc.assert(fc.property(
    permission,
    permission,
    names,
    fc.constantFrom("edit", "bash"),
    fc.constantFrom("allow", "ask", undefined),
    fc.constantFrom(undefined, false as const),
    (global, mode, allow, category, refined, confirm) => {
      const view = config({
        tool_permission: global,
        modes: { build: { tool_permission: mode }, other: { tool_permission: mode } },
        "tools.allow": allow,
      });
      const policy = new Policy(policySettings(view, "plan"), place.guard, view);
      const permission_fn = () => refined as "allow" | "ask" | undefined;
      const each = tool({ permission: category, permission_fn, confirm });
      assert.equal(policy.resolve(each, { command: "ls", path: "a" }).action, "deny");
      assert.equal(policy.offers(each), false);
    },
  ));
});

Deno.test("a category that looks like a known one is warned of, and a plugin's own is not [2.13]", () => {
  const actions = { edits: "deny", Bash: "deny", dev: "ask", calendar: "allow", read: "allow" };
  const { warnings } = policySettings(config({ tool_permission: actions }), "build");
  assert.deepEqual(warnings, [
    "tool_permission.edits governs no tool of svc; did you mean tool_permission.edit?",
    "tool_permission.Bash governs no tool of svc; did you mean tool_permission.bash?",
  ]);
});
