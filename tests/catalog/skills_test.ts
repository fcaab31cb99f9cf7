import assert from "node:assert/strict";
import { frontmatter, skillProblems } from "../../src/catalog/skills.ts";
import { agent, type TestAgent } from "../support/agent.ts";
import { call, say } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

const skill = (name: string, description: string, body = "Do it well.") =>
  `---\nname: ${name}\ndescription: ${description}\n---\n\n${body}\n`;

const systemOf = (it: TestAgent, request = 0): string =>
  it.backend.chats[request].messages[0].content;
const results = (it: TestAgent): string[] =>
  it.backend.chats.at(-1).messages.filter(({ role }: { role: string }) => role === "tool")
    .map(({ content }: { content: string }) => content);

/** A plugin that brings nothing but a skill. */
const PLUGIN = {
  "plugins/helper/manifest.json": JSON.stringify({
    name: "helper",
    version: "1.0.0",
    description: "Helps.",
    entry: "plugin.ts",
    provides: {},
  }),
  "plugins/helper/plugin.ts": "export {};\n",
  "plugins/helper/skills/from-plugin/SKILL.md": skill("from-plugin", "Is a plugin's."),
};

Deno.test("names and descriptions of skill folders are in the prompt, and their texts are not [2.12]", async () => {
  await using it = await agent([say("ok")], {
    files: {
      ".agents/skills/pdf/SKILL.md": skill("pdf", "Reads PDFs: use it for forms.", "SECRET BODY"),
      ".svc/skills/release/SKILL.md": skill("release", "Makes a release."),
      ".svc/skills/flat.md": "A text for roles.",
      ".agents/skills/quiet/SKILL.md":
        "---\nname: quiet\ndescription: Hidden.\ndisable-model-invocation: true\n---\nBody.",
      ".agents/skills/none/README.md": "no skill",
    },
    user: { "skills/own/SKILL.md": skill("own", "Is the user's."), ...PLUGIN },
    config: { plugins: [] },
  });
  await it.turn("go");
  const system = systemOf(it);
  const { user } = it.workspace.paths;
  assert.match(
    system,
    /^- pdf: Reads PDFs: use it for forms\. \(\.agents\/skills\/pdf\/SKILL\.md\)$/m,
  );
  assert.match(system, /^- release: Makes a release\. \(\.svc\/skills\/release\/SKILL\.md\)$/m);
  assert.ok(system.includes(`- own: Is the user's. (${user}/skills/own/SKILL.md)`), system);
  assert.ok(system.includes(`- from-plugin: Is a plugin's. (${user}/plugins/helper/skills/`));
  assert.doesNotMatch(system, /SECRET BODY|flat|quiet|none/);
});

Deno.test("a prompt without skill folders, or without file_read, says nothing of skills", async () => {
  await using none = await agent([say("ok")]);
  await none.turn("go");
  assert.doesNotMatch(systemOf(none), /Skills/);
  await using blind = await agent([say("ok")], {
    files: { ".agents/skills/pdf/SKILL.md": skill("pdf", "Reads PDFs.") },
    config: { "tools.deny": ["file_read"] },
  });
  await blind.turn("go");
  assert.doesNotMatch(systemOf(blind), /Skills/);
});

Deno.test("files of the user's skills are read without asking, and are not changed", async () => {
  await using it = await agent([], {
    user: { "skills/own/SKILL.md": skill("own", "x"), "skills/own/notes.txt": "a note" },
  });
  const folder = `${it.workspace.paths.user}/skills/own`;
  const outside = `${it.workspace.paths.user}/config.json`;
  await Deno.writeTextFile(outside, "{}");
  await Deno.symlink(outside, `${folder}/link.txt`);
  const reading = it.workspace.guard.context();
  const paths = reading.callPaths([]);
  assert.equal(paths.resolve(`${folder}/notes.txt`), `${folder}/notes.txt`);
  await assert.rejects(paths.open(`${folder}/notes.txt`, { write: true }), /not approved/);
  assert.throws(() => paths.resolve(`${folder}/link.txt`), /outside the worktree/);
  assert.throws(() => paths.resolve(outside), /outside the worktree/);
});

