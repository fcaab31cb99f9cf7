import assert from "node:assert/strict";
import type { TurnEvent, TurnResult } from "../../src/engine/events.ts";
import type { TurnTask } from "../../src/engine/task.ts";
import { compact } from "../../src/engine/compaction.ts";
import { systemClock } from "../../src/platform/clock.ts";
import type { RequestLine } from "../../src/usage/ledger.ts";
import { agent, collect, results, type TestAgent } from "../support/agent.ts";
import {
  as,
  call,
  calls,
  cut,
  hang,
  httpError,
  raw,
  type Reply,
  say,
  think,
  usage,
} from "../support/backend.ts";
import { manualClock } from "../support/clock.ts";
import { answering } from "../support/operator.ts";

const ROLES = {
  hand: { system_prompt: "YOU WORK" },
  far: { system_prompt: "YOU ARE FAR", model: "other" },
};
const TEAMS = { pair: { stages: ["hand", "hand"] } };
const files = {
  ".svc/roles.json": JSON.stringify(ROLES),
  ".svc/teams.json": JSON.stringify(TEAMS),
  "a.txt": "alpha",
};
const prices = { "generic-compatible/test": { in: 1, out: 2, cached: 0.5 } };
const READ = call("file_read", { path: "a.txt" });
/** Different calls, so that the model does not repeat itself. */
const READS = Array.from({ length: 20 }, (_, n) => call("file_read", { path: `${n}` }));
const used = (reply: Reply, tokens: [number, number]) => ({ ...reply, ...usage(...tokens) });
const run = (it: TestAgent, task: TurnTask) => collect(it.engine.turn("go", { task }));
const notices = (events: TurnEvent[]) =>
  events.flatMap((event) => event.type === "notice" ? [event.message] : []);

/** The requests in the ledger. */
function ledger(it: TestAgent): RequestLine[] {
  const { ledger } = it.workspace.spending;
  return ledger.days().flatMap((day) => ledger.read(day))
    .filter((line): line is RequestLine => "for" in line);
}

/** A clock whose sleeps of so many seconds end when `pass` is called. */
function deadlineClock(seconds: number) {
  const passed = Promise.withResolvers<void>();
  const sleep: typeof systemClock.sleep = (ms, signal) =>
    ms === seconds * 1000 ? passed.promise : systemClock.sleep(ms, signal);
  return { clock: { ...systemClock, sleep }, pass: () => passed.resolve() };
}

/** A backend with the same reply for everything but what `replies` say. */
const always = (reply: Reply, replies: Reply[] = []) => ({ replies, default: reply });

Deno.test("each kind of request is in the ledger, with who made it and what it was for", async () => {
  await using it = await agent(
    always(
      used(say("fine"), [10, 5]),
      [
        calls([["web_search", { query: "bees" }], ["delegate", { role: "hand", task: "dig" }]]),
        as("YOU WORK", call("ask", { question: "Where?", target: "lead" })),
        { ...call("team", { name: "pair", task: "build" }), when: { user: "more" } },
      ].map((reply) => used(reply, [10, 5])),
    ),
    {
      files,
      operator: answering("not me"),
      config: {
        tool_analysis: true,
        query_refine: true,
        memory_enabled: true,
        "web.search_engine": "searxng",
        "web.search_url": "http://127.0.0.1:9",
        prices,
      },
    },
  );
  const { result } = await it.turn("go");
  assert.equal(result.status, "ok", JSON.stringify(result.errors));
  await it.turn("more");
  const provider = it.workspace.connect((await it.prepare()).backend, it.session.name);
  await compact({ provider, session: it.session, keep: 1 });
  await it.workspace.background.settle();

  const lines = ledger(it);
  assert.equal(lines.length, it.backend.chats.length, "one line for each request");
  const kinds = new Map(
    [...Map.groupBy(lines, (line) => line.for)].map(([name, each]) => [name, each.length]),
  );
  assert.deepEqual([...kinds.keys()].sort(), [
    ...["analysis", "consultation", "memory", "search", "summary", "turn"],
  ]);
  for (const line of lines) {
    assert.equal(line.cost, 0.00002);
    assert.deepEqual([line.provider, line.model], ["generic-compatible", "test"]);
    assert.deepEqual([line.in, line.out], [10, 5]);
    assert.ok(line.session);
  }
  const own = lines.filter(({ session }) => session === it.session.name);
  assert.ok(own.length > 3);
  assert.ok(lines.some(({ role, team }) => role === "hand" && team === undefined));
  assert.ok(lines.some(({ role, team }) => role === "hand" && team === "pair"));
  assert.ok(lines.some(({ for: what, role }) => what === "memory" && role === "hand"));
  assert.ok(lines.some(({ for: what, role }) => what === "consultation" && role === "hand"));
});

