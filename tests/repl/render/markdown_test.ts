import assert from "node:assert/strict";
import { MarkdownStream, renderMarkdown } from "../../../src/repl/render/markdown.ts";
import { style } from "../../../src/platform/style.ts";
import { withoutStyle } from "../../../src/platform/text.ts";

const plain = style({ enabled: false });
const colours = style({ enabled: true });

const CASES: [name: string, markdown: string, shown: string][] = [
  ["paragraphs wrap by words", "one two three four five six", "one two three four\nfive six\n"],
  ["a word too long is broken", "x".repeat(25), `${"x".repeat(20)}\nxxxxx\n`],
  ["wide characters count twice", "漢字漢字漢字漢字漢字漢字", "漢字漢字漢字漢字漢字\n漢字\n"],
  ["line breaks are kept", "a\nb  \nc\\\nd", "a\nb\nc\nd\n"],
  ["headings", "# One *x* #\nText\n\nTwo\n===", `# One x\nText\n\nTwo\n${"═".repeat(20)}\n`],
  ["emphasis", "*a* **b** ***c*** ~~d~~ _e_ `f`", "a b c d e f\n"],
  ["what is no emphasis", "2 * 3 * 4, a_b_c, **open", "2 * 3 * 4, a_b_c,\n**open\n"],
  ["escapes and entities", "\\*a\\* &lt;b&gt;", "*a* <b>\n"],
  ["links", "[text](http://x/) <http://y/>", "text (http://x/)\nhttp://y/\n"],
  ["a link that is its text", "[http://x/](http://x/)", "http://x/\n"],
  ["quotations", "> a b c d e f g h i j k\n>\n> > b", "│ a b c d e f g h i\n│ j k\n│\n│ │ b\n"],
  ["lists", "- a\n  - b\n    c\n1. d\n10) e", "• a\n  • b\n    c\n1. d\n10) e\n"],
  ["items hang", "1. one two three four five six", "1. one two three\n   four five six\n"],
  ["items nested by two", "1. a\n  - b", "1. a\n   • b\n"],
  ["tasks", "- [ ] open\n- [x] done", "☐ open\n☑ done\n"],
  ["paragraphs of an item", "- a\n\n  b\n\nc", "• a\n\n  b\n\nc\n"],
  ["rules", "a\n\n---\n***", `a\n\n${"─".repeat(20)}\n${"─".repeat(20)}\n`],
  ["code", "```ts\nlet x  = 1;\n\n```\nafter", "```ts\nlet x  = 1;\n\n```\nafter\n"],
  ["code in an item", "- a\n  ```\n  b\n  ```", "• a\n  ```\n  b\n  ```\n"],
  ["code that is never closed", "```\na", "```\na\n"],
  [
    "tables",
    "|a|b|c|\n|-|:-:|-:|\n|xx|y|z|\n|1|222|33|",
    [
      "a  │  b  │  c",
      "───┼─────┼───",
      "xx │  y  │  z",
      "1  │ 222 │ 33",
      "",
    ].join("\n"),
  ],
  [
    "tables too wide",
    "|a|b|\n|-|-|\n|one two three four|漢字漢字漢字|",
    [
      "a        │ b",
      "─────────┼─────────",
      "one two  │ 漢字漢字",
      "three    │ 漢字",
      "four     │",
      "",
    ].join("\n"),
  ],
  [
    "tables with too many columns",
    "|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n|1|2|3|4|5|6|",
    [
      "a: 1",
      "b: 2",
      "c: 3",
      "d: 4",
      "e: 5",
      "f: 6",
      "",
    ].join("\n"),
  ],
  [
    "cells too many, cells too few",
    "|a|b|\n|-|-|\n|1|2|3|\n|4|",
    [
      "a │ b",
      "──┼──────",
      "1 │ 2 | 3",
      "4 │",
      "",
    ].join("\n"),
  ],
  ["what is no table", "| a | b |\ntext", "| a | b |\ntext\n"],
];

for (const [name, markdown, shown] of CASES) {
  Deno.test(`Markdown: ${name}`, () => {
    assert.equal(renderMarkdown(markdown, plain, 20), shown);
  });
}

Deno.test("colours say what the marks said", () => {
  const shown = renderMarkdown("**b** *i* `c` ~~s~~ [l](u)", colours, 80);
  assert.equal(
    shown,
    "\x1b[1mb\x1b[22m \x1b[3mi\x1b[23m \x1b[36mc\x1b[39m \x1b[9ms\x1b[29m " +
      "\x1b[4ml\x1b[24m \x1b[2m(u)\x1b[22m\n",
  );
});

