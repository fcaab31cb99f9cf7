import fc from "fast-check";
import assert from "node:assert/strict";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { Glob } from "../src/glob.ts";
import { IgnoreRules } from "../src/ignore_rules.ts";
import * as plugin from "../src/plugin.ts";
import { walk } from "../src/walk.ts";

const tools = pluginTools(plugin);

Deno.test("rules of a .gitignore match as in git", () => {
  const table: [string, string[], string[]][] = [
    ["*.log", ["a.log", "x/a.log", ".log"], ["a.logs", "log"]],
    ["/a", ["a"], ["x/a"]],
    ["x/a", ["x/a"], ["y/x/a", "a"]],
    ["build/", ["build/", "x/build/"], ["build"]],
    ["**/a/b", ["a/b", "x/a/b", "x/y/a/b"], ["b", "a/x/b"]],
    ["a/**", ["a/b", "a/b/c"], ["a"]],
    ["a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["b", "x/a/b"]],
    ["*.log\n!keep.log", ["a.log"], ["keep.log"]],
    ["!a\na", ["a"], []],
    ["# a\n\\#b\n\\!c", ["#b", "!c"], ["# a", "a", "b", "c"]],
    ["a \nb\\ \n", ["a", "b "], ["a ", "b"]],
    ["a\r\n", ["a"], ["a\r"]],
    ["a[0-9]\n[!a-y]\n[[:upper:]]", ["a1", "z", "Q"], ["ab", "b"]],
    ["a[\nb\\", [], ["a[", "b", "b\\"]],
    ["/\n!\n//", [], ["a", "x/a"]],
  ];
  for (const [text, ignored, shown] of table) {
    const rules = new IgnoreRules(text, "");
    const ignores = (path: string) => rules.ignores(path.replace(/\/$/, ""), path.endsWith("/"));
    for (const path of ignored) assert.ok(ignores(path), `${JSON.stringify(text)} hides ${path}`);
    for (const path of shown) assert.ok(!ignores(path), `${JSON.stringify(text)} shows ${path}`);
  }
});

Deno.test("matching is fast for all rules of a .gitignore", () => {
  const rules = new IgnoreRules(`${"*a".repeat(1000)}b\n${"**/a/".repeat(500)}b`, "");
  assert.equal(rules.ignores("a".repeat(4000), false), false);
  assert.equal(rules.ignores("a/".repeat(2000) + "c", false), false);
});

const name = fc.constantFrom("a", "b", "ab", "a.x", "b.x", ".a", "#a", "!b", "a b", "[a]");
const part = fc.oneof(
  name,
  fc.constantFrom("*", "**", "?", "*.x", "a*", "[ab]", "[!a]*", "[a-b].x", "[[:alpha:]]", "\\a"),
  fc.constantFrom("\\#a", "\\!b", "a\\*", "[a", "?*", "*a*b", "[]a]", "[\\]a]*", "a\\ b", ".*"),
);
const pattern = fc.tuple(
  fc.constantFrom("", "", "!", "/", "!/", "#"),
  fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/")),
  fc.constantFrom("", "", "/", " ", "\\ ", "/**"),
).map((pieces) => pieces.join(""));
const rules = fc.array(pattern, { maxLength: 5 }).map((lines) => lines.join("\n") + "\n");
const folder = fc.array(name, { maxLength: 2 });

Deno.test("property: the hidden files of random trees are those of git check-ignore", async () => {
  await using work = await project();
  const git = async (args: string[], input = "") => {
    const child = new Deno.Command("git", {
      args: ["-c", "core.excludesFile=/dev/null", ...args],
      cwd: work.path,
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(input));
    await writer.close();
    return new TextDecoder().decode((await child.output()).stdout);
  };
  await git(["init", "-q"]);
  const context = toolContext({ worktree: work.path });
  // All names: those with a leading dot only match a part that starts with one.
  const everything = new Glob("{*,.*}{,/{*,.*}{,/{*,.*}}}");
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(folder, name).map(([up, last]) => [...up, last]), { maxLength: 15 }),
      fc.array(fc.tuple(folder, rules), { maxLength: 3 }),
      rules,
      async (files, ignoreFiles, exclude) => {
        for (const entry of Deno.readDirSync(work.path)) {
          if (entry.name !== ".git") {
            Deno.removeSync(`${work.path}/${entry.name}`, { recursive: true });
          }
        }
        await work.write(".git/info/exclude", exclude);
        for (const [up, text] of ignoreFiles) {
          await work.write([...up, ".gitignore"].join("/"), text).catch(() => {});
        }
        for (const file of files) await work.write(file.join("/"), "").catch(() => {});
        const all = everyPath(work.path, "");
        const hidden = await git(
          ["check-ignore", "-z", "--stdin"],
          all.map((path) => `${path}\0`).join(""),
        );
        const expected = all.filter((path) => !hidden.split("\0").includes(path));
        const found: string[] = [];
        for await (const batch of walk(work.path, everything, context)) {
          found.push(...batch.map(({ path }) => path));
        }
        assert.deepEqual(found.sort(), expected.sort());
      },
    ),
    { numRuns: 150 },
  );
});

