import assert from "node:assert/strict";
import { resultMarkdown } from "../../src/commands/turn_markdown.ts";
import { unfinishedResult } from "../../src/engine/events.ts";

const ENDED = {
  ...unfinishedResult({ model: "m|n", provider: "p", session: "s`t" }),
  status: "ok" as const,
};

Deno.test("a turn's Markdown has cost, tokens, checks, errors and data where there are any", () => {
  const text = resultMarkdown({
    ...ENDED,
    status: "error",
    reason: "budget",
    cost: 0.0123,
    total_usage: { prompt_tokens: 1200, cached_tokens: 200, completion_tokens: 34 },
    verified: false,
    verdict: { passed: true, rounds: 2 },
    errors: [{ code: 0, message: "too\nmuch" }],
    data: { a: ["\u202e```"] },
  }, []);
  assert.equal(
    text,
    [
      "## svc: error, budget",
      [
        "| | |",
        "| --- | --- |",
        "| verified | no |",
        "| review | passed after 2 rounds |",
        "| cost | 0.012 |",
        "| tokens | 1200 read (200 cached), 34 written |",
        "| tool calls | 0 |",
        "| time | 0.0 s |",
        "| model | `p/m\\|n` |",
        "| session | ``s`t`` |",
      ].join("\n"),
      "### Errors",
      "- `too much`",
      "### Data",
      '````json\n{\n  "a": [\n    "```"\n  ]\n}\n````',
    ].join("\n\n") + "\n",
  );
});

Deno.test("an answer in a turn's Markdown ends where its quotation ends, and loads nothing", () => {
  const shown = (content: string) => resultMarkdown({ ...ENDED, content }, []).split("\n\n|")[0];
  const head = "## svc: ok\n\n";
  assert.equal(shown("a\n```\nb | c\n"), `${head}> a\n> \`\`\`\n> b | c\n>`);
  for (
    const text of ["![x](http://127.0.0.1/?key)", "<img src=x>", "<!-- all the rest", "a</td>"]
  ) {
    assert.equal(shown(text), `${head}\`\`\`\n${text}\n\`\`\``);
  }
  assert.equal(shown("````\n<b>\n"), `${head}\`\`\`\`\`\n\`\`\`\`\n<b>\n\`\`\`\`\``);
  assert.equal(shown("1 < 2, [a](b), vec!"), `${head}> 1 < 2, [a](b), vec!`);
  assert.equal(shown(" \n"), "## svc: ok");
});

Deno.test("an entry of a list in a turn's Markdown is inline code on one line", () => {
  const denied = [{ tool: "a`b", reason: "no\n## all is well\u001b]0;x\u0007" }];
  const text = resultMarkdown({ ...ENDED, denied }, ["b\nc", "a"]);
  assert.ok(
    text.endsWith(
      "### Refused calls\n\n- ``a`b``: `no ## all is well`\n\n### Changed files\n\n- `a`\n- `b c`\n",
    ),
  );
});
