import assert from "node:assert/strict";
import { sessionChanges, undo } from "../../../src/engine/undo.ts";
import { headlessOperator } from "../../../src/policy/operator.ts";
import { agent } from "../../../tests/support/agent.ts";
import { call, say } from "../../../tests/support/backend.ts";
import { type Project, project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import * as plugin from "../src/plugin.ts";

const tools = pluginTools(plugin);
const wrap = (...lines: string[]) => ["*** Begin Patch", ...lines, "*** End Patch"].join("\n");

async function patch(work: Project, input: string): Promise<string> {
  const context = toolContext({ worktree: work.path });
  return (await tools.call("apply_patch", { input }, context)).output;
}

const FILE = "class A:\n    def run(self):\n        x = 1\n        return x\n\nclass B:\n" +
  "    def run(self):\n        x = 1\n        return x\n";

/** A patch of `a.py`, and the file after it; undefined: it is refused, and nothing changes. */
const UPDATES: [name: string, patch: string[], wanted: string | undefined][] = [
  [
    "two anchors",
    ["@@ class B:", "@@     def run(self):", "-        x = 1", "+        x = 2"],
    FILE.replace(/x = 1(?![^]*x = 1)/, "x = 2"),
  ],
  [
    "the first place after an anchor",
    ["@@ class A:", "-        x = 1", "+        x = 2"],
    FILE.replace("x = 1", "x = 2"),
  ],
  [
    "context that is unique",
    [" ", " class B:", "+    y = 0", "     def run(self):"],
    FILE.replace("class B:\n", "class B:\n    y = 0\n"),
  ],
  [
    "no head before the first change",
    [" class B:", "+    y = 0"],
    FILE.replace("class B:\n", "class B:\n    y = 0\n"),
  ],
  [
    "an empty line for an empty line of context",
    ["@@", "", " class B:", "+    y = 0"],
    FILE.replace("class B:\n", "class B:\n    y = 0\n"),
  ],
  [
    "an empty line after the change",
    ["@@", " class B:", "+    y = 0", ""],
    FILE.replace("class B:\n", "class B:\n    y = 0\n"),
  ],
  [
    "the numbers of a unified diff",
    ["@@ -6,2 +6,3 @@ class A:", " class B:", "+    y = 0"],
    FILE.replace("class B:\n", "class B:\n    y = 0\n"),
  ],
  ["two changes in order", [
    "@@",
    "-class A:",
    "+class C:",
    "@@ class B:",
    "-        return x",
    "+        return 0",
  ], FILE.replace("class A", "class C").replace(/return x\n$/, "return 0\n")],
  ["an anchor that is nowhere, and lines that are unique", [
    "@@ class Z:",
    "-class B:",
    "+class C:",
  ], FILE.replace("class B", "class C")],
  ["the end of the file", [
    "@@",
    "         x = 1",
    "-        return x",
    "+        return 2",
    "*** End of File",
  ], FILE.replace(/return x\n$/, "return 2\n")],
  [
    "lines after the last one",
    ["@@", "+", "+print(A())", "*** End of File"],
    `${FILE}\nprint(A())\n`,
  ],
  [
    "trailing blanks",
    ["@@", " class B:  ", "+    y = 0"],
    FILE.replace("class B:\n", "class B:\n    y = 0\n"),
  ],
  ["lines that occur twice", ["@@", "-        x = 1", "+        x = 2"], undefined],
  [
    "an anchor that occurs twice",
    ["@@     def run(self):", "-        x = 1", "+        x = 2"],
    undefined,
  ],
  ["part of a line", ["@@", "-lass B:", "+lass C:"], undefined],
  ["another word", ["@@", "-class X:", "+class Y:"], undefined],
  ["only new lines, and no place", ["@@", "+y = 0"], undefined],
  ["nothing new", ["@@", " class B:"], undefined],
  ["a line without a sign", ["@@", " class B:", "y = 0"], undefined],
  ["the second change has no place", [
    "@@",
    "-class A:",
    "+class C:",
    "@@",
    "-class X:",
    "+class Y:",
  ], undefined],
];

Deno.test("apply_patch changes the lines that are certain, and refuses every other patch [4.8]", async () => {
  await using work = await project({});
  for (const [name, lines, wanted] of UPDATES) {
    for (const [ending, bom] of [["\n", ""], ["\r\n", "\ufeff"]] as const) {
      const written = (text: string) => bom + text.replaceAll("\n", ending);
      await work.write("a.py", written(FILE));
      const output = await patch(work, wrap("*** Update File: a.py", ...lines));
      const bytes = await Deno.readFile(`${work.path}/a.py`);
      const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes);
      assert.equal(text, written(wanted ?? FILE), `${name}: ${output}`);
      assert.equal(output.startsWith("Error:"), wanted === undefined, `${name}: ${output}`);
    }
  }
});

