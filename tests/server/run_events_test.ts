import assert from "node:assert/strict";
import { call, calls, hang, say, think } from "../support/backend.ts";
import { until } from "../support/processes.ts";
import {
  EventClient as Client,
  type SentEvent as Event,
  server,
  type TestServer,
} from "./support.ts";

const text = (events: Event[], type = "token") =>
  events.filter((event) => event.type === type).map(({ data }) => data.content).join("");

const PLACED = new Set([
  "turn_started",
  "thinking",
  "token",
  "message",
  "tool_call",
  "tool_result",
  "turn_finished",
  "result",
]);

/** What the log has of events, with texts joined: in this, live and replayed streams agree. */
function logged(events: Event[]): unknown[] {
  const all: unknown[][] = [];
  for (const { type, data } of events.filter(({ type }) => PLACED.has(type))) {
    if (type === "token" || type === "thinking") {
      if (all.at(-1)?.[0] === type) all.at(-1)![1] += data.content;
      else all.push([type, data.content]);
    } else if (type === "tool_call") all.push([type, data.id, data.name, data.arguments]);
    else if (type === "tool_result") all.push([type, data.id, data.output, data.is_error]);
    else if (type === "message") all.push([type, data.content]);
    else if (type === "turn_started") all.push([type, data.session, data.index]);
    else {
      const { content, thinking, tool_calls, status, model, session, usage } = data.result ?? data;
      all.push([type, { content, thinking, tool_calls, status, model, session, usage }]);
    }
  }
  // The log does not tell which calls were announced together.
  const [tools, others] = [true, false].map((tool) =>
    all.filter(([type]) => String(type).startsWith("tool") === tool)
  );
  return [
    others,
    ...["tool_call", "tool_result"].map((kind) => tools!.filter(([type]) => type === kind)),
  ];
}

const RICH = [
  think(["hm ", "let me"], {
    text: ["I ", "look"],
    tool_calls: [
      { name: "list_dir", arguments: { path: "." } },
      { name: "list_dir", arguments: { path: "nowhere" } },
    ],
  }),
  call("list_dir", { path: "." }),
  say(["It ", "is ", "done ", "😀"]),
];

async function accept(at: TestServer, body: Record<string, unknown> = {}): Promise<string> {
  return (await at.post("/runs", { prompt: "go", ...body })).body.id;
}

async function ended(at: TestServer, id: string): Promise<void> {
  await until(async () => (await at.get(`/runs/${id}`)).body.ended_at !== "");
}

Deno.test("GET /runs/ID/events sends a run live as POST /chat does, and the same again from its log [4.1]", async () => {
  await using at = await server({ replies: [...RICH, ...RICH] });
  const id = await accept(at);
  await using live = await Client.open(at, id);
  const events = await live.until();
  assert.equal(events.at(-1)!.type, "result");
  await using later = await Client.open(at, id);
  const again = await later.until();
  assert.deepEqual(logged(again), logged(events));
  const chat = await at.post("/chat", { prompt: "go", stream: true });
  await using streamed = new Client(new Response(chat.body));
  const same = (each: unknown[]) => JSON.stringify(each).replaceAll(/ses_\w+|call_\d/g, "");
  assert.equal(same(logged(await streamed.until())), same(logged(events)));
});

Deno.test("Last-Event-ID continues a run after any event, without a gap or a duplicate", async () => {
  await using at = await server(RICH);
  const id = await accept(at);
  await using live = await Client.open(at, id);
  const events = await live.until();
  await using whole = await Client.open(at, id);
  for (const source of [events, await whole.until()]) {
    for (const [i, { id: last }] of source.entries()) {
      if (last === undefined || last === "over") continue;
      await using rest = await Client.open(at, id, last);
      const joined = [...source.slice(0, i + 1), ...await rest.until()];
      assert.deepEqual(logged(joined), logged(source), `after ${last}`);
    }
  }
  const answer = await at.get(`/runs/${id}/events`, { "last-event-id": "over" });
  assert.equal(answer.status, 204, "a browser asks no more");
  for (const wrong of ["x", "1.2.3.", "1..2", "-1.2", `1.2${".c".repeat(300)}`]) {
    const { status } = await at.get(`/runs/${id}/events`, { "last-event-id": wrong });
    assert.equal(status, 400, wrong);
  }
});

Deno.test("a client that reconnects in the middle of a text gets the rest of it, while it is written", async () => {
  await using at = await server({
    replies: [think(["why ", "not"], { text: ["abc", "def"], hang: true })],
  });
  const id = await accept(at);
  await using first = await Client.open(at, id);
  const events = await first.until((events) => text(events) === "abcdef");
  const middle = events.find(({ data }) => data.content === "abc")!;
  await using second = await Client.open(at, id, middle.id);
  const [rest] = await second.until((events) => text(events) === "def");
  assert.deepEqual([rest!.type, rest!.data.content], ["token", "def"]);
  await using third = await Client.open(at, id, events.find(({ type }) => type === "thinking")!.id);
  await third.until((events) => text(events) === "abcdef");
  assert.equal(text(third.events, "thinking"), "not");
  await at.post(`/runs/${id}/cancel`, "");
  const all = await second.until();
  assert.equal(text(all), "def", "the log has the part now, which is not sent again");
  assert.equal(all.at(-1)!.data.status, "cancelled");
});

