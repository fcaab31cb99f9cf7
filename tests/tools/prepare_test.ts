import assert from "node:assert/strict";
import fc from "fast-check";
import type { ToolArguments } from "../../src/plugins/api.ts";
import { prepareCall, prepareChecked, type Prepared } from "../../src/tools/prepare.ts";
import { ToolRegistry } from "../../src/tools/registry.ts";
import { tool } from "../support/tool.ts";

function registry(): ToolRegistry {
  const tools = new ToolRegistry();
  tools.register(
    tool({
      name: "work",
      aliases: ["do"],
      param_aliases: { file: "path" },
      parameters: {
        type: "object",
        properties: {
          path: { type: "string" },
          count: { type: "integer" },
          ratio: { type: "number" },
          all: { type: "boolean" },
          mode: { type: "string", enum: ["w", "a"] },
          tags: { type: "array", items: { type: "string" } },
          sizes: { type: "array", items: { type: "integer" } },
          extra: { type: "object" },
          either: { type: ["integer", "string"] },
          anything: {},
          _config: { type: "object" },
        },
        required: ["path"],
      },
    }),
    "test",
  );
  tools.register(tool({ name: "idle" }), "test");
  return tools;
}

function prepare(args: string | ToolArguments, name = "work"): Prepared {
  const text = typeof args === "string" ? args : JSON.stringify(args);
  return prepareCall(registry(), () => true, { name, arguments: text });
}

Deno.test("a schema that combines others is evaluated, unless it is the one of an MCP server [4.8, 7.3]", async () => {
  const tools = new ToolRegistry();
  const parameters = {
    type: "object" as const,
    properties: { a: { type: "string" }, b: { type: "string" }, _config: { type: "object" } },
    required: ["_config"],
    if: { required: ["a"] },
    then: { required: ["b"] },
  };
  tools.register(tool({ name: "own", parameters }), "test");
  tools.register(tool({ name: "far.tool", permission: "mcp", parameters }), "test");
  const prepared = (name: string, args: ToolArguments) =>
    prepareChecked(tools, () => true, { name, arguments: JSON.stringify(args) });
  assert.equal((await prepared("own", { a: "1", b: "2" })).ok, true);
  assert.equal((await prepared("own", {})).ok, true);
  const refused = await prepared("own", { a: "1" });
  assert.ok(!refused.ok);
  assert.match(
    refused.message,
    /^Error: own: .*does not have required property "b"\. Parameters: a/,
  );
  assert.equal((await prepared("far.tool", { a: "1" })).ok, true);
  for (const $ref of ["#/nowhere", "#"]) {
    const broken = { type: "object" as const, properties: {}, $ref };
    tools.register(tool({ name: "broken", parameters: broken }), "test");
    const refused = await prepared("broken", {});
    assert.ok(!refused.ok);
    assert.match(
      refused.message,
      /^Error: broken: The schema cannot be evaluated: .*\. It takes no/,
    );
  }
});

function cleaned(args: ToolArguments): ToolArguments {
  const prepared = prepare({ path: "p", ...args });
  assert.ok(prepared.ok, (prepared as { message?: string }).message);
  const { path: _, ...rest } = prepared.args;
  return rest;
}

function refusal(args: string | ToolArguments, name?: string): string {
  const prepared = prepare(args, name);
  assert.ok(!prepared.ok);
  assert.ok(prepared.message.startsWith("Error:"), prepared.message);
  return prepared.message;
}

Deno.test("a tool call by an alias is prepared under the canonical name [4.8, 9]", () => {
  const prepared = prepare({ path: "p" }, "do");
  assert.ok(prepared.ok);
  assert.equal(prepared.tool.name, "work");
  assert.deepEqual(prepared.args, { path: "p" });
});

Deno.test("an unknown tool is answered with the tools that are offered [7.3]", () => {
  const prepared = prepareCall(registry(), (each) => each.name !== "idle", {
    name: "wrok",
    arguments: '{"a": 1}',
  });
  assert.deepEqual(prepared, {
    ok: false,
    name: "wrok",
    args: { a: 1 },
    message: 'Error: unknown tool "wrok". Available tools: work',
  });
});

Deno.test("a hostile tool name is made harmless", () => {
  const message = refusal("{}", "x\u001b[31m\n" + "y".repeat(1000));
  assert.ok(!message.includes("\u001b"));
  assert.ok(message.length < 300);
});

