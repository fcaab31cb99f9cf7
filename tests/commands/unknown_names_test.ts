import assert from "node:assert/strict";
import { toolModule } from "../support/plugins.ts";
import { runMain } from "../support/io.ts";
import { project } from "../support/project.ts";

const BACKEND = JSON.stringify({ base_url: "http://127.0.0.1:1/v1", model: "m", plugins: [] });

Deno.test("a category or tool that does not exist is refused with the nearest name, wherever it is given [4.5, 4.6, 4.7]", async () => {
  const add = ["jobs", "add", "a", "--interval", "60", "--prompt", "x"];
  const commands: string[][] = [add, ["fleet", "config", "one"], ["roles", "new", "clerk"]];
  const wrong: [option: string, value: string, message: RegExp][] = [
    ["--tool-permission", "foo=allow", /no category "foo" of tools\.\nhint: .*read.*edit.*bash/],
    ["--tool-permission", "wep=allow", /no category "wep" of tools\.\nhint: Did you mean "web"\?/],
    ["--tool-permission", "run_command=allow", /"run_command" of tools\.\nhint: .* is in bash/],
    ["--tool-permission", "edit", /"edit" is not of the form category=action/],
    ["--tool-permission", "edit=maybe", /"allow", "ask" or "deny"/],
    ["--tools-deny", "file_raed", /no tool "file_raed"\.\nhint: Did you mean "file_read"\?/],
  ];
  await using place = await project({
    ".svc/config.json": BACKEND,
    ".svc/fleet.json": JSON.stringify({ agents: [{ name: "one", dir: "one" }] }),
    "one/.svc/config.json": BACKEND,
  });
  const state = () =>
    ["jobs.json", "roles.json", "../one/.svc/config.json"].map((file) => {
      try {
        return Deno.readTextFileSync(`${place.path}/.svc/${file}`);
      } catch {
        return "";
      }
    });
  const before = state();
  for (const command of commands) {
    for (const [option, value, message] of wrong) {
      if (command[0] === "roles" && option === "--tools-deny") continue; // a role has none
      const { code, notes } = await runMain(place.path, ...command, option, value);
      assert.equal(code, 2, [...command, value].join(" "));
      assert.match(notes.join("\n"), message);
    }
  }
  assert.deepEqual(state(), before);
});

Deno.test("a category and a tool of a plugin, and tools of MCP servers, are taken [4.5, 4.6]", async () => {
  const plugin = {
    ".svc/plugins/dock/manifest.json": '{"name": "dock", "entry": "p.js"}',
    ".svc/plugins/dock/p.js": toolModule("moor").replace('"read"', '"harbour"'),
  };
  await using place = await project({
    ".svc/config.json": BACKEND,
    ".svc/fleet.json": JSON.stringify({ agents: [{ name: "one", dir: "one" }] }),
    "one/.svc/config.json": BACKEND,
    ...plugin,
    ...Object.fromEntries(Object.entries(plugin).map(([name, text]) => [`one/${name}`, text])),
  });
  const rights = ["--tool-permission", "harbour=ask", "--tools-deny", "moor"];
  for (
    const command of [
      ["jobs", "add", "a", "--interval", "60", "--prompt", "x"],
      ["fleet", "config", "one"],
    ]
  ) {
    const { code, notes } = await runMain(place.path, ...command, ...rights, "--tools-deny", "x.y");
    assert.equal(code, 0, notes.join("\n"));
  }
});

Deno.test("a role that does not exist is refused with the nearest name, wherever it is given [4.4, 4.5, 4.6, 7.4]", async () => {
  await using place = await project({
    ".svc/config.json": BACKEND,
    ".svc/fleet.json": JSON.stringify({ agents: [{ name: "one", dir: "one" }] }),
    "one/.svc/config.json": BACKEND,
  });
  const commands = [
    ["jobs", "add", "a", "--interval", "60", "--prompt", "x"],
    ["fleet", "config", "one"],
    ["run", "-p", "x"],
    ["roles", "show"],
  ];
  for (const command of commands) {
    const role = command[0] === "roles" ? ["writter"] : ["--role", "writter"];
    const { code, notes } = await runMain(place.path, ...command, ...role);
    assert.equal(code, 2, command.join(" "));
    assert.match(notes.join("\n"), /There is no role "writter"\.\nhint: Did you mean writer\?/);
  }
});

Deno.test("a provider that does not exist is refused with the nearest, the user's connections among them [4.4, 4.6, 4.10]", async () => {
  await using place = await project({
    ".svc/config.json": BACKEND,
    ".svc/fleet.json": JSON.stringify({ agents: [{ name: "one", dir: "one" }] }),
    "one/.svc/config.json": BACKEND,
    ".config/svc/providers.json": JSON.stringify({
      harbour: { base_url: "http://127.0.0.1:1/v1" },
    }),
  });
  const commands = [
    ["run", "-p", "x", "--provider", "harbuor"],
    ["jobs", "add", "a", "--interval", "60", "--prompt", "x", "--provider", "harbuor"],
    ["provider", "harbuor"],
    ["models", "list", "harbuor"],
    ["connect", "harbuor"],
    ["fleet", "config", "one", "--provider", "harbuor"],
  ];
  for (const command of commands) {
    const { code, notes } = await runMain(place.path, ...command);
    assert.equal(code, 2, command.join(" "));
    assert.match(notes.join("\n"), /no provider "harbuor"\.\nhint: Did you mean harbour\?/);
  }
});
