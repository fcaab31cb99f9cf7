import assert from "node:assert/strict";
import {
  gaps,
  render,
  sentencesOf,
  specification,
  writtenSpecification,
} from "./support/specification.ts";

Deno.test("docs/specification.md has the tests of every section of the specification", () => {
  assert.deepEqual(gaps(), []);
  assert.ok(
    writtenSpecification() === specification(),
    "docs/specification.md is not what the names of the tests say. `deno task specification` writes it",
  );
});

Deno.test("a section without a test, an unknown section and an incomplete deviation are gaps", () => {
  const sections = [
    { number: "1", title: "One", text: "It works." },
    {
      number: "2",
      title: "Two",
      text: "",
      deviations: [{ what: "Less.", why: "", test: "it is less" }],
    },
  ];
  const shown = [{ file: "a_test.ts", sentence: "it is more", sections: ["2", "3.1"] }];
  assert.deepEqual(gaps(sections, shown), [
    'a_test.ts: the test "it is more" names section 3.1, which does not exist',
    "section 1 has no test",
    'section 2: the deviation "Less." has no reason',
    'section 2: the deviation "Less." has no test "it is less [2]"',
  ]);
});

Deno.test("each test is listed in the sections that its name ends with", () => {
  const [test, step, name] = ["Deno.test(", "await t.step(", "name:"]; // not names of this file
  const text = [
    `${test}"a <b> is *c* [1, 2.1]", () => {});`,
    step + "`${count} \\`kinds\\` [2.1]`, () => {});",
    `${test}{\n  ${name} "an object [1]",\n  fn() {},\n});`,
    `${test}"no section", () => {});`,
  ].join("\n");
  const shown = sentencesOf("tests/x/a_test.ts", text);
  assert.deepEqual(shown.map(({ sentence, sections }) => [sentence, sections]), [
    ["a <b> is *c*", ["1", "2.1"]],
    ["… `kinds`", ["2.1"]],
    ["an object", ["1"]],
  ]);
  const deviations = [{ what: "Less.", why: "Enough.", test: "an object" }];
  const sections = [
    { number: "1", title: "One", text: "It works.", deviations },
    { number: "2.1", title: "Two", text: "" },
  ];
  assert.equal(
    render(sections, shown).split("\n## ")[1],
    [
      "1. One\n\nIt works.\n",
      "**Deviation:** Less. **Reason:** Enough. **Shown by:** an object ([a](../tests/x/a_test.ts)).\n",
      "- a \\<b> is \\*c\\* ([a](../tests/x/a_test.ts))",
      "- an object ([a](../tests/x/a_test.ts))\n",
      "### 2.1. Two\n",
      "- a \\<b> is \\*c\\* ([a](../tests/x/a_test.ts))",
      "- … `kinds` ([a](../tests/x/a_test.ts))\n",
    ].join("\n"),
  );
});
