import assert from "node:assert/strict";
import { join } from "node:path";
import fc from "fast-check";
import { openCatalog } from "./support.ts";

const plugin = (name: string, fields: Record<string, unknown>) => ({
  owner: "p",
  entry: { name, ...fields },
});

Deno.test("a role is merged from its layers field by field, and names the layers that have it [2.12]", async () => {
  await using place = await openCatalog({
    plugins: {
      roles: [plugin("tester", { description: "from p", tags: ["p"] }), plugin("own", {})],
      teams: [],
      skills: [],
    },
    global: { "roles.json": { tester: { model: "groq/m", tool_permission: { vcs: "ask" } } } },
    local: {
      ".svc/roles.json": { tester: { tags: ["mine"], tool_permission: { bash: "deny" } } },
    },
  });
  const { name, origin, layers, value } = place.catalog.need("role", "tester");
  assert.equal(name, "tester");
  assert.equal(origin, "local");
  assert.deepEqual(layers, ["bundled", "plugin", "global", "local"]);
  assert.equal(value.description, "from p");
  assert.equal(value.model, "groq/m");
  assert.deepEqual(value.tags, ["mine"]);
  assert.match(value.system_prompt, /^You test/);
  assert.deepEqual(value.tool_permission, {
    web: "deny",
    edit: "allow",
    bash: "deny",
    read: "allow",
    vcs: "ask",
  });
  assert.deepEqual(place.catalog.need("role", "own").layers, ["plugin"]);
  assert.deepEqual(place.warnings, []);
});

Deno.test("property: every field of a role comes from the highest layer that sets it [2.12]", async () => {
  const fields = fc.record({
    description: fc.option(fc.string()),
    model: fc.option(fc.string()),
    tags: fc.option(fc.array(fc.string(), { maxLength: 3 })),
  }, { requiredKeys: [] });
  await fc.assert(
    fc.asyncProperty(fields, fields, fields, async (low, middle, high) => {
      await using place = await openCatalog({
        plugins: { roles: [plugin("r", low)], teams: [], skills: [] },
        global: { "roles.json": { r: middle } },
        local: { ".svc/roles.json": { r: high } },
      });
      const { value } = place.catalog.need("role", "r");
      for (const field of ["description", "model", "tags"] as const) {
        const said = [high, middle, low].map((layer) => layer[field]);
        const expected = said.find((one) => one !== undefined && one !== null);
        assert.deepEqual(value[field], expected ?? (field === "tags" ? [] : ""));
      }
    }),
    { numRuns: 40 },
  );
});

Deno.test("stages of a team may be names of roles; a loop refers to stages and is dropped with them [2.12]", async () => {
  await using place = await openCatalog({
    local: {
      ".svc/teams.json": {
        short: {
          stages: ["a", { role: "b", task_hint: "look", mode: "plan", skills: ["s"] }, "a"],
        },
        named: { stages: ["a", "b", "a"], loop: { from: "a", until: "a" } },
        numbered: { stages: ["a", "b", "a"], loop: { from: 1, until: 2 } },
        whole: { stages: ["a", "b"], loop: { max_iterations: 5, verdict: "SAY:" } },
        programming: { loop: { max_iterations: 1 } },
        writing: { stages: ["writer"] },
      },
    },
  });
  const value = (name: string) => place.catalog.need("team", name).value;
  const plain = { mode: "", task_hint: "", handoff_note: "", skills: [] };
  assert.deepEqual(value("short").stages, [
    { role: "a", ...plain },
    { ...plain, role: "b", task_hint: "look", mode: "plan", skills: ["s"] },
    { role: "a", ...plain },
  ]);
  assert.deepEqual(value("named").loop, {
    from: 1,
    until: 3,
    max_iterations: 3,
    verdict: "VERDICT:",
  });
  const { from, until } = value("numbered").loop!;
  assert.deepEqual([from, until], [2, 3], "numbers in files count from 0");
  assert.deepEqual(value("whole").loop, { from: 1, until: 2, max_iterations: 5, verdict: "SAY:" });
  assert.equal(value("programming").stages.length, 4);
  assert.deepEqual(value("programming").loop, {
    from: 2,
    until: 4,
    max_iterations: 1,
    verdict: "VERDICT:",
  });
  assert.equal(value("writing").loop, undefined);
  assert.deepEqual(place.warnings, []);
});