Deno.test("apply_patch adds, changes, moves and deletes files in one call [4.8]", async () => {
  await using work = await project({
    "a.txt": "one\ntwo",
    "old.sh": "echo 1\n",
    "gone.txt": "x\n",
  });
  await Deno.chmod(`${work.path}/old.sh`, 0o755);
  await Deno.writeFile(`${work.path}/gone.bin`, new Uint8Array([0xff, 0xfe, 0]));
  const output = await patch(
    work,
    wrap(
      ...["*** Add File: sub/new.txt", "+first", "+", "+third", ""],
      ...["*** Update File: a.txt", "@@", " one", "-two", "+2"],
      ...["*** Update File: old.sh", "*** Move to: bin/new.sh", "@@", "-echo 1", "+echo 2"],
      ...["*** Delete File: gone.txt", "*** Delete File: gone.bin"],
    ),
  );
  assert.equal(
    output,
    "Success. Updated the following files:\nA sub/new.txt\nM a.txt (at line 1, +1 -1 lines)\n" +
      "M old.sh -> bin/new.sh (at line 1, +1 -1 lines)\nD gone.txt\nD gone.bin",
  );
  assert.equal(await work.read("sub/new.txt"), "first\n\nthird\n");
  assert.equal(await work.read("a.txt"), "one\n2");
  assert.equal(await work.read("bin/new.sh"), "echo 2\n");
  assert.equal((await Deno.stat(`${work.path}/bin/new.sh`)).mode! & 0o777, 0o755);
  const left = Array.from(Deno.readDirSync(work.path), ({ name }) => name).sort();
  assert.deepEqual(left, ["a.txt", "bin", "sub"]);
});

Deno.test("a file is written anew by a patch that deletes it and adds it", async () => {
  await using work = await project({ "a.txt": "one\n" });
  await Deno.chmod(`${work.path}/a.txt`, 0o755);
  await patch(work, wrap("*** Delete File: a.txt", "*** Add File: a.txt", "+two"));
  assert.equal(await work.read("a.txt"), "two\n");
  assert.equal((await Deno.stat(`${work.path}/a.txt`)).mode! & 0o777, 0o755);
});

Deno.test("a patch of which one part cannot be made changes no file", async () => {
  const good = ["*** Add File: new.txt", "+x", "*** Update File: a.txt", "@@", "-one", "+1"];
  const bad: Record<string, string[]> = {
    "there is no none\\.txt": ["*** Update File: none.txt", "@@", "-a", "+b"],
    "there is no gone\\.txt$": ["*** Delete File: gone.txt"],
    "b\\.txt exists already": ["*** Add File: b.txt", "+x"],
    "a\\.txt exists already": ["*** Update File: b.txt", "*** Move to: a.txt"],
    "change 1 of b\\.txt: its old lines do not occur": ["*** Update File: b.txt", "@@", "-x", "+y"],
    "link is a link": ["*** Delete File: link"],
    "outside the worktree": ["*** Add File: ../out.txt", "+x"],
    "is a directory": ["*** Update File: folder", "@@", "-x", "+y"],
  };
  await using work = await project({ "a.txt": "one\n", "b.txt": "bee\n", "folder/c": "" });
  await Deno.symlink("b.txt", `${work.path}/link`);
  for (const [reason, lines] of Object.entries(bad)) {
    for (const all of [[...good, ...lines], [...lines, ...good]]) {
      assert.match(await patch(work, wrap(...all)), new RegExp(`^Error: .*${reason}`));
      assert.deepEqual([await work.read("a.txt"), await work.read("b.txt")], ["one\n", "bee\n"]);
      assert.throws(() => Deno.statSync(`${work.path}/new.txt`), Deno.errors.NotFound);
    }
  }
});