Deno.test("code is painted by its language, over lines too", () => {
  const code = (language: string, text: string) =>
    renderMarkdown(`\`\`\`${language}\n${text}\n\`\`\``, colours, 80).split("\n").slice(0, -1);
  assert.deepEqual(code("ts", "const a = 'x' + 1; // no\n/* a\nb */ c"), [
    "\x1b[35mconst\x1b[39m a = \x1b[32m'x'\x1b[39m + \x1b[33m1\x1b[39m; \x1b[2m// no\x1b[22m",
    "\x1b[2m/* a\x1b[22m",
    "\x1b[2mb */\x1b[22m c",
  ]);
  assert.deepEqual(code("python", 'def f(): # no\n"""a\nb"""'), [
    "\x1b[35mdef\x1b[39m f(): \x1b[2m# no\x1b[22m",
    '\x1b[32m"""a\x1b[39m',
    '\x1b[32mb"""\x1b[39m',
  ]);
  assert.deepEqual(code("sql", "SELECT 'a' -- no"), [
    "\x1b[35mSELECT\x1b[39m \x1b[32m'a'\x1b[39m \x1b[2m-- no\x1b[22m",
  ]);
  assert.deepEqual(code("diff", "+a\n-b\n c"), ["\x1b[32m+a\x1b[39m", "\x1b[31m-b\x1b[39m", " c"]);
  assert.deepEqual(code("unheard-of", "const a"), ["\x1b[36mconst a\x1b[39m"]);
});

Deno.test("styles stand for the marks of headings and code, and the code can be copied", () => {
  const text =
    "# One #\n## Two\n### Three\nRun:\n```sh\n  ls\n\nps\n```\n- a\n  ```\n  b\n  ```\nend";
  const shown = renderMarkdown(text, colours, 80);
  assert.ok(
    shown.startsWith(
      "\x1b[1m\x1b[4mOne\x1b[24m\x1b[22m\n\x1b[1mTwo\x1b[22m\n\x1b[3mThree\x1b[23m\n",
    ),
  );
  assert.equal(
    withoutStyle(shown),
    "One\nTwo\nThree\nRun:\n\n  ls\n\nps\n\n• a\n\n  b\n\nend\n",
  );
  assert.equal(renderMarkdown("```\na\n```", colours, 80), "\x1b[36ma\x1b[39m\n");
});

Deno.test("every language gives its text back", () => {
  const text = "a = \"b\" 'c' `d` # e // f /* g */ -- h <!-- i --> 1.5 <p x='y'>";
  for (
    const language of [
      "ts",
      "py",
      "bash",
      "json",
      "go",
      "rust",
      "yaml",
      "html",
      "sql",
      "css",
      "rb",
      "c",
    ]
  ) {
    const shown = renderMarkdown(`\`\`\`${language}\n${text}\n\`\`\``, colours, 200);
    // deno-lint-ignore no-control-regex
    assert.equal(shown.replace(/\x1b\[\d+m/g, "").split("\n")[0], text, language);
  }
});

Deno.test("words are shown as they arrive; ambiguous text waits", () => {
  const stream = new MarkdownStream(plain, () => 40);
  const steps: [piece: string, shown: string][] = [
    ["One t", "One"],
    ["wo ", " two"],
    ["**thr", ""],
    ["ee four", ""],
    ["** fi", " three four"],
    ["ve\n", " five"],
    ["- ", ""],
    ["item ", "\n• item"],
    ["\n```js\n", "\n```js\n"],
    ["let x", ""],
    [" = 1;\n", "let x = 1;\n"],
    ["```\n| a |", "```\n"],
    ["\n|---|\n| b |\n", ""],
    ["\nend", "a\n─\nb\n\n"],
  ];
  for (const [piece, shown] of steps) assert.equal(stream.write(piece), shown, piece);
  assert.equal(stream.end(), "end\n");
});

Deno.test("with word_streaming off, answers are shown in whole blocks [2.13]", () => {
  const stream = new MarkdownStream(plain, () => 40, { blocks: true });
  assert.equal(stream.write("One two three\nfour "), "");
  assert.equal(stream.write("five\n\n```\na\n"), "One two three\nfour five\n");
  assert.equal(stream.write("```\nx"), "\n```\na\n```\n");
  assert.equal(stream.end(), "x\n");
});

Deno.test("a mark that is never closed holds back a bounded text", () => {
  const stream = new MarkdownStream(plain, () => 4000);
  const shown = stream.write(`**${"word ".repeat(250)}`);
  assert.ok(shown.startsWith("**word word"));
});

Deno.test("an item that holds an empty quotation keeps its number", () => {
  assert.equal(renderMarkdown("10) > ", plain, 80), "10) │\n");
  assert.equal(renderMarkdown("- > \n  > b", plain, 80), "• │\n  │ b\n");
});
