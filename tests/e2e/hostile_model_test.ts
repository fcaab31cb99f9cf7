import assert from "node:assert/strict";
import { calls, say, startBackend } from "../support/backend.ts";
import { svc } from "../support/program.ts";
import { project } from "../support/project.ts";

Deno.test("a listed git command runs no program from a repository that the model created", async () => {
  await using place = await project({ "README.md": "x", "src/deep/a": "" });
  await using home = await project();
  const canary = `${home.path}/canary`;
  const config =
    `[core]\n\tbare = false\n\tworktree = "."\n\tfsmonitor = "touch ${canary}; false"\n`;
  const files = (folder: string): [string, Record<string, unknown>][] => [
    ["file_write", { path: `${folder}/config`, content: config }],
    ["file_write", { path: `${folder}/objects/x`, content: "" }],
    ["file_write", { path: `${folder}/refs/x`, content: "" }],
    ["file_write", { path: `${folder}/HEAD`, content: "ref: refs/heads/main\n" }],
  ];
  await using backend = startBackend([
    calls([
      ...files("sub"),
      ...files("."),
      ["run_command", { command: "git status", cwd: "sub" }],
      ["run_command", { command: "git status", cwd: "src/deep" }],
      ["run_command", { command: "git status" }],
      ["run_command", { command: "git status", cwd: "shipped" }],
      ["run_command", { command: "git status", cwd: "shipped/deep" }],
    ]),
    say("done"),
  ]);
  // A repository that came with the worktree.
  for (const file of ["HEAD", "objects/x", "refs/x", "deep/x"]) {
    await place.write(`shipped/${file}`, "ref: refs/heads/main\n");
  }
  await place.write("shipped/config", config);
  const settings = { edit: "allow", bash_allow: ["git status"] };
  await place.write(".svc/config.json", JSON.stringify({ tool_permission: settings }));
  const { code } = await svc(
    ["run", "--base-url", backend.url, "--model", "test", "go"],
    { cwd: place.path, home: home.path },
  );
  assert.equal(code, 0);
  // deno-lint-ignore no-explicit-any
  const results = backend.chats[1].messages.filter(({ role }: any) => role === "tool")
    .map(({ content }: { content: string }) => content.split("\n")[0]);
  const refused = /^Error: permission denied: file_write \(category edit\): ".*HEAD" is protected/;
  assert.match(results[3], refused);
  assert.match(results[7], refused);
  assert.deepEqual(results.slice(8, 11), Array(3).fill("$ git status"));
  assert.match(
    results[11],
    /run_command .*a command in "shipped" may run what is configured there/,
  );
  assert.match(results[12], /run_command .*"shipped\/deep" may run what is configured there/);
  await assert.rejects(Deno.stat(canary), Deno.errors.NotFound);
});

Deno.test("an agent that may edit but not read gets no line of a file from a failed edit", async () => {
  await using place = await project({ "keys.txt": "token = SECRET-1234\n" });
  await using backend = startBackend([
    calls([
      ["file_edit", { path: "keys.txt", old: "TOKEN = secret-1234", new: "" }],
      ["file_edit", { path: "keys.txt", old: "token  =  SECRET-1234", new: "" }],
      ["file_edit", { path: "keys.txt", old: "token = ", new: "key = " }],
    ]),
    say("done"),
  ]);
  const settings = { edit: "allow", read: "deny" };
  await place.write(".svc/config.json", JSON.stringify({ tool_permission: settings }));
  await svc(["run", "--base-url", backend.url, "--model", "test", "go"], { cwd: place.path });
  // deno-lint-ignore no-explicit-any
  const results = backend.chats[1].messages.filter(({ role }: any) => role === "tool")
    .map(({ content }: { content: string }) => content);
  const refused = "Error: old does not occur in keys.txt";
  assert.deepEqual(results.slice(0, 2), [refused, refused]);
  assert.match(results[2], /^Edited keys\.txt/);
});

