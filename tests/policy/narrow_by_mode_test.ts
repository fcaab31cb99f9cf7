import assert from "node:assert/strict";
import { narrowByMode } from "../../src/policy/roles.ts";
import { config, settings } from "./support.ts";

const modes = {
  lists: { tool_permission: { bash: "allow", bash_allow: ["git status", "ls"] } },
  asks: { tool_permission: { bash: "ask", bash_allow: ["git status -s", "ls"] } },
  tools: { tools: { allow: ["grep", "bash"], deny: ["glob"] } },
};
const under = (mode: string, given: Parameters<typeof settings>[0]) =>
  narrowByMode(settings(given), config({ modes }), mode);

Deno.test("no mode changes nothing, and plan denies edit and bash", () => {
  const given = settings({ actions: { edit: "allow", bash: "ask", web: "deny" } });
  assert.equal(narrowByMode(given, config(), ""), given);
  const plan = narrowByMode(given, config(), "plan");
  assert.deepEqual(plan.actions, { ...given.actions, edit: "deny", bash: "deny" });
  assert.equal(plan.mode, "plan");
});

Deno.test("a mode opens no category, and its lists of tools are added to those there are", () => {
  const { actions } = under("lists", { actions: { bash: "deny" } });
  assert.equal(actions.bash, "deny");
  const wide = under("tools", { allow: [], deny: ["web_fetch"] });
  assert.deepEqual([wide.allow, wide.deny], [["grep", "bash"], ["web_fetch", "glob"]]);
  assert.deepEqual(under("tools", { allow: ["grep", "edit"] }).allow, ["grep"]);
  // Not the empty list, which would let all of them through.
  assert.deepEqual(under("tools", { allow: ["run_command"] }).allow, [""]);
});

Deno.test("of two lists of commands, what both let through is left", () => {
  const bash = (mode: string, action: "allow" | "ask", bash_allow: string[]) => {
    const { actions, bash_allow: left } = under(mode, { actions: { bash: action }, bash_allow });
    return [actions.bash, ...left];
  };
  assert.deepEqual(bash("lists", "allow", []), ["allow", "git status", "ls"]);
  assert.deepEqual(bash("lists", "allow", ["git", "make"]), ["allow", "git status"]);
  assert.deepEqual(bash("lists", "allow", ["make"]), ["deny"]);
  assert.deepEqual(bash("lists", "ask", []), ["deny"]);
  assert.deepEqual(bash("lists", "ask", ["ls -l"]), ["allow", "ls -l"]);
  assert.deepEqual(bash("asks", "ask", ["git status"]), ["ask", "git status -s"]);
  assert.deepEqual(bash("asks", "ask", ["make"]), ["ask"]);
  assert.deepEqual(bash("asks", "allow", ["make"]), ["deny"]);
  assert.deepEqual(bash("asks", "allow", ["ls"]), ["allow", "ls"]);
});
