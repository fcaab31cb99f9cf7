import assert from "node:assert/strict";
import fc from "fast-check";
import type { StreamEvent, WireToolCall } from "../../src/plugins/api.ts";
import { messagesTranslator } from "../../plugins/svc-core-anthropic/src/messages.ts";
import { responsesTranslator } from "../../plugins/svc-core-openai/src/responses.ts";
import { Assembler } from "../../src/providers/deltas.ts";
import { BackendError } from "../../src/providers/failure.ts";
import { calls, chunk, DONE } from "./support.ts";

const PEER = {
  name: "acme",
  url: "http://h/v1",
  model: "m",
  api_key: "sk-secret",
  connect: "acme",
  now: () => 0,
};

function assemble(...events: unknown[]): StreamEvent[] {
  const assembler = new Assembler(PEER);
  const texts = events.map((event) => typeof event === "string" ? event : JSON.stringify(event));
  return [...texts.flatMap((text) => [...assembler.push(text)]), ...assembler.end()];
}

/** The tool calls of a finished stream of these deltas, their ids left out when minted. */
function toolCalls(...deltas: unknown[]): [id: string, name: string, args: string][] {
  const event = assemble(...deltas, DONE).find((event) => event.type === "tool_calls");
  const wire: WireToolCall[] = event?.tool_calls ?? [];
  return wire.map((call) => {
    assert.equal(call.type, "function");
    const minted = /^svc[0-9a-z]{6}$/.test(call.id);
    return [minted ? "minted" : call.id, call.function.name, call.function.arguments];
  });
}

function call(fields: { index?: unknown; id?: unknown; name?: unknown; args?: unknown }) {
  const { index, id, name, args } = fields;
  return calls({ index, id, type: "function", function: { name, arguments: args } });
}

Deno.test("reasoning in either field becomes one thinking event [6.2]", () => {
  assert.deepEqual(
    assemble(chunk({ reasoning_content: "a" }), chunk({ reasoning: "b" })).slice(0, 2),
    [
      { type: "thinking", content: "a" },
      { type: "thinking", content: "b" },
    ],
  );
  const both = assemble(chunk({ reasoning_content: "a", reasoning: "a" }));
  assert.deepEqual(both.slice(0, -1), [{ type: "thinking", content: "a" }]);
});

Deno.test("the content of a delta may be a string, text parts with thinking among them, null, or a refusal [6.2]", () => {
  const parts = [{ type: "thinking", thinking: [{ type: "text", text: "t" }] }, {
    type: "text",
    text: "b",
  }];
  const events = assemble(
    chunk({ role: "assistant", content: null }),
    chunk({ content: "a" }),
    chunk({ content: "" }),
    chunk({ content: parts }),
    chunk({ content: null, refusal: "no" }),
  );
  assert.deepEqual(events.slice(0, -1), [
    { type: "token", content: "a" },
    { type: "thinking", content: "t" },
    { type: "token", content: "b" },
    { type: "token", content: "no" },
  ]);
});

Deno.test("only the choice with index 0 counts", () => {
  const two = (content: string, index?: number) => ({ index, delta: { content } });
  const events = assemble(
    { choices: [two("other", 1), two("a", 0)] },
    { choices: [two("other", 1)] },
    { choices: [two("b")] },
    { choices: [] },
  );
  assert.deepEqual(events.slice(0, -1).map((event) => event.type === "token" && event.content), [
    "a",
    "b",
  ]);
});

Deno.test("a single choice counts, whatever its index", () => {
  const numbered = (index: number, content: string) => ({
    choices: [{ index, delta: { content } }],
  });
  const events = assemble(numbered(0, "a"), numbered(1, "b"), numbered(2, "c"));
  assert.deepEqual(events.slice(0, -1).map((event) => event.type === "token" && event.content), [
    "a",
    "b",
    "c",
  ]);
});

Deno.test("tool calls are reassembled by index, whatever the order of their fragments [6.2]", () => {
  assert.deepEqual(
    toolCalls(
      call({ index: 1, id: "c2", name: "two", args: "" }),
      call({ index: 0, id: "c1", name: "one", args: '{"a' }),
      call({ index: 1, args: "{}" }),
      call({ index: 0, args: '":"\\' }),
      call({ index: 0, args: 'n"}' }),
    ),
    [["c1", "one", '{"a":"\\n"}'], ["c2", "two", "{}"]],
  );
});