Deno.test("a call that has no result yet is sent once to a client that reconnects", async () => {
  await using at = await server([call("ask", { question: "?" }), hang("half")], {
    config: { unattended: true },
  });
  const id = await accept(at);
  await using first = await Client.open(at, id);
  await first.until((events) => text(events) === "half");
  const announced = first.events.find(({ type }) => type === "tool_call")!;
  await using second = await Client.open(at, id, announced.id);
  const events = await second.until((events) => text(events) === "half");
  assert.deepEqual(
    events.map(({ type }) => type).filter((type) => type.startsWith("tool")),
    ["tool_result"],
  );
});

Deno.test("texts that arrive in turns are resumed exactly", async () => {
  // The reply is cut off after its text, and goes on with thinking.
  await using at = await server([
    say(["one ", "two "], { finish: "length" }),
    think(["because ", "so "], { text: ["three ", "four"] }),
  ]);
  const id = await accept(at);
  await using live = await Client.open(at, id);
  const events = await live.until();
  assert.equal(text(events), "one two three four");
  const { turns } = at.workspace.sessions.read(events[0]!.data.session)!;
  assert.deepEqual(turns[0]!.parts.map(({ type }) => type), ["user", "text", "thinking"]);
  for (const [i, { id: last, type }] of events.entries()) {
    if (type !== "token" && type !== "thinking") continue;
    await using rest = await Client.open(at, id, last);
    const joined = [...events.slice(0, i + 1), ...await rest.until()];
    assert.deepEqual([text(joined), text(joined, "thinking")], [
      "one two three four",
      "because so ",
    ], `after ${last}`);
  }
});

Deno.test("thinking of an attempt that failed does not shift what is sent after it", async () => {
  await using at = await server([
    think(["wrong ", "way"], { cut: true }),
    hang("a long and right answer"),
  ]);
  const id = await accept(at);
  await using live = await Client.open(at, id);
  const events = await live.until((events) => text(events) !== "");
  const lost = events.findLast(({ type }) => type === "thinking")!;
  await using rest = await Client.open(at, id, lost.id);
  await rest.until((events) => text(events) !== "");
  assert.equal(text(rest.events), "a long and right answer");
  await at.post(`/runs/${id}/cancel`, "");
  await using later = await Client.open(at, id, lost.id);
  assert.equal(text(await later.until()), "a long and right answer");
});

Deno.test("a run that never began has an error as its last event", async () => {
  await using at = await server([hang()], { config: { "serve.max_concurrent": 1 } });
  await accept(at);
  await at.backend.arrived(1);
  const id = await accept(at);
  await using client = await Client.open(at, id);
  await at.post(`/runs/${id}/cancel`, "");
  assert.deepEqual(await client.until(), [
    { id: "over", type: "error", data: { error: "the run was cancelled" } },
  ]);
  assert.equal((await at.get("/runs/run_1/events")).status, 404);
});

Deno.test("the events of parallel calls are resumed exactly", async () => {
  await using at = await server([
    calls([["list_dir", { path: "." }], ["list_dir", { path: "b" }], ["list_dir", { path: "c" }]]),
    say("ok"),
  ]);
  const id = await accept(at);
  await ended(at, id);
  await using whole = await Client.open(at, id);
  const events = await whole.until();
  // A client that was live had all calls before the first result.
  const [, ...ids] = events.filter(({ type }) => type === "tool_call").map(({ data }) => data.id);
  const first = events.find(({ type }) => type === "tool_call")!;
  await using rest = await Client.open(at, id, `${first.id}.c.c`);
  const seen = (await rest.until()).filter(({ type }) => type.startsWith("tool"));
  assert.deepEqual(seen.map(({ type }) => type), ["tool_result", "tool_result", "tool_result"]);
  assert.deepEqual(seen.slice(1).map(({ data }) => data.id), ids);
});

Deno.test("a long text is replayed in pieces, as fast as its client reads", async () => {
  const long = "word ".repeat(600_000);
  await using at = await server([say([long])]);
  const id = await accept(at);
  await ended(at, id);
  await using client = await Client.open(at, id);
  const events = await client.until();
  assert.equal(text(events).length, long.length);
  assert.ok(events.length > 40);
  await using rest = await Client.open(at, id, "1.1.2999999");
  assert.equal(text(await rest.until()), " ");
});
