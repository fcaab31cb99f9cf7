import assert from "node:assert/strict";
import { startWire, type Wire, type WireServer } from "../../bench/wires.ts";
import type { Reply } from "../../plugins/svc-core-demo/src/script.ts";
import { agent, collect, type TestAgent } from "../support/agent.ts";
import { call, calls, httpError, raw, say, startBackend, think } from "../support/backend.ts";
import { compact } from "../../src/engine/compaction.ts";
import { TestClock } from "../providers/support.ts";

// deno-lint-ignore no-explicit-any
type Json = any;

/** How each wire names things. */
const WIRES: Record<Wire, {
  provider: string;
  /** The items of a request's conversation. */
  talk(request: Json): Json[];
  thought(text: string, number: number): Json;
  called(id: string, name: string, input: Record<string, unknown>): Json;
  result(id: string, output: string): Json;
  usage: Record<string, unknown>;
  limit: string;
  overloaded: Reply;
  broken: Reply;
}> = {
  messages: {
    provider: "anthropic",
    talk: ({ messages }) =>
      messages.flatMap(({ role, content }: Json) =>
        content.map(({ cache_control: _, ...block }: Json) => ({ role, ...block }))
      ),
    thought: (thinking, n) => (
      { role: "assistant", type: "thinking", thinking, signature: `sealed ${n}` }
    ),
    called: (id, name, input) => ({ role: "assistant", type: "tool_use", id, name, input }),
    result: (tool_use_id, content) => ({ role: "user", type: "tool_result", tool_use_id, content }),
    usage: { input_tokens: 5, cache_read_input_tokens: 900, cache_creation_input_tokens: 95 },
    limit: "max_tokens",
    overloaded: httpError(529, {
      type: "error",
      error: { type: "overloaded_error", message: "Overloaded" },
    }),
    broken: raw(
      `event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":9}}}\n\n` +
        `event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n`,
    ),
  },
  responses: {
    provider: "openai",
    talk: ({ input }) => input,
    thought: (text, n) => ({
      type: "reasoning",
      summary: [{ type: "summary_text", text }],
      encrypted_content: `sealed ${n}`,
    }),
    called: (call_id, name, input) => (
      { type: "function_call", call_id, name, arguments: JSON.stringify(input) }
    ),
    result: (call_id, output) => ({ type: "function_call_output", call_id, output }),
    usage: { input_tokens: 1000, input_tokens_details: { cached_tokens: 900 } },
    limit: "max_output_tokens",
    overloaded: httpError(503, { error: { code: "server_is_overloaded", message: "Overloaded" } }),
    broken: raw(
      `event: response.created\ndata: {"type":"response.created","response":{"status":"in_progress"}}\n\n` +
        `event: response.failed\ndata: {"type":"response.failed","response":{"status":"failed",` +
        `"error":{"code":"server_error","message":"Overloaded"}}}\n\n`,
    ),
  },
};

/** A PNG of one pixel. */
const PNG = Uint8Array.fromBase64(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
);

const files = { "a.txt": "alpha\n", "b.txt": "beta\n" };

/** An agent on a scripted server of a wire. */
async function on(
  wire: Wire,
  replies: Reply[],
  options: Parameters<typeof agent>[1] = {},
): Promise<{ it: TestAgent; server: WireServer } & AsyncDisposable> {
  const server = startWire(wire, { replies });
  const it = await agent([], {
    ...options,
    files: { ...files, ...options.files },
    config: {
      provider: WIRES[wire].provider,
      base_url: server.url,
      wire: "native",
      ...options.config,
    },
  });
  return {
    it,
    server,
    async [Symbol.asyncDispose]() {
      await it[Symbol.asyncDispose]();
      await server.close();
    },
  };
}

/** Whether each conversation begins with all of the one before it, byte for byte. */
function assertPrefixes(wire: Wire, requests: Json[]): void {
  const sent = requests.map((request) =>
    WIRES[wire].talk(request).map((item) => JSON.stringify(item))
  );
  for (const [i, items] of sent.slice(1).entries()) {
    assert.deepEqual(items.slice(0, sent[i]!.length), sent[i], `request ${i + 2}`);
    assert.ok(items.length > sent[i]!.length, `request ${i + 2} is no longer`);
  }
}

