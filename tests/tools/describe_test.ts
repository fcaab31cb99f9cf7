import assert from "node:assert/strict";
import { activityLine, keyArgument } from "../../src/tools/registry.ts";
import { tool } from "../support/tool.ts";

const parameters = {
  type: "object" as const,
  properties: { path: { type: "string" }, text: { type: "string" } },
  required: ["path"],
};

Deno.test("the key argument is the one named, else the first required, else none", () => {
  assert.equal(keyArgument(tool({ name: "x", parameters, key_arg: "text" })), "text");
  assert.equal(keyArgument(tool({ name: "x", parameters })), "path");
  assert.equal(keyArgument(tool({ name: "x" })), "");
});

Deno.test("an activity line is the tool's status, else its name and key argument", () => {
  const status = (args: { path?: string }) => `read ${args.path}`;
  assert.equal(activityLine(tool({ name: "x", status }), { path: "p" }), "read p");
  assert.equal(activityLine(tool({ name: "x", parameters }), { path: "p" }), "x p");
  assert.equal(activityLine(tool({ name: "x", parameters }), { path: ["p"] }), 'x ["p"]');
  assert.equal(activityLine(tool({ name: "x" }), {}), "x");
});

Deno.test("an activity line survives a status that fails", () => {
  const status = () => {
    throw new Error("no");
  };
  assert.equal(activityLine(tool({ name: "x", parameters, status }), { path: "p" }), "x p");
});

Deno.test("an activity line is one printable line of bounded length", () => {
  const one = tool({ name: "x", parameters });
  assert.equal(activityLine(one, { path: "a\n\u001b[31mb\u0007\tc" }), "x a b c");
  const line = activityLine(one, { path: "y".repeat(1000) });
  assert.equal(line.length, 160);
  assert.ok(line.endsWith("y…"));
});
