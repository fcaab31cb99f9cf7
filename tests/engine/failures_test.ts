import assert from "node:assert/strict";
import { join } from "node:path";
import type { TurnEvent } from "../../src/engine/events.ts";
import { QuotaStore } from "../../src/providers/quota.ts";
import { TestClock } from "../providers/support.ts";
import { agent, collect } from "../support/agent.ts";
import { as, call, cut, empty, hang, httpError, raw, say } from "../support/backend.ts";

// What becomes of a turn whose backend fails, through a whole agent over HTTP. Waits are over at once; the time limits
// of requests (`idle_timeout`, `USAGE_MS`, `END_MS`) stand still.

const clockOf = () => new TestClock((ms) => ![120_000, 10_000, 250].includes(ms));
const busy = (seconds: number) => httpError(429, "slow down", { "retry-after": `${seconds}` });

function notices(events: TurnEvent[]): string[] {
  return events.flatMap((event) => event.type === "notice" ? [event.message] : []);
}

Deno.test("a permanent failure is one request, and the turn says that it is the backend", async () => {
  const refusals = [
    httpError(401, "Incorrect API key"),
    httpError(404, "no such model"),
    httpError(429, { error: { message: "no", code: "insufficient_quota" } }),
  ];
  for (const refusal of refusals) {
    await using it = await agent([refusal, say("late")], { clock: clockOf() });
    const { result } = await it.turn("go");
    assert.deepEqual([result.status, result.reason], ["error", "backend"]);
    assert.equal(result.errors[0]!.kind, "permanent");
    assert.equal(it.backend.chats.length, 1);
  }
});

Deno.test("a conversation that does not fit is not sent again, and its window is told", async () => {
  const message = "maximum context length is 8192 tokens, you requested 9000 tokens";
  const config = { max_tokens: 1024 };
  const script = [{ ...httpError(500, message), repeat: 9 }];
  await using it = await agent(script, { clock: clockOf(), config });
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.reason], ["error", "context"]);
  const [error] = result.errors;
  assert.deepEqual([error!.kind, error!.window], ["overflow", 8192]);
  assert.equal(it.backend.chats.length, 1);
});

Deno.test("transient failures are retried with growing pauses, then the backend is unreachable", async () => {
  const clock = clockOf();
  const start = clock.time;
  await using it = await agent([{ ...httpError(503), repeat: 99 }], { clock });
  const { result, events } = await it.turn("go");
  assert.deepEqual([result.status, result.reason], ["error", "unreachable"]);
  assert.ok(it.backend.chats.length >= 5 && it.backend.chats.length <= 9);
  assert.equal(Math.round((clock.time - start) / 1000), 60); // the setting retry_budget
  assert.match(notices(events)[1]!, /Retrying in .* \(attempt 3, waiting 60 s in all at most\)\./);
});

Deno.test("an announced time ends the turn, and neither this nor another process asks before it", async () => {
  const clock = clockOf();
  await using it = await agent([busy(7200), say("open")], { clock });
  const opens = clock.time + 7_200_000;
  const { result } = await it.turn("go");
  assert.deepEqual([result.status, result.reason], ["error", "quota"]);
  const [error] = result.errors;
  assert.deepEqual([error!.kind, error!.retry_at], ["announced", opens]);
  assert.match(
    error!.message,
    /It answers again at 2026-01-02T05:04:05Z, in 2 h\. The setting quota_wait \(--wait\) lets/,
  );
  const file = join(it.project.path, ".svc", "quota.json");
  assert.equal(Deno.statSync(file).mode! & 0o777, 0o600);
  clock.time = opens - 60_001;
  assert.equal((await collect(it.another().turn("again"))).result.reason, "quota");
  assert.equal(it.backend.chats.length, 1);
  clock.time = opens;
  assert.equal((await collect(it.another().turn("again"))).result.content, "open");
  assert.equal(it.backend.chats.length, 2);
});

Deno.test("a turn that may wait for a quota does, says so every 30 seconds, and goes on", async () => {
  for (const [config, task] of [[{}, { quota_wait: 7200 }], [{ quota_wait: 7200 }, {}]] as const) {
    const clock = clockOf();
    const start = clock.time;
    await using it = await agent([busy(3601), say("open")], { clock, config });
    const { result, events } = await collect(it.engine.turn("go", { task }));
    assert.deepEqual([result.status, result.reason, result.content], ["ok", "", "open"]);
    assert.equal(it.backend.chats.length, 2);
    const told = notices(events);
    assert.equal(told.length, 121);
    assert.match(told[60]!, /It answers again at 2026-01-02T04:04:06Z, in 30 min 1 s\.$/);
    assert.ok(clock.time >= start + 3_601_000);
  }
});

Deno.test("the time to wait is that of all rounds of a turn together", async () => {
  const clock = clockOf();
  const replies = [
    busy(3000),
    { ...hang(), hang: undefined, text: "a", finish: "length" },
    busy(3000),
  ];
  await using it = await agent(replies, { clock });
  const { result } = await collect(it.engine.turn("go", { task: { quota_wait: 5000 } }));
  assert.equal(result.reason, "quota");
  assert.equal(result.content, "a");
  assert.equal(it.backend.chats.length, 3);
});

Deno.test("agents that a turn starts wait from the same time", async () => {
  const files = { ".svc/roles.json": '{"digger": {"system_prompt": "YOU DIG"}}' };
  const script = [
    call("delegate", { role: "digger", task: "dig" }),
    as("YOU DIG", busy(3000)),
    as("YOU DIG", say("found")),
    busy(3000),
  ];
  await using it = await agent(script, { clock: clockOf(), files });
  const { result } = await collect(it.engine.turn("go", { task: { quota_wait: 5000 } }));
  assert.deepEqual([result.status, result.reason], ["error", "quota"]);
  assert.equal(it.backend.chats.length, 4);
});