Deno.test("an agent reads a skill and its files, and a role with it has its text in the prompt", async () => {
  await using place = await agent([
    call("file_read", { path: ".agents/skills/pdf/SKILL.md" }),
    call("file_read", { path: ".agents/skills/pdf/scripts/fill.py" }),
    say("done"),
  ], {
    files: {
      ".agents/skills/pdf/SKILL.md": skill("pdf", "Reads PDFs.", "Run scripts/fill.py."),
      ".agents/skills/pdf/scripts/fill.py": "print(1)\n",
    },
  });
  const { result } = await place.turn("go");
  assert.deepEqual(result.refused, []);
  assert.match(results(place)[0]!, /Run scripts\/fill\.py\./);
  assert.match(results(place)[1]!, /print\(1\)/);

  await using owned = await agent([say("ok")], {
    files: {
      ".agents/skills/pdf/SKILL.md": skill("pdf", "Reads PDFs.", "Run scripts/fill.py."),
      ".svc/roles.json": JSON.stringify({ clerk: { system_prompt: "CLERK", skills: ["pdf"] } }),
    },
    role: "clerk",
  });
  await owned.turn("go");
  const folder = `${owned.project.path}/.agents/skills/pdf`;
  assert.ok(
    systemOf(owned).includes(`### pdf\n\nIts files are in ${folder}.\n\nRun scripts/fill.py.`),
  );
});

Deno.test("a skill of the worktree replaces the user's, .svc that of .agents, and a folder a file", async () => {
  await using it = await agent([], {
    files: {
      ".agents/skills/one/SKILL.md": skill("one", "of .agents"),
      ".svc/skills/one/SKILL.md": skill("one", "of .svc"),
      ".svc/skills/two.md": "a file",
      ".svc/skills/two/SKILL.md": skill("two", "a folder"),
    },
    user: {
      "skills/one/SKILL.md": skill("one", "the user's"),
      "skills/three/SKILL.md": skill("three", "the user's"),
    },
  });
  const catalog = await it.workspace.catalog();
  const described = (name: string) => catalog.need("skill", name).value.description;
  assert.deepEqual(["one", "two", "three"].map(described), ["of .svc", "a folder", "the user's"]);
  // A folder that is edited counts at once.
  await it.project.write(".svc/skills/one/SKILL.md", skill("one", "edited just now"));
  assert.equal(
    (await it.workspace.catalog()).need("skill", "one").value.description,
    "edited just now",
  );
  await assert.rejects(
    catalog.remove("skill", "local", "one"),
    /is a folder, which svc does not change/,
  );
  await assert.rejects(catalog.save("skill", "local", "two", { text: "x" }), /is a folder/);
});

Deno.test("a skill that leads out of its root is left out with a warning", async () => {
  await using other = await project({ "SKILL.md": skill("away", "x") });
  await using it = await agent([], {
    files: { ".agents/skills/here/SKILL.md": skill("here", "x") },
  });
  await Deno.symlink(other.path, `${it.project.path}/.agents/skills/away`);
  const catalog = await it.workspace.catalog();
  assert.deepEqual(catalog.list("skill").map(({ name }) => name), ["here"]);
  assert.match(it.warnings.join("\n"), /away.*leads out.*left out/s);
});

Deno.test("headers are read as other agents read them, also those that are no YAML", () => {
  const of = (header: string) => frontmatter(`---\n${header}\n---\nBody`).fields;
  assert.deepEqual(of("name: a\ndescription: Use when: always"), {
    name: "a",
    description: "Use when: always",
  });
  assert.deepEqual(of("description: \"quoted \\\"text\\\"\"\nname: 'it''s'"), {
    description: 'quoted "text"',
    name: "it's",
  });
  assert.deepEqual(of("description: >-\n  folded\n  text\nname: b"), {
    description: "folded text",
    name: "b",
  });
  assert.deepEqual(of("description: |\n  two\n  lines"), { description: "two\nlines" });
  assert.deepEqual(of("description: starts\n  and goes on"), { description: "starts and goes on" });
  assert.deepEqual(frontmatter("No header.\n---\nx"), { fields: {}, body: "No header.\n---\nx" });
  assert.equal(frontmatter("\uFEFF---\r\nname: a\r\n---\r\nBody\r\n").body, "Body");
});

