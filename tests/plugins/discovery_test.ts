import assert from "node:assert/strict";
import { join } from "node:path";
import type { BundledPlugin } from "../../src/plugins/bundled.ts";
import { discoverPlugins } from "../../src/plugins/loader.ts";
import { type Project, project } from "../support/project.ts";
import { load, roots, statuses, toolModule } from "../support/plugins.ts";

const THROWS = 'throw new Error("imported")';

function discover(scratch: Project, enabled: string[] = [], bundled: BundledPlugin[] = []) {
  return discoverPlugins({
    roots: roots(scratch),
    enabled,
    version: "1.4.0",
    trusts: () => true,
    bundled,
  });
}

function bundled(name: string): BundledPlugin {
  return { manifest: { name, provides: {} }, load: () => Promise.resolve({}) };
}

async function one(files: Record<string, string>) {
  await using scratch = await project(files);
  const [plugin, ...others] = await discover(scratch);
  assert.equal(others.length, 0);
  return { status: plugin!.status, reason: plugin!.reason, name: plugin!.name };
}

Deno.test("missing roots hold no plugins", async () => {
  await using scratch = await project();
  assert.deepEqual(await discover(scratch), []);
});

Deno.test("a plugin is a folder with a manifest, or a .ts, .js or .mjs file whose name it takes; nothing else is [2.9]", async () => {
  await using scratch = await project({
    "local/folder/manifest.json":
      '{"name": "named", "version": "1.2.3", "description": "Says so."}',
    "local/folder/plugin.ts": "",
    "local/bare.ts": "",
    "local/script.js": "",
    "local/module.mjs": "",
    "local/types.d.ts": "",
    "local/notes.md": "",
    "local/.hidden.ts": "",
    "local/library/helper.ts": "",
  });
  const plugins = await discover(scratch);
  assert.deepEqual(statuses({ plugins }), [
    "bare local loaded",
    "named local loaded",
    "module local loaded",
    "script local loaded",
  ]);
  assert.deepEqual(
    plugins.map(({ version, description, path }) => [version, description, path]).slice(0, 2),
    [
      ["0.0.0", "", join(scratch.path, "local", "bare.ts")],
      ["1.2.3", "Says so.", join(scratch.path, "local", "folder")],
    ],
  );
});

Deno.test("discovery imports nothing", async () => {
  await using scratch = await project({ "local/bad.js": THROWS });
  assert.deepEqual(statuses({ plugins: await discover(scratch) }), ["bad local loaded"]);
});

Deno.test("of plugins with the same name, the local one wins over the global one, and that over the bundled one [4.9]", async () => {
  await using scratch = await project({
    "home/both.js": toolModule("tool", "global"),
    "home/mine.js": "",
    "local/both.js": toolModule("tool", "local"),
  });
  const plugins = await discover(scratch, [], [bundled("mine"), bundled("kept")]);
  assert.deepEqual(statuses({ plugins }), [
    "kept bundled loaded",
    "mine global loaded",
    "both local loaded",
  ]);
});

Deno.test("a plugin that cannot be loaded replaces none of its name in a lower root [4.9]", async () => {
  await using scratch = await project({
    "home/old/manifest.json": '{"name": "kept", "python": ">=3.11", "entry": "plugin.py"}',
    "local/kept/manifest.json": "no JSON",
  });
  assert.deepEqual(statuses({ plugins: await discover(scratch, [], [bundled("kept")]) }), [
    "kept bundled loaded",
    "kept global incompatible",
    "kept local error",
  ]);
});

Deno.test("a list of plugins disables all others, of every root, and an empty one none [2.13, 3.5, 9]", async () => {
  await using scratch = await project({ "home/a.js": "", "local/b.js": "", "local/c.py": "" });
  const plugins = await discover(scratch, ["b", "kept"], [bundled("kept"), bundled("left")]);
  assert.deepEqual(statuses({ plugins }), [
    "kept bundled loaded",
    "left bundled disabled",
    "a global disabled",
    "b local loaded",
    "c local incompatible",
  ]);
  assert.match(plugins[1]!.reason, /not in the setting plugins/);
  const all = await discover(scratch, [], [bundled("kept"), bundled("left")]);
  assert.deepEqual(all.filter(({ status }) => status === "disabled"), []);
});

