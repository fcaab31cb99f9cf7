import assert from "node:assert/strict";
import { join } from "node:path";
import type { PluginModule } from "../../src/plugins/api.ts";
import { BUNDLED, type BundledPlugin } from "../../src/plugins/bundled.ts";
import type { Needs } from "../../src/plugins/loader.ts";
import type { Clock } from "../../src/platform/clock.ts";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { project } from "../support/project.ts";
import { call, load, PROVIDER, statuses, toolModule, toolSource } from "../support/plugins.ts";

Deno.test("a TypeScript plugin is imported from disk with the modules that it imports [3.5]", async () => {
  await using scratch = await project({
    "local/typed/manifest.json": '{"name": "typed", "entry": "src/plugin.ts"}',
    "local/typed/src/plugin.ts": `import { answer } from "../answer.ts";
enum Kind { Soft = "soft" }
export function register_tools(registry: { register(tool: unknown): void }): void {
  registry.register(${toolSource("typed").replace('""', "answer + Kind.Soft")});
}`,
    "local/typed/answer.ts": "export const answer: string = 'very ' satisfies string;",
  });
  const { tools, warnings } = await load(scratch);
  assert.equal(await call(tools, "typed"), "very soft");
  assert.equal(tools.owner("typed"), "typed");
  assert.deepEqual(warnings, []);
});

Deno.test("each plugin hook gets its registrar, and each registration keeps its owner [1, 4.9]", async () => {
  await using scratch = await project({
    "local/all.js": `
      const say = () => "";
      export async function register_tools(r) { await 0; r.register(${toolSource("t")}); }
      export function register_providers(r) {
        class P extends r.OpenAICompatibleProvider {
          static DEFAULT_BASE_URL = "http://127.0.0.1:1"; static DEFAULT_MODEL = "m";
          static HOST_PATTERNS = []; static ECHO_REASONING = false;
        }
        r.register("p", P);
      }
      export function register_commands(r) { r.register({ name: "c", description: "", run: say }); }
      export function register_services(r) { r.register("report", { report: say }); r.register("report", {}); }
      export function register_roles(r) { r.add_plugin({ name: "role", system_prompt: "s" }); }
      export function register_teams(r) { r.add_plugin({ name: "team" }); }
      export function register_skills(r) { r.add_plugin({ name: "skill" }); }
      export function register_fixtures(r) { r.register({ id: "fixture" }); }`,
  });
  class Base {}
  const loaded = await load(scratch, { OpenAICompatibleProvider: Base });
  assert.deepEqual(statuses(loaded), ["all local loaded"]);
  assert.equal(loaded.tools.owner("t"), "all");
  assert.ok(loaded.providers.get("p")!.prototype instanceof Base);
  assert.deepEqual(loaded.commands.map(({ owner, definition }) => [owner, definition.name]), [
    ["all", "c"],
  ]);
  assert.equal(loaded.services.get("report")!.length, 2);
  assert.deepEqual(loaded.roles, [{
    owner: "all",
    entry: { name: "role", system_prompt: "s" },
  }]);
  assert.deepEqual(loaded.teams, [{ owner: "all", entry: { name: "team" } }]);
  assert.deepEqual(loaded.skills, [{ owner: "all", entry: { name: "skill" } }]);
  assert.deepEqual(loaded.fixtures, [{ owner: "all", fixture: { id: "fixture" } }]);
});

Deno.test("a raising entry of a plugin is an error with its message, and the others still load [3.5, 7.6]", async () => {
  await using scratch = await project({
    "local/a.js": 'throw new Error("out of order")',
    "local/b.js": "export const = 1",
    "local/c.js": 'import "./nowhere.js"',
    "local/d.js": toolModule("works"),
    "local/e.js": "throw null",
  });
  const loaded = await load(scratch);
  assert.deepEqual(statuses(loaded), [
    "a local error",
    "b local error",
    "c local error",
    "d local loaded",
    "e local error",
  ]);
  assert.equal(loaded.plugins[0]!.reason, "it could not be imported: out of order");
  assert.equal(loaded.warnings.length, 4);
  assert.match(loaded.warnings[0]!, /^The plugin a \(.*a\.js\) failed: .*out of order\.$/);
});

