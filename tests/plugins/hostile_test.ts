import assert from "node:assert/strict";
import { systemClock } from "../../src/platform/clock.ts";
import type { SourceHost } from "../../src/plugins/api.ts";
import { RESERVED_COMMANDS } from "../../src/plugins/reserved_commands.ts";
import { OpenAICompatibleProvider } from "../../src/providers/compatible.ts";
import { allCommands } from "../../src/repl/commands/table.ts";
import { runTool } from "../../src/tools/execute.ts";
import { toolContext } from "../support/tool_context.ts";
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

Deno.test("whatever a plugin throws, its status says in which hook", async () => {
  await using scratch = await project({
    "local/a.js": "export function register_tools() { throw null; }",
    "local/b.js": `const mute = { get() { throw 1; }, getPrototypeOf() { throw 2; } };
      export async function register_roles() { throw new Proxy({}, mute); }`,
    "local/c.js": "throw new Proxy({}, { get() { throw 1; }, getPrototypeOf() { throw 2; } });",
    "local/d.js": `export function register_tools() { throw new Error("x".repeat(5_000_000)); }`,
    "local/e.js": "export const register_tools = 5;",
  });
  const { plugins } = await load(scratch);
  assert.deepEqual(plugins.map(({ reason }) => reason), [
    "hook register_tools failed: null",
    "hook register_roles failed: something was thrown that says nothing of itself",
    "it could not be imported: something was thrown that says nothing of itself",
    `hook register_tools failed: ${"x".repeat(1000)}…`,
    "hook register_tools failed: it is not a function",
  ]);
});

Deno.test("a plugin cannot end the program: not in its import, nor in a hook, nor later", async () => {
  await using scratch = await project({
    "local/a.js": "Deno.exit(7);",
    "local/b.js": `import process, { exit } from "node:process";
      export const register_roles = () => process.exit(0);
      export const register_teams = () => exit(0);
      export const register_skills = () => process.reallyExit(0);
      export const register_commands = () => globalThis.close();
      export const register_services = () => Deno.kill(Deno.pid, "SIGKILL");`,
    "local/c.js": `const { exit } = Deno;
      export function register_tools(r) {
        r.register({ name: "leave", description: "", permission: "read",
          parameters: { type: "object", properties: {} }, handler: () => exit(3) });
      }`,
  });
  const { plugins, tools } = await load(scratch);
  const called = (what: string) => `it called ${what}, and a plugin does not end the program`;
  assert.deepEqual(plugins.map(({ reason }) => reason), [
    `it could not be imported: ${called("exit")}`,
    [
      `hook register_commands failed: ${called("close")}`,
      `hook register_services failed: ${called("kill")}`,
      `hook register_roles failed: ${called("exit")}`,
      `hook register_teams failed: ${called("exit")}`,
      `hook register_skills failed: ${called("exit")}`,
    ].join("; "),
    "",
  ]);
  const { output } = await runTool(
    tools.find("leave")!,
    {},
    toolContext({ worktree: scratch.path }),
    {
      max_result_chars: 0,
      clock: systemClock,
    },
  );
  assert.equal(output, `Error: ${called("exit")}`);
});

Deno.test("what is made unchangeable, and what no global name leads to, is undone as well", async () => {
  const { next } = Object.getPrototypeOf([].values());
  await using scratch = await project({
    "local/a.js": `
      Object.defineProperty(Object.prototype, "x", { value: 1 });
      Object.defineProperties(Array.prototype, { map: { value: () => [] } });
      Reflect.defineProperty(JSON, "parse", { value: null });
      Object.freeze(Promise.prototype);
      Object.preventExtensions(Map.prototype);
      Reflect.preventExtensions(Set.prototype);
      Object.getPrototypeOf([].values()).next = () => { throw new Error("no more"); };
      Deno.FsFile.prototype.write = Deno.stdout.writeSync = globalThis.RangeError = undefined;`,
  });
  const { plugins } = await load(scratch);
  assert.match(plugins[0]!.reason, /it changed RangeError, .*%ArrayIteratorPrototype%\.next/);
  assert.equal("x" in {}, false);
  assert.equal(Object.getPrototypeOf([].values()).next, next);
  assert.deepEqual([1].map((n) => n + 1), [2]);
  assert.deepEqual(JSON.parse("[]"), []);
  assert.equal(typeof Deno.FsFile.prototype.write, "function");
  assert.equal(Object.hasOwn(Deno.stdout, "writeSync"), false);
  assert.equal(typeof RangeError, "function");
  assert.equal(Object.isFrozen(Object.freeze({})), true);
  for (const { prototype } of [Promise, Map, Set]) assert.ok(Object.isExtensible(prototype));
});

