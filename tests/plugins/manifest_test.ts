import assert from "node:assert/strict";
import { parseManifest, readManifest } from "../../src/plugins/manifest.ts";
import { project } from "../support/project.ts";

Deno.test("a manifest with a name alone has the defaults", () => {
  assert.deepEqual(parseManifest({ name: "alone" }), {
    name: "alone",
    version: "0.0.0",
    description: "",
    polyglav_version: "",
    python: "",
    deno: "",
    entry: "plugin.ts",
    requires: [],
    provides: {},
    source: "",
  });
});

Deno.test("keys of other tools are kept", () => {
  assert.equal(parseManifest({ name: "x", homepage: "here" }).homepage, "here");
});

Deno.test("a wrong manifest names each wrong key", () => {
  assert.throws(
    () => parseManifest({ name: "x", version: 2, entry: "", provides: { tools: "file_read" } }),
    /invalid: version is not of type string; entry is empty; provides.tools is not of type array/,
  );
  assert.throws(() => parseManifest({}), /name is not of type string/);
  assert.throws(() => parseManifest([]), /the document is not of type object/);
});

Deno.test("a name that is no plain file name is refused, because it names a directory", () => {
  for (const name of ["", "..", "../evil", "a/b", "a\\b", ".hidden", "a b", "x".repeat(65)]) {
    assert.throws(() => parseManifest({ name }), /name is not a plain name/, name);
  }
});

Deno.test("a byte order mark in front of a manifest is none of it", async () => {
  await using scratch = await project({ "manifest.json": '\ufeff{"name": "marked"}' });
  assert.equal(readManifest(scratch.path).name, "marked");
});

Deno.test("a manifest that is no JSON, or no file, is reported in one sentence", async () => {
  await using scratch = await project({
    "broken/manifest.json": "{",
    "folder/manifest.json/x": "",
  });
  assert.throws(
    () => readManifest(`${scratch.path}/broken`),
    /^Error: manifest.json cannot be read/,
  );
  assert.throws(() => readManifest(`${scratch.path}/folder`), /manifest.json is not a file/);
});
