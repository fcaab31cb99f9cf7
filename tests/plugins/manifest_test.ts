import assert from "node:assert/strict";
import fc from "fast-check";
import { inRange, parseManifest, readManifest } from "../../src/plugins/manifest.ts";
import { project } from "../support/project.ts";

Deno.test("a manifest with a name alone has the defaults [2.9]", () => {
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

Deno.test("unknown keys of a manifest are kept [2.9]", () => {
  assert.equal(parseManifest({ name: "x", homepage: "here" }).homepage, "here");
});

Deno.test("a wrong manifest names each wrong key [2.9, 7.6]", () => {
  assert.throws(
    () => parseManifest({ name: "x", version: 2, entry: "", provides: { tools: "file_read" } }),
    /invalid: version is not of type string; entry is empty; provides.tools is not of type array/,
  );
  assert.throws(() => parseManifest({}), /name is not of type string/);
  assert.throws(() => parseManifest([]), /the document is not of type object/);
});

Deno.test("a name that is not a plain file name is refused [2.9]", () => {
  for (const name of ["", "..", "../evil", "a/b", "a\\b", ".hidden", "a b", "x".repeat(65)]) {
    assert.throws(() => parseManifest({ name }), /name is not a plain name/, name);
  }
});

Deno.test("a byte order mark before a manifest is skipped", async () => {
  await using scratch = await project({ "manifest.json": '\ufeff{"name": "marked"}' });
  assert.equal(readManifest(scratch.path).name, "marked");
});

Deno.test("a manifest that is not JSON, or not a file, is reported in one sentence", async () => {
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

const CASES: [version: string, range: string, expected: boolean | undefined][] = [
  ["1.4.0", ">=1.2.0,<2.0.0", true],
  ["1.4.0", ">= 1.2 , < 2", true],
  ["2.0.0", ">=1.2,<2.0", false],
  ["2.0.0-rc.1", ">=1.2,<2.0", false],
  ["1.1.9", ">=1.2,<2.0", false],
  ["1.2.1", ">1.2", true], // a semver range would mean 1.3.0 and later
  ["1.2.0", ">1.2", false],
  ["1.2.0", "==1.2", true],
  ["1.2.1", "==1.2", false],
  ["1.2.1", "==1.2.*", true],
  ["1.3.0", "==1.2.*", false],
  ["1.2.1", "!=1.2.1", false],
  ["1.2.2", "!=1.2.1,>=1", true],
  ["1.9.0", "~=1.4", true],
  ["2.0.0", "~=1.4", false],
  ["1.4.9", "~=1.4.2", true],
  ["1.5.0", "~=1.4.2", false],
  ["1.4.0", "<=1.4", true],
  ["1.4.0", "1.4.0", true],
  ["1.4.0", "^1.2", true],
  ["1.4.0", ">=1 <1.3 || >=1.4", true],
  ["1.4.0", "*", true],
  ["1.4.0", "newest", undefined],
  ["1.4.0", ">=1,", undefined],
  ["1.4.0", "~=1", undefined],
  ["1.4.0", ">=1.*", undefined],
];

for (const [version, range, expected] of CASES) {
  Deno.test(`${version} in "${range}": ${expected ?? "no range"} [2.9, 9]`, async () => {
    assert.equal(await inRange(version, range), expected);
  });
}

Deno.test("a half-open range holds exactly the versions between its bounds [2.9, 9]", async () => {
  const part = fc.nat({ max: 4 });
  const triple = fc.tuple(part, part, part);
  const order = (a: number[], b: number[]) => a[0]! - b[0]! || a[1]! - b[1]! || a[2]! - b[2]!;
  await fc.assert(fc.asyncProperty(triple, triple, triple, async (version, low, high) => {
    const expected = order(version, low) >= 0 && order(version, high) < 0;
    const range = `>=${low.join(".")},<${high.join(".")}`;
    assert.equal(await inRange(version.join("."), range), expected, range);
  }));
});