Deno.test("ids and names of tool calls may be fragmented, repeated or missing [6.2]", () => {
  assert.deepEqual(
    toolCalls(
      call({ index: 0, id: "call_abc", name: "file_", args: "" }),
      call({ index: 0, name: "read", args: "{}" }),
    ),
    [["call_abc", "file_read", "{}"]],
  );
  assert.deepEqual(
    toolCalls(
      call({ index: 0, id: "c", name: "read", args: "{" }),
      call({ index: 0, id: "c", name: "read", args: "}" }),
    ),
    [["c", "read", "{}"]],
  );
  assert.deepEqual(toolCalls(call({ index: 0, name: "read", args: "{}" })), [[
    "minted",
    "read",
    "{}",
  ]]);
  assert.deepEqual(toolCalls(call({ index: 0, id: null, name: null, args: null })), []);
});

Deno.test("a different id in each fragment is one call with the first id", () => {
  for (const index of [undefined, 0]) {
    assert.deepEqual(
      toolCalls(
        call({ index, id: "c1", name: "read", args: "" }),
        call({ index, id: "c2", args: '{"a"' }),
        call({ index, id: "c3", name: "", args: ":1}" }),
      ),
      [["c1", "read", '{"a":1}']],
    );
  }
  assert.deepEqual(
    toolCalls(
      call({ index: 0, id: "c1", name: "read", args: "" }),
      call({ index: 0, id: "c2", name: "read", args: "{" }),
      call({ index: 0, id: "c3", name: "read", args: "}" }),
    ),
    [["c1", "read", "{}"]],
  );
});

Deno.test("two calls never share an id", () => {
  const twice = [call({ index: 0, id: "c", name: "a" }), call({ index: 1, id: "c", name: "b" })];
  assert.deepEqual(toolCalls(...twice), [["c", "a", ""], ["minted", "b", ""]]);
});

Deno.test("calls without an index, or all with index 0, are separate calls", () => {
  for (const index of [undefined, 0]) {
    assert.deepEqual(
      toolCalls(
        call({ index, id: "c1", name: "one", args: '{"a":' }),
        call({ index, args: "1}" }),
        call({ index, id: "c2", name: "two", args: "{}" }),
      ),
      [["c1", "one", '{"a":1}'], ["c2", "two", "{}"]],
    );
  }
  assert.deepEqual(
    toolCalls(call({ name: "one", args: "{}" }), call({ name: "two", args: "{}" })),
    [["minted", "one", "{}"], ["minted", "two", "{}"]],
  );
});

Deno.test("calls without ids and with one index, or without arguments, are separate calls", () => {
  const whole = { function: { name: "read", arguments: '{"a":1}' } };
  for (const index of [undefined, 0]) {
    assert.deepEqual(toolCalls(calls({ index, ...whole }, { index, ...whole })), [
      ["minted", "read", '{"a":1}'],
      ["minted", "read", '{"a":1}'],
    ]);
    assert.deepEqual(
      toolCalls(
        call({ index, id: "c1", name: "status", args: "" }),
        call({ index, id: "c2", name: "log", args: "" }),
      ),
      [["c1", "status", ""], ["c2", "log", ""]],
    );
    assert.deepEqual(
      toolCalls(call({ index, name: "one", args: "{}" }), call({ index, name: "two", args: "{}" })),
      [["minted", "one", "{}"], ["minted", "two", "{}"]],
    );
  }
  const repeated = [call({ index: 0, name: "read", args: "{}" }), call({ index: 0, name: "read" })];
  assert.deepEqual(toolCalls(...repeated), [["minted", "read", "{}"]]);
});

Deno.test("a call keeps extra_content, also from a separate delta", () => {
  const extra_content = { google: { thought_signature: "s1" } };
  const whole = { index: 0, id: "c", function: { name: "n", arguments: "{}" } };
  for (
    const deltas of [[calls({ ...whole, extra_content })], [calls(whole), calls({ extra_content })]]
  ) {
    const event = assemble(...deltas, DONE).find((event) => event.type === "tool_calls");
    assert.deepEqual(event?.tool_calls, [
      { id: "c", type: "function", function: whole.function, extra_content },
    ]);
  }
});

