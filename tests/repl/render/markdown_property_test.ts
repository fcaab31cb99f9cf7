import assert from "node:assert/strict";
import fc from "fast-check";
import { MarkdownStream, renderMarkdown } from "../../../src/repl/render/markdown.ts";
import { style } from "../../../src/platform/style.ts";
import { textWidth } from "../../../src/platform/text.ts";
import { runs } from "../../support/random.ts";

const colours = style({ enabled: true });
const plain = style({ enabled: false });

const FRAGMENTS = [
  ..."*_`~[]()<>#-+|\\!.:=&\n\n\n   \t".split(""),
  ..."** *** ~~ `` ``` ~~~ ]( > - [ 1. 10) \n- \n> \n# \n| \n``` \n\n \n--- \n|-|-| [x] --- *** === ://"
    .split(" "),
  ...["- ", "* ", "1. ", "> ", "# ", "    ", "  \n", "```ts\n", "| a | b |\n|---|:-:|\n", "[a](b)"],
  ...[
    "word",
    "some words here ",
    "snake_case",
    "漢字",
    "日本語の文",
    "e\u0301",
    "👩‍👩‍👧",
    "🇩🇪",
    "x",
    "42",
  ],
  ...["**bold**", "`code`", "https://example.com/a_b", "\\*", "&amp;", "<b>", "const s = `a"],
];
const HOSTILE = [
  "\x1b[31m",
  "\x1b",
  "[2J",
  "\x1b]0;t",
  "\x07",
  "\x9b",
  "2K",
  "\x9d",
  "\x90q",
  "\r",
  "\u202e",
];

const markdown = fc.array(fc.constantFrom(...FRAGMENTS), { maxLength: 60 }).map((all) =>
  all.join("")
);
const hostile = fc.array(
  fc.oneof(fc.constantFrom(...FRAGMENTS, ...HOSTILE), fc.string({ unit: "binary" })),
  { maxLength: 40 },
).map((all) => all.join(""));
const cuts = fc.array(fc.nat({ max: 400 }), { maxLength: 30 });

Deno.test("any split of any text renders as the whole does, also by blocks", () => {
  fc.assert(
    fc.property(
      fc.oneof(markdown, hostile),
      cuts,
      fc.integer({ min: 1, max: 90 }),
      (text, at, columns) => {
        const whole = renderMarkdown(text, colours, columns);
        assert.equal(streamed(pieces(text, at), columns), whole);
        assert.equal(streamed(pieces(text, at), columns, true), whole);
        assert.equal(streamed(text.split(""), columns), whole);
      },
    ),
    runs(1000),
  );
});

Deno.test("only colour sequences are written for any text and any split", () => {
  fc.assert(
    fc.property(hostile, cuts, (text, at) => {
      const shown = streamed(pieces(text, at), 40);
      // deno-lint-ignore no-control-regex
      assert.doesNotMatch(shown.replace(/\x1b\[[\d;]*m/g, ""), /[\x00-\x08\x0b-\x1f\x7f-\x9f]/);
      assert.ok(!streamed(pieces(text, at), 40, false, plain).includes("\x1b"));
    }),
    runs(1000),
  );
});

Deno.test("no word is lost or reordered", () => {
  fc.assert(
    fc.property(markdown, (text) => {
      const shown = renderMarkdown(text, plain, 4000);
      let from = 0;
      // What Markdown itself takes away: escapes, references, the box of a task.
      const visible = text.replace(/&amp;/g, " ").replace(/\[x\]/g, " ");
      for (const [word] of visible.matchAll(/[a-z0-9]{2,}|[漢字日本語文]+/g)) {
        const found = shown.indexOf(word, from);
        assert.ok(found >= 0, `${word} is missing from ${JSON.stringify(shown)}`);
        from = found + word.length;
      }
    }),
    runs(1000),
  );
});

Deno.test("no line of prose is wider than the terminal", () => {
  const prose = fc.array(
    fc.constantFrom(
      "word ",
      "漢字",
      "**",
      "*",
      "`",
      "- ",
      "\n",
      "\n\n",
      "> ",
      "longlonglonglong",
      "👩‍👩‍👧",
      "# ",
    ),
    { maxLength: 60 },
  ).map((all) => all.join(""));
  fc.assert(
    fc.property(
      prose.filter((text) => !/```|^ *\t| {4}/m.test(text)),
      fc.integer({ min: 30, max: 60 }),
      (text, columns) => {
        for (const line of renderMarkdown(text, colours, columns).split("\n")) {
          assert.ok(textWidth(line) <= columns, JSON.stringify(line));
        }
      },
    ),
    runs(500),
  );
});

function streamed(all: string[], columns: number, blocks = false, paint = colours): string {
  const stream = new MarkdownStream(paint, () => columns, { blocks });
  return all.map((piece) => stream.write(piece)).join("") + stream.end();
}

function pieces(text: string, at: number[]): string[] {
  const cuts = [...new Set(at.map((cut) => cut % (text.length + 1)))].sort((a, b) => a - b);
  return [0, ...cuts].map((cut, index) => text.slice(cut, cuts[index] ?? text.length));
}
