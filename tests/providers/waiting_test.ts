import assert from "node:assert/strict";
import type { ProviderOptions } from "../../src/plugins/api.ts";
import { OpenAICompatibleProvider } from "../../src/providers/chat_completions.ts";
import { Assembler } from "../../src/providers/deltas.ts";
import {
  chunk,
  data,
  DONE,
  eventsOf,
  head,
  HELLO,
  json,
  providerOptions,
  TestClock,
  WireServer,
} from "./support.ts";

class Steady extends OpenAICompatibleProvider {
  protected override jitter(): number {
    return 0;
  }
}

/** A backend that answers with these bytes in turn, and a provider whose waits are over at once. */
function at(answers: string[], options: Partial<ProviderOptions> = {}) {
  const server = new WireServer((wire) =>
    wire.send(answers[Math.min(wire.number, answers.length) - 1]!)
  );
  const clock = new TestClock((ms) => ms !== 60_000 && ms !== 10_000 && ms !== 250);
  const made = providerOptions({ base_url: server.url, ...options });
  return { server, clock, provider: new Steady(made, clock) };
}

const busy = (seconds: number) => json({ error: "busy" }, 429, { "retry-after": `${seconds}` });

Deno.test("a backend is not asked before the time that it has announced", async () => {
  const { server, clock, provider } = at([busy(3600), HELLO]);
  await using _ = server;
  const [first] = await eventsOf(provider);
  assert.ok(first?.type === "error");
  const opens = clock.time + 3_600_000;
  assert.equal(first.retry_at, opens);
  clock.time += 60_000;
  const [second, ...others] = await eventsOf(provider);
  assert.deepEqual([second, others], [{
    type: "error",
    code: 429,
    message:
      "acme has announced when it may be asked again. It answers again at 2026-01-02T04:04:05Z, in 59 min",
    kind: "announced",
    retry_at: opens,
  }, []]);
  assert.equal(server.requests.length, 1);
  clock.time = opens - 20_000; // within retry_budget
  const events = await eventsOf(provider);
  assert.deepEqual(events.map(({ type }) => type), ["wait", "token", "done"]);
  assert.equal(clock.time, opens);
  assert.equal(server.requests.length, 2);
});

Deno.test("a long wait for a quota is told every 30 seconds, and taken from the time that is left", async () => {
  const { server, clock, provider } = at([busy(95), HELLO]);
  await using _ = server;
  const start = clock.time;
  const quota_wait = { seconds: 3600 };
  const events = await eventsOf(provider, { quota_wait });
  const waits = events.filter((event) => event.type === "wait");
  assert.deepEqual(waits.map(({ seconds }) => seconds), [95, 65, 35, 5]);
  assert.deepEqual(waits[1], {
    type: "wait",
    seconds: 65,
    reason:
      "acme limits the rate of requests (429). It answers again at 2026-01-02T03:05:40Z, in 1 min 5 s.",
    retry_at: start + 95_000,
  });
  assert.equal(events.at(-1)?.type, "done");
  assert.equal(quota_wait.seconds, 3505);
  assert.equal(clock.time, start + 95_000);
  assert.equal(server.requests.length, 2);
});

Deno.test("a quota that opens too late is not waited for", async () => {
  const { server, clock, provider } = at([busy(100)]);
  await using _ = server;
  const quota_wait = { seconds: 99 };
  const start = clock.time;
  const [event] = await eventsOf(provider, { quota_wait });
  assert.ok(event?.type === "error" && event.kind === "announced");
  assert.deepEqual([clock.time, quota_wait.seconds], [start, 99]);
});

Deno.test("requests become rare while a backend announces short times for ever", async () => {
  const { server, clock, provider } = at([busy(1)], { retry_budget: 60 });
  await using _ = server;
  const start = clock.time;
  const quota_wait = { seconds: 6 * 3600 };
  const [last] = (await eventsOf(provider, { quota_wait })).slice(-1);
  assert.ok(last?.type === "error" && last.kind === "announced");
  assert.ok(clock.time - start > 5 * 3_600_000);
  assert.ok(server.requests.length < 90, `${server.requests.length} requests`);
});

Deno.test("a connection that is refused is tried again with growing pauses within the budget", async () => {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const { port } = listener.addr as Deno.NetAddr;
  listener.close();
  const { server, provider } = at([], { base_url: `http://127.0.0.1:${port}`, retry_budget: 60 });
  await using _ = server;
  const events = await eventsOf(provider);
  const waits = events.flatMap((event) => event.type === "wait" ? [event.seconds] : []);
  assert.deepEqual(waits, [1, 2, 4, 8, 16, 29]);
  const last = events.at(-1);
  assert.ok(last?.type === "error" && last.kind === "transient");
  assert.match(last.message, /refused the connection/);
});

