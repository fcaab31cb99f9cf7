import assert from "node:assert/strict";
import fc from "fast-check";
import type { Action } from "../../src/plugins/api.ts";
import { actionOf, Policy } from "../../src/policy/policy.ts";
import type { PolicySettings } from "../../src/policy/settings.ts";
import { ACTIONS, config, settings, type Site, site, tool } from "./support.ts";

function policy(place: Site, given: Partial<PolicySettings> = {}): Policy {
  return new Policy(settings(given), place.guard, config());
}

Deno.test("the action of a call is that of its category, and ask for a category without one [2.13, 5.3]", () => {
  using place = site();
  for (const action of ACTIONS) {
    const { action: decided, category } = policy(place, { actions: { edit: action } })
      .resolve(tool(), { path: "a" });
    assert.deepEqual([decided, category], [action, "edit"]);
  }
  for (const permission of ["deploy", "constructor", "__proto__", "toString"]) {
    assert.equal(policy(place).resolve(tool({ permission }), {}).action, "ask", permission);
  }
});

Deno.test("a value of tool_permission that is no action is asked for, never allowed [5.3]", () => {
  using place = site();
  const actions = { edit: "Deny" as Action };
  assert.equal(policy(place, { actions }).resolve(tool(), { path: "a" }).action, "ask");
});

Deno.test("tools.deny names tools by name or alias, withholds them and beats everything else [2.13, 5.3]", () => {
  using place = site();
  const each = tool({ aliases: ["write_file"], permission_fn: () => "allow" });
  for (const name of ["file_write", "write_file"]) {
    const strict = policy(place, { deny: [name], allow: ["file_write"] });
    assert.equal(strict.offers(each), false);
    const { action, reason } = strict.resolve(each, { path: "a" });
    assert.deepEqual([action, reason], ["deny", "tools.deny names file_write"]);
  }
});

Deno.test("tools.allow, when not empty, denies and withholds every other tool [2.13, 5.3]", () => {
  using place = site();
  const each = tool({ aliases: ["write_file"] });
  for (const name of ["file_write", "write_file"]) {
    assert.equal(policy(place, { allow: [name] }).offers(each), true);
    assert.equal(policy(place, { allow: [name] }).resolve(each, { path: "a" }).action, "allow");
  }
  assert.equal(policy(place, { allow: ["grep"] }).offers(each), false);
  assert.equal(policy(place, { allow: ["grep"] }).resolve(each, { path: "a" }).action, "deny");
});

Deno.test("a tool of a denied category is withheld, one that must be asked for is offered [5.3]", () => {
  using place = site();
  assert.equal(policy(place, { actions: { edit: "deny" } }).offers(tool()), false);
  assert.equal(policy(place, { actions: { edit: "ask" } }).offers(tool()), true);
});

Deno.test("a tool's resolver refines a base action that is not deny [2.4, 5.3]", () => {
  using place = site();
  for (const base of ACTIONS) {
    for (const refined of [...ACTIONS, undefined]) {
      const each = tool({ permission_fn: () => refined });
      const { action } = policy(place, { actions: { edit: base } }).resolve(each, { path: "a" });
      assert.equal(action, base === "deny" ? "deny" : refined ?? base, `${base} ${refined}`);
    }
  }
});

Deno.test("a tool's resolver is skipped without arguments, and gets the configuration with them [5.3]", () => {
  using place = site();
  let seen: unknown;
  const view = config({ role: "x" });
  const each = tool({
    permission_fn: (_, given) => {
      seen = given.get("role");
      return "deny";
    },
  });
  const decide = new Policy(settings(), place.guard, view);
  assert.equal(decide.resolve(each, {}).action, "allow");
  assert.equal(seen, undefined);
  assert.equal(decide.resolve(each, { path: "a" }).action, "deny");
  assert.equal(seen, "x");
});

Deno.test("a resolver that throws, or answers nonsense, leads to a question", () => {
  using place = site();
  const broken = [
    () => {
      throw new Error("no network");
    },
    () => "yes" as Action,
    () => Promise.resolve("allow") as unknown as Action,
  ];
  for (const permission_fn of broken) {
    const { action, reason } = policy(place).resolve(tool({ permission_fn }), { path: "a" });
    assert.equal(action, "ask");
    assert.match(reason, /file_write cannot judge these arguments/);
  }
});

