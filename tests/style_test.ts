/** Comments, test names and documents are plain technical English: these words had meanings of their own. */
import assert from "node:assert/strict";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = dirname(fileURLToPath(new URL(".", import.meta.url)));
const FOLDERS = ["src", "plugins", "tests", "bench", "examples", "docs"];
/** Benchmark reports, which are generated. */
const GENERATED = "docs/benchmarks.md";

const WORDS =
  /\b(carves?|whoever|seldom|twins?|first[ _]look|surroundings|futile|tame[ds]?|nobody|somebody|anybody|beside|(is|are|was|were) put to|lets? go of|(is|are|was) done with|what is wanted)\b/gi;
/** Also not part of an identifier. */
const NAMES = /\b\w*(carve|surroundings|firstLook|first_look|futile|twin)(?![a-z])\w*/gi;

const FILES = FOLDERS.flatMap((folder) => walk(folder))
  .concat("main.ts", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")
  .filter((file) => file !== GENERATED && file !== "tests/style_test.ts");

Deno.test("comments, test names and documents use none of the words that need a glossary", () => {
  const found = FILES.flatMap((file) => {
    const text = Deno.readTextFileSync(join(ROOT, file));
    if (file.endsWith(".md")) return hits(file, prose(text), WORDS);
    return [...hits(file, spoken(text), WORDS), ...hits(file, withoutTexts(text), NAMES)];
  });
  assert.deepEqual(found, []);
});

Deno.test("no file is named for a place", () => {
  const named = FILES.filter((file) =>
    /^(places?|first_look|carve)(_test)?\.ts$/.test(basename(file))
  );
  assert.deepEqual(named, []);
});

/** `file:line: word` for each hit. */
function hits(file: string, text: string, words: RegExp): string[] {
  return text.split("\n").flatMap((line, index) =>
    [...line.matchAll(words)].map(([word]) => `${file}:${index + 1}: ${word}`)
  );
}

/** A document without its code, line by line. */
function prose(text: string): string {
  let code = false;
  return text.split("\n").map((line) => {
    if (line.trimStart().startsWith("```")) code = !code;
    return code ? "" : line.replaceAll(/`[^`]*`/g, "");
  }).join("\n");
}

/** The comments and the names of tests, line by line. */
function spoken(text: string): string {
  return text.split("\n").map((line) =>
    /^\s*(\/\*\*|\*|\/\/)(.*)/.exec(line)?.[2] ?? /\s\/\/ (.*)$/.exec(line)?.[1] ??
      /(?:Deno\.test|\.step)\((["`])(.*?)\1/.exec(line)?.[2] ?? ""
  ).map((line) => line.replaceAll(/`[^`]*`/g, "")).join("\n");
}

/** Code without texts and comments, as far as one line tells. */
function withoutTexts(text: string): string {
  return text.replaceAll(/^\s*(\/\*\*|\*|\/\/).*$/gm, "").replaceAll(
    /"[^"\n]*"|`[^`]*`/g,
    (each) => each.replaceAll(/[^\n]/g, ""),
  );
}

function walk(folder: string): string[] {
  return [...Deno.readDirSync(join(ROOT, folder))].flatMap(({ name, isDirectory }) => {
    const path = `${folder}/${name}`;
    if (isDirectory) return name === "node_modules" || name === "peers" ? [] : walk(path);
    return /\.(tsx?|md)$/.test(name) ? [path] : [];
  });
}