Deno.test("a failing hook of a plugin is named and its registrations are dropped; those of other hooks stay [4.9, 7.6]", async () => {
  await using scratch = await project({
    "local/half.js": `
      export function register_tools(r) { r.register(${
      toolSource("gone")
    }); throw new Error("no"); }
      export function register_roles(r) { r.add_plugin({ name: "gone" }); return Promise.reject(1); }
      export function register_services(r) { r.register("s", {}); r.register("s", null); }
      export const register_teams = "not a function";
      export function register_skills(r) { r.add_plugin({ name: "kept" }); }`,
  });
  const loaded = await load(scratch);
  assert.equal(loaded.plugins[0]!.status, "error");
  assert.match(
    loaded.plugins[0]!.reason,
    /^hook register_tools failed: no; hook register_services failed: the service "s" is not an object; hook register_roles failed: 1; hook register_teams failed: /,
  );
  assert.equal(loaded.tools.find("gone"), undefined);
  assert.deepEqual([...loaded.services], []);
  assert.deepEqual(loaded.roles, []);
  assert.deepEqual(loaded.skills.map(({ entry }) => entry.name), ["kept"]);
});

Deno.test("an entry without a name or a function is refused", async () => {
  await using scratch = await project({
    "local/nameless.js": `
      export function register_commands(r) { r.register({ name: "c", description: "" }); }
      export function register_roles(r) { r.add_plugin({}); }
      export function register_fixtures(r) { r.register(null); }`,
  });
  const [plugin] = (await load(scratch)).plugins;
  assert.match(plugin!.reason, /the command "c" has no run function/);
  assert.match(plugin!.reason, /an entry of roles needs a name/);
  assert.match(plugin!.reason, /a fixture needs an id/);
});

Deno.test("a registration after the hook's end is refused", async () => {
  await using scratch = await project({
    "local/late.js": `
      const late = [];
      export function register_tools(r) { late.push(() => r.register(${toolSource("late")})); }
      export function register_roles(r) { late.push(() => r.add_plugin({ name: "late" })); }
      export function register_skills(r) {
        for (const register of late) {
          try { register(); } catch (error) { r.add_plugin({ name: error.message }); }
        }
      }`,
  });
  const loaded = await load(scratch);
  assert.deepEqual(loaded.roles, []);
  assert.equal(loaded.tools.find("late"), undefined);
  assert.equal(loaded.skills.length, 2);
  assert.match(loaded.skills[0]!.entry.name, /the registration is over/);
});

Deno.test("a tool's name or alias that is taken is an error of the later plugin [4.9]", async () => {
  await using scratch = await project({
    "home/first.js": toolModule("shared", "first"),
    "local/aliased.js": `export function register_tools(r) {
      r.register({ ...${toolSource("other")}, aliases: ["shared"] });
    }`,
    "local/later.js": toolModule("shared", "later"),
  });
  const loaded = await load(scratch);
  assert.deepEqual(statuses(loaded), [
    "first global loaded",
    "aliased local error",
    "later local error",
  ]);
  assert.match(loaded.plugins[2]!.reason, /"shared" of later clashes with .* of first/);
  assert.equal(await call(loaded.tools, "shared"), "first");
  assert.equal(loaded.tools.find("other"), undefined);
});

Deno.test("an invalid tool definition is an error of its plugin", async () => {
  await using scratch = await project({
    "local/bad.js": "export function register_tools(r) { r.register({ name: 'bad' }); }",
  });
  assert.match((await load(scratch)).plugins[0]!.reason, /register_tools failed: .*no handler/);
});