Deno.test("what was written before a file that cannot be written is taken back", async () => {
  await using work = await project({ "a.txt": "one\n", "gone.txt": "x\n", "last.txt": "x\n" });
  const context = toolContext({ worktree: work.path });
  const paths = {
    ...context.paths,
    // Another program writes the file in the meantime.
    open: async (path: string, options: Deno.OpenOptions) => {
      if (options.createNew && path.endsWith("new.txt")) Deno.writeTextFileSync(path, "theirs");
      return await context.paths.open(path, options);
    },
  };
  const input = wrap(
    ...["*** Update File: a.txt", "@@", "-one", "+1", "*** Delete File: gone.txt"],
    ...["*** Add File: new.txt", "+x"],
  );
  const { output } = await tools.call("apply_patch", { input }, { ...context, paths });
  assert.match(output, /^Error:/);
  assert.deepEqual(
    [await work.read("a.txt"), await work.read("gone.txt"), await work.read("new.txt")],
    ["one\n", "x\n", "theirs"],
  );
});

Deno.test("a patch that is cut off, or is none, is refused", async () => {
  await using work = await project({ "a.txt": "one\n" });
  const update = "*** Update File: a.txt\n@@\n-one\n+1";
  const wrong: [string, RegExp][] = [
    [`*** Begin Patch\n${update}`, /not whole: its last line has to be "\*\*\* End Patch"/],
    [`${update}\n*** End Patch`, /begins with the line "\*\*\* Begin Patch"/],
    [wrap(), /names no file/],
    [wrap("*** Update File: a.txt"), /changes nothing in a\.txt/],
    [wrap("-one", "+1"), /line 2 of the patch belongs to no file: -one/],
    [wrap("*** Add File: b.txt", "x"), /line 3 of the patch has no "\+" before it/],
    [wrap("*** Add File: b.txt", "*** Move to: c.txt"), /does not follow "Update File"/],
  ];
  for (const [input, reason] of wrong) assert.match(await patch(work, input), reason);
  assert.equal(await work.read("a.txt"), "one\n");
  await patch(work, `apply_patch <<'EOF'\n${wrap(update)}\nEOF\n`);
  assert.equal(await work.read("a.txt"), "1\n");
});

Deno.test("a patch of thousands of empty lines, or with a path of a million blanks, is read in one pass", async () => {
  await using work = await project({ "a.txt": "one\ntwo\n".repeat(1000) });
  const change = ["*** Update File: a.txt", "@@", "-three", ...Array(5000).fill(" ")];
  for (const end of [[], ["*** End of File"]]) {
    assert.match(await patch(work, wrap(...change, ...end)), /old lines do not occur in a\.txt/);
  }
  const blanks = `*** Add File: b${" ".repeat(1_000_000)}`;
  await patch(work, wrap(`${blanks}c.txt`, "+x"));
  assert.match(await patch(work, wrap(blanks, "+x")), /A b$/);
  assert.equal(await work.read("b"), "x\n");
});

Deno.test("apply_patch is offered to models that are trained on it", () => {
  const offered = (model: string) => tools.registry.find("apply_patch")!.offer!(model);
  for (
    const model of [
      "gpt-5.1-codex",
      "openai/gpt-5",
      "codex-mini-latest",
      "gpt-4.1",
      "o3",
      "o4-mini",
      "gpt-oss:20b",
    ]
  ) {
    assert.ok(offered(model), model);
  }
  for (const model of ["gpt-4o", "claude-sonnet-4", "qwen3-coder", "demo", ""]) {
    assert.ok(!offered(model), model);
  }
});

const INPUT = wrap(
  "*** Update File: a.txt",
  "@@",
  "-one",
  "+1",
  "*** Delete File: b.txt",
  "*** Add File: c.txt",
  "+c",
);
const FILES = { "a.txt": "one\n", "b.txt": "bee\n" };

