import fc from "fast-check";
import assert from "node:assert/strict";
import { isBearable, readable } from "../src/page.ts";
import { simplify } from "../src/simplify.ts";
import { runs } from "../../../tests/support/random.ts";

const HERE = "http://example.org/";
const M = 1_400_000;

/** Pages that a parser takes very long for. */
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
  entities: "&lt;".repeat(300_000) + "text",
  deepAndLong: "<div>".repeat(100) + "text ".repeat(100_000),
};

Deno.test("a page that is too large or malformed is not parsed, and returned as plain text", () => {
  for (const [name, page] of Object.entries(MONSTERS)) {
    assert.equal(isBearable(simplify(page)), false, name);
    assert.match(readable(page, HERE).text, /text/, name);
  }
});

Deno.test("invisible elements are removed in one pass", () => {
  for (
    const start of ["<!--", "<script>", "<style>", "<svg>", "<![CDATA[", "<?", '<a b="', "<title"]
  ) {
    const { html } = simplify(start.repeat(M / 10));
    assert.ok(html.length <= M, start);
  }
  assert.equal(simplify("a<script>b</script >c<!-- d -->e<STYLE>f</style>g").html, "aceg");
  assert.equal(simplify("1 < 2 <3 <a>b").html, "1 &lt; 2 &lt;3 <a>b");
});

Deno.test("any text has a readable form, without markup of scripts", () => {
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
  fc.assert(
    fc.property(fc.array(piece), (pieces) => {
      const { title, text } = readable(pieces.join(""), HERE);
      assert.equal(typeof title, "string");
      assert.equal(typeof text, "string");
    }),
    runs(300),
  );
});

Deno.test("a page that is not parsed keeps its lines, its title and its entities", () => {
  const page = `<title>A &amp; B</title><h1>One</h1><p>two &lt;three&gt; &#52;<br>five${
    "<i></i>".repeat(20_000)
  }</p>`;
  assert.deepEqual(readable(page, HERE), {
    title: "A & B",
    text: "One\n\ntwo <three> 4\nfive",
  });
});

Deno.test("optional tags of HTML may be missing", () => {
  const pages = [
    "<!doctype html><title>T</title><body><p>hello",
    "<html><p>hello",
    "<p>hello",
    '<!DOCTYPE html>\n<html lang="en"><head><title>T</title></head><body class="a"><p>hello</p></body></html>',
    "<head><title>T</title></head><p>hello",
  ];
  for (const page of pages) {
    assert.match(readable(page, HERE).text, /hello/, page);
  }
});

/** Pages that are small to the eye, and that an expression of Readability or Turndown looked at for hours. */
const TRAPS: Record<string, string> = {
  spaces: `<p>${"\u00a0".repeat(M)}text`,
  lines: `<ul><li><blockquote><pre>${"\n".repeat(M)}text`,
  spread: `<ul><li><pre>${"\n\n\n<b></b>".repeat(10_000)}text`,
  breaks: `<p>${"<br>".repeat(20_000)}text`,
  code: `<p>a <code> ${"x".repeat(M)}y</code> text`,
  sources: `<p>text<img srcset="${"a".repeat(M)} b">`,
  images: `<p>text<img data-src="${".jpg".repeat(M / 4)} x">`,
};

Deno.test("no regular expression of a parser gets input that takes quadratic time", () => {
  for (const [name, page] of Object.entries(TRAPS)) {
    assert.equal(isBearable(simplify(page)), true, name);
    assert.match(readable(page, HERE).text, /text/, name);
  }
});

Deno.test("only endless white space is cut", () => {
  const indented = `<pre>a\n${" ".repeat(60)}b\n\nc</pre>`;
  assert.equal(readable(indented, HERE).text, `a\n${" ".repeat(60)}b\n\nc`);
  assert.equal(readable(`<pre>a${" ".repeat(500)}b</pre>`, HERE).text, `a${" ".repeat(100)}b`);
  const spread = `<pre>a${` <b> </b>`.repeat(500)}b</pre>`;
  assert.equal(readable(spread, HERE).text, `a${" ".repeat(50)}b`); // Turndown drops empty elements
});

Deno.test("inline code is fenced with enough backticks", () => {
  const code = (text: string) => readable(`<p>x<code>${text}</code>y`, HERE).text;
  assert.equal(code("a b"), "x`a b`y");
  assert.equal(code("a``b`c"), "x```a``b`c```y");
  assert.equal(code("`a"), "x`` `a ``y");
  assert.equal(code("`"), "x`` ` ``y");
  assert.equal(code(""), "xy");
  assert.equal(code("a\nb"), "x`a b`y");
});
