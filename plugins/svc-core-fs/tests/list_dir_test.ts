import assert from "node:assert/strict";
import { project } from "../../../tests/support/project.ts";
import { pluginTools } from "../../../tests/support/tool.ts";
import { toolContext } from "../../../tests/support/tool_context.ts";
import * as plugin from "../src/plugin.ts";

const tools = pluginTools(plugin);

function lister(worktree: string, config: Record<string, unknown> = {}) {
  const context = toolContext({ worktree, config });
  return (args: Record<string, unknown>) => tools.call("ls", args, context);
}

Deno.test("list_dir shows folders first with a slash, then files with their sizes [4.8]", async () => {
  await using work = await project({
    "b.txt": "12345",
    "a.bin": "x".repeat(1536),
    "z/inner.txt": "",
    "m/inner.txt": "",
    ".hidden": "",
  });
  const { output } = await lister(work.path)({ path: "." });
  assert.equal(output, "m/\nz/\n.hidden  0 B\na.bin  1.5 KB\nb.txt  5 B");
  assert.equal(tools.registry.find("list_dir")?.permission, "list");
});

Deno.test("list_dir with a depth shows the content of folders, except .git and node_modules [4.8]", async () => {
  await using work = await project({
    "a/b/c/deep.txt": "",
    "a/one.txt": "",
    ".git/HEAD": "",
    "node_modules/x/y.js": "",
    "top.txt": "",
  });
  const { output } = await lister(work.path)({ path: ".", depth: 3 });
  assert.equal(
    output,
    ".git/\na/\n  b/\n    c/\n  one.txt  0 B\nnode_modules/\ntop.txt  0 B",
  );
  assert.equal((await lister(work.path)({ path: "node_modules" })).output, "x/");
});

Deno.test("list_dir caps the number of entries, and gives the total [4.8]", async () => {
  await using work = await project({ "a": "", "b": "", "c": "", "d/e": "" });
  const { output } = await lister(work.path, { list_dir_max_entries: 2 })({ path: "." });
  assert.equal(output, "d/\na  0 B\n... (showing first 2 of 4 entries)");
  const exact = await lister(work.path, { list_dir_max_entries: 4 })({ path: "." });
  assert.ok(!exact.output.includes("showing"));
});

Deno.test("links are shown with their target and not entered", async () => {
  await using work = await project({ "real/a.txt": "" });
  await Deno.symlink("real", `${work.path}/link`);
  await Deno.symlink("nowhere", `${work.path}/broken`);
  await Deno.symlink("..", `${work.path}/real/up`);
  const { output } = await lister(work.path)({ path: ".", depth: 9 });
  assert.equal(output, "real/\n  a.txt  0 B\n  up -> ..\nbroken -> nowhere\nlink -> real");
});

Deno.test("a name with a line break cannot forge an entry", async () => {
  await using work = await project({ "a\n.env  3 B": "x", "b\r\u2028/c": "x" });
  await Deno.symlink("gone\nroot/", `${work.path}/link`);
  const { output } = await lister(work.path)({ path: ".", depth: 2 });
  assert.equal(
    output,
    "b\\r\\u2028/\n  c  1 B\na\\n.env  3 B  1 B\nlink -> gone\\nroot/",
  );
});

Deno.test("an empty folder is a soft note; a file and a missing folder are errors", async () => {
  await using work = await project({ "a.txt": "" });
  await Deno.mkdir(`${work.path}/empty`);
  const list = lister(work.path);
  const empty = await list({ path: "empty" });
  assert.deepEqual([empty.output, empty.note], ["(empty directory)", "empty directory"]);
  assert.equal(
    (await list({ path: "a.txt" })).output,
    "Error: a.txt is a file; read it with file_read",
  );
  assert.match((await list({ path: "emty" })).output, /^Error: .*Did you mean empty\?$/);
});