Deno.test("deprecated function_call deltas become a call", () => {
  const delta = (function_call: unknown) => chunk({ function_call });
  assert.deepEqual(
    toolCalls(
      delta({ name: "read", arguments: "" }),
      delta({ arguments: '{"a"' }),
      delta({
        arguments: ":1}",
      }),
      chunk({}, "function_call"),
    ),
    [["minted", "read", '{"a":1}']],
  );
});

Deno.test("arguments of a tool call may be an object [6.2]", () => {
  assert.deepEqual(toolCalls(call({ index: 0, id: "c", name: "a", args: { b: [1] } })), [
    ["c", "a", '{"b":[1]}'],
  ]);
});

Deno.test("arguments survive any fragmentation", () => {
  fc.assert(fc.property(fc.json(), fc.array(fc.nat(40), { maxLength: 8 }), (args, cuts) => {
    const at = [
      0,
      ...cuts.map((cut) => Math.min(cut, args.length)).sort((a, b) => a - b),
      args.length,
    ];
    const deltas = at.slice(1).map((end, i) => call({ index: 0, args: args.slice(at[i], end) }));
    assert.deepEqual(toolCalls(call({ index: 0, id: "c", name: "a" }), ...deltas), [[
      "c",
      "a",
      args,
    ]]);
  }));
});

Deno.test("property: calls whose name is repeated with each fragment end where their arguments do [6.2]", () => {
  const text = fc.dictionary(fc.string(), fc.jsonValue()).map((value) => JSON.stringify(value));
  const size = fc.integer({ min: 1, max: 9 });
  fc.assert(fc.property(fc.array(text, { minLength: 1, maxLength: 4 }), size, (texts, size) => {
    const deltas = texts.flatMap((args) =>
      Array.from(
        { length: Math.ceil(args.length / size) },
        (_, i) => call({ index: 0, name: "a", args: args.slice(i * size, (i + 1) * size) }),
      )
    );
    assert.deepEqual(toolCalls(...deltas).map(([, , args]) => args), texts);
  }));
});

Deno.test("the finish reason is the backend's; usage may be in a separate chunk [6.2]", () => {
  const usage = { prompt_tokens: 3, completion_tokens: 4, details: { cached: 1 }, cost: null };
  assert.deepEqual(assemble(chunk({}, "length"), { choices: [], usage }, DONE), [
    { type: "done", reason: "length", usage: { prompt_tokens: 3, completion_tokens: 4 } },
  ]);
  assert.deepEqual(assemble(chunk({ content: "a" }), DONE).at(-1), {
    type: "done",
    reason: "stop",
    usage: {},
  });
});

Deno.test("a stream without a sign of completion ends with `eof` and without tool calls [6.2]", () => {
  const events = assemble(call({ index: 0, id: "c", name: "a", args: "{}" }), {
    choices: [],
    usage: { total_tokens: 1 },
  });
  assert.deepEqual(events, [{ type: "done", reason: "eof", usage: { total_tokens: 1 } }]);
});

Deno.test("a whole document is read like a stream; a repeated message is ignored [4.10, 6.2]", () => {
  const message = {
    content: "a",
    reasoning_content: "t",
    tool_calls: [{ id: "c", type: "function", function: { name: "n", arguments: "{}" } }],
  };
  assert.deepEqual(assemble({ choices: [{ message, finish_reason: "tool_calls" }] }), [
    { type: "thinking", content: "t" },
    { type: "token", content: "a" },
    { type: "tool_calls", tool_calls: message.tool_calls },
    { type: "done", reason: "tool_calls", usage: {} },
  ]);
  const repeated = { choices: [{ message: { content: "a" }, finish_reason: "stop" }] };
  assert.equal(assemble(chunk({ content: "a" }), repeated).length, 2);
});