Deno.test("a result has the turn's own usage, and the usage and the cost of the whole tree", async () => {
  await using it = await agent([
    used(call("delegate", { role: "hand", task: "dig" }), [100, 10]),
    as("YOU WORK", used(say("dug"), [1000, 100])),
    used(say("done"), [200, 20]),
  ], { files, config: { prices } });
  const { result, events } = await it.turn("go");
  assert.deepEqual(result.usage, { prompt_tokens: 300, completion_tokens: 30, total_tokens: 330 });
  assert.deepEqual(
    result.total_usage,
    { prompt_tokens: 1300, completion_tokens: 130, total_tokens: 1430 },
  );
  assert.equal(result.cost, 0.00156);
  const sub = events.find((event) => event.type === "turn_finished" && event.run === 2)!;
  const { result: below } = sub as { result: TurnResult };
  assert.deepEqual([below.usage.total_tokens, below.cost], [1100, 0.0012]);
  const [turn] = it.session.document().turns;
  assert.deepEqual([turn!.usage, turn!.cost], [result.usage, 0.00156]);
  const logged = it.workspace.sessions.read(below.session)!.turns[0]!;
  assert.deepEqual([logged.usage, logged.cost], [below.usage, 0.0012]);
});

Deno.test("without a price, or with a model that has none, the cost is unknown", async () => {
  await using it = await agent([
    used(call("delegate", { role: "far", task: "dig" }), [100, 10]),
    as("YOU ARE FAR", used(say("dug"), [1000, 100])),
    used(say("done"), [200, 20]),
  ], { files, config: { prices } });
  const prepared = await it.prepare({ approve_models: true });
  const { result } = await collect(prepared.open(it.session).engine.turn("go"));
  assert.equal(result.cost, null);
  assert.equal(result.total_usage.total_tokens, 1430);
  assert.equal("cost" in it.session.document().turns[0]!, false);
});

Deno.test("failed requests are recorded; counts that a backend leaves out are estimated", async () => {
  await using it = await agent([httpError(400), say("x".repeat(40))], {});
  await it.turn("go");
  const { result } = await it.turn("again");
  assert.deepEqual(result.usage, {});
  const [failed, silent] = ledger(it);
  assert.deepEqual([failed!.failed, failed!.in, failed!.out], [true, 0, 0]);
  assert.deepEqual([silent!.estimated, silent!.failed, silent!.out], [true, undefined, 10]);
  assert.equal(silent!.in, Math.ceil(silent!.chars / 4));
});

Deno.test("a turn ends in order before its budget of tokens is exceeded", async () => {
  await using it = await agent(READS.map((each) => used(each, [100, 10])), { files });
  const { result, events } = await run(it, { max_total_tokens: 490 });
  assert.deepEqual([result.status, result.reason], ["error", "budget"]);
  assert.equal(it.backend.chats.length, 4);
  assert.match(
    result.errors[0]!.message,
    /^Stopped by the budget max_total_tokens: 440 of 490 tokens are used, and the next request needs about 1\d\d tokens\./,
  );
  assert.deepEqual(
    notices(events).filter((text) => /%/.test(text)),
    ["89 % of the budget max_total_tokens are used: 440 of 490 tokens."],
  );
  // What was done is kept, and the session goes on.
  const [turn] = it.session.document().turns;
  assert.equal(turn!.parts.filter(({ type }) => type === "tool").length, 4);
  assert.deepEqual([turn!.status, turn!.usage!.total_tokens], ["error", 440]);
});

Deno.test("the next request of a budget counts with the frames of its messages", async () => {
  const reads: [string, { path: string }][] = Array(30).fill(["file_read", { path: "a.txt" }]);
  await using it = await agent([used(calls(reads), [100, 10]), used(say("read"), [1200, 10])], {
    files,
  });
  const { result } = await run(it, { max_total_tokens: 800 }); // the texts alone take less than 300
  assert.equal(result.reason, "budget", JSON.stringify(result));
  assert.equal(it.backend.chats.length, 1);
});

