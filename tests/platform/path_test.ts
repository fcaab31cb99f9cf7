import assert from "node:assert/strict";
import * as path from "node:path/posix";
import * as url from "node:url";
import fc from "fast-check";
import * as own from "../../src/platform/path.ts";

/** Texts in which everything that a path function looks at is frequent. */
const text = fc.array(
  fc.constantFrom(
    "/",
    "/",
    ".",
    "..",
    "a",
    "b.c",
    "%2F",
    "%",
    "?",
    "#",
    "\\",
    " ",
    "\n",
    "\t",
    "é",
    "🐈",
  ),
  { maxLength: 8 },
).map((parts) => parts.join(""));
const texts = fc.array(text, { maxLength: 4 });

Deno.test("the executable's path functions are those of Node", () => {
  assert.equal(own.sep, path.sep);
  for (const name of ["normalize", "dirname", "basename", "extname", "isAbsolute"] as const) {
    fc.assert(
      fc.property(text, (given) => assert.equal(own[name](given), path[name](given), name)),
    );
  }
  for (const name of ["join", "resolve"] as const) {
    const check = (given: string[]) =>
      assert.equal(own[name](...given), path[name](...given), name);
    fc.assert(fc.property(texts, check));
  }
  const relative = (from: string, to: string) =>
    assert.equal(own.relative(from, to), path.relative(from, to));
  fc.assert(fc.property(text, text, relative));
  for (const name of ["a.json", "/b/a.json/", "json", "a.JSON", "a"]) {
    assert.equal(own.basename(name, ".json"), path.basename(name, ".json"));
  }
});

Deno.test("the executable's URLs of files are those of Node", () => {
  const there = (given: string) => {
    const made = own.pathToFileURL(given);
    assert.equal(made.href, url.pathToFileURL(given).href);
    assert.equal(own.fileURLToPath(made), url.fileURLToPath(made));
    assert.equal(own.fileURLToPath(made.href), url.fileURLToPath(made.href));
  };
  fc.assert(fc.property(text, there));
  for (const wrong of ["https://a/b", "file://host/a", "file:///a%2Fb", "a"]) {
    assert.throws(() => own.fileURLToPath(wrong), TypeError);
    assert.throws(() => url.fileURLToPath(wrong), TypeError);
  }
});