Deno.test("svc skills validate names each fault of a skill's folder, and exits with 1", async () => {
  await using place = await project({
    ".agents/skills/good/SKILL.md": skill("good", "Is good.", "See [how](how.md)."),
    ".agents/skills/good/how.md": "x",
    ".agents/skills/Bad_Name/SKILL.md":
      `---\nname: Other\ndescription: a: b: c\nauthor: me\n---\n[x](gone.md)`,
    ".svc/skills/flat.md": "no folder",
  });
  const { code, stdout, stderr } = await svc(["skills", "validate"], { cwd: place.path });
  assert.equal(code, 1, stderr);
  assert.match(stdout, /^good {2}ok$/m, stderr);
  for (
    const fault of [
      /no valid YAML/,
      /name is "Other", and its folder is "Bad_Name"/,
      /lower-case letters/,
      /author is no field/,
      /refers to gone\.md, which is not there/,
    ]
  ) assert.match(stdout, fault);
  const one = await svc(["skills", "validate", "good"], { cwd: place.path });
  assert.deepEqual([one.code, one.stdout], [0, "good  ok\n"]);
  const none = await svc(["skills", "validate", "goood"], { cwd: place.path });
  assert.deepEqual([none.code, /Did you mean good\?/.test(none.stderr)], [2, true]);
  const long = await project({ "long/SKILL.md": skill("long", "x".repeat(1025)) });
  assert.deepEqual(skillProblems(`${long.path}/long`, "long"), [
    "description has 1025 characters; at most 1024 are allowed.",
  ]);
  await long[Symbol.asyncDispose]();
});

Deno.test("svc skills validate names a folder without SKILL.md, and exits with 2", async () => {
  await using place = await project({
    ".agents/skills/good/SKILL.md": skill("good", "Is good.", "Text."),
    ".svc/skills/empty/README.md": "x",
    ".svc/skills/.hidden/README.md": "x",
    ".svc/skills/flat.md": "no folder",
  });
  const note = `The folder ${place.path}/.svc/skills/empty has no SKILL.md: it is no skill.\n`;
  const validate = async (...names: string[]) => {
    const { code, stdout, stderr } = await svc(["skills", "validate", ...names], {
      cwd: place.path,
    });
    return [code, stdout, stderr];
  };
  assert.deepEqual(await validate(), [2, "good  ok\n", note]);
  assert.deepEqual(await validate("empty"), [2, "", note]);
  assert.deepEqual(await validate("good"), [0, "good  ok\n", ""]);
});

Deno.test("AGENTS.md of a nested folder is given once when a file of the folder is touched, also after a restart", async () => {
  await using it = await agent([
    call("file_read", { path: "top.txt" }),
    call("file_read", { path: "web/src/a.txt" }),
    call("file_write", { path: "web/src/b.txt", content: "x" }),
    say("one"),
    call("file_read", { path: "web/src/a.txt" }),
    say("two"),
  ], {
    files: {
      "AGENTS.md": "ROOT RULES",
      "top.txt": "x",
      "web/AGENTS.md": "WEB RULES",
      "web/src/AGENTS.md": "SRC RULES",
      "web/src/a.txt": "x",
      "api/AGENTS.md": "API RULES",
    },
    config: { tool_permission: { edit: "allow" } },
  });
  await it.turn("go");
  const text = (request: number) => JSON.stringify(it.backend.chats[request].messages);
  assert.doesNotMatch(text(1), /WEB RULES|SRC RULES/);
  const added = it.backend.chats[2].messages.slice(-2);
  assert.match(
    added[0].content,
    /^Instructions of web\/AGENTS\.md, for the files in web:\n\nWEB RULES/,
  );
  assert.match(added[1].content, /^Instructions of web\/src\/AGENTS\.md.*SRC RULES/s);
  const again = it.another();
  for await (const _ of again.turn("more"));
  await again.close();
  const last = text(5);
  for (const rules of ["ROOT RULES", "WEB RULES", "SRC RULES"]) {
    assert.equal(last.split(rules).length, 2, rules);
  }
  assert.doesNotMatch(last, /API RULES/);
  // What was sent before is sent again as it was.
  assert.ok(last.startsWith(text(3).slice(0, -1)));
});

Deno.test("a turn is given no more than 100,000 characters of nested AGENTS.md", async () => {
  const folders = Array.from({ length: 12 }, (_, i) => "deep/".repeat(i + 1));
  await using it = await agent([
    call("file_read", { path: `${folders.at(-1)}a.txt` }),
    say("done"),
  ], {
    files: Object.fromEntries([
      [`${folders.at(-1)}a.txt`, "x"],
      ...folders.map((folder) => [`${folder}AGENTS.md`, "r".repeat(10_000)]),
    ]),
  });
  const { events } = await it.turn("go");
  const told = it.backend.chats[1].messages.filter(({ content }: { content: string }) =>
    content?.startsWith("Instructions of ")
  );
  assert.equal(told.length, 10);
  const warnings = events.filter((event) => event.type === "notice" && event.level === "warning");
  assert.equal(warnings.length, 2);
});
