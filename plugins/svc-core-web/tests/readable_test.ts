import assert from "node:assert/strict";
import fc from "fast-check";
import { isBearable, readable } from "../src/readable.ts";
import { simplify } from "../src/simplify.ts";

const URL_OF_PAGE = new URL("http://example.org/");
const NEVER = new AbortController().signal;
const M = 1_400_000;

/** Pages that a parser would be busy with for long: none may reach it. */
const MONSTERS: Record<string, string> = {
  nested: "<div>".repeat(300_000) + "text",
  unclosed: "<b>text".repeat(29_000),
  closing: "</div>".repeat(300_000) + "text",
  many: "<p>text</p>".repeat(200_000),
  attributes: `<a ${"x ".repeat(400_000)}>text`,
  quoted: `<a${` b"c d`.repeat(100_000)}>text`,
  spread: `<a ${Array.from({ length: 95 }, (_, n) => `x${n}`).join(" ")}>text</a>`.repeat(2000),
  tables: "<table><tr><td>".repeat(300) + "text",
  long: "text ".repeat(900_000),
  deepAndLong: "<div>".repeat(100) + "text ".repeat(100_000),
};

Deno.test("a page that is too large, too deep or too odd is not parsed, and its text is read all the same", async () => {
  for (const [name, page] of Object.entries(MONSTERS)) {
    assert.equal(isBearable(simplify(page)), false, name);
    assert.match((await readable(page, URL_OF_PAGE, NEVER)).text, /text/, name);
  }
});

Deno.test("what cannot be seen costs one pass", () => {
  for (
    const start of ["<!--", "<script>", "<style>", "<svg>", "<![CDATA[", "<?", '<a b="', "<title"]
  ) {
    const { html } = simplify(start.repeat(M / 10));
    assert.ok(html.length <= M, start);
  }
  assert.equal(simplify("a<script>b</script >c<!-- d -->e<STYLE>f</style>g").html, "aceg");
  assert.equal(simplify("1 < 2 <3 <a>b").html, "1 &lt; 2 &lt;3 <a>b");
});

Deno.test("any text has a readable form, without markup of scripts", async () => {
  const piece = fc.oneof(
    fc.constantFrom(
      "<",
      ">",
      "</",
      "<a href='",
      '"',
      "<p>",
      "</p>",
      "<div",
      "<script>",
      "</script>",
    ),
    fc.constantFrom(
      "<table>",
      "<td>",
      "&#x110000;",
      "&#0;",
      "&amp;",
      "<!--",
      "-->",
      "<pre>",
      "<title>",
    ),
    fc.string(),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(piece), async (pieces) => {
      const { title, text } = await readable(pieces.join(""), URL_OF_PAGE, NEVER);
      assert.equal(typeof title, "string");
      assert.equal(typeof text, "string");
    }),
    { numRuns: 300 },
  );
});

Deno.test("a page that is not parsed keeps its lines, its title and its entities", async () => {
  const page = `<title>A &amp; B</title><h1>One</h1><p>two &lt;three&gt; &#52;<br>five${
    "<i></i>".repeat(20_000)
  }</p>`;
  assert.deepEqual(await readable(page, URL_OF_PAGE, NEVER), {
    title: "A & B",
    text: "One\n\ntwo <three> 4\nfive",
  });
});

Deno.test("a page may leave out the tags that HTML lets it leave out", async () => {
  const pages = [
    "<!doctype html><title>T</title><body><p>hello",
    "<html><p>hello",
    "<p>hello",
    '<!DOCTYPE html>\n<html lang="en"><head><title>T</title></head><body class="a"><p>hello</p></body></html>',
    "<head><title>T</title></head><p>hello",
  ];
  for (const page of pages) {
    assert.match((await readable(page, URL_OF_PAGE, NEVER)).text, /hello/, page);
  }
});