/** A clock whose waits before another attempt take no time. */
function hasty(): typeof systemClock {
  let ahead = 0;
  const now = () => systemClock.now() + ahead;
  return {
    now,
    sleep(ms, signal) {
      const retry = ms > 300 && ms < 5000;
      if (retry) ahead += ms;
      return systemClock.sleep(retry ? 0 : ms, signal);
    },
  };
}

for (
  const [how, reply] of [
    ["before its first event", cut("")],
    ["without an end", raw("")],
    ["in the arguments of a call", { ...call("file_read", { path: "b" }), cut: { after: 1 } }],
    ["in its reasoning", { ...think("hm"), cut: { after: 1 } }],
  ] as const
) {
  Deno.test(`a reply that breaks off ${how} counts its prompt, and a budget ends the turn [7.2]`, async () => {
    await using it = await agent(always(reply, [used(READ, [100, 10])]), {
      files,
      clock: hasty(),
      config: { stream_retries: 20, auto_continue_max: 20, retry_budget: 30 },
    });
    const { result } = await run(it, { max_total_tokens: 450 });
    assert.deepEqual([result.status, result.reason], ["error", "budget"]);
    assert.equal(it.backend.chats.length, 3, "of 110, and twice more than 100 tokens");
    const [first, ...cuts] = ledger(it);
    assert.deepEqual([first!.in, first!.out], [100, 10]);
    assert.equal(cuts.length, 2, "one line for each request");
    for (const { estimated, failed, in: tokens } of cuts) {
      assert.deepEqual([estimated, failed], [true, true]);
      assert.ok(tokens >= 100 && tokens < 170, String(tokens));
    }
  });
}

Deno.test("a request that is refused counts nothing, also when the refusal is in the stream [7.2]", async () => {
  const refusal = `data: ${JSON.stringify({ error: { code: 503, message: "overloaded" } })}\n\n`;
  await using it = await agent([httpError(503), raw(refusal), used(say("ok"), [100, 10])], {
    clock: hasty(),
    config: { "budget.turn": { tokens: 10_000 } },
  });
  assert.equal((await it.turn("go")).result.content, "ok");
  assert.deepEqual(ledger(it).map((line) => [line.in, line.out]), [[100, 10]]);
});

Deno.test("a budget of cost counts by the prices", async () => {
  await using it = await agent(always(used(READ, [1000, 500])), { files, config: { prices } });
  const { result } = await run(it, { max_cost: 0.005 });
  assert.deepEqual([result.reason, result.cost], ["budget", 0.004]);
  assert.match(result.errors[0]!.message, /the budget max_cost: 0\.004 of 0\.005 are used/);
});

Deno.test("a reply may have as many tokens as the budget leaves", async () => {
  await using it = await agent(READS.map((each) => used(each, [100, 10])), { files });
  await run(it, { max_total_tokens: 490 });
  const most = it.backend.chats.map(({ max_tokens }) => max_tokens);
  assert.ok(most[0] <= 490 && most[1] <= 260, JSON.stringify(most));
  assert.ok(most[3] >= 1 && most[3] <= 20, JSON.stringify(most));
});

Deno.test("a cost budget without a price is rejected before the turn", async () => {
  await using it = await agent([say("no")], { files });
  await assert.rejects(it.prepare({ task: { max_cost: 1 } }), {
    code: "no_price",
    exit: 2,
    message: "The budget max_cost cannot be kept: generic-compatible/test has no price.",
  });
  for (const key of ["budget.turn", "budget.day"]) {
    it.workspace.config.override(key, { cost: 1 });
    await assert.rejects(it.prepare(), { code: "no_price" });
    it.workspace.config.release(key as "budget.day");
  }
  it.workspace.config.override("prices", prices);
  const prepared = await it.prepare({ task: { max_cost: 1 }, approve_models: true });
  await assert.rejects(prepared.backends(["other"]), { code: "no_price" });
});

