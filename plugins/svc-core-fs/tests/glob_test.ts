import assert from "node:assert/strict";
import fc from "fast-check";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { Glob } from "../src/glob.ts";
import * as plugin from "../src/plugin.ts";

const tools = pluginTools(plugin);

function matches(pattern: string, path: string): boolean {
  return new Glob(pattern).matches(path);
}

Deno.test("patterns of glob match like those of a shell [4.8]", () => {
  const table: [string, string[], string[]][] = [
    ["*.ts", ["a.ts", "é.ts"], ["a.js", "b/a.ts", ".a.ts", "a.tsx"]],
    ["?.ts", ["a.ts", "😀.ts"], ["ab.ts", ".ts"]],
    ["**/*.ts", ["a.ts", "x/a.ts", "x/y/a.ts"], ["a.js", ".x/a.ts", "x/.a.ts"]],
    ["src/**", ["src/a", "src/a/b"], ["src", "lib/a"]],
    ["src/**/test/*", ["src/test/a", "src/x/y/test/a"], ["src/test", "src/test/a/b"]],
    ["**", ["a", "a/b"], [".a", "a/.b"]],
    ["[a-c]x", ["ax", "cx"], ["dx", "x"]],
    ["[!a-c]x", ["dx"], ["ax"]],
    ["[^a]x", ["bx"], ["ax"]],
    ["[]]x", ["]x"], ["x"]],
    ["[a-]x", ["ax", "-x"], ["bx"]],
    ["[ax", ["[ax"], ["ax"]],
    ["*.{ts,js}", ["a.ts", "a.js"], ["a.tsx", "a.{ts,js}"]],
    ["{a,b/{c,d}}.x", ["a.x", "b/c.x", "b/d.x"], ["b.x"]],
    ["{a}", ["{a}"], ["a"]],
    ["a{,b}", ["a", "ab"], ["b"]],
    ["\\*.ts", ["*.ts"], ["a.ts"]],
    ["\\{a,b\\}", ["{a,b}"], ["a"]],
    [".*", [".env"], ["env"]],
    [".github/**", [".github/x"], [".github/.x"]],
    ["./a/*", ["a/b"], ["b"]],
    ["**/x.js", ["a/x.js"], ["node_modules/x.js", "a/node_modules/x.js", ".git/x.js"]],
    ["**/node_modules/*.js", ["node_modules/x.js", "a/node_modules/x.js"], []],
    [".*/**", [".a/b"], [".git/b"]],
    ["a*b*c", ["abc", "axbxc", "abcbc"], ["ab", "acb"]],
  ];
  for (const [pattern, yes, no] of table) {
    for (const path of yes) assert.ok(matches(pattern, path), `${pattern} should match ${path}`);
    for (const path of no) {
      assert.ok(!matches(pattern, path), `${pattern} should not match ${path}`);
    }
  }
});

Deno.test("matching is fast for all patterns", () => {
  assert.ok(!matches("*a".repeat(100) + "b", "a".repeat(250)));
  assert.ok(!matches("**/a/".repeat(100) + "b", "a/".repeat(250) + "a"));
  assert.throws(() => new Glob("{a,b}".repeat(30)), /more than 100 alternatives/);
  assert.throws(() => new Glob("[".repeat(1001)), /more than 1000 characters/);
});

/** All the ways, tried one after the other: right, and slow. */
function slowly(pattern: string[], names: string[]): boolean {
  const [part, ...rest] = pattern;
  if (part === undefined) return names.length === 0;
  const [name, ...others] = names;
  if (part === "**") {
    const enough = rest.length > 0 ? slowly(rest, names) : names.length === 1;
    return (name !== undefined && slowly(pattern, others)) || enough;
  }
  return name !== undefined && slowlyNamed(part, name) && slowly(rest, others);
}

