import assert from "node:assert/strict";
import fc from "fast-check";
import { fromJSONSchema } from "zod";
import { configJsonSchema } from "../../src/config/json_schema.ts";
import { CONFIG_KEYS, settingOf } from "../../src/config/keys.ts";
import { settingValue } from "./values.ts";
import { runs } from "../support/random.ts";

type Schema = { description: string; default: unknown; properties: Record<string, Schema> };
const schema = configJsonSchema() as Schema;
const check = fromJSONSchema(schema as unknown as Parameters<typeof fromJSONSchema>[0]);
const accepts = (file: unknown) => check.safeParse(file).success;

Deno.test("the JSON Schema has each setting with description and default, flat and nested", () => {
  for (const key of CONFIG_KEYS) {
    const { description, default: fallback } = settingOf(key);
    const [group, name] = key.split(".");
    const nested = name === undefined ? [] : [schema.properties[group!]!.properties[name]!];
    for (const one of [schema.properties[key]!, ...nested]) {
      assert.equal(one.description, description);
      assert.deepEqual(one.default, fallback);
    }
  }
});

Deno.test("the JSON Schema accepts valid configurations [2.13]", () => {
  fc.assert(
    fc.property(
      fc.oneof(...CONFIG_KEYS.map((key) => fc.tuple(fc.constant(key), settingValue(key)))),
      ([key, value]) => {
        const [group, name] = key.split(".");
        assert.ok(accepts({ [key]: value }));
        if (name) assert.ok(accepts({ [group!]: { [name]: value } }));
      },
    ),
    runs(300),
  );
  for (
    const file of [
      {},
      { $schema: "./config.schema.json" },
      { "tool_permission.bash": "deny", "tool_permission.bash_allow": ["ls"] },
      { "modes.review": { system_prompt: "x", tools: { deny: ["bash"] } } },
      { "modes.review.tool_permission.bash": "deny", "modes.review.tools.deny": ["x"] },
      { modes: { review: { "tools.deny": ["x"] } } },
    ]
  ) assert.ok(accepts(file), JSON.stringify(file));
});

Deno.test("the JSON Schema rejects configurations with errors or warnings", () => {
  for (
    const file of [
      { mode: 5 },
      { max_tokens: -1 },
      { tools: { deny: "x" } },
      { tools: { dney: [] } },
      { modle: "x" },
      { "tool_permission.bash": "maybe" },
      { tool_permission: { bash: "maybe" } },
      { "tool_permission.bash_allow": "allow" },
      { "modes.review": { colr: "red" } },
      { "modes.review.colr": "red" },
      { "modes.review.tool_permission.bash": "maybe" },
      { "modes.review.tool_permission.bash_allow": "allow" },
      { "mcp.servers": [{ command: "x" }] },
    ]
  ) assert.ok(!accepts(file), JSON.stringify(file));
});