Deno.test("an external plugin cannot take a bundled provider's name, needed or not [4.10]", async () => {
  const register = `export function register_providers(r) {
    class P { static DEFAULT_BASE_URL = "x"; static DEFAULT_MODEL = "m"; static HOST_PATTERNS = [];
      static ECHO_REASONING = false; }
    r.register("own", P); r.register("vendor", P);
  }`;
  await using scratch = await project({ "local/greedy.js": register });
  const bundled: BundledPlugin[] = [{
    manifest: { name: "core-vendor", provides: { providers: ["vendor"] } },
    load: () => Promise.resolve({ register_providers: (r) => r.register("vendor", PROVIDER) }),
  }];
  for (const needs of [undefined, { providers: ["own"] }]) {
    const loaded = await load(scratch, { bundled, needs });
    assert.deepEqual(statuses(loaded), ["core-vendor bundled loaded", "greedy local error"]);
    assert.match(loaded.plugins[1]!.reason, /"vendor" is the name of a bundled provider/);
    assert.equal(loaded.providers.get("own"), undefined);
    assert.equal(loaded.providers.get("vendor"), needs === undefined ? PROVIDER : undefined);
  }
});

Deno.test("a local plugin may replace a bundled one of the same name, with a warning [4.9]", async () => {
  await using scratch = await project({ "local/core.js": toolModule("t", "local") });
  const bundled = [{
    manifest: { name: "core", provides: { tools: ["t"] } },
    load: () => Promise.reject(new Error("imported all the same")),
  }];
  const loaded = await load(scratch, { bundled, enabled: ["core"] });
  assert.deepEqual(statuses(loaded), ["core local loaded"]);
  assert.equal(await call(loaded.tools, "t"), "local");
  assert.match(
    loaded.warnings.join("\n"),
    /^The plugin core \(.*\) takes the place of the bundled one\.$/,
  );
});

Deno.test("disabled plugins are not imported and not warned about; unknown names are [3.5]", async () => {
  await using scratch = await project({
    "local/evil.js": 'throw new Error("ran")',
    "local/p.py": "",
  });
  const loaded = await load(scratch, { enabled: ["typo"] });
  assert.deepEqual(statuses(loaded), ["evil local disabled", "p local incompatible"]);
  assert.deepEqual(loaded.warnings, [
    "The setting plugins names typo, and there is no such plugin.",
  ]);
});

Deno.test("incompatible plugins are skipped with a warning [2.9, 7.6, 9]", async () => {
  await using scratch = await project({ "local/p.py": "" });
  const { warnings } = await load(scratch);
  assert.match(warnings.join("\n"), /^The plugin p \(.*p\.py\) was skipped: .*Python/);
});

Deno.test("bundled plugins that provide nothing that is needed are not imported [3.5]", async () => {
  const imported: string[] = [];
  const plugin = (name: string, provides: Record<string, string[]>): BundledPlugin => ({
    manifest: { name, provides },
    load: () => Promise.resolve(void imported.push(name)).then((): PluginModule => ({})),
  });
  const bundled = [
    plugin("fs", { tools: ["file_read"] }),
    plugin("demo", { providers: ["demo"], services: ["demo-model"] }),
    plugin("bare", {}),
  ];
  await using scratch = await project({ "local/external.js": toolModule("always") });
  const cases: [Needs | undefined, string[]][] = [
    [{ tools: true }, ["fs"]],
    [{ providers: "all" }, ["demo"]],
    [{ providers: ["openai"] }, []],
    [{ tools: true, providers: ["openai", "demo"] }, ["fs", "demo"]],
    [{ services: ["demo-model"] }, ["demo"]],
    [{}, []],
    [undefined, ["fs", "demo", "bare"]],
  ];
  for (const [needs, expected] of cases) {
    imported.length = 0;
    const loaded = await load(scratch, { bundled, needs });
    assert.deepEqual(imported, expected, JSON.stringify(needs));
    assert.ok(loaded.plugins.every(({ status }) => status === "loaded"));
    assert.ok(loaded.tools.find("always"), "an external plugin always loads");
  }
});

/** A clock whose sleeps end when the test says so. */
function bell(): Clock & { ring(): void } {
  const { promise, resolve } = Promise.withResolvers<void>();
  return { now: () => 0, sleep: () => promise, ring: resolve };
}