function slowlyNamed(part: string, name: string): boolean {
  if (part === "") return name === "";
  if (part[0] === "*") {
    return slowlyNamed(part.slice(1), name) || (name !== "" && slowlyNamed(part, name.slice(1)));
  }
  return name !== "" && (part[0] === "?" || part[0] === name[0]) &&
    slowlyNamed(part.slice(1), name.slice(1));
}

Deno.test("property: matching agrees with an exhaustive search", () => {
  const name = fc.string({ unit: fc.constantFrom("a", "b"), minLength: 1, maxLength: 4 });
  const part = fc.oneof(
    fc.constant("**"),
    fc.string({ unit: fc.constantFrom("a", "b", "*", "?"), minLength: 1, maxLength: 4 })
      .map((text) => text === "**" ? "*" : text),
  );
  const parts = fc.array(part, { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(parts, fc.array(name, { minLength: 1, maxLength: 4 }), (pattern, names) => {
      assert.equal(matches(pattern.join("/"), names.join("/")), slowly(pattern, names));
    }),
    { numRuns: 3000 },
  );
});

Deno.test("glob returns sorted paths relative to the worktree, folders with a slash [4.8]", async () => {
  await using work = await project({
    "src/b.ts": "",
    "src/a.ts": "",
    "src/deep/c.ts": "",
    "src/.hidden/d.ts": "",
    "src/node_modules/e.ts": "",
    "lib/f.ts": "",
  });
  const context = toolContext({ worktree: work.path });
  const glob = async (args: unknown) => (await tools.call("glob", args, context)).output;
  assert.equal(await glob({ pattern: "src/**" }), "src/a.ts\nsrc/b.ts\nsrc/deep/\nsrc/deep/c.ts");
  assert.equal(
    await glob({ pattern: "**/*.ts", path: "src" }),
    "src/a.ts\nsrc/b.ts\nsrc/deep/c.ts",
  );
  assert.equal(await glob({ pattern: "*/" }), "lib/\nsrc/");
  assert.equal(await glob({ pattern: "src/node_modules/*" }), "src/node_modules/e.ts");
  assert.equal(tools.registry.find("glob")?.permission, "list");
});

Deno.test("no match of glob is a soft note, and 200 matches at most are shown with their count [4.8]", async () => {
  await using work = await project();
  for (let i = 0; i < 205; i++) Deno.writeTextFileSync(`${work.path}/f${1000 + i}`, "");
  const context = toolContext({ worktree: work.path });
  const none = await tools.call("glob", { pattern: "x*" }, context);
  assert.deepEqual([none.output, none.note], ['(no matches for "x*")', "no matches"]);
  const { output } = await tools.call("glob", { pattern: "f*" }, context);
  const lines = output.split("\n");
  assert.equal(lines.length, 201);
  assert.equal(lines[199], "f1199");
  assert.equal(lines[200], "... (showing first 200 of 205 matches)");
});

Deno.test("links are listed and not followed", async () => {
  await using work = await project({ "a/x.txt": "" });
  await using other = await project({ "secret.txt": "" });
  await Deno.symlink("..", `${work.path}/a/up`);
  await Deno.symlink(other.path, `${work.path}/out`);
  const context = toolContext({ worktree: work.path });
  const { output } = await tools.call("glob", { pattern: "**" }, context);
  assert.equal(output, "a/\na/up\na/x.txt\nout");
  const outside = await tools.call("glob", { pattern: "*", path: "out" }, context);
  assert.match(outside.output, /^Error: .*outside the worktree/);
});

Deno.test("invalid patterns are refused", async () => {
  await using work = await project({ "a.txt": "" });
  const context = toolContext({ worktree: work.path });
  const glob = async (args: unknown) => (await tools.call("glob", args, context)).output;
  assert.match(await glob({ pattern: "../*" }), /^Error: .*use path instead/);
  assert.match(await glob({ pattern: "/etc/*" }), /^Error: the pattern must be relative/);
  assert.match(await glob({ pattern: "*", path: "a.txt" }), /^Error: a\.txt is not a directory/);
});