Deno.test("empty arguments are no arguments", () => {
  for (const text of ["", "  \n"]) {
    const prepared = prepare(text, "idle");
    assert.ok(prepared.ok);
    assert.deepEqual(prepared.args, {});
  }
});

Deno.test("arguments that are no JSON come back with the parser's complaint", () => {
  assert.match(refusal('{"path": "a'), /not valid JSON \(.*JSON.*\)/);
  assert.match(refusal('{"path": "a'), /Parameters: path \(string, required\), count \(integer\)/);
});

Deno.test("arguments encoded twice are read; what is no object is refused", () => {
  const prepared = prepare(JSON.stringify('{"path": "p"}'));
  assert.ok(prepared.ok);
  assert.deepEqual(prepared.args, { path: "p" });
  assert.match(refusal("[1]"), /must be a JSON object, not an array/);
  assert.match(refusal("null"), /not null/);
  assert.match(refusal("3"), /not a number/);
});

Deno.test("aliases of tool parameters are mapped, and the canonical spelling wins [4.8]", () => {
  const byAlias = prepare({ file: "p" });
  assert.ok(byAlias.ok);
  assert.deepEqual(byAlias.args, { path: "p" });
  for (const both of [{ file: "alias", path: "real" }, { path: "real", file: "alias" }]) {
    const prepared = prepare(both);
    assert.ok(prepared.ok);
    assert.deepEqual(prepared.args, { path: "real" });
  }
  const nulled = prepare({ path: null, file: "alias" });
  assert.ok(nulled.ok);
  assert.deepEqual(nulled.args, { path: "alias" });
});

Deno.test("undeclared and null arguments and _config are dropped before a tool sees them [4.8]", () => {
  assert.deepEqual(cleaned({ other: 1, count: null, _config: {}, constructor: 1 }), {});
  assert.deepEqual(cleaned(JSON.parse('{"__proto__": {"count": 1}}')), {});
});

Deno.test("arguments that a schema declares without naming them come through, checked as it says", () => {
  const given = JSON.parse(
    '{"a": 1, "named": "n", "b": null, "_config": 1, "__proto__": {"x": 1}}',
  );
  const properties = { named: { type: "string" } };
  const of = (rest: Record<string, unknown>, args: ToolArguments = given) => {
    const tools = new ToolRegistry();
    tools.register(
      tool({ name: "open", parameters: { type: "object", properties, ...rest } }),
      "t",
    );
    const call = { name: "open", arguments: JSON.stringify(args) };
    const prepared = prepareCall(tools, () => true, call);
    return prepared.ok ? prepared.args : prepared.message;
  };
  const all = { a: 1, named: "n" };
  assert.deepEqual(of({ additionalProperties: true }, given), all);
  assert.deepEqual(of({ additionalProperties: {} }), all);
  assert.deepEqual(of({ additionalProperties: { type: "integer" } }, { a: "5" }), { a: 5 });
  assert.equal(
    of({ additionalProperties: { type: "integer" } }, { a: "many" }),
    'Error: open: "a" must be an integer, got "many". Parameters: named (string), and others.',
  );
  assert.deepEqual(of({ patternProperties: { "^x-": {} }, additionalProperties: false }), all);
  assert.deepEqual(of({ properties: {}, additionalProperties: true }, { a: { b: [null] } }), {
    a: { b: [null] },
  });
  // What no schema speaks of is undeclared.
  const silent = [{}, { additionalProperties: false }, { patternProperties: {} }];
  const odd = [{ additionalProperties: "yes" }, { patternProperties: null }, {
    patternProperties: "x",
  }];
  for (const rest of [...silent, ...odd]) {
    assert.deepEqual(of(rest), { named: "n" });
  }
});

Deno.test("harmless mismatches are mended", () => {
  const mended: [ToolArguments, ToolArguments][] = [
    [{ count: "5" }, { count: 5 }],
    [{ count: " -5 " }, { count: -5 }],
    [{ count: "5.0" }, { count: 5 }],
    [{ ratio: "0.5" }, { ratio: 0.5 }],
    [{ ratio: 2 }, { ratio: 2 }],
    [{ all: "True" }, { all: true }],
    [{ all: "false" }, { all: false }],
    [{ path: 12 }, {}],
    [{ mode: "W" }, { mode: "w" }],
    [{ tags: "one" }, { tags: ["one"] }],
    [{ tags: '["one", "two"]' }, { tags: ["one", "two"] }],
    [{ tags: [1] }, { tags: ["1"] }],
    [{ sizes: ["3", 4] }, { sizes: [3, 4] }],
    [{ sizes: 3 }, { sizes: [3] }],
    [{ extra: '{"a": 1}' }, { extra: { a: 1 } }],
    [{ either: "5" }, { either: "5" }],
    [{ either: 5 }, { either: 5 }],
    [{ either: true }, { either: "true" }],
    [{ anything: [1, { a: null }] }, { anything: [1, { a: null }] }],
  ];
  for (const [given, expected] of mended) assert.deepEqual(cleaned(given), expected);
});

