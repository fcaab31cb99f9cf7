import assert from "node:assert/strict";
import { checkSchema } from "../../src/tools/json_schema.ts";
import { SvcError } from "../../src/platform/error.ts";
import { agent, collect, type TestAgent } from "../support/agent.ts";
import { call, httpError, type RecordedRequest, say } from "../support/backend.ts";

const SCHEMA = {
  $schema: "https://json-schema.org/draft/2020-12/schema",
  type: "object",
  properties: {
    name: { type: "string", minLength: 1 },
    lines: { $ref: "#/$defs/count" },
    tags: { type: "array", items: { enum: ["a", "b"] } },
  },
  required: ["name", "lines"],
  additionalProperties: false,
  $defs: { count: { type: "integer", minimum: 0 } },
};
const GOOD = { name: "a.txt", lines: 2, tags: ["a"] };
const turn = (it: TestAgent, schema: Record<string, unknown> = SCHEMA) =>
  collect(it.engine.turn("go", { task: { schema } }));
const names = (chat: RecordedRequest["body"]) =>
  chat.tools.map((tool: { function: { name: string } }) => tool.function.name);

Deno.test("schema: the model works with its tools, then gives the answer with the final tool", async () => {
  await using it = await agent([
    call("file_read", { path: "a.txt" }),
    call("answer", { data: GOOD }),
  ], { files: { "a.txt": "1\n2\n" } });
  const { result, events } = await turn(it);
  assert.deepEqual([result.status, result.reason], ["ok", ""]);
  assert.deepEqual(result.data, GOOD);
  assert.deepEqual(JSON.parse(result.content), GOOD);
  assert.equal(it.backend.chats.length, 2);
  const [chat] = it.backend.chats;
  assert.ok(names(chat).includes("file_read"));
  const tool = chat.tools.find((tool: { function: { name: string } }) =>
    tool.function.name === "answer"
  );
  const { data } = tool.function.parameters.properties;
  assert.equal(data.properties.lines.$ref, "#/properties/data/$defs/count");
  assert.equal(chat.response_format, undefined);
  const tokens = events.flatMap((event) => event.type === "token" ? [event.content] : []);
  assert.deepEqual(JSON.parse(tokens.join("")), GOOD);
});

for (
  const [name, text] of [
    ["JSON alone", JSON.stringify(GOOD)],
    ["a code block", "Here it is.\n\n```json\n" + JSON.stringify(GOOD) + "\n```\n"],
  ] as const
) {
  Deno.test(`schema: an answer in text is taken, as ${name}`, async () => {
    await using it = await agent([say(text)]);
    const { result } = await turn(it);
    assert.deepEqual([result.status, result.data, result.content], ["ok", GOOD, text]);
  });
}

Deno.test("schema: prose is asked again, in the backend's own format and with the tools", async () => {
  await using it = await agent([say("It has two lines."), say(JSON.stringify(GOOD))]);
  const { result, events } = await turn(it);
  assert.deepEqual([result.status, result.data], ["ok", GOOD]);
  const shown = events.flatMap((event) => event.type === "notice" ? [event.message] : []);
  assert.deepEqual(shown, [
    "The answer is not accepted yet: it is not JSON; the model is asked for it again.",
  ]);
  const [first, second] = it.backend.chats;
  assert.equal(first.response_format, undefined);
  assert.equal(second.response_format.type, "json_schema");
  assert.deepEqual(second.response_format.json_schema.schema, SCHEMA);
  assert.deepEqual(second.tools, first.tools);
  // The request is a prefix of the next one, and what was asked is in the log.
  assert.deepEqual(second.messages.slice(0, first.messages.length), first.messages);
  const asked = second.messages.at(-1);
  assert.equal(asked.role, "user");
  assert.match(asked.content, /not JSON/);
  const texts = it.session.document().turns[0]!.parts.flatMap((part) =>
    part.type === "user" ? [part.text] : []
  );
  assert.deepEqual(texts, ["go", asked.content]);
});

for (
  const [status, message] of [
    [400, "Unknown parameter: 'response_format'."],
    [400, "json mode cannot be combined with tool/function calling"],
    [500, "Cannot use custom grammar constraints with tools."],
    [422, "This response_format type is unavailable now"],
    [400, "Invalid request"],
  ] as const
) {
  Deno.test(`schema: a backend that rejects the format gets the final tool: ${message}`, async () => {
    await using it = await agent([
      say("It has two lines."),
      httpError(status, { error: { message } }),
      call("answer", { data: { name: "a.txt", lines: "two" } }),
      call("answer", { data: GOOD }),
    ]);
    const { result } = await turn(it);
    assert.deepEqual([result.status, result.data], ["ok", GOOD]);
    const formats = it.backend.chats.map((chat) => chat.response_format !== undefined);
    assert.deepEqual(formats, [false, true, false, false]);
    assert.ok(it.backend.chats.every((chat) => names(chat).includes("answer")));
    assert.match(it.backend.chats[3].messages.at(-1).content, /^Error: .*\/lines: .*integer/);
  });
}

Deno.test("schema: an agent without other tools has the format from its first request on", async () => {
  await using it = await agent([say(JSON.stringify(GOOD))], {
    config: { "tools.allow": ["no_such_tool"] },
  });
  const { result } = await turn(it);
  assert.deepEqual(result.data, GOOD);
  assert.deepEqual(names(it.backend.chats[0]), ["answer"]);
  assert.equal(it.backend.chats[0].response_format.type, "json_schema");
});