Deno.test("a patch is confirmed with its diff, audited with its paths, and undone as one [5.3]", async () => {
  const shown: string[] = [];
  await using it = await agent([call("apply_patch", { input: INPUT }), say("done")], {
    files: FILES,
    config: { tool_permission: { edit: "ask" } },
    headless: false,
    operator: {
      ...headlessOperator(true),
      confirm({ preview, choices = [] }) {
        shown.push(preview, ...choices.map(({ covers }) => covers));
        return Promise.resolve({ granted: true, scope: "once", by: "operator" });
      },
    },
  });
  const { result } = await it.turn("go");
  assert.equal(result.tool_calls[0]!.is_error, false);
  assert.match(
    shown[0]!,
    /--- a\.txt[^]*-one\n\+1\n[^]*\+\+\+ c\.txt[^]*\+c\n[^]*--- b\.txt[^]*-bee\n/,
  );
  assert.equal(shown[1], "every edit call for a.txt, b.txt, c.txt");
  assert.equal(it.session.document().permissions[0]!.path, "a.txt, b.txt, c.txt");
  const changes = await sessionChanges(it.workspace, { session: it.session.name });
  const files = changes!.turns[0]!.files.map(({ path, change }) => `${change} ${path}`);
  assert.deepEqual(files, ["changed a.txt", "deleted b.txt", "added c.txt"]);
  await undo(it.workspace, { session: it.session.name });
  assert.equal(await it.project.read("a.txt"), "one\n");
  assert.equal(await it.project.read("b.txt"), "bee\n");
  assert.throws(() => Deno.statSync(`${it.project.path}/c.txt`), Deno.errors.NotFound);
});

Deno.test("each path of a patch goes through the policy: one that is protected or outside stops it [5.3]", async () => {
  for (const path of ["../out.txt", ".svc/config.json", ".git/config"]) {
    const input = wrap("*** Update File: a.txt", "@@", "-one", "+1", `*** Add File: ${path}`, "+x");
    await using it = await agent([call("apply_patch", { input }), say("done")], {
      files: FILES,
      config: { tool_permission: { edit: "allow" } },
    });
    const { result } = await it.turn("go");
    assert.equal(result.denied.length, 1, path);
    assert.equal(await it.project.read("a.txt"), "one\n");
  }
});

Deno.test("a command that is apply_patch alone is the call of the tool, and is decided as an edit [4.8, 5.3]", async () => {
  const inner = INPUT.replaceAll("a.txt", "A.txt");
  const commands: [command: string, args: Record<string, unknown>, runs: boolean][] = [
    [`apply_patch <<'EOF'\n${INPUT}\nEOF\n`, {}, true],
    [`applypatch << "PATCH"\n${INPUT}\nPATCH`, {}, true],
    [`cd sub && apply_patch <<EOF\n${INPUT}\nEOF`, {}, true],
    [`apply_patch <<'EOF'\n${INPUT}\nEOF`, { cwd: "sub" }, true],
    [`apply_patch <<EOF\n${INPUT.replace("+1", "+$(id)")}\nEOF`, {}, false],
    [`apply_patch <<'EOF'\n${INPUT}\nEOF\nrm a.txt`, {}, false],
    [`rm -r x && apply_patch <<'EOF'\n${inner}\nEOF`, {}, false],
  ];
  for (const [command, args, runs] of commands) {
    const folder = /sub/.test(command + args.cwd) ? "sub/" : "";
    await using it = await agent([
      call("run_command", { command, ...args }),
      say("done"),
      say("ok"),
    ], {
      files: { [`${folder}a.txt`]: "one\n", [`${folder}b.txt`]: "bee\n" },
      config: { tool_permission: { edit: "allow", bash: "deny" } },
    });
    const { result } = await it.turn("go");
    assert.equal(await it.project.read(`${folder}a.txt`), runs ? "1\n" : "one\n", command);
    assert.deepEqual(result.refused, runs ? [] : ["run_command (bash)"]);
    if (!runs) continue;
    const [part] = it.session.document().turns[0]!.parts.filter(({ type }) => type === "tool");
    assert.equal(part?.type === "tool" && part.name, "apply_patch");
    // The backend gets the call back as the model wrote it.
    await it.turn("thanks");
    const [, , sent] = it.backend.chats[2].messages;
    assert.equal(sent.tool_calls[0].function.name, "run_command");
    assert.deepEqual(JSON.parse(sent.tool_calls[0].function.arguments), { command, ...args });
  }
});