Deno.test("what cannot be mended is said in sentences that a model can act on", () => {
  const wrong: [ToolArguments, string][] = [
    [{ count: "five" }, '"count" must be an integer, got "five"'],
    [{ count: 5.5 }, '"count" must be an integer, got 5.5'],
    [{ count: "" }, '"count" must be an integer, got ""'],
    [{ count: true }, '"count" must be an integer, got true'],
    [{ ratio: "1e999" }, '"ratio" must be a number, got "1e999"'],
    [{ all: 1 }, '"all" must be a boolean, got 1'],
    [{ mode: "x" }, '"mode" must be one of "w", "a", got "x"'],
    [{ tags: { a: 1 } }, '"tags" must be an array, got {"a":1}'],
    [{ tags: ["a", { a: 1 }] }, '"tags" item 2 must be a string, got {"a":1}'],
    [{ extra: [1] }, '"extra" must be an object, got [1]'],
    [{ either: [1] }, '"either" must be an integer or string, got [1]'],
    [{ path: ["p"] }, '"path" must be a string, got ["p"]'],
  ];
  for (const [given, problem] of wrong) {
    const message = refusal({ path: "p", ...given });
    assert.ok(message.startsWith(`Error: work: ${problem}. Parameters: path (`), message);
  }
});

Deno.test("all problems are named at once, and what was given instead of a required argument", () => {
  const message = refusal({ filename: "p", count: "x" });
  assert.ok(message.includes('"count" must be an integer, got "x"'), message);
  assert.ok(message.includes('"path" is required (unknown: "filename")'), message);
  assert.ok(!message.includes("_config"), message);
});

Deno.test("property: any text as arguments gives clean arguments or an error, and never a throw", () => {
  const json = fc.oneof(
    fc.string(),
    fc.json(),
    fc.json().map((text) => JSON.stringify(text)),
    fc.record(
      {
        path: fc.jsonValue(),
        count: fc.jsonValue(),
        mode: fc.jsonValue(),
        tags: fc.jsonValue(),
        extra: fc.jsonValue(),
        either: fc.jsonValue(),
      },
      { requiredKeys: [] },
    ).map((value) => JSON.stringify(value)),
  );
  fc.assert(
    fc.property(json, (text) => {
      const prepared = prepare(text);
      if (!prepared.ok) return prepared.message.startsWith("Error: work: ");
      const { path, count, mode, tags, extra, either, ratio, all, sizes, anything: _, ...others } =
        prepared.args;
      assert.deepEqual(others, {});
      assert.equal(typeof path, "string");
      assert.ok(count === undefined || Number.isInteger(count));
      assert.ok([undefined, "w", "a"].includes(mode));
      assert.ok(tags === undefined || tags.every((tag: unknown) => typeof tag === "string"));
      assert.ok(extra === undefined || (typeof extra === "object" && !Array.isArray(extra)));
      assert.ok(either === undefined || Number.isInteger(either) || typeof either === "string");
      assert.deepEqual([ratio, all, sizes], [undefined, undefined, undefined]);
      return true;
    }),
    { numRuns: 1000 },
  );
});

Deno.test("arguments too deep or too long to be logged are answered, and not kept", () => {
  const deep = `{"path": ${"[".repeat(50_000)}${"]".repeat(50_000)}}`;
  for (const name of ["work", "nothing"]) {
    const prepared = prepareCall(registry(), () => true, { name, arguments: deep });
    assert.ok(!prepared.ok);
    assert.deepEqual(prepared.args, {});
    if (name === "work") assert.match(prepared.message, /nest more than 100 levels deep/);
  }
  const long = prepareCall(registry(), () => true, {
    name: "work",
    arguments: JSON.stringify({ path: "x".repeat(5_000_000) }),
  });
  assert.ok(!long.ok && /more than 4194304 characters; split the call/.test(long.message));
  assert.deepEqual(long.args, {});
});
