import assert from "node:assert/strict";
import type { SourceHost } from "../../src/plugins/api.ts";
import { project } from "../support/project.ts";
import { load, toolModule } from "../support/plugins.ts";

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

Deno.test("an external plugin that hangs in its import or in a hook fails after the limit, and the others load", async () => {
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

Deno.test("a package imported at the top of a module is an error that says how to import it", async () => {
  await using scratch = await project({ "local/top.js": 'import "no-such-package";' });
  const { plugins } = await load(scratch);
  assert.equal(
    plugins[0]!.reason,
    'it could not be imported: it requires no-such-package: name it under "requires" in the plugin\'s ' +
      'manifest, import it inside a function (await import("no-such-package")), and install it with: ' +
      "svc plugins update <plugin> --deps",
  );
});

Deno.test("the status of a plugin names the hook that failed, for any thrown value [7.6]", async () => {
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

Deno.test("a source of tools that throws, hangs or returns anything else has no tools", async () => {
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

Deno.test("a tool whose parameters cannot be written as JSON is refused", async () => {
  await using scratch = await project({
    "local/a.js": `export function register_tools(r) {
      const parameters = { type: "object", properties: {} };
      parameters.properties.self = parameters;
      r.register({ name: "t", description: "", permission: "read", parameters, handler: () => "" });
    }`,
  });
  const { plugins } = await load(scratch);
  assert.equal(
    plugins[0]!.reason,
    'hook register_tools failed: the parameters of the tool "t" cannot be written as JSON',
  );
});

Deno.test("entries and commands are copied when they are registered", async () => {
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