Deno.test("an import that hangs fails after the limit, and the others load", async () => {
  const clock = bell();
  const bundled: BundledPlugin[] = [
    { manifest: { name: "hangs", provides: {} }, load: () => new Promise(() => {}) },
    {
      manifest: { name: "works", provides: {} },
      load: () =>
        Promise.resolve({
          register_roles(roles) {
            roles.add_plugin({ name: "kept" });
          },
        }),
    },
  ];
  await using scratch = await project();
  const loading = load(scratch, { bundled, clock });
  clock.ring();
  const { plugins, roles } = await loading;
  assert.deepEqual(statuses({ plugins }), ["hangs bundled error", "works bundled loaded"]);
  assert.equal(plugins[0]!.reason, "it could not be imported: it took longer than 10 seconds");
  assert.deepEqual(roles.map(({ entry }) => entry.name), ["kept"]);
});

Deno.test("a hook that hangs fails after the limit; its later registrations are refused", async () => {
  const late = Promise.withResolvers<void>();
  const clock = bell();
  const bundled: BundledPlugin[] = [{
    manifest: { name: "slow", provides: {} },
    load: () =>
      Promise.resolve({
        async register_tools(registry) {
          clock.ring();
          await late.promise;
          registry.register({
            name: "late",
            description: "",
            permission: "read",
            parameters: { type: "object", properties: {} },
            handler: () => "",
          });
        },
        register_roles: (roles) => roles.add_plugin({ name: "kept" }),
      }),
  }];
  await using scratch = await project();
  const loaded = await load(scratch, { bundled, clock });
  assert.equal(
    loaded.plugins[0]!.reason,
    "hook register_tools failed: it took longer than 10 seconds",
  );
  late.resolve();
  await late.promise;
  assert.equal(loaded.tools.find("late"), undefined);
  assert.deepEqual(loaded.roles.map(({ entry }) => entry.name), ["kept"]);
});

Deno.test("an updated plugin is imported again, an unchanged one is the same module", async () => {
  const module = (name: string) =>
    `let loads = 0; export const register_roles = (r) => r.add_plugin({ name: "${name}" + ++loads });`;
  await using scratch = await project({ "local/p.js": module("before") });
  const role = async () => (await load(scratch)).roles[0]!.entry.name;
  assert.equal(await role(), "before1");
  assert.equal(await role(), "before2");
  await scratch.write("local/p.js", module("after"));
  await Deno.utime(join(scratch.path, "local/p.js"), 1, 1); // an installer may keep old times
  assert.equal(await role(), "after1");
});

Deno.test("two loads in one process do not see each other", async () => {
  await using one = await project({ "local/p.js": toolModule("one") });
  await using two = await project({ "local/p.js": toolModule("two") });
  const [first, second] = await Promise.all([load(one), load(two)]);
  assert.deepEqual(first.tools.list().map(({ name }) => name), ["one"]);
  assert.deepEqual(second.tools.list().map(({ name }) => name), ["two"]);
});

Deno.test("the bundled manifests declare exactly what the bundled plugins register [4.9]", async () => {
  for (const plugin of BUNDLED) {
    await using scratch = await project();
    const loaded = await load(scratch, { bundled: [plugin], OpenAICompatibleProvider });
    assert.equal(loaded.plugins[0]!.reason, "", plugin.manifest.name);
    const registered = {
      tools: loaded.tools.list().map(({ name }) => name),
      providers: loaded.providers.names().filter((name) => name !== "generic-compatible"),
      commands: loaded.commands.map(({ definition }) => definition.name),
      services: [...loaded.services.keys()],
      roles: loaded.roles.map(({ entry }) => entry.name),
      teams: loaded.teams.map(({ entry }) => entry.name),
      skills: loaded.skills.map(({ entry }) => entry.name),
      fixtures: loaded.fixtures.map(({ fixture }) => fixture.id),
    };
    for (const [kind, names] of Object.entries(registered)) {
      const declared = plugin.manifest.provides[kind] ?? [];
      assert.deepEqual(names.sort(), [...declared].sort(), `${plugin.manifest.name}: ${kind}`);
    }
  }
});

Deno.test("every bundled plugin has a folder of its name, and every folder is bundled [4.9]", () => {
  const folder = new URL("../../plugins/", import.meta.url);
  const folders = [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
  assert.deepEqual(BUNDLED.map(({ manifest }) => manifest.name).sort(), folders);
});
