import assert from "node:assert/strict";
import { basename, join } from "node:path";
import { openCatalog } from "./support.ts";

Deno.test("skills come from plugins, the user's folder and the worktree's; the highest replaces [2.12]", async () => {
  await using place = await openCatalog({
    plugins: {
      roles: [],
      teams: [],
      skills: [
        { owner: "p", entry: { name: "a", description: "said", text: "plugin a" } },
        { owner: "p", entry: { name: "b", description: "said", text: "plugin b" } },
      ],
    },
    global: { "skills/b.md": "global b", "skills/c.md": "global c" },
    local: {
      ".svc/skills/c.md": "\n## How to c\n\nlocal c\n",
      ".svc/skills/not this.md": "x",
      ".svc/skills/notes.txt": "x",
      ".svc/skills/.hidden.md": "x",
    },
  });
  const rows = place.catalog.list("skill").map(({ name, origin, layers, value }) => [
    name,
    origin,
    layers.length,
    value.description,
    value.text,
  ]);
  assert.deepEqual(rows, [
    ["a", "plugin", 1, "said", "plugin a"],
    ["b", "global", 2, "global b", "global b"],
    ["c", "local", 2, "How to c", "## How to c\n\nlocal c"],
  ]);
  assert.equal(place.warnings.length, 1);
  assert.match(place.warnings[0]!, /skills: "not this" is no name of a skill/);
});

Deno.test("the skills block has each skill once, the role's own first; an unknown one is an error [2.12]", async () => {
  await using place = await openCatalog({
    local: {
      ".svc/skills/brief.md": "Be brief.",
      ".svc/skills/kind.md": "Be kind.",
      ".svc/roles.json": { r: { system_prompt: " You are r. ", skills: ["kind"] } },
    },
  });
  const { catalog } = place;
  assert.equal(catalog.skillsBlock([]), "");
  assert.equal(
    catalog.skillsBlock(["kind", "brief", "kind"]),
    "## Skills\n\n### kind\n\nBe kind.\n\n### brief\n\nBe brief.",
  );
  assert.deepEqual(catalog.prompt("r", ["brief", "kind"]), {
    identity: "You are r.",
    skills: "## Skills\n\n### kind\n\nBe kind.\n\n### brief\n\nBe brief.",
  });
  assert.throws(() => catalog.skillsBlock(["breif"]), {
    code: "unknown_skill",
    exit: 2,
    hint: "Did you mean brief?",
  });
});

Deno.test("a role's instructions file is relative to the root of its layer [2.12]", async () => {
  await using place = await openCatalog({
    global: {
      "roles.json": { g: { instructions: "long/g.md" }, both: { instructions: "both.md" } },
      "long/g.md": "global g\n",
      "both.md": "global both",
    },
    local: {
      ".svc/roles.json": {
        l: { system_prompt: "Short.", instructions: "docs/l.md" },
        g: { model: "m" },
        both: { instructions: "both.md" },
        none: {},
      },
      "docs/l.md": "local l",
      "both.md": "local both",
    },
  });
  const { catalog } = place;
  assert.equal(catalog.instructions("g"), "global g");
  assert.equal(catalog.instructions("both"), "local both");
  assert.equal(catalog.instructions("none"), "");
  assert.equal(catalog.prompt("l").identity, "Short.\n\nlocal l");
});

Deno.test("instructions that are missing, lead out, or are no Markdown are an error that names the file", async () => {
  await using place = await openCatalog({
    global: { "secret.md": "secret" },
    local: { "a.txt": "text", "keys.json": "{}", "dir.md/x": "" },
  });
  const at = (path: string) => join(place.worktree.path, path);
  const up = `../${basename(place.user.path)}/secret.md`;
  await Deno.symlink(join(place.user.path, "secret.md"), at("link.md"));
  await Deno.symlink(place.user.path, at("folder"));
  await Deno.symlink("keys.json", at("keys.md"));
  const cases: [instructions: string, message: RegExp][] = [
    ["gone.md", /gone\.md cannot be used: there is no such file/],
    ["/gone.md", /gone\.md cannot be used: there is no such file/],
    [up, /secret\.md cannot be used: it leads out of/],
    ["link.md", /link\.md cannot be used: it leads out of/],
    ["folder/secret.md", /secret\.md cannot be used: it leads out of/],
    ["keys.md", /keys\.md cannot be used: it is no Markdown file/],
    ["a.txt", /a\.txt cannot be used: it is no Markdown file/],
    ["dir.md", /dir\.md cannot be used: it is no regular file/],
  ];
  for (const [instructions, message] of cases) {
    await place.catalog.save("role", "local", "r", { instructions });
    assert.throws(() => place.catalog.prompt("r"), { code: "catalog_text", exit: 2, message });
  }
});

Deno.test("a skill that leads out of the worktree is left out with a warning", async () => {
  await using place = await openCatalog({
    global: { "secret.md": "secret" },
    local: { ".svc/skills/a.md": "fine", "docs/b.md": "shared" },
  });
  const skill = (name: string) => join(place.worktree.path, ".svc/skills", name);
  await Deno.symlink(join(place.user.path, "secret.md"), skill("out.md"));
  await Deno.symlink("../../docs/b.md", skill("b.md"));
  assert.deepEqual(place.catalog.list("skill").map(({ name }) => name), ["a", "b"]);
  assert.equal(place.warnings.length, 1);
  assert.match(place.warnings[0]!, /out\.md cannot be used: it leads out of/);
});

Deno.test("long instructions and skills are cut at 20000 characters, with a warning [2.12]", async () => {
  await using place = await openCatalog({
    local: {
      ".svc/roles.json": { r: { instructions: "long.md" } },
      "long.md": "x".repeat(20_001),
      ".svc/skills/s.md": "y".repeat(20_000),
    },
  });
  assert.equal(place.catalog.instructions("r"), "x".repeat(20_000) + "\n... (truncated)");
  assert.equal(place.catalog.need("skill", "s").value.text.length, 20_000);
  assert.equal(place.warnings.length, 1);
  assert.match(place.warnings[0]!, /long\.md has 20001 characters/);
});