Deno.test("a path outside the worktree escalates allow to ask and keeps ask and deny [5.3]", () => {
  using place = site();
  const outside = `${place.outside}/x`;
  for (const base of ACTIONS) {
    const decision = policy(place, { actions: { edit: base } }).resolve(tool(), { path: outside });
    assert.equal(decision.action, base === "deny" ? "deny" : "ask");
    assert.deepEqual(decision.outside, base === "deny" ? [] : [outside]);
    assert.equal(decision.path, outside);
  }
  const { action } = policy(place).resolve(tool({ permission_fn: () => "allow" }), {
    path: outside,
  });
  assert.equal(action, "ask");
});

Deno.test("every path argument is scoped, and the audit names each [2.4, 5.3]", () => {
  using place = site();
  const each = tool({ path_arg: ["path", "other"] });
  const decide = policy(place);
  assert.equal(decide.resolve(each, { path: "a", other: "b" }).action, "allow");
  const { action, path, outside } = decide.resolve(each, { path: "a", other: "../outside/b" });
  assert.deepEqual([action, path], ["ask", "a, ../outside/b"]);
  assert.deepEqual(outside, [`${place.outside}/b`]);
  assert.equal(decide.resolve(each, { other: "../outside/b" }).action, "ask");
  assert.deepEqual(decide.resolve(each, {}).path, "");
});

Deno.test("a path that is not a string, holds a NUL byte or loops is denied", () => {
  using place = site();
  Deno.symlinkSync("loop", `${place.worktree}/loop`);
  const bad = [3, true, ["a"], { a: 1 }, "a\0b", "loop", "loop/x"];
  for (const actions of [{ edit: "allow" as const }, { edit: "ask" as const }]) {
    for (const path of bad) {
      const { action } = policy(place, { actions }).resolve(tool(), { path });
      assert.equal(action, "deny", JSON.stringify(path));
    }
  }
});

Deno.test("a change of svc's settings or of .git asks like a path outside the worktree, and reading does not [5.3]", () => {
  using place = site();
  Deno.mkdirSync(`${place.worktree}/sub/.git/hooks`, { recursive: true });
  const places = [
    ".svc/config.json",
    ".svc",
    ".svc/plugins/x.ts",
    ".SVC/config.json",
    "src/../.svc/jobs.json",
    "agent/.svc/config.json",
    ".git/hooks/pre-commit",
    ".git/config",
    ".git",
    "sub/.git/hooks/post-checkout",
  ];
  for (const path of places) {
    const edit = policy(place).resolve(tool(), { path });
    assert.equal(edit.action, "ask", path);
    assert.equal(edit.outside.length, 1, path);
    for (const permission of ["read", "list"]) {
      assert.equal(policy(place).resolve(tool({ permission }), { path }).action, "allow", path);
    }
    const actions = { vcs: "allow" as const };
    const vcs = policy(place, { actions }).resolve(tool({ permission: "vcs" }), { path });
    assert.equal(vcs.action, "ask", path);
  }
  for (const path of [".gitignore", "svc", ".svcx/a", "src/git/config", "x.svc"]) {
    assert.equal(policy(place).resolve(tool(), { path }).action, "allow", path);
  }
});

Deno.test("the user's settings are protected even when the home directory is the worktree", () => {
  using place = site({ home: true });
  const decide = policy(place);
  assert.equal(decide.resolve(tool(), { path: ".config/svc/config.json" }).action, "ask");
  assert.equal(decide.resolve(tool(), { path: ".config/other" }).action, "allow");
  const read = tool({ permission: "read" });
  assert.equal(decide.resolve(read, { path: ".config/svc/config.json" }).action, "allow");
});

Deno.test("the file with the keys is closed to every tool, however it is reached", () => {
  using place = site({ home: true });
  const keys = `${place.user}/providers.json`;
  Deno.writeTextFileSync(keys, "{}");
  Deno.symlinkSync(keys, `${place.worktree}/innocent`);
  Deno.symlinkSync(place.user, `${place.worktree}/dir`);
  const ways = [
    keys,
    ".config/svc/providers.json",
    ".config/svc/PROVIDERS.json",
    ".config/svc/.providers.json.a1b2c3.tmp",
    ".config/svc/providers.json.bak",
    "innocent",
    "dir/providers.json",
    "dir/../svc/providers.json",
    ".config/svc/mcp-logins.json",
  ];
  for (const permission of ["read", "list", "edit", "bash"]) {
    for (const path of ways) {
      const actions = { bash: "allow" as const };
      const { action, reason } = policy(place, { actions }).resolve(tool({ permission }), { path });
      assert.equal(action, "deny", `${permission} ${path}`);
      assert.match(reason, /holds keys/);
    }
  }
});