Deno.test("schema: neither mode nor lists keep the answer back, and no grant is needed", async () => {
  await using it = await agent([call("answer", { data: GOOD })], {
    config: { mode: "plan", "tools.allow": ["file_read"], "tools.deny": ["answer"] },
  });
  const { result } = await turn(it);
  assert.deepEqual([result.status, result.data, result.denied], ["ok", GOOD, []]);
  assert.doesNotMatch(it.backend.chats[0].messages[0].content, /refused: .*answer/);
});

Deno.test("schema: corrections are bounded, and the reasons are in the error", async () => {
  for (
    const wrong of [
      say(JSON.stringify({ name: "", lines: -1, more: true })),
      call("answer", { data: { name: "", lines: -1, more: true } }),
    ]
  ) {
    await using it = await agent({ replies: [], default: wrong });
    const { result } = await turn(it);
    assert.deepEqual([result.status, result.reason, result.data], ["error", "schema", undefined]);
    assert.equal(it.backend.chats.length, 4); // the first answer and three corrections
    assert.match(result.errors.at(-1)!.message, /\/name: .*\/lines: .*-1/);
    assert.equal(it.session.document().turns.at(-1)!.status, "error");
  }
});

Deno.test("schema: the answer of one turn is not that of the next", async () => {
  await using it = await agent([call("answer", { data: GOOD }), say("You are welcome.")]);
  await turn(it);
  const { result } = await it.turn("thank you");
  assert.deepEqual([result.status, "data" in result], ["ok", false]);
  assert.ok(!names(it.backend.chats[1]).includes("answer"));
});

Deno.test("schema: the work is verified after the answer, and a correction is followed by an answer", async () => {
  await using it = await agent([
    call("answer", { data: GOOD }),
    call("file_write", { path: "ok", content: "" }),
    call("answer", { data: { ...GOOD, lines: 3 } }),
  ], { config: { tool_permission: { edit: "allow" } } });
  const { result } = await collect(
    it.engine.turn("go", { task: { schema: SCHEMA, verify: "test -f ok" } }),
  );
  assert.deepEqual([result.status, result.verified, result.data], ["ok", true, {
    ...GOOD,
    lines: 3,
  }]);
});

for (
  const [schema, data, wrong] of [
    [{ type: "array", items: { type: "number" } }, [1, 2], [1, "x"]],
    [{ type: "string", pattern: "^[a-z]+$" }, "abc", "ABC"],
    [{ anyOf: [{ type: "null" }, { const: 4 }] }, null, 5],
    [{ $schema: "http://json-schema.org/draft-07/schema#", items: [{ type: "string" }] }, ["a"], [
      1,
    ]],
    [{ if: { required: ["a"] }, then: { required: ["b"] } }, { a: 1, b: 2 }, { a: 1 }],
    [{ type: "object", unevaluatedProperties: false, allOf: [{ properties: { a: true } }] }, {
      a: 1,
    }, { b: 1 }],
    [{ type: "object", properties: { a: { $ref: "#" } }, maxProperties: 1 }, { a: { a: {} } }, {
      a: 1,
      b: 2,
    }],
  ] as [Record<string, unknown>, unknown, unknown][]
) {
  Deno.test(`schema: data as ${JSON.stringify(schema).slice(0, 70)}`, async () => {
    await using it = await agent([say(JSON.stringify(wrong)), say(JSON.stringify(data))]);
    const { result } = await turn(it, schema);
    assert.deepEqual([result.status, result.data], ["ok", data]);
    assert.equal(it.backend.chats.length, 2);
  });
}

const deep = () => {
  let schema: Record<string, unknown> = {};
  for (let n = 0; n < 20_000; n++) schema = { not: schema };
  return schema;
};
for (
  const [schema, fault] of [
    [{ type: "strng" }, /#\/type must be one of/],
    [{ type: [] }, /#\/type/],
    [{ properties: [] }, /#\/properties must be an object/],
    [{ properties: { a: 5 } }, /#\/properties\/a is neither/],
    [{ required: "a" }, /#\/required/],
    [{ minLength: -1 }, /#\/minLength/],
    [{ items: { pattern: "(" } }, /#\/items\/pattern/],
    [{ patternProperties: { "(": true } }, /patternProperties/],
    [{ anyOf: [] }, /#\/anyOf/],
    [{ $ref: "#/$defs/missing" }, /leads nowhere/],
    [{ properties: { a: { $ref: "https://example.org/other.json" } } }, /leads nowhere/],
    [{ $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } }, /too deep/],
    [{ $dynamicRef: "#node" }, /not supported/],
    [deep(), /too deep/],
  ] as [Record<string, unknown>, RegExp][]
) {
  Deno.test(`an invalid schema is rejected: ${String(fault)}`, () => {
    assert.throws(() => checkSchema(schema), (error) => {
      assert.ok(error instanceof SvcError);
      assert.deepEqual([error.code, error.exit], ["schema", 2]);
      assert.match(error.message, fault);
      return true;
    });
  });
}

Deno.test("the schemas of the tests, and an empty one, are valid", () => {
  for (const schema of [SCHEMA, {}, { title: "x", "x-own": { type: 5 }, examples: [{}] }]) {
    checkSchema(schema);
  }
});