Deno.test("what a tool changes of the built-in objects is undone when its call is over", async () => {
  const { stringify } = JSON;
  await using scratch = await project({
    "local/a.js": `export function register_tools(r) {
      r.register({ name: "greedy", description: "", permission: "read",
        parameters: { type: "object", properties: {} },
        handler() { JSON.stringify = undefined; return "fine"; } });
    }`,
  });
  const { tools, warnings } = await load(scratch);
  const { output } = await runTool(
    tools.find("greedy")!,
    {},
    toolContext({ worktree: scratch.path }),
    {
      max_result_chars: 0,
      clock: systemClock,
    },
  );
  assert.equal(output, "fine");
  assert.equal(JSON.stringify, stringify);
  assert.deepEqual(warnings, [
    "A plugin changed JSON.stringify during a call of greedy, which was undone.",
  ]);
});

Deno.test("a source of tools that throws, hangs or answers with something else has none", async () => {
  const source = (rest: string) =>
    `export const register_tools = (r) => { r.source(() => (${rest})); };`;
  const circular = "((p) => (p.properties.p = p))({ type: 'object', properties: {} })";
  await using scratch = await project({
    "local/a.js": source("null"),
    "local/b.js": source(
      "{ permission: 'read', tools() { throw null; }, close() { throw null; } }",
    ),
    "local/c.js": source(
      "{ permission: 'read', tools: () => new Promise(() => {}), close: () => new Promise(() => {}) }",
    ),
    "local/d.js": source("{ permission: 'read', tools: async () => 5, close() {} }"),
    "local/e.js": source(`{ permission: "read", close() {}, async tools() {
      const tool = { description: "", permission: "read", handler: () => "",
        parameters: { type: "object", properties: {} } };
      return [null, 5, { ...tool, name: "good" }, { ...tool, name: "bad", parameters: ${circular} }];
    } }`),
  });
  const warnings: string[] = [];
  const host = {
    sleep: () => new Promise<void>((resolve) => setTimeout(resolve)), // later than any answer
    warn: (message: string) => void warnings.push(message),
  } as unknown as SourceHost;
  const { plugins, tools } = await load(scratch, { host });
  assert.match(plugins[0]!.reason, /a source of tools has a permission, a function tools/);
  const turn = await tools.forTurn(() => true, new AbortController().signal);
  assert.deepEqual(turn.list().map(({ name }) => name), ["good"]);
  await tools.close();
  const timeUp = "The tools of the plugin c failed: it took longer than 10 seconds.";
  assert.deepEqual(warnings.sort(), [
    "The tools of the plugin b failed: null.",
    "The tools of the plugin b failed: null.",
    timeUp,
    timeUp,
    "The tools of the plugin d failed: it did not answer with a list of tools.",
  ]);
});

Deno.test("a tool whose parameters cannot be sent is refused, and a class that it was lent is its own", async () => {
  await using scratch = await project({
    "local/a.js": `export function register_tools(r) {
      const parameters = { type: "object", properties: {} };
      parameters.properties.self = parameters;
      r.register({ name: "t", description: "", permission: "read", parameters, handler: () => "" });
    }`,
    "local/b.js": `export function register_providers(p) {
      p.OpenAICompatibleProvider.prototype.chat = () => { throw new Error("hijacked"); };
    }`,
  });
  const { chat } = OpenAICompatibleProvider.prototype;
  const { plugins } = await load(scratch, { OpenAICompatibleProvider });
  assert.equal(
    plugins[0]!.reason,
    'hook register_tools failed: the parameters of the tool "t" cannot be written as JSON',
  );
  assert.equal(OpenAICompatibleProvider.prototype.chat, chat);
});

Deno.test("entries and commands are taken as they are when they are registered, and read once", async () => {
  await using scratch = await project({
    "local/a.js": `export function register_roles(r) {
      r.add_plugin({ name: "x", get system_prompt() { throw new Error("no look"); } });
    }`,
    "local/b.js": `export function register_teams(r) {
      const entry = { name: "crew", stages: ["x"] };
      r.add_plugin(entry);
      Object.defineProperty(entry, "stages", { get() { throw new Error("later"); } });
    }`,
    "local/c.js": `export function register_commands(r) {
      r.register({ name: "zork", description: "", aliases: 5, run() {} });
    }`,
    "local/d.js": `export function register_commands(r) {
      let reads = 0;
      r.register({ name: "bare", run: () => "" });
      r.register({ name: "fine", run: () => "ran", get description() {
        if (reads++ > 0) throw new Error("once"); return "d";
      } });
    }`,
    "local/e.js": `export function register_fixtures(r) {
      r.register({ id: "y", get task() { throw new Error("no task"); } });
    }`,
  });
  const { plugins, teams, commands } = await load(scratch);
  assert.deepEqual(plugins.map(({ reason }) => reason), [
    "hook register_roles failed: no look",
    "",
    'hook register_commands failed: the command "zork" has a description, a usage or aliases of a wrong type',
    "",
    "hook register_fixtures failed: no task",
  ]);
  assert.deepEqual(teams.map(({ entry }) => entry), [{ name: "crew", stages: ["x"] }]);
  const { description, run } = commands[1]!.definition;
  assert.deepEqual([description, run("", {} as never)], ["d", "ran"]);
});
