import assert from "node:assert/strict";
import { allCommands } from "../../src/repl/commands/table.ts";
import { RESERVED_COMMANDS } from "../../src/plugins/reserved_commands.ts";
import { project } from "../support/project.ts";
import { load, statuses, toolModule } from "../support/plugins.ts";

Deno.test("what a plugin changes of the built-in objects is undone, and its status names it", async () => {
  const { parse } = JSON;
  const { map } = Array.prototype;
  const { fetch } = globalThis;
  await using scratch = await project({
    "local/greedy.js": `
      JSON.parse = () => ({});
      Object.defineProperty(Object.prototype, "polluted", { value: 1, configurable: true });
      export function register_tools() {
        globalThis.fetch = undefined;
        delete Array.prototype.map;
      }`,
    "local/next.js": `
      if (JSON.parse("[1]").map((n) => n)[0] !== 1) throw new Error("saw what another one did");
      ${toolModule("works")}`,
  });
  const loaded = await load(scratch);
  assert.deepEqual(statuses(loaded), ["greedy local error", "next local loaded"]);
  assert.equal(
    loaded.plugins[0]!.reason,
    "it changed fetch, Array.prototype.map, JSON.parse, Object.prototype.polluted, which was undone",
  );
  assert.equal(JSON.parse, parse);
  assert.equal(Array.prototype.map, map);
  assert.equal(globalThis.fetch, fetch);
  assert.equal("polluted" in {}, false);
});

Deno.test("globals of a plugin's own, and modules of Node that change some, are no fault", async () => {
  await using scratch = await project({
    "local/shares.js": `
      import "node:worker_threads"; import "node:http"; import "node:process";
      globalThis.__shared_by_test = {};
      ${toolModule("works")}`,
  });
  const loaded = await load(scratch);
  delete (globalThis as { __shared_by_test?: unknown }).__shared_by_test;
  assert.deepEqual(statuses(loaded), ["shares local loaded"]);
});

Deno.test("commands of svc itself, or of another plugin, cannot be taken", async () => {
  const commands = (...names: string[]) =>
    `export function register_commands(r) { ${
      names.map((name) => `r.register({ name: "${name}", description: "", run() {} });`).join("\n")
    } }`;
  await using scratch = await project({
    "local/a.js": commands("hello"),
    "local/b.js": commands("exit"),
    "local/c.js": commands("free", "hello"),
    "local/d.js": commands("Two Words"),
  });
  const { plugins, commands: registered } = await load(scratch);
  assert.deepEqual(plugins.map(({ reason }) => reason), [
    "",
    "hook register_commands failed: /exit is a command of svc itself",
    "hook register_commands failed: /hello is a command of a already",
    'hook register_commands failed: "Two Words" is no name of a command: it begins with a lower case letter',
  ]);
  assert.deepEqual(registered.map(({ definition }) => definition.name), ["hello"]);
});

Deno.test("somebody's plugin that hangs in its import or in a hook is cut off, and the others load", async () => {
  await using scratch = await project({
    "local/a.js": "globalThis.timeIsUp(); await globalThis.never;",
    "local/b.js": `export function register_roles() {
      globalThis.timeIsUp();
      return globalThis.never;
    }`,
    "local/c.js": toolModule("works"),
  });
  let ring = () => {};
  const clock = {
    now: () => 0,
    sleep: () => new Promise<void>((resolve) => ring = resolve),
  };
  const { promise: never, resolve: release } = Promise.withResolvers<void>();
  const global = globalThis as { timeIsUp?: () => void; never?: Promise<void> };
  Object.assign(global, { timeIsUp: () => ring(), never });
  const { plugins } = await load(scratch, { clock });
  release(); // Deno takes a module that still waits at the end for an error
  delete global.timeIsUp;
  delete global.never;
  assert.deepEqual(plugins.map(({ reason }) => reason), [
    "it could not be imported: it took longer than 10 seconds",
    "hook register_roles failed: it took longer than 10 seconds",
    "",
  ]);
});

Deno.test("a package imported at the top of a module is an error that says how it is done", async () => {
  await using scratch = await project({ "local/top.js": 'import "no-such-package";' });
  const { plugins } = await load(scratch);
  assert.equal(
    plugins[0]!.reason,
    'it could not be imported: it requires no-such-package: name it under "requires" in the plugin\'s ' +
      'manifest, import it inside a function (await import("no-such-package")), and install it with: ' +
      "svc plugins update <plugin> --deps",
  );
});

Deno.test("the reserved names are those of the terminal session's commands", async () => {
  const own = (await allCommands()).flatMap(([name, { aliases = [] }]) => [name, ...aliases]);
  assert.deepEqual(own.filter((name) => !RESERVED_COMMANDS.has(name)), []);
});