function everyPath(root: string, below: string): string[] {
  return [...Deno.readDirSync(`${root}/${below}`)].filter(({ name }) => name !== ".git")
    .flatMap(({ name, isDirectory }) => {
      const path = below + name;
      return isDirectory ? [path, ...everyPath(root, `${path}/`)] : [path];
    });
}

Deno.test("grep and glob skip ignored files, unless the pattern spells out their names", async () => {
  await using work = await project({
    ".gitignore": "dist/\n*.log\n!keep.log\n/src/gen/**\n",
    ".git/info/exclude": "private\n",
    "src/.gitignore": "*.tmp\n",
    "src/a.ts": "x",
    "src/a.tmp": "x",
    "src/gen/b.ts": "x",
    "src/deep/c.log": "x",
    "src/deep/keep.log": "x",
    "src/deep/d.tmp": "x",
    "dist/e.js": "x",
    "dist/sub/f.log": "x",
    "private": "x",
    "top.tmp": "x",
  });
  const context = toolContext({ worktree: work.path });
  const grep = async (args: Record<string, unknown>) =>
    (await tools.call("grep", { pattern: "^x$", ...args }, context)).output
      .replaceAll(":1: x", "").split("\n");
  const glob = async (pattern: string, path = ".") =>
    (await tools.call("glob", { pattern, path }, context)).output.split("\n");
  assert.deepEqual(await grep({}), ["src/a.ts", "src/deep/keep.log", "top.tmp"]);
  assert.deepEqual(await glob("**"), [
    ...["src/", "src/a.ts", "src/deep/", "src/deep/keep.log", "src/gen/", "top.tmp"],
  ]);
  // The folders above the start count too, up to the worktree's root.
  assert.deepEqual(await grep({ path: "src/deep" }), ["src/deep/keep.log"]);
  // Named by path, by a part of the glob, or as the file itself.
  assert.deepEqual(await grep({ path: "dist" }), ["dist/e.js", "dist/sub/f.log"]);
  assert.deepEqual(await grep({ path: "dist/sub" }), ["dist/sub/f.log"]);
  assert.deepEqual(await grep({ path: "private" }), ["private"]);
  assert.deepEqual(await grep({ glob: "dist/**" }), ["dist/e.js", "dist/sub/f.log"]);
  assert.deepEqual(await grep({ glob: "c.log" }), ["src/deep/c.log"]);
  assert.deepEqual(await grep({ glob: "*.log" }), ["src/deep/keep.log"]);
  assert.deepEqual(await glob("{dist,lib}/*"), ["dist/e.js", "dist/sub/"]);
  assert.deepEqual(await glob("private"), ["private"]);
});

Deno.test("a .gitignore that is a link is ignored, as in git", async () => {
  await using work = await project({ "a.txt": "x" });
  await using other = await project({ "rules": "*.txt\n" });
  await Deno.symlink(`${other.path}/rules`, `${work.path}/.gitignore`);
  const { output } = await tools.call(
    "glob",
    { pattern: "*" },
    toolContext({ worktree: work.path }),
  );
  assert.equal(output, "a.txt");
});
