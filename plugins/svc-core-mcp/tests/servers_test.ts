import assert from "node:assert/strict";
import { toolContext } from "../../../tests/support/tool_context.ts";
import { fromNpm, imported } from "./support.ts";

Deno.test("server-everything: its tools are imported and called [4.3]", async () => {
  await using at = await imported([fromNpm("server-everything")]);
  const tools = await at.tools();
  assert.ok(tools.includes("everything.echo"), tools.join());
  assert.ok(tools.every((name) => /^everything\.[\w-]+$/.test(name)));
  assert.equal(at.tool("everything.echo").permission, "mcp");
  assert.equal(await at.call("everything.echo", { message: "hi" }), "Echo: hi");
  assert.equal(await at.call("everything.get-sum", { a: 2, b: 40 }), "The sum of 2 and 40 is 42.");
  const image = await at.call("everything.get-tiny-image");
  assert.match(image, /\[image image\/png, \d+ bytes\]/);
  const shown: string[] = [];
  const attach = (name: string) => Promise.resolve(void shown.push(name));
  const context = { ...toolContext({ worktree: at.project.path }), attach };
  await at.tool("everything.get-tiny-image").handler({}, context);
  assert.deepEqual(shown, ["get-tiny-image (image/png)"]);
  assert.match(await at.call("everything.get-sum", { a: "x" }), /^Error: /);
  const data = await at.call("everything.get-structured-content", { location: "Chicago" });
  assert.equal(typeof JSON.parse(data).temperature, "number");
  assert.match(
    await at.call("mcp_list"),
    /everything {2}connected \(stdio, 2025-11-25\), \d+ tools/,
  );
});

Deno.test("server-filesystem: it works in the worktree, and not outside of it", async () => {
  await using at = await imported([]);
  const { path } = at.project;
  await at.project.write("a.txt", "alpha\n");
  at.workspace.config.override("mcp.servers", [fromNpm("server-filesystem", path)]);
  const tools = await at.tools();
  assert.ok(tools.includes("filesystem.read_text_file"), tools.join());
  const read = (file: string) => at.call("filesystem.read_text_file", { path: file });
  assert.equal(await read(`${path}/a.txt`), "alpha\n");
  assert.match(await read("/etc/passwd"), /^Error: Access denied/);
  await at.call("filesystem.write_file", { path: `${path}/b.txt`, content: "beta" });
  assert.equal(await at.project.read("b.txt"), "beta");
  assert.equal(at.tool("filesystem.read_text_file").read_only, true);
  assert.equal(at.tool("filesystem.write_file").read_only, false);
});