Deno.test("keys and state that are links are protected at their targets", () => {
  using place = site();
  Deno.writeTextFileSync(`${place.worktree}/dotfiles.json`, "{}");
  Deno.symlinkSync(`${place.worktree}/dotfiles.json`, `${place.user}/providers.json`);
  Deno.mkdirSync(`${place.worktree}/state`);
  Deno.symlinkSync("state", `${place.worktree}/.svc`);
  const decide = policy(place);
  const read = tool({ permission: "read" });
  assert.equal(decide.resolve(read, { path: "dotfiles.json" }).action, "deny");
  assert.equal(decide.resolve(tool(), { path: "state/config.json" }).action, "ask");
});

Deno.test("a tool that is never confirm-gated is allowed or denied, and never asks [5.3]", () => {
  using place = site();
  const each = tool({ name: "ask", permission: "ask", confirm: false });
  const at = (action: Action) => policy(place, { actions: { ask: action } });
  assert.equal(at("ask").resolve(each, { other: "x" }).action, "allow");
  assert.equal(at("allow").resolve(each, { other: "x" }).action, "allow");
  assert.equal(at("deny").resolve(each, { other: "x" }).action, "deny");
  // A path that needs an approval is denied.
  const { action, reason } = at("allow").resolve(each, { path: place.outside });
  assert.equal(action, "deny");
  assert.match(reason, /outside the worktree, and ask never asks/);
});

Deno.test("bash_allow with ask: listed runs, unlisted asks, several lines are denied [2.13]", () => {
  using place = site();
  const decide = policy(place, { bash_allow: ["git status", "ls"] });
  const run = tool({ name: "run_command", permission: "bash", path_arg: "cwd" });
  const action = (command: unknown) => decide.resolve(run, { command }).action;
  assert.equal(action("git status -s | ls"), "allow");
  assert.equal(action("git push"), "ask");
  assert.equal(action("ls $(rm x)"), "ask");
  assert.equal(action("ls\nls"), "deny");
  assert.equal(action("ls <<EOF"), "deny");
  assert.equal(action(undefined), "ask");
  assert.equal(decide.resolve(run, { command: "ls", cwd: place.outside }).action, "ask");
});

Deno.test("bash_allow with allow: unlisted commands are denied; with deny: all commands are [2.13]", () => {
  using place = site();
  const run = tool({ name: "run_command", permission: "bash" });
  const decide = (action: Action, command: string) =>
    policy(place, { actions: { bash: action }, bash_allow: ["ls"] }).resolve(run, { command });
  assert.equal(decide("allow", "ls -l").action, "allow");
  const { action, reason } = decide("allow", "rm x");
  assert.equal(action, "deny");
  assert.match(reason, /"rm x" does not begin with an allowed command/);
  assert.equal(decide("deny", "ls").action, "deny");
});

Deno.test("with a cwd, a command by a relative path is another program", () => {
  using place = site();
  const run = tool({ name: "run_command", permission: "bash", path_arg: "cwd" });
  const decide = policy(place, { bash_allow: ["./build.sh", "ls"] });
  const action = (args: Record<string, unknown>) => decide.resolve(run, args).action;
  assert.equal(action({ command: "./build.sh" }), "allow");
  assert.equal(action({ command: "./build.sh", cwd: "src" }), "ask");
  assert.equal(action({ command: "ls", cwd: "src" }), "allow");
});

Deno.test("bash_allow applies only to the category bash, and an empty list to nothing", () => {
  using place = site();
  const other = tool({ permission: "mcp" });
  const decide = policy(place, { actions: { mcp: "ask" }, bash_allow: ["ls"] });
  assert.equal(decide.resolve(other, { command: "ls" }).action, "ask");
  const run = tool({ permission: "bash" });
  assert.equal(policy(place).resolve(run, { command: "ls" }).action, "ask");
  const allowed = policy(place, { actions: { bash: "allow" } });
  assert.equal(allowed.resolve(run, { command: "a\nb" }).action, "allow");
});

