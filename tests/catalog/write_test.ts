import assert from "node:assert/strict";
import { join } from "node:path";
import { Catalog } from "../../src/catalog/catalog.ts";
import { openPaths } from "../../src/platform/environment.ts";
import { openCatalog } from "./support.ts";

Deno.test("a saved role, team or skill is in effect at once, in its layer [2.12]", async () => {
  await using place = await openCatalog();
  const { catalog } = place;
  await catalog.save("role", "global", "r", { model: "g", tags: ["t"] });
  await catalog.save("role", "local", "r", { model: "l" });
  await catalog.save("team", "local", "t", { stages: ["r", "tester"] });
  await catalog.save("skill", "global", "s", { text: "Be brief.\n" });
  assert.deepEqual(JSON.parse(await place.user.read("roles.json")), {
    r: { model: "g", tags: ["t"] },
  });
  assert.equal(
    await place.worktree.read(".svc/roles.json"),
    '{\n  "r": {\n    "model": "l"\n  }\n}\n',
  );
  assert.equal(await place.user.read("skills/s.md"), "Be brief.\n");
  const { layers, value } = catalog.need("role", "r");
  assert.deepEqual([layers, value.model, value.tags], [["global", "local"], "l", ["t"]]);
  assert.deepEqual(catalog.need("team", "t").value.stages.map(({ role }) => role), ["r", "tester"]);
  assert.equal(catalog.need("skill", "s").origin, "global");
});

Deno.test("a save keeps comments, other entries, broken ones too, and fields it does not know", async () => {
  const text = `{
  // ours
  "a": {"model": "1", "later": {"x": 1}, "tags": ["gone"]}, // why
  "broken": 5
}
`;
  await using place = await openCatalog({ local: { ".svc/roles.json": text } });
  await place.catalog.save("role", "local", "a", { model: "2" });
  await place.catalog.save("role", "local", "b.c", { model: "3" });
  const after = await place.worktree.read(".svc/roles.json");
  assert.match(after, /\/\/ ours\n/);
  assert.match(after, /\/\/ why\n/);
  assert.deepEqual(JSON.parse(after.replace(/\/\/.*/g, "")), {
    a: { later: { x: 1 }, model: "2" },
    broken: 5,
    "b.c": { model: "3" },
  });
});

Deno.test("a broken roles.json or teams.json is warned about, refuses a save, and is never touched [7.6]", async () => {
  for (const text of ["{", "[]", "", '{"r": {}, "r": {"model": "x"}}']) {
    await using place = await openCatalog({ local: { ".svc/roles.json": text } });
    const before = place.catalog.list("role").length;
    assert.ok(before >= 11, "the bundled ones are there");
    await assert.rejects(place.catalog.save("role", "local", "r", { model: "m" }), { exit: 2 });
    assert.equal(await place.worktree.read(".svc/roles.json"), text);
  }
});

Deno.test("wrong entries are refused before anything is written", async () => {
  await using place = await openCatalog();
  const cases: [value: unknown, message: RegExp, hint: RegExp][] = [
    [{ tags: 1 }, /^"r\.tags" must be a list, not 1\.$/, /^$/],
    [{ tool_permisson: {} }, /^"r\.tool_permisson" is no field/, /tool_permission\?$/],
    [{ whatever: 1 }, /no field of a role/, /^Its fields: description, system_prompt/],
    [7, /^"r" must be an object/, /^$/],
  ];
  for (const [value, message, hint] of cases) {
    const failed = await place.catalog.save("role", "local", "r", value).then(
      () => assert.fail("saved"),
      (error) => error,
    );
    assert.equal(failed.exit, 2);
    assert.match(failed.message, message);
    assert.match(failed.hint, hint);
  }
  await assert.rejects(place.catalog.save("skill", "local", "s", { text: "" }), { exit: 2 });
  assert.deepEqual([...Deno.readDirSync(place.worktree.path)], []);
});