Deno.test("a bundled plugin has the version of the service [9]", async () => {
  await using scratch = await project();
  const [plugin] = await discover(scratch, [], [bundled("part")]);
  assert.deepEqual([plugin!.version, plugin!.path], ["1.4.0", ""]);
});

Deno.test("Python plugins are incompatible: a file, an entry, a manifest [2.9]", async () => {
  const shapes: Record<string, string>[] = [
    { "local/tool.py": "" },
    { "local/p/manifest.json": '{"name": "tool", "entry": "src/plugin.py"}' },
    { "local/p/manifest.json": '{"name": "tool", "python": ">=3.11"}', "local/p/plugin.ts": "" },
    { "local/p/manifest.json": '{"name": "tool"}', "local/p/plugin.py": "" },
  ];
  for (const files of shapes) {
    const { name, status, reason } = await one(files);
    assert.deepEqual([name, status], ["tool", "incompatible"]);
    assert.match(reason, /Python/);
  }
});

Deno.test("a plugin that needs another version of svc or Deno is incompatible; the reason names both versions [2.9, 3.5, 7.6, 9]", async () => {
  const outcome = (ranges: string) =>
    one({ "local/p/manifest.json": `{"name": "tool", ${ranges}}`, "local/p/plugin.ts": "" });
  assert.deepEqual(await outcome('"polyglav_version": ">=2.0,<3.0"'), {
    name: "tool",
    status: "incompatible",
    reason: "it needs svc >=2.0,<3.0, and this is 1.4.0",
  });
  assert.equal(
    (await outcome('"deno": ">=99"')).reason,
    `it needs Deno >=99, and this is ${Deno.version.deno}`,
  );
  assert.match((await outcome('"deno": "latest"')).reason, /"latest" is not a version range/);
  assert.equal(
    (await outcome('"polyglav_version": ">=1.0,<2.0", "deno": ">=2"')).status,
    "loaded",
  );
});

Deno.test("a missing entry of a plugin is an error, and the default entry is plugin.ts [2.9, 3.5, 7.6]", async () => {
  const manifest = '{"name": "tool"}';
  assert.equal(
    (await one({ "local/p/manifest.json": manifest })).reason,
    "its entry plugin.ts does not exist",
  );
  assert.equal(
    (await one({ "local/p/manifest.json": manifest, "local/p/plugin.ts/x": "" })).reason,
    "its entry plugin.ts is not a file",
  );
});

Deno.test("an entry outside of the plugin's folder, by path or by link, is an error [2.9]", async () => {
  await using scratch = await project({
    "local/dots/manifest.json": '{"name": "dots", "entry": "../../outside.ts"}',
    "local/linked/manifest.json": '{"name": "linked"}',
    "local/sibling/manifest.json": '{"name": "sibling", "entry": "../sibling-too/plugin.ts"}',
    "local/sibling-too/plugin.ts": "",
    "outside.ts": THROWS,
  });
  await Deno.symlink("../../outside.ts", join(scratch.path, "local/linked/plugin.ts"));
  await Deno.symlink("../outside.ts", join(scratch.path, "local/file.ts"));
  await Deno.mkdir(join(scratch.path, "local/absolute"));
  await scratch.write(
    "local/absolute/manifest.json",
    JSON.stringify({ name: "absolute", entry: join(scratch.path, "outside.ts") }),
  );
  const plugins = await discover(scratch);
  const outside = plugins.filter(({ reason }) => reason.includes("outside of the plugin's folder"));
  assert.deepEqual(outside.map(({ name }) => name), ["dots", "file", "linked", "sibling"]);
  // An absolute entry is taken relative to the plugin, where it does not exist.
  assert.equal(plugins[0]!.reason.endsWith("does not exist"), true);
});

Deno.test("a plugin's folder may be a link, as in development", async () => {
  await using scratch = await project({
    "elsewhere/manifest.json": '{"name": "linked", "entry": "src/plugin.ts"}',
    "elsewhere/src/plugin.ts": toolModule("tool", "here"),
    "local/other.js": "",
  });
  await Deno.symlink(join(scratch.path, "elsewhere"), join(scratch.path, "local/linked"));
  const loaded = await load(scratch, { enabled: ["linked"] });
  assert.deepEqual(statuses(loaded), ["linked local loaded", "other local disabled"]);
  assert.equal(loaded.tools.list().length, 1);
});