Deno.test("plan mode with --yes and everything allowed changes nothing", async () => {
  await using place = await project({
    "package.json": '{ "scripts": { "test": "touch tested", "format": "touch formatted" } }',
    "a.js": 'export default "x";',
  });
  await using home = await project({
    ".config/svc/plugins/deploy.js": `export function register_tools(registry) {
      registry.register({
        name: "deploy", description: "d", permission: "deploy", confirm: false,
        parameters: { type: "object", properties: {} },
        handler: () => { Deno.writeTextFileSync("deployed", ""); return "done"; },
      });
    }`,
  });
  await new Deno.Command("git", { args: ["init", "-q"], cwd: place.path }).output();
  const open = { edit: "allow", bash: "allow", dev: "allow", vcs: "allow", deploy: "allow" };
  const tool_permission = { ...open, catalog: "allow", bash_allow: ["touch"] };
  const modes = { plan: { tool_permission } };
  await home.write(
    ".config/svc/config.json",
    JSON.stringify({ tool_permission, modes, plugins: [], "memory.role": true }),
  );
  const role = { description: "d", system_prompt: "s", tool_permission: open };
  await home.write(".config/svc/roles.json", JSON.stringify({ maker: role }));
  const attempts: [string, Record<string, unknown>][] = [
    ["file_write", { path: "new", content: "x" }],
    ["run_command", { command: "touch made" }],
    ["code_test", {}],
    ["code_format", {}],
    ["git_commit", { operation: "add", path: "a.js" }],
    ["git", { operation: "status" }],
    ["catalog", { action: "save", kind: "skill", name: "s", text: "t" }],
    ["deploy", {}],
  ];
  await using backend = startBackend([
    calls([...attempts, ["delegate", { role: "maker", task: "make" }]]),
    calls(attempts),
    say("made nothing"),
    say("done"),
  ]);
  const { code, stderr } = await svc(
    ["run", "--mode", "plan", "--yes", "--base-url", backend.url, "--model", "test", "go"],
    { cwd: place.path, home: home.path },
  );
  assert.equal(code, 0, stderr);
  const names = [...Deno.readDirSync(place.path)].map(({ name }) => name).sort();
  assert.deepEqual(names, [".git", ".svc", "a.js", "package.json"]);
  for (const chat of [backend.chats[2], backend.chats[3]]) {
    // deno-lint-ignore no-explicit-any
    const results = chat.messages.filter(({ role }: any) => role === "tool")
      .map(({ content }: { content: string }) => content);
    const failed = results.slice(0, attempts.length).map((text: string) => /^Error: /.test(text));
    assert.deepEqual(failed, attempts.map(([name]) => name !== "git"), results.join("\n"));
  }
  for (const made of [".svc/skills", ".svc/memory", ".git/index"]) {
    await assert.rejects(Deno.stat(`${place.path}/${made}`), Deno.errors.NotFound, made);
  }
});

Deno.test("a plugin is imported after the permission to run programs is gone, and brings it not back", async () => {
  const plugin = `const state = () => Deno.permissions.querySync({ name: "run" }).state;
    Deno.writeTextFileSync("imported", state());
    try { new Deno.Command("touch", { args: ["ran"] }).outputSync(); } catch { /* refused */ }
    const runs = () => {
      Deno.writeTextFileSync("called", state());
      return "done";
    };
    export function register_tools(registry) {
      for (const permission of ["bash", "vcs", "mcp"]) {
        registry.register({
          name: "x_" + permission, description: "d", permission, confirm: false,
          permission_fn: () => "allow", handler: runs,
          parameters: { type: "object", properties: { a: { type: "string" } } },
        });
      }
    }`;
  const denied = { bash: "ask", vcs: "deny", dev: "deny", mcp: "ask" };
  for (const [tool_permission, state] of [[denied, "prompt"], [{ bash: "allow" }, "granted"]]) {
    await using home = await project({
      ".config/svc/plugins/x.js": plugin,
      ".config/svc/config.json": JSON.stringify({
        plugins: [],
        tool_permission,
        "sandbox.mode": "off", // no bundled role opens commands
        "mcp_server.allow_ask": false,
      }),
    });
    const start = async (...args: string[]) => {
      await using place = await project();
      await using backend = startBackend([calls([["x_bash", { a: "b" }]]), say("done")]);
      const from = ["--base-url", backend.url, "--model", "test"];
      const given = args[0] === "run" ? [...args, ...from, "go"] : args;
      const { stderr } = await svc(given, { cwd: place.path, home: home.path, stdin: "" });
      assert.equal(await place.read("imported"), state, stderr);
      const ran = await place.read("ran").then(() => true, () => false);
      assert.equal(ran, state === "granted", args[0]);
      if (args[0] === "run") assert.equal(await place.read("called"), state);
    };
    await start("run");
    await start("mcp");
  }
});

Deno.test("/mode plan in a session, and calls that a person starts there, change nothing either", async () => {
  await using place = await project({ "a.js": "x" });
  await using home = await project();
  await new Deno.Command("git", { args: ["init", "-q"], cwd: place.path }).output();
  const commit = (path: string): [string, Record<string, unknown>][] => [
    ["git_commit", { operation: "add", path }],
    ["file_write", { path: `${path}.new`, content: "x" }],
  ];
  await using backend = startBackend([
    calls(commit("a.js")),
    say("planned"),
    calls(commit("a.js")),
    say("built"),
  ]);
  const config = { base_url: backend.url, model: "test", plugins: [] };
  const tool_permission = { vcs: "allow", edit: "allow" };
  await home.write(".config/svc/config.json", JSON.stringify({ ...config, tool_permission }));
  const made = (path: string) => Deno.statSync(`${place.path}/${path}`).isFile;
  const lines = async (...text: string[]) =>
    await svc([], { cwd: place.path, home: home.path, stdin: `${text.join("\n")}\n` });
  const { stderr } = await lines(
    "/mode plan",
    "go",
    '/tool file_write path=b.new content="x"',
  );
  for (const path of [".git/index", "a.js.new", "b.new"]) {
    assert.throws(() => made(path), Deno.errors.NotFound, stderr);
  }
  await lines("go");
  assert.ok(made(".git/index") && made("a.js.new"));
});