Deno.test("with replace: false an existing entry stays, valid or broken", async () => {
  await using place = await openCatalog({
    local: { ".svc/roles.json": { r: 5 }, ".svc/skills/s.md": "mine" },
  });
  const keep = { replace: false };
  const expected = { code: "catalog_exists", exit: 2 };
  await assert.rejects(place.catalog.save("role", "local", "r", {}, keep), expected);
  await assert.rejects(place.catalog.save("skill", "local", "s", { text: "x" }, keep), expected);
  await place.catalog.save("role", "local", "tester", { model: "m" }, keep);
  assert.deepEqual(JSON.parse(await place.worktree.read(".svc/roles.json")), {
    r: 5,
    tester: { model: "m" },
  });
  assert.equal(await place.worktree.read(".svc/skills/s.md"), "mine");
});

Deno.test("removing a role, team or skill uncovers lower layers; bundled and plugin entries cannot be removed [2.12, 4.7]", async () => {
  await using place = await openCatalog({
    plugins: { roles: [{ owner: "p", entry: { name: "own" } }], teams: [], skills: [] },
    global: { "roles.json": { tester: { model: "g" } }, "skills/s.md": "global" },
    local: { ".svc/roles.json": { tester: { model: "l" } }, ".svc/skills/s.md": "local" },
  });
  const { catalog } = place;
  await catalog.remove("role", "local", "tester");
  assert.equal(catalog.need("role", "tester").value.model, "g");
  await assert.rejects(catalog.remove("role", "local", "tester"), {
    code: "not_in_layer",
    exit: 2,
    hint: "Remove it from the global roles.",
  });
  await catalog.remove("role", "global", "tester");
  assert.equal(catalog.need("role", "tester").origin, "bundled");
  for (const name of ["tester", "own"]) {
    await assert.rejects(catalog.remove("role", "local", name), {
      code: "not_in_layer",
      hint: /cannot be removed/,
    });
  }
  await assert.rejects(catalog.remove("role", "local", "nobody"), { code: "unknown_role" });
  await catalog.remove("skill", "local", "s");
  assert.equal(catalog.need("skill", "s").value.text, "global");
  await assert.rejects(catalog.remove("team", "global", "writing"), { code: "not_in_layer" });
});

Deno.test("catalogs that write at the same time lose nothing", async () => {
  await using place = await openCatalog();
  const paths = openPaths(place.worktree.path, place.user.path);
  const names = Array.from({ length: 20 }, (_, n) => `r${n}`);
  await Promise.all(
    names.map((name) =>
      new Catalog({ paths, accepts: () => true, warn: () => {} }).save("role", "local", name, {
        model: name,
      })
    ),
  );
  const file = JSON.parse(await place.worktree.read(".svc/roles.json"));
  assert.deepEqual(Object.keys(file).sort(), names.sort());
});

Deno.test("nothing is written through a link that leads out of the worktree", async () => {
  for (const link of [".svc", ".svc/roles.json", ".svc/skills"]) {
    await using place = await openCatalog({ global: { "elsewhere/roles.json": {} } });
    const target = join(place.user.path, "elsewhere");
    await Deno.mkdir(join(place.worktree.path, ".svc"));
    if (link === ".svc") await Deno.remove(join(place.worktree.path, link));
    const to = link.endsWith(".json") ? join(target, "roles.json") : target;
    await Deno.symlink(to, join(place.worktree.path, link));
    const kind = link.endsWith("skills") ? "skill" : "role";
    const value = kind === "skill" ? { text: "x" } : { model: "m" };
    await assert.rejects(place.catalog.save(kind, "local", "x", value), { code: "catalog_place" });
    assert.equal(await place.user.read("elsewhere/roles.json"), "{}");
    assert.deepEqual([...Deno.readDirSync(target)].map(({ name }) => name), ["roles.json"]);
  }
});

Deno.test("a user's own file may be a link within the user's folder, and stays one", async () => {
  await using place = await openCatalog({ global: { "kept/roles.json": {} } });
  const file = join(place.user.path, "roles.json");
  await Deno.symlink("kept/roles.json", file);
  await place.catalog.save("role", "global", "r", { model: "m" });
  assert.ok(Deno.lstatSync(file).isSymlink);
  assert.deepEqual(JSON.parse(await place.user.read("kept/roles.json")), { r: { model: "m" } });
});