Deno.test("tool calls beyond the budget do not run, and the turn ends", async () => {
  await using it = await agent([
    calls([["file_read", { path: "a.txt" }], ["file_read", { path: "a.txt" }]]),
    calls([["file_read", { path: "a.txt" }], ["file_read", { path: "b.txt" }]]),
    say("no"),
  ], { files });
  const { result, events } = await run(it, { max_tool_calls: 3 });
  assert.deepEqual([result.status, result.reason], ["error", "budget"]);
  assert.match(result.errors[0]!.message, /the budget max_tool_calls: 3 of 3 tool calls are used/);
  assert.equal(results(events).length, 4);
  assert.match(results(events)[3]!, /not run: no further tool call is allowed/);
  assert.equal(it.backend.chats.length, 2);
  assert.equal(ledger(it).reduce((sum, line) => sum + line.calls, 0), 3);
});

Deno.test("a model that keeps to its tool calls answers", async () => {
  await using it = await agent([READ, say("alpha")], { files });
  const { result } = await run(it, { max_tool_calls: 1 });
  assert.deepEqual([result.status, result.content], ["ok", "alpha"]);
});

Deno.test("parallel sub-agents share one budget and do not exceed it together", async () => {
  const dig = (n: number) => ["delegate", { role: "hand", task: `dig ${n}` }] as [string, object];
  await using it = await agent({
    replies: [
      used(calls([dig(1), dig(2), dig(3), dig(4)] as never), [100, 10]),
      ...Array.from(
        { length: 20 },
        (_, n) =>
          as("YOU WORK", { ...used(call("file_read", { path: `${n}` }), [100, 10]), delay_ms: 5 }),
      ),
    ],
    default: used(READ, [100, 10]),
  }, { files });
  const { result } = await run(it, { max_total_tokens: 1000 });
  assert.equal(result.reason, "budget");
  assert.ok(result.total_usage.total_tokens! <= 1000, `${result.total_usage.total_tokens}`);
  assert.ok(result.total_usage.total_tokens! > 700, `${result.total_usage.total_tokens}`);
});

Deno.test("max_rounds limits each agent of the turn", async () => {
  await using it = await agent({
    replies: [
      call("delegate", { role: "hand", task: "dig" }),
      as("YOU WORK", { ...READ, repeat: 9 }),
    ],
    default: say("done"),
  }, { files });
  const { result, events } = await run(it, { max_rounds: 2 });
  assert.equal(result.status, "ok");
  assert.match(results(events)[0]!, /Stopped after 2 rounds/);
});

Deno.test("budget.turn of the configuration holds for each turn", async () => {
  await using it = await agent(always(used(READ, [100, 10])), {
    files,
    config: { "budget.turn": { tokens: 290 } },
  });
  for (const _ of [1, 2]) {
    const { result } = await it.turn("go");
    assert.equal(result.reason, "budget");
    assert.match(result.errors[0]!.message, /the budget budget\.turn\.tokens: 220 of 290/);
  }
});

Deno.test("budget.day counts all turns of the UTC day, those of earlier processes too", async () => {
  const { now, set } = manualClock();
  const clock = { now, sleep: systemClock.sleep };
  await using it = await agent(always(used(say("ok"), [100, 10])), {
    clock,
    config: { "budget.day": { tokens: 400 } },
  });
  const reasons = [];
  for (const _ of [1, 2, 3, 4]) {
    // A new workspace has no totals in memory.
    await it.workspace.spending.close();
    Object.assign(it.workspace, {
      spending: Reflect.construct(it.workspace.spending.constructor, [{
        state: it.workspace.paths.state,
        config: it.workspace.config,
        clock,
        warn: () => {},
      }]),
    });
    const { result } = await collect(it.another().turn("go"));
    reasons.push(result.reason);
  }
  assert.deepEqual(reasons, ["", "", "", "budget"]);
  set(now() + 86_400_000);
  const { result } = await collect(it.another().turn("go"));
  assert.equal(result.reason, "");
});

Deno.test("a budget of the day without tool calls left begins no turn", async () => {
  await using it = await agent([READ, say("ok"), say("no")], {
    files,
    config: { "budget.day": { tool_calls: 1 } },
  });
  assert.equal((await it.turn("go")).result.status, "ok");
  const { result } = await it.turn("again");
  assert.deepEqual([result.reason, it.backend.chats.length], ["budget", 2]);
});