Deno.test("error objects inside the stream are failures with their status [6.2]", () => {
  const failures: [unknown, number, RegExp][] = [
    [
      { error: { message: "over\x1b[31mloaded", code: 529 } },
      529,
      /^acme reported an error: overloaded\.$/,
    ],
    [{ error: { message: "no", code: "overloaded", status: "503" } }, 503, /: no\.$/],
    [{ error: "plain, with sk-secret" }, 0, /: plain, with \*\*\*\.$/],
    [{ error: {} }, 0, /^acme reported an error\.$/],
    [{ object: "error", message: "old", code: 400 }, 400, /: old\.$/],
    [{ type: "error", error: { type: "x", message: "vendor" } }, 0, /: vendor\.$/],
    [{ type: "error", message: "flat", code: "503" }, 503, /: flat\.$/],
    [{ detail: [{ loc: ["body"], msg: "wrong" }] }, 0, /: wrong\.$/],
    [{ choices: [{ index: 0, delta: {}, error: { code: 502, message: "off" } }] }, 502, /: off\.$/],
  ];
  for (const [event, status, message] of failures) {
    assert.throws(() => assemble(chunk({ content: "a" }), event), { status, message });
  }
  assert.equal(assemble({ error: null, choices: [] }).length, 1);
});

Deno.test("broken JSON is a failure, a keep-alive that is no JSON is not", () => {
  assert.throws(() => assemble('{"choices": ['), {
    message: "acme sent an event that is broken JSON.",
  });
  assert.deepEqual(assemble("ping", "", '"text"', "[1]", DONE), [
    { type: "done", reason: "stop", usage: {} },
  ]);
});

Deno.test("events of any JSON shape are handled", () => {
  const keys = [
    "choices",
    "delta",
    "tool_calls",
    "function",
    "content",
    "usage",
    "index",
    "message",
  ];
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(null, 0, "text", true, -1.5),
      fc.array(tie("node"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...keys), tie("node"), { maxKeys: 4 }),
    ),
  })).node;
  fc.assert(fc.property(fc.array(fc.dictionary(fc.constantFrom(...keys), tree)), (events) => {
    assert.equal(assemble(...events).at(-1)?.type, "done");
  }));
});

Deno.test("events of other protocols may have any JSON shape, too", () => {
  const types = ["message_start", "content_block_start", "content_block_delta", "message_delta"];
  const items = ["message", "function_call", "reasoning", "thinking", "tool_use", "text"];
  const more = ["response.output_item.done", "response.completed", "response.output_item.added"];
  const keys = [
    "content",
    "item",
    "delta",
    "index",
    "content_block",
    "response",
    "summary",
    "text",
  ];
  const tree = fc.letrec((tie) => ({
    node: fc.oneof(
      { depthSize: "small" },
      fc.constantFrom(null, 0, true, ...types, ...items, "text_delta", "signature_delta"),
      fc.array(tie("node"), { maxLength: 3 }),
      fc.dictionary(fc.constantFrom("type", ...keys), tie("node"), { maxKeys: 4 }),
    ),
  })).node;
  const event = fc.tuple(
    fc.constantFrom(...types, ...items, ...more),
    fc.dictionary(fc.constantFrom(...keys), tree),
  ).map(([type, fields]) => ({ ...fields, type }));
  fc.assert(fc.property(fc.array(event), (events) => {
    for (const translator of [messagesTranslator, responsesTranslator]) {
      const assembler = new Assembler(PEER, translator());
      try {
        for (const each of events) [...assembler.push(JSON.stringify(each))];
      } catch (error) {
        assert.ok(error instanceof BackendError, String(error));
      }
    }
  }));
});

Deno.test("signatures and events without content count as memory of an answer", () => {
  const endless = [
    { type: "content_block_delta", delta: { type: "signature_delta", signature: "x" } },
    { type: "response.output_text.delta", output_index: 0.5, delta: "" },
  ];
  for (const [i, translator] of [messagesTranslator, responsesTranslator].entries()) {
    const assembler = new Assembler(PEER, translator());
    const event = JSON.stringify({ ...endless[i], filler: "x".repeat(1024 * 1024) });
    assert.throws(() => {
      for (let i = 0; i < 40; i++) [...assembler.push(event)];
    }, { message: "acme sent an answer too long to keep." });
  }
});

Deno.test("an answer that is too long for memory is a failure", () => {
  const assembler = new Assembler(PEER);
  const megabyte = JSON.stringify(chunk({ content: "x".repeat(1024 * 1024) }));
  assert.throws(() => {
    for (let i = 0; i < 40; i++) [...assembler.push(megabyte)];
  }, { message: "acme sent an answer too long to keep." });
  const many = new Assembler(PEER);
  assert.throws(() => {
    for (let i = 0; i < 2000; i++) [...many.push(JSON.stringify(call({ index: i })))];
  }, { code: "backend" });
});