Deno.test("a loop that does not fit its stages is dropped with a warning", async () => {
  const loops = [{ from: "c" }, { until: 2 }, { from: 1, until: 0 }];
  for (const loop of loops) {
    await using place = await openCatalog({
      local: { ".svc/teams.json": { t: { stages: ["a", "b"], loop } } },
    });
    assert.equal(place.catalog.need("team", "t").value.loop, undefined);
    assert.match(place.warnings.join(), /loop of the team t /);
  }
});

Deno.test("a role or team of the wrong shape is skipped with a warning that names file, entry and field [2.12]", async () => {
  const cases: [entry: unknown, expected: RegExp][] = [
    [
      { tool_permission: { bash: "yes" } },
      /"bad\.tool_permission\.bash" must be "allow", "ask" or/,
    ],
    [{ tags: "a" }, /"bad\.tags" must be a list, not "a"/],
    [{ system_prompt: ["a"] }, /"bad\.system_prompt" must be a text/],
    [{ skills: ["../x"] }, /"bad\.skills\[0\]" must be a plain name/],
    [{ ask_policy: { permission: "never" } }, /"bad\.ask_policy\.permission" must be/],
    ["text", /"bad" must be an object/],
  ];
  for (const [entry, expected] of cases) {
    await using place = await openCatalog({
      local: { ".svc/roles.json": { bad: entry, good: { model: "m" } } },
      global: { "roles.json": { bad: { model: "global" } } },
    });
    assert.equal(place.catalog.get("role", "bad"), undefined);
    assert.equal(place.catalog.need("role", "good").value.model, "m");
    assert.equal(place.warnings.length, 1);
    assert.match(place.warnings[0]!, expected);
    assert.ok(place.warnings[0]!.startsWith(`${place.worktree.path}/.svc/roles.json: `));
  }
});

Deno.test("a stage or a loop of the wrong shape is named too", async () => {
  const cases: [team: unknown, expected: RegExp][] = [
    [{ stages: [{ task_hint: "x" }] }, /"t\.stages\[0\]\.role" must be a text, not missing/],
    [{ stages: [5] }, /"t\.stages\[0\]" must be an object, not 5/],
    [{ stages: ["a"], loop: { from: [] } }, /"t\.loop\.from" must be the role of a stage or its/],
    [{ stages: ["a"], loop: { max_iterations: 0 } }, /"t\.loop\.max_iterations" must be 1 or more/],
  ];
  for (const [team, expected] of cases) {
    await using place = await openCatalog({ local: { ".svc/teams.json": { t: team } } });
    assert.equal(place.catalog.get("team", "t"), undefined);
    assert.match(place.warnings.join(), expected);
  }
});

Deno.test("an unknown field at any depth causes a warning, and the rest of the entry counts", async () => {
  await using place = await openCatalog({
    local: {
      ".svc/roles.json": { r: { name: "r", model: "m", tool_permisson: {} } },
      ".svc/teams.json": { t: { stages: [{ role: "r", hint: "x" }] } },
    },
  });
  assert.equal(place.catalog.need("role", "r").value.model, "m");
  assert.equal(place.catalog.need("team", "t").value.stages.length, 1);
  assert.equal(place.warnings.length, 2);
  assert.match(place.warnings[0]!, /"r\.tool_permisson" is no field of a role/);
  assert.match(place.warnings[1]!, /"t\.stages\[0\]\.hint" is no field of a team/);
});

Deno.test("only plain words are names", async () => {
  const bad = ["", ".hidden", "a/b", "../a", "a b", "a\nb", "-x", "__proto__", "x".repeat(65)];
  const entries = bad.map((name) => `${JSON.stringify(name)}: {}`);
  await using place = await openCatalog({
    local: { ".svc/roles.json": `{${entries.join()}, "größe.v2_x-y": {}, "constructor": {}}` },
  });
  const own = place.catalog.list("role").filter(({ origin }) => origin === "local");
  assert.deepEqual(own.map(({ name }) => name), ["constructor", "größe.v2_x-y"]);
  assert.equal(place.warnings.length, bad.length);
  for (const name of bad) {
    await assert.rejects(place.catalog.save("role", "local", name, {}), { code: "catalog_name" });
    await assert.rejects(place.catalog.remove("skill", "local", name), { code: "catalog_name" });
  }
});