Deno.test("a stream that stalls is requested again once, then the turn has stalled", async () => {
  const clock = clockOf();
  await using it = await agent([hang(), hang(), say("late")], { clock });
  const turn = it.turn("go");
  for (let i = 1; i <= 2; i++) {
    await it.backend.arrived(i);
    await clock.expire(120_000);
  }
  const { result } = await turn;
  assert.deepEqual([result.status, result.reason], ["error", "stalled"]);
  assert.equal(it.backend.chats.length, 2);
});

Deno.test("the next model of model_fallback answers when the model cannot", async () => {
  const failures = [
    httpError(404, "the model is gone"),
    busy(7200),
    { ...httpError(503), repeat: 99 },
  ];
  for (const failure of failures) {
    const config = { model_fallback: ["gone", "small"] };
    const script = [
      { ...failure, when: { model: "test" } },
      { ...httpError(404, "gone too"), when: { model: "gone" } },
      { ...say("from small"), when: { model: "small" } },
    ];
    await using it = await agent(script, { clock: clockOf(), config });
    const { result, events } = await it.turn("go");
    assert.deepEqual([result.status, result.reason, result.content], ["ok", "", "from small"]);
    assert.deepEqual([result.model, result.errors], ["small", []]);
    const told = notices(events).slice(-2);
    assert.match(told[0]!, /\. Asking generic-compatible\/gone instead \(model_fallback\)\.$/);
    assert.match(told[1]!, /gone too.*Asking generic-compatible\/small instead/);
    const [turn] = it.session.document().turns;
    assert.equal(turn!.model, "small");
    const [started] = events;
    assert.ok(started?.type === "turn_started" && started.model === "test");
  }
});

Deno.test("a conversation that does not fit goes to no other model", async () => {
  const config = { model_fallback: ["small"] };
  await using it = await agent([httpError(400, "prompt is too long"), say("x")], { config });
  assert.equal((await it.turn("go")).result.reason, "context");
  assert.equal(it.backend.chats.length, 1);
});

Deno.test("when every model fails, the quota that opens first is waited for", async () => {
  const config = { model_fallback: ["small", "gone"] };
  const script = [
    { ...busy(7200), when: { model: "test" } },
    { ...busy(3600), when: { model: "small" } },
    { ...httpError(404), when: { model: "gone" } },
    { ...say("from small"), when: { model: "small" } },
  ];
  for (const [quota_wait, reason] of [[3599, "quota"], [4000, ""]] as const) {
    await using it = await agent(script, { clock: clockOf(), config });
    const { result } = await collect(it.engine.turn("go", { task: { quota_wait } }));
    assert.equal(result.reason, reason);
    assert.equal(result.content, reason === "" ? "from small" : "");
    const opens = result.errors[0]?.retry_at;
    if (reason !== "") assert.equal(opens, Date.UTC(2026, 0, 2, 4, 4, 5));
  }
});

Deno.test("a fallback that is a ref needs approval, as every model", async () => {
  const user = { "providers.json": JSON.stringify({ far: { base_url: "http://far.test/v1" } }) };
  const config = { model_fallback: ["far/big"] };
  await assert.rejects(agent([say("x")], { config, user }), /model not approved: far\/big/);
  await using it = await agent([say("x")], { user });
  it.workspace.config.override("model_fallback", config.model_fallback);
  await it.prepare({ approve_models: true });
  assert.ok(it.workspace.models.isApproved("far", "big"));
});

Deno.test("quotas are kept by address and model, and forgotten when they have opened", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const clock = new TestClock();
    const open = () => new QuotaStore(directory, clock, () => {});
    const at = (model: string) => open().gate("http://a", model);
    await at("one").close(clock.time + 1000);
    await at("two").close(clock.time + 5000);
    assert.deepEqual([at("one").opens_at(), at("three").opens_at()], [clock.time + 1000, 0]);
    clock.time += 2000;
    await at("three").close(clock.time + 1000);
    const kept = JSON.parse(await Deno.readTextFile(join(directory, "quota.json")));
    assert.deepEqual(Object.keys(kept), ["http://a two", "http://a three"]);
    clock.time -= 86_400_000; // a time that another clock wrote
    assert.equal(at("two").opens_at(), 0);
    clock.time += 86_400_000;
    assert.ok(at("two").opens_at() > clock.time);
    await Deno.writeTextFile(join(directory, "quota.json"), "[1]");
    assert.equal(at("two").opens_at(), 0);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});

Deno.test("with stream_retries 0, a stream without content is requested once [2.13, 7.2, 8]", async () => {
  for (const reply of [empty(), cut("", 0), cut("\n", 0)]) {
    for (const [stream_retries, requests, status] of [[0, 1, "failed"], [1, 2, "ok"]] as const) {
      const config = { stream_retries };
      await using it = await agent([reply, say("done")], { clock: clockOf(), config });
      const { result } = await it.turn("go");
      assert.equal(it.backend.chats.length, requests, JSON.stringify(reply));
      assert.equal(result.status === "ok" ? "ok" : "failed", status);
      assert.equal(result.errors.length, status === "ok" ? 0 : 1);
    }
  }
});

Deno.test("with stream_retries 0, a refusal inside the stream is answered as one with a status [7.4]", async () => {
  const error = { code: 429, message: "slow down" };
  for (const refusal of [busy(1), raw(`data: ${JSON.stringify({ error })}\n\n`)]) {
    const config = { stream_retries: 0 };
    await using it = await agent([refusal, say("done")], { clock: clockOf(), config });
    const { result } = await it.turn("go");
    assert.equal(result.status, "ok");
  }
});
