import assert from "node:assert/strict";
import { registeredTools, toolGaps, toolsDocument, writtenToolsDocument } from "./support/tools.ts";
import { tool } from "./support/tool.ts";

Deno.test("docs/tools.md has every tool and every parameter, as they are defined", async () => {
  assert.deepEqual(toolGaps(await registeredTools()), []);
  assert.ok(
    writtenToolsDocument() === await toolsDocument(),
    "docs/tools.md is not what the definitions say. `deno task tools` writes it",
  );
});

Deno.test("a parameter without a meaning, and a note on a tool or a parameter that is not there, are gaps", () => {
  const parameters = { type: "object" as const, properties: { a: {}, b: { description: "B." } } };
  const tools = [{ tool: tool({ name: "one", parameters }), owner: "x" }];
  assert.deepEqual(toolGaps(tools, { one: { parameters: { c: "C." } }, two: {} }), [
    "the parameter a of one has no meaning",
    "one has no parameter c",
    "there is no tool two",
  ]);
});