Deno.test("a plugin's invalid entry is skipped with a warning that names the plugin", async () => {
  await using place = await openCatalog({
    plugins: {
      roles: [
        plugin("bad", { tags: 1 }),
        plugin("far", { system_prompt: "hi", instructions: "far.md" }),
      ],
      teams: [],
      skills: [plugin("s", { text: "# Title\nbody" }), plugin("empty", {})],
    },
  });
  assert.equal(place.catalog.get("role", "bad"), undefined);
  assert.match(place.warnings[0]!, /^The plugin p: "bad\.tags" must be a list/);
  assert.match(place.warnings[1]!, /^The plugin p: .*instructions/);
  assert.equal(place.catalog.prompt("far").identity, "hi");
  assert.deepEqual(place.catalog.list("skill").map(({ name }) => name), ["s"]);
  assert.equal(place.catalog.need("skill", "s").value.description, "Title");
});

Deno.test("layers are read at their first use, a warning appears once, and reload reads again", async () => {
  await using place = await openCatalog({
    local: { ".svc/roles.json": "{", ".svc/teams.json": "[]" },
  });
  assert.deepEqual(place.warnings, []);
  assert.equal(place.catalog.list("role").length, 11);
  place.catalog.list("role");
  assert.equal(place.warnings.length, 1);
  assert.match(place.warnings[0]!, /roles\.json is not valid JSON.*none of its roles/);
  place.catalog.list("team");
  assert.match(place.warnings[1]!, /teams\.json must hold an object/);
  await place.worktree.write(".svc/roles.json", '{"new": {}}');
  assert.equal(place.catalog.get("role", "new"), undefined);
  place.catalog.reload();
  assert.equal(place.catalog.need("role", "new").origin, "local");
});

Deno.test("an unknown name is answered with the nearest", async () => {
  await using place = await openCatalog();
  assert.throws(() => place.catalog.need("role", "tseter"), {
    code: "unknown_role",
    exit: 2,
    hint: "Did you mean tester?",
  });
  assert.throws(() => place.catalog.need("team", "none"), {
    code: "unknown_team",
    hint: "`svc teams list` shows those there are.",
  });
});

Deno.test("a role that is broken in one layer is rejected, not run without its denials", async () => {
  await using place = await openCatalog({
    local: { ".svc/roles.json": { programmer: { tool_permission: { bash: "never" } }, lost: 1 } },
    global: { "roles.json": { programmer: { model: "m" } } },
  });
  const file = join(place.worktree.path, ".svc", "roles.json");
  for (const name of ["programmer", "lost"]) {
    assert.throws(() => place.catalog.need("role", name), (error: Error & { code: string }) => {
      assert.equal(error.code, "broken_role");
      return error.message.startsWith(`The role ${name} cannot be used: ${file}: "${name}`);
    });
  }
  assert.throws(() => place.catalog.prompt("programmer"), { code: "broken_role", exit: 2 });
  const listed = place.catalog.list("role").filter(({ broken }) => broken !== undefined);
  assert.deepEqual(listed.map(({ name, layers }) => [name, layers]), [
    ["lost", ["local"]],
    ["programmer", ["bundled", "global"]],
  ]);
  assert.equal(place.catalog.need("role", "tester").origin, "bundled");
});

Deno.test("an unreadable roles file disables every role, since it may have denied something", async () => {
  await using place = await openCatalog({ local: { ".svc/roles.json": "{" } });
  assert.throws(
    () => place.catalog.need("role", "tester"),
    /The role tester cannot be used: .*\.svc\/roles\.json is not valid JSON/,
  );
  assert.throws(() => place.catalog.need("role", "nobody"), { code: "unknown_role" });
  assert.equal(place.catalog.need("team", "writing").origin, "bundled");
  await place.worktree.write(".svc/roles.json", "{}");
  place.catalog.reload();
  assert.equal(place.catalog.need("role", "tester").origin, "bundled");
});