Deno.test("the prompt is told which categories are refused without approval [5.3]", () => {
  using place = site();
  const tools = [
    tool({ name: "a", permission: "edit" }),
    tool({ name: "b", permission: "bash" }),
    tool({ name: "c", permission: "deploy" }),
    tool({ name: "d", permission: "vcs", permission_fn: () => "allow" }),
    tool({ name: "e", permission: "vcs" }),
    tool({ name: "f", permission: "question", confirm: false }),
    tool({ name: "g", permission: "pay" }),
    tool({ name: "h", permission: "pay", confirm: false }),
  ];
  const others = [
    "deploy",
    "vcs (except calls that d allows for their arguments)",
    "pay (except calls of h)",
  ];
  assert.deepEqual(policy(place).refusedWithoutApproval(tools), ["bash", ...others]);
  assert.deepEqual(
    policy(place, { bash_allow: ["git status", "ls"] }).refusedWithoutApproval(tools),
    ["bash (except commands that start with: git status, ls)", ...others],
  );
});

const anyAction = fc.constantFrom(...ACTIONS);
const anyPath = fc.constantFrom(
  "a",
  "",
  "..",
  "/",
  ".svc/x",
  ".git/config",
  "../outside",
  "src/../../outside/x",
);
const severity = (action: Action) => ACTIONS.indexOf(action);

Deno.test("property: tools.deny always wins, over every action, resolver and allowlist [1, 5.3]", () => {
  using place = site();
  fc.assert(fc.property(
    anyAction,
    fc.constantFrom(...ACTIONS, undefined),
    fc.constantFrom("file_write", "write_file"),
    fc.boolean(),
    anyPath,
    (base, refined, name, allowed, path) => {
      const each = tool({ aliases: ["write_file"], permission_fn: () => refined });
      const decide = policy(place, {
        actions: { edit: base },
        deny: [name],
        allow: allowed ? [name] : [],
      });
      assert.equal(decide.resolve(each, { path }).action, "deny");
      assert.equal(decide.offers(each), false);
    },
  ));
});

Deno.test("property: no resolver, list or path turns a denied action into another", () => {
  using place = site();
  const bash_allow = fc.constantFrom<string[]>([], ["ls"]);
  fc.assert(fc.property(
    fc.constantFrom("edit", "bash", "read"),
    fc.constantFrom(...ACTIONS, undefined),
    bash_allow,
    anyPath,
    (permission, refined, bash_allow, path) => {
      const each = tool({ permission, permission_fn: () => refined });
      const decide = policy(place, { actions: { [permission]: "deny" }, bash_allow });
      assert.equal(decide.resolve(each, { path, command: "ls" }).action, "deny");
    },
  ));
});

Deno.test("property: scoping never lowers an action", () => {
  using place = site();
  fc.assert(fc.property(
    anyAction,
    fc.constantFrom(...ACTIONS, undefined),
    fc.constantFrom("edit", "read", "list", "vcs"),
    anyPath,
    (base, refined, permission, path) => {
      const each = tool({ permission, permission_fn: () => refined });
      const decide = policy(place, { actions: { [permission]: base } });
      const without = decide.resolve(each, { other: "x" }).action;
      const scoped = decide.resolve(each, { other: "x", path }).action;
      assert.ok(severity(scoped) >= severity(without));
    },
  ));
});

Deno.test("team has the action of delegate until it is set itself [4.8, 5.3]", () => {
  const team = (actions: Record<string, Action>) => actionOf(settings({ actions }), "team");
  assert.equal(team({ delegate: "deny" }), "deny");
  assert.equal(team({ delegate: "allow" }), "allow");
  assert.equal(team({ delegate: "deny", team: "allow" }), "allow");
  assert.equal(team({ delegate: "allow", team: "deny" }), "deny");
  assert.equal(team({}), "ask");
});

Deno.test("dev has the action of bash until it is set itself, without the exemptions of bash_allow", () => {
  const dev = (actions: Record<string, Action>, bash_allow: string[] = []) =>
    actionOf(settings({ actions, bash_allow }), "dev");
  assert.equal(dev({ bash: "allow" }), "allow");
  assert.equal(dev({ bash: "deny" }), "deny");
  assert.equal(dev({ bash: "deny" }, ["ls"]), "deny");
  assert.equal(dev({ bash: "allow" }, ["ls"]), "ask");
  assert.equal(dev({ bash: "deny", dev: "allow" }), "allow");
  assert.equal(dev({}), "ask");
});
