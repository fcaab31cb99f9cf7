import assert from "node:assert/strict";
import fc from "fast-check";
import { dataEvents } from "../../src/providers/sse.ts";
import { bytes } from "./support.ts";

async function read(pieces: (string | Uint8Array)[], max?: number): Promise<string[]> {
  const queue = pieces.map(bytes);
  return await Array.fromAsync(dataEvents(() => Promise.resolve(queue.shift()), max));
}

const STREAMS: [name: string, text: string, events: string[]][] = [
  ["line feeds", "data: a\n\ndata: b\n\n", ["a", "b"]],
  ["carriage returns with line feeds", "data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]],
  ["bare carriage returns", "data: a\r\rdata: b\r\r", ["a", "b"]],
  ["a byte order mark", "\ufeffdata: a\n\n", ["a"]],
  ["no space after the colon", "data:a\n\ndata:  b\n\n", ["a", " b"]],
  ["several data lines", 'data: {"a":\ndata: 1}\n\n', ['{"a":\n1}']],
  ["lines without blank ones between", 'data: {"a":1}\ndata: {"b":2}\ndata: [DONE]\n', [
    '{"a":1}',
    '{"b":2}',
    "[DONE]",
  ]],
  ["an error field", 'error: {"code":400,"message":"m"}\n\ndata: [DONE]\n\n', [
    '{"error":{"code":400,"message":"m"}}',
    "[DONE]",
  ]],
  ["error events", 'event: error\ndata: {"message":"m"}\n\nevent: error\ndata: text\n\n', [
    '{"error":{"message":"m"}}',
    '{"error":"text"}',
  ]],
  ["an error event that says error", 'event: error\ndata: {"error":{"a":1}}\n\n', [
    '{"error":{"a":1}}',
  ]],
  ["a bare document in the stream", ': ping\n\n{"error":{"message":"m"}}\n', [
    '{"error":{"message":"m"}}',
  ]],
  ["comments, event, id and retry lines", ": hi\nevent: x\nid: 1\nretry: 5\ndata: a\n\n", ["a"]],
  ["unknown fields and rubbish", "what: ever\nrubbish\ndata: a\n\n", ["a"]],
  ["leading blank lines", "\n\r\n\ndata: a\n\n", ["a"]],
  ["an unterminated [DONE]", "data: a\n\ndata: [DONE]", ["a", "[DONE]"]],
  ["an unterminated whole event", 'data: {"a":1}', ['{"a":1}']],
  ["an unterminated half event", 'data: a\n\ndata: {"a":', ["a"]],
  ["multi-byte characters", "data: äöü 漢字 🦕\n\n", ["äöü 漢字 🦕"]],
  ["a document instead of a stream", ' {"a": "b\\n\\nc"}\n', [' {"a": "b\\n\\nc"}\n'.trimStart()]],
  ["half a document", '{"a": ', []],
  ["nothing", "", []],
  ["white space", " \n \n", []],
];

for (const [name, text, events] of STREAMS) {
  Deno.test(`server-sent events of a body with ${name} are read, however its bytes are split [4.10]`, async () => {
    assert.deepEqual(await read([text]), events);
    const all = bytes(text);
    await fc.assert(fc.asyncProperty(
      fc.uniqueArray(fc.integer({ min: 0, max: all.length }), { maxLength: 12 }),
      async (cuts) => {
        const at = [0, ...cuts.sort((a, b) => a - b), all.length];
        const pieces = at.slice(1).map((end, i) => all.slice(at[i], end));
        assert.deepEqual(await read(pieces), events);
      },
    ));
    assert.deepEqual(await read([...all].map((byte) => Uint8Array.of(byte))), events);
  });
}

Deno.test("server-sent events are yielded before the body ends [6.2]", async () => {
  const more = Promise.withResolvers<Uint8Array | undefined>();
  const queue = [Promise.resolve(bytes("data: a\n\ndata: b")), more.promise];
  const events = dataEvents(() => queue.shift()!);
  assert.equal((await events.next()).value, "a");
  more.resolve(undefined);
  await events.return(undefined);
});

Deno.test("an endless event or document is an error; an endless comment is skipped", async () => {
  for (const start of ["data: ", "data: x\ndata: ", '{"a": "']) {
    const pieces = function* () {
      yield start;
      for (let i = 0; i < 100; i++) yield "x".repeat(100);
      assert.fail("it was read to its end");
    }();
    const next = () => Promise.resolve(bytes(pieces.next().value ?? ""));
    await assert.rejects(Array.fromAsync(dataEvents(next, 1000)), { code: "backend" });
  }
  assert.deepEqual(await read([": ", "x".repeat(5000), "\n\ndata: a\n\n"], 1000), ["a"]);
});

Deno.test("a web page is an error with a hint about the base URL", async () => {
  await assert.rejects(read(["\n<!DOCTYPE html><html>"]), {
    code: "backend",
    hint: "Check the base URL.",
  });
});