Deno.test("comments and empty deltas do not count as content", async () => {
  const pinged = Promise.withResolvers<void>();
  await using server = new WireServer(async (wire) => {
    await wire.send(head(), ": ping\n\n");
    await pinged.promise;
    await wire.send(": ping\n\n", data(chunk({ role: "assistant", content: "" }), "ping"));
    await wire.gone();
  });
  const clock = new TestClock((ms) => ms === 1);
  const limits = { idle_timeout: 0, content_timeout: 100 };
  const options = providerOptions({ base_url: server.url, ...limits });
  const events = eventsOf(new OpenAICompatibleProvider(options, clock));
  await server.asked;
  clock.time += 50_000;
  pinged.resolve();
  await clock.expire(100_000);
  assert.deepEqual(await events, [{
    type: "error",
    code: 0,
    message: "acme kept the connection open, but sent no content for 100 seconds",
    kind: "stalled",
  }]);
});

Deno.test("each piece of content restarts the time for content", async () => {
  const turns = Array.from({ length: 3 }, () => Promise.withResolvers<void>());
  await using server = new WireServer(async (wire) => {
    await wire.send(head());
    for (const turn of turns) {
      await turn.promise;
      await wire.send(data(chunk({ content: "a" })));
    }
    await wire.send(data(chunk({}, "stop"), DONE));
  });
  const clock = new TestClock((ms) => ms === 1); // the limit when no time is left
  const options = providerOptions({ base_url: server.url, content_timeout: 100 });
  const stream = new OpenAICompatibleProvider(options, clock).chat([]);
  for (const turn of turns) {
    const next = stream.next();
    await server.asked;
    clock.time += 90_000;
    turn.resolve();
    assert.deepEqual((await next).value, { type: "token", content: "a" });
  }
  assert.equal((await stream.next()).value?.type, "done");
});

Deno.test("reasoning and parts of tool calls are content; empty deltas and keep-alives are not", () => {
  const peer = { name: "acme", url: "", model: "", api_key: "", connect: "", now: () => 0 };
  const grows = (event: string | unknown) => {
    const assembler = new Assembler(peer);
    [...assembler.push(typeof event === "string" ? event : JSON.stringify(event))];
    return assembler.kept > 0;
  };
  const call = (name: string, args: string) => ({ index: 0, function: { name, arguments: args } });
  const content = [
    chunk({ content: "a" }),
    chunk({ reasoning_content: "hm" }),
    chunk({ reasoning: "hm" }),
    chunk({ tool_calls: [call("read", "")] }),
    chunk({ tool_calls: [call("", '{"a')] }),
  ];
  assert.deepEqual(content.map(grows), content.map(() => true));
  const life = [
    "ping",
    "{}",
    chunk({ role: "assistant" }),
    chunk({ role: "assistant", content: "", tool_calls: [] }),
    chunk({ content: null, reasoning_content: "" }),
    { choices: [], usage: null },
  ];
  assert.deepEqual(life.map(grows), life.map(() => false));
});

Deno.test("token counts have one name each, whatever the vendor calls them", async () => {
  const kinds: [usage: Record<string, unknown>, expected: Record<string, number>][] = [
    [
      {
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 120,
        prompt_tokens_details: { cached_tokens: 64, audio_tokens: 0 },
        completion_tokens_details: { reasoning_tokens: 12 },
      },
      {
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 120,
        cached_tokens: 64,
        reasoning_tokens: 12,
      },
    ],
    [
      { prompt_tokens: 9, prompt_cache_hit_tokens: 8, prompt_cache_miss_tokens: 1 },
      {
        prompt_tokens: 9,
        prompt_cache_hit_tokens: 8,
        prompt_cache_miss_tokens: 1,
        cached_tokens: 8,
      },
    ],
    [{ prompt_tokens: 9, cached_tokens: 5 }, { prompt_tokens: 9, cached_tokens: 5 }],
    [
      { input_tokens: 9, output_tokens: 2, cache_read_input_tokens: 4 },
      {
        input_tokens: 9,
        output_tokens: 2,
        cache_read_input_tokens: 4,
        prompt_tokens: 9,
        completion_tokens: 2,
        cached_tokens: 4,
      },
    ],
    [{ prompt_tokens: 9, cost: 0.5, prompt_tokens_details: null }, { prompt_tokens: 9, cost: 0.5 }],
  ];
  for (const [usage, expected] of kinds) {
    const answer = head() + data(chunk({ content: "a" }, "stop"), { choices: [], usage }, DONE);
    const { server, provider } = at([answer]);
    await using _ = server;
    const last = (await eventsOf(provider)).at(-1);
    assert.ok(last?.type === "done");
    assert.deepEqual(last.usage, expected);
  }
});
