import assert from "node:assert/strict";
import { join } from "node:path";
import { BUNDLED_PLUGINS } from "../../src/config/keys.ts";
import { Workspace } from "../../src/engine/workspace.ts";
import { scratch } from "./support.ts";

const OTHERS = BUNDLED_PLUGINS.filter((name) => name !== "svc-core-exec");

Deno.test("plugins.enabled and plugins.deny become the plugins list, in either spelling [9]", () => {
  const files = [
    { "plugins.enabled": ["a", "b", "c"], "plugins.deny": ["b"] },
    { plugins: { enabled: ["a", "b", "c"], deny: ["b"] } },
    { plugins: { enabled: ["a", "b", "c"] }, "plugins.deny": ["b"] },
    { plugins: { enabled: ["z"], deny: ["b"] }, "plugins.enabled": ["a", "b", "c"] },
  ];
  for (const local of files) {
    using temp = scratch({ local });
    const config = temp.open();
    assert.deepEqual(config.get("plugins"), ["a", "c"]);
    assert.equal(config.origin("plugins"), "local");
    assert.equal(config.warnings.length, 1);
    assert.ok(config.warnings[0]!.startsWith(temp.local));
    assert.ok(config.warnings[0]!.endsWith(`count as the list "plugins": ["a","c"]`));
  }
});

Deno.test("plugins.deny alone removes plugins from the default list", () => {
  using temp = scratch({ local: { "plugins.deny": ["svc-core-exec"] } });
  assert.deepEqual(temp.open().get("plugins"), OTHERS);
  using over = scratch({ global: { plugins: ["a", "b"] }, local: { "plugins.deny": ["b"] } });
  assert.deepEqual(over.open().get("plugins"), ["a"]);
  using both = scratch({ local: { plugins: ["a", "b"], "plugins.deny": ["b"] } });
  assert.deepEqual(both.open().get("plugins"), ["a"]);
});

Deno.test("a plugin that is denied globally stays denied with a local plugins.enabled [9]", () => {
  using temp = scratch({
    global: { plugins: { deny: ["svc-core-exec"] } },
    local: { plugins: { enabled: ["svc-core-fs", "svc-core-exec"] } },
  });
  const config = temp.open();
  assert.deepEqual(config.get("plugins"), ["svc-core-fs"]);
  assert.equal(config.warnings.length, 2);
  using renewed = scratch({
    global: { plugins: { deny: ["svc-core-exec"] } },
    local: { plugins: ["svc-core-exec"] },
  });
  assert.deepEqual(renewed.open().get("plugins"), ["svc-core-exec"]);
});

Deno.test("an empty plugins.enabled means all; a list without plugins is an error", () => {
  using all = scratch({ local: { "plugins.enabled": [] } });
  assert.deepEqual(all.open().get("plugins"), []);
  using some = scratch({ local: { "plugins.enabled": [], "plugins.deny": ["svc-core-exec"] } });
  assert.deepEqual(some.open().get("plugins"), OTHERS);
  using none = scratch({ local: { "plugins.enabled": ["a"], "plugins.deny": ["a"] } });
  assert.throws(() => none.open(), { code: "config_value", exit: 2, message: /leaves no plugin/ });
  using wrong = scratch({ local: { "plugins.deny": "a" } });
  assert.throws(() => wrong.open(), {
    message: `${wrong.local}: "plugins.deny" must be a list of names.`,
  });
});

Deno.test("setting plugins replaces the former settings and keeps comments [9]", async () => {
  using temp = scratch({
    local: `{
  "mode": "plan",
  // our plugins
  "plugins": {
    "enabled": ["a", "b"], // both
    "deny": ["b"] // not yet
  }
}
`,
  });
  const config = temp.open();
  await config.set("local", "mode", "build");
  assert.deepEqual(config.get("plugins"), ["a"]);
  await config.set("local", "plugins", config.get("plugins"));
  assert.deepEqual(config.warnings, []);
  assert.deepEqual(config.get("plugins"), ["a"]);
  assert.equal(
    temp.read("local"),
    `{
  "mode": "build",
  // our plugins
  // both
  // not yet
  "plugins": ["a"]
}
`,
  );
});

Deno.test("unsetting plugins also removes the former settings [9]", async () => {
  using temp = scratch({
    global: { plugins: { deny: ["a"] }, "plugins.enabled": ["a"], mode: "plan" },
  });
  temp.write("global", { plugins: { deny: ["b"] }, "plugins.enabled": ["a"], mode: "plan" });
  const config = temp.open();
  assert.equal(await config.unset("global", "plugins"), true);
  assert.deepEqual(config.get("plugins"), BUNDLED_PLUGINS);
  assert.equal(temp.read("global"), '{"mode":"plan"}');
});

Deno.test("the first load of plugins rewrites the former settings once, and keeps comments [9]", async () => {
  const former = `{
  // our plugins
  "plugins.enabled": ["svc-core-fs", "svc-core-exec"],
  "plugins.deny": ["svc-core-exec"], // for now
  "mode": "plan"
}
`;
  using temp = scratch({ global: { plugins: { deny: ["svc-core-web"] } }, local: former });
  for (const [most, trusted] of [[2, false], [0, true]] as const) {
    const warnings: string[] = [];
    const workspace = Workspace.open({
      path: temp.paths.worktree,
      environment: { home: join(temp.paths.user, "..", ".."), cwd: "/", get: () => undefined },
      warn: (message) => warnings.push(message),
      trusted,
    });
    await workspace.load({ tools: "all" });
    await workspace.load({ tools: "all" });
    await workspace.close();
    assert.equal(warnings.filter((each) => each.includes("former settings")).length, most);
  }
  const { plugins } = JSON.parse(temp.read("global"));
  assert.deepEqual(plugins, BUNDLED_PLUGINS.filter((name) => name !== "svc-core-web"));
  assert.equal(
    temp.read("local"),
    `{
  // our plugins
  // for now
  "mode": "plan",
  "plugins": ["svc-core-fs"]
}
`,
  );
});

Deno.test("a file that cannot be edited keeps the former settings, which count, and is warned about [9]", async () => {
  const twice = `{ "plugins.deny": ["b"], "plugins": ["a", "b"], "mode": "build", "mode": "plan" }`;
  using temp = scratch({ local: twice });
  const config = temp.open();
  await assert.rejects(config.rewriteFormer(), { code: "config_syntax", message: /"mode" twice/ });
  assert.deepEqual([config.get("plugins"), temp.read("local")], [["a"], twice]);
  await config.rewriteFormer(); // it is not tried again
});