for (const wire of ["messages", "responses"] as const) {
  const { talk, thought, called, result, provider, ...words } = WIRES[wire];

  Deno.test(`${wire}: a turn reasons, calls tools and answers, and its reasoning goes back sealed [4.10, 6.2]`, async () => {
    await using place = await on(wire, [
      think(["I ", "look."], {
        ...calls([["file_read", { path: "a.txt" }], ["glob", { pattern: "*" }]]),
        text: "Reading.",
      }),
      think("Clear.", { ...say(["It is ", "alpha."]), usage: words.usage }),
    ], {
      config: { prices: { [`${provider}/test`]: { in: 1, out: 2, cached: 0.1, cache_write: 3 } } },
    });
    const { it, server: { requests } } = place;
    const { events, result: turn } = await it.turn("What is in a.txt?");
    assert.deepEqual([turn.status, turn.content], ["ok", "It is alpha."]);
    assert.equal(turn.thinking, "I look.\n\nClear.");
    assert.deepEqual(
      events.flatMap((event) => event.type === "token" ? [event.content] : []),
      ["Reading.", "It is ", "alpha."],
    );
    const [asked, reasoned, said, ...rest] = talk(requests[1]);
    assert.equal(asked.role, "user");
    assert.deepEqual(reasoned, thought("I look.", 1));
    assert.match(JSON.stringify(said), /"assistant".*Reading\./);
    const ids = ["call_1_file_read", "call_1_glob"] as const;
    assert.deepEqual(rest.map((item) => item.type === result("", "").type ? "result" : item), [
      called(ids[0], "file_read", { path: "a.txt" }),
      called(ids[1], "glob", { pattern: "*" }),
      "result",
      "result",
    ]);
    assert.match(JSON.stringify(rest), /alpha/);
    assert.equal(turn.usage.prompt_tokens, 1100);
    assert.equal(turn.usage.cached_tokens, 900);
    assert.equal(turn.usage.completion_tokens, 20);
    const stored = wire === "messages" ? 95 : 0;
    const cost = (1100 - 900 - stored) + 900 * 0.1 + stored * 3 + 20 * 2;
    assert.equal(turn.cost, cost / 1e6);
    const { ledger } = it.workspace.spending;
    const lines = ledger.days().flatMap((day) => ledger.read(day));
    assert.deepEqual(
      lines.map((line) => "in" in line && [line.in, line.cached, line.out]),
      [[100, 0, 10], [1000, 900, 10]],
    );
  });

  Deno.test(`${wire}: each request begins with the whole one before it: rounds, turns, another process [4.10]`, async () => {
    await using place = await on(wire, [
      think("I look.", call("read_file", '{ "file" : "a.txt" }')),
      think("Both.", { ...calls([["file_read", { path: "b.txt" }], ["glob", {}]]), text: "And." }),
      think("Done.", say("first")),
      { ...say("half"), finish: words.limit, thinking: "hm" },
      say(" whole"),
      think("Again.", call("file_read", { path: "a.txt" })),
      think("", say("third")),
      say("fourth"),
    ]);
    const { it, server: { requests } } = place;
    await it.turn("one");
    await it.turn("two");
    await collect(it.another().turn("three"));
    await collect(it.another().turn("four"));
    assert.equal(requests.length, 8);
    assertPrefixes(wire, requests);
    const sent = JSON.stringify(requests.at(-1));
    for (const n of [1, 2, 3, 6, 7]) assert.ok(sent.includes(`sealed ${n}`), `seal ${n}`);
    const { tools, system, instructions } = requests[0];
    for (const request of requests) {
      assert.deepEqual(
        [request.tools, request.system, request.instructions],
        [tools, system, instructions],
      );
    }
  });

  Deno.test(`${wire}: an overloaded backend and an error in the stream are asked again [7.2]`, async () => {
    await using place = await on(
      wire,
      [
        words.overloaded,
        words.broken,
        call("file_read", { path: "a.txt" }),
        words.broken,
        say("ok"),
      ],
      {
        config: { retry_budget: 30 },
        clock: new TestClock((ms) => ![120_000, 10_000, 250].includes(ms)),
      },
    );
    const { it, server: { requests } } = place;
    const { result: turn, events } = await it.turn("go");
    assert.deepEqual([turn.status, turn.content, turn.errors], ["ok", "ok", []]);
    assert.equal(requests.length, 5);
    assert.ok(
      events.some((event) => event.type === "notice" && /Overloaded|failed/.test(event.message)),
    );
  });

  Deno.test(`${wire}: an image is sent in the form of the protocol, and left out when it is refused [4.10]`, async () => {
    await using place = await on(wire, [
      say("a dot"),
      httpError(400, { error: { type: "invalid_request_error", message: "no image input" } }),
      say("ok"),
    ]);
    const { it, server: { requests } } = place;
    const attachments = [{ name: "dot.png", media_type: "image/png", content: PNG }];
    await collect(it.engine.turn("see", { attachments }));
    const data = PNG.toBase64();
    const [first] = talk(requests[0]);
    assert.deepEqual(
      wire === "messages" ? talk(requests[0])[1].source : first.content[1].image_url,
      wire === "messages"
        ? { type: "base64", media_type: "image/png", data }
        : `data:image/png;base64,${data}`,
    );
    await it.turn("more");
    assert.ok(JSON.stringify(requests[1]).includes(data));
    assert.match(JSON.stringify(requests[2]), /takes no images; these were left out: dot\.png/);
  });

  Deno.test(`${wire}: a fallback to another provider gets no sealed reasoning, and its own goes to it alone [4.10]`, async () => {
    await using other = startBackend([
      call("file_read", { path: "b.txt" }),
      say("from the other"),
    ]);
    await using place = await on(wire, [
      think("Mine.", call("file_read", { path: "a.txt" })),
      httpError(404, { error: { message: "the model is gone" } }),
      think("Back.", say("home")),
    ], {
      config: { model_fallback: ["other/m"] },
      user: {
        "providers.json": JSON.stringify({ other: { base_url: other.url } }),
        "models.json": JSON.stringify([{ provider: "other", model: "m" }]),
      },
    });
    const { it, server: { requests } } = place;
    const { result: turn } = await it.turn("go");
    assert.deepEqual([turn.content, turn.provider], ["from the other", "other"]);
    assert.ok(JSON.stringify(requests[1]).includes("sealed 1"));
    assert.doesNotMatch(JSON.stringify(other.chats), /sealed|reasoning_details/);
    assert.match(JSON.stringify(other.chats[1]), /alpha.*beta/);
    await collect(it.another().turn("again"));
    assert.ok(JSON.stringify(requests[2]).includes("sealed 1")); // it is this provider's own
    assert.match(JSON.stringify(requests[2]), /alpha.*beta.*from the other/);
  });

  Deno.test(`${wire}: the models are listed, and the connection is probed, as with every backend [4.10]`, async () => {
    const server = startWire(wire, { replies: [], models: ["m1", "m2"] });
    await using it = await agent([], {
      config: { provider, base_url: server.url, wire: "native" },
    });
    const client = it.workspace.connect(it.workspace.backend(), "");
    assert.deepEqual(await client.list_models(), ["m1", "m2"]);
    const found = { ok: true, message: "2 models on offer" };
    assert.deepEqual(await client.check_connection(), found);
    await server.close();
  });

  Deno.test(`${wire}: a compaction is asked for without tools, and the seals of what is kept stay [2.1]`, async () => {
    await using place = await on(wire, [
      think("Old.", say("one")),
      say("two"),
      say("three"),
      think("Kept.", call("file_read", { path: "a.txt" })),
      say("four"),
      say("SUMMARY"),
      say("five"),
    ]);
    const { it, server: { requests } } = place;
    for (const prompt of ["a", "b", "c", "d"]) await it.turn(prompt);
    const { session, workspace } = it;
    const provider = workspace.connect(workspace.backend(), "test");
    await compact({ provider, session, keep: 1 });
    await it.turn("e");
    const [summary, last] = requests.slice(-2);
    assert.equal(summary.tools, undefined);
    assert.doesNotMatch(JSON.stringify(summary), /sealed/);
    assert.match(JSON.stringify(last), /SUMMARY/);
    assert.doesNotMatch(JSON.stringify(last), /sealed 1/);
    assert.match(JSON.stringify(last), /sealed 4/);
  });

  Deno.test(`${wire}: sealed reasoning that the backend cannot verify is left out [7.2]`, async () => {
    const message = wire === "messages"
      ? "messages.1.content.0: Invalid `signature` in `thinking` block"
      : "The encrypted content sealed 1 could not be verified.";
    await using place = await on(wire, [
      think("Mine.", call("file_read", { path: "a.txt" })),
      httpError(400, { error: { type: "invalid_request_error", message } }),
      say("ok"),
    ]);
    const { it, server: { requests } } = place;
    assert.equal((await it.turn("go")).result.content, "ok");
    assert.match(JSON.stringify(requests[1]), /sealed 1/);
    assert.doesNotMatch(JSON.stringify(requests[2]), /sealed 1/);
  });
}