Deno.test("the budgets of jobs count a job's requests alone, of its run or of the day", async () => {
  await using it = await agent(always(used(say("ok"), [100, 10])), {
    config: { "budget.job_run": { tokens: 250 }, "budget.job_day": { tokens: 400 } },
  });
  const turn = async (job?: string, run = "2026-01-01T00:00:00.000Z") => {
    it.workspace.spending.job = job === undefined ? undefined : { job, run };
    const { result } = await it.turn("go");
    return /budget\.(\w+)/.exec(result.errors[0]?.message ?? "")?.[1] ?? result.status;
  };
  assert.deepEqual([await turn("a"), await turn("a"), await turn("a")], ["ok", "ok", "job_run"]);
  assert.equal(await turn(), "ok");
  assert.equal(await turn("b"), "ok");
  const next = "2026-01-01T01:00:00.000Z";
  assert.deepEqual([await turn("a", next), await turn("a", next)], ["ok", "job_day"]);
});

Deno.test("a turn that takes too long ends with the reason timeout", async () => {
  const { clock, pass } = deadlineClock(777);
  await using it = await agent([READ, hang("part")], { files, clock });
  const events: TurnEvent[] = [];
  for await (const event of it.engine.turn("go", { task: { timeout: 777 } })) {
    events.push(event);
    if (event.type === "token") pass();
  }
  const { result } = events.at(-1) as { result: TurnResult };
  assert.deepEqual([result.status, result.reason], ["error", "timeout"]);
  assert.match(result.errors[0]!.message, /^Stopped after 777 seconds/);
  assert.equal(result.content, "part");
  const [turn] = it.session.document().turns;
  assert.equal(turn!.status, "error");
});

Deno.test("a turn without an operator has the time of unattended_timeout, and that of its wait for a quota", async () => {
  const times: [Record<string, unknown>, TurnTask, number][] = [
    [{ unattended: true }, {}, 7200],
    [{ unattended: true, unattended_timeout: 60 }, { quota_wait: 30 }, 90],
    [{ unattended: true }, { timeout: 5 }, 5],
  ];
  for (const [config, task, seconds] of times) {
    const { clock, pass } = deadlineClock(seconds);
    await using it = await agent([hang("part")], { clock, config });
    let reason = "";
    for await (const event of it.engine.turn("go", { task })) {
      if (event.type === "token") pass();
      if (event.type === "turn_finished") reason = event.result.reason;
    }
    assert.equal(reason, "timeout");
  }
});

Deno.test("a team's stages share the limits of its turn, and its result has the usage of all", async () => {
  const stage = (n: number) => as("YOU WORK", used(READS[n]!, [100, 10]));
  const { backends, turn } = await teamOf([stage(0), stage(1), stage(2), stage(3)]);
  await using it = backends;
  const { result } = await turn({ max_total_tokens: 290 });
  assert.deepEqual([result.status, result.reason], ["error", "budget"]);
  assert.equal(result.total_usage.total_tokens, 220);
  assert.match(result.errors[0]!.message, /max_total_tokens: 220 of 290 tokens/);
  assert.equal(it.session.document().turns[0]!.status, "error");
});

Deno.test("a team's turn ends at its timeout", async () => {
  const { clock, pass } = deadlineClock(777);
  const { backends, turn } = await teamOf([as("YOU WORK", hang("part"))], { clock });
  await using _ = backends;
  const { result } = await turn({ timeout: 777 }, (event) => {
    if (event.type === "token") pass();
  });
  assert.deepEqual([result.status, result.reason], ["error", "timeout"]);
});

/** The team `pair` on a task, as an operator starts it. */
async function teamOf(replies: Reply[], options: Parameters<typeof agent>[1] = {}) {
  const { planTeam } = await import("../../src/engine/teams.ts");
  const { teamTurn } = await import("../../src/engine/team_turn.ts");
  const it = await agent(replies, { files, ...options });
  const prepared = await it.prepare();
  const plan = await planTeam(prepared, "pair");
  const started = prepared.open(it.session);
  const { signal } = new AbortController();
  const request = { plan, task: "go", command: "/teams run pair go" };
  return {
    backends: it,
    async turn(task: TurnTask, seen: (event: TurnEvent) => void = () => {}) {
      let result: TurnResult | undefined;
      for await (const event of teamTurn(started, request, { signal, task })) {
        seen(event);
        if (event.type === "turn_finished" && event.run === 1) result = event.result;
      }
      return { result: result! };
    },
  };
}
