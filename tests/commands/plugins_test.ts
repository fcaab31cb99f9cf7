import assert from "node:assert/strict";
import { runMain } from "../support/io.ts";
import { project } from "../support/project.ts";

Deno.test("plugins list shows the description of a plugin that is disabled [2.9, 3.5]", async () => {
  await using place = await project({
    ".svc/plugins/tides/manifest.json":
      '{"name": "tides", "description": "High and low water.", "provides": {"tools": ["tide"]}}',
    ".svc/plugins/tides/plugin.ts": "",
  });
  const { out } = await runMain(place.path, "plugins", "list");
  assert.match(
    out,
    /^tides +0\.0\.0 +local +disabled +High and low water\. \(not in the setting plugins\)$/m,
  );
  assert.match(out, /^svc-core-fs +\S+ +bundled +loaded +\w[^()]+$/m);
  const listed = JSON.parse((await runMain(place.path, "plugins", "--output", "json")).out);
  const { description, reason, requires, provides } = listed.find(
    ({ name }: { name: string }) => name === "tides",
  );
  assert.deepEqual(
    { description, reason, requires, provides },
    {
      description: "High and low water.",
      reason: "not in the setting plugins",
      requires: [],
      provides: { tools: ["tide"] },
    },
  );
});

Deno.test("a plugin in Python is listed as incompatible with what to do, enabled or not [2.9, 3.5]", async () => {
  await using place = await project({
    ".svc/plugins/words/manifest.json": '{"name": "words", "description": "Counts words."}',
    ".svc/plugins/words/plugin.py": "def register_tools(registry): pass\n",
    ".svc/plugins/tide.py": "",
  });
  const { out, notes } = await runMain(place.path, "plugins", "list");
  for (const name of ["words", "tide"]) {
    const line = out.split("\n").find((each) => each.startsWith(`${name} `))!;
    assert.match(line, /^\w+ +0\.0\.0 +local +incompatible +.*it is written in Python/);
    assert.ok(line.includes(`svc plugins new ${name}`), line);
    assert.ok(line.includes(`svc plugins uninstall ${name}`), line);
  }
  assert.deepEqual(notes, [], "what is not enabled is no warning");
  const gone = await runMain(place.path, "plugins", "uninstall", "words");
  assert.equal(gone.code, 0);
  assert.doesNotMatch((await runMain(place.path, "plugins")).out, /^words/m);
});
