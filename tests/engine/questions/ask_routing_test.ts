import assert from "node:assert/strict";
import type { TurnEvent } from "../../../src/engine/events.ts";
import { RunRegistry } from "../../../src/engine/runs.ts";
import { systemClock } from "../../../src/platform/clock.ts";
import { agent, collect, results, subs } from "../../support/agent.ts";
import { as, call, empty, hang, httpError, type Reply, say, usage } from "../../support/backend.ts";
import { answering } from "../../support/operator.ts";

const ROLES = {
  boss: { system_prompt: "YOU LEAD", tool_permission: { delegate: "allow" } },
  hand: { system_prompt: "YOU WORK" },
  hermit: { system_prompt: "YOU HIDE", ask_policy: { direction: "deny" } },
  subordinate: { system_prompt: "YOU OBEY", ask_policy: { direction: "lead" } },
};
const files = { ".svc/roles.json": JSON.stringify(ROLES) };
const to = (role: string, task: string) => call("delegate", { role, task });
/** What the lead's model says when it is consulted; a role's prompt tells which. */
const lead = (reply: Reply, identity = "") =>
  as(`${identity === "" ? "" : `${identity}\n\n`}An agent that works for you has stopped`, reply);
const QUESTION = { question: "Which port?", context: "8080 is taken", options: ["8081", "9090"] };
const asks = (more: Record<string, unknown> = {}) => call("ask", { ...QUESTION, ...more });
const routes = (events: TurnEvent[]) =>
  events.flatMap((event) =>
    event.type === "ask"
      ? [[event.run, "inbox", event.id, event.question]]
      : event.type === "ask_routed"
      ? [[event.run, event.to, 0, event.question]]
      : []
  );

Deno.test("a sub-agent's question for the human reaches its lead first, and so does one for the lead [4.8]", async () => {
  for (const target of ["human", "lead", undefined]) {
    const operator = answering("not me");
    await using it = await agent([
      to("hand", "serve it"),
      as("YOU WORK", asks(target === undefined ? {} : { target })),
      lead(say("<think>hm</think>Take 9090.")),
      as("YOU WORK", say("served")),
      say("done"),
    ], { files, operator, config: { unattended: true } });
    const { events } = await it.turn("make it run");
    assert.deepEqual(results(events, 2), ["Take 9090."]);
    assert.deepEqual(routes(events), [[2, 1, 0, "Which port?"]]);
    assert.deepEqual(operator.asked, []);
    assert.deepEqual(it.workspace.asks.list(), []);
  }
});

Deno.test("what a consultation costs is in the usage of the turn that asked, and in no other", async () => {
  await using it = await agent([
    to("hand", "serve it"),
    as("YOU WORK", asks({ target: "lead" })),
    lead({ ...say("Take 9090."), ...usage(100, 20) }),
    as("YOU WORK", { ...say("served"), ...usage(7, 3) }),
    { ...say("done"), ...usage(1, 1) },
  ], { files, operator: answering("not me") });
  const { events, result } = await it.turn("make it run");
  const [asker] = events.flatMap((event) =>
    event.type === "turn_finished" && event.run === 2 ? [event.result.usage] : []
  );
  assert.deepEqual(asker, { prompt_tokens: 107, completion_tokens: 23, total_tokens: 130 });
  assert.deepEqual(result.usage, { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 });
});

Deno.test("the consultation of a lead holds the role's prompt, both tasks and the question, and no tools [4.8]", async () => {
  await using it = await agent([
    to("boss", "build the house"),
    as("YOU LEAD", to("hand", "lay the bricks")),
    as("YOU WORK", asks()),
    lead(say("8081"), "YOU LEAD"),
    as("YOU WORK", say("laid")),
    as("YOU LEAD", say("built")),
    say("done"),
  ], { files });
  const { events } = await it.turn("a roof over my head");
  assert.deepEqual(results(events, 3), ["8081"]);
  const { messages, tools, stream } = it.backend.chats[3];
  assert.equal(tools, undefined);
  assert.notEqual(stream, true);
  assert.equal(messages.length, 2);
  assert.match(messages[0].content, /^YOU LEAD\n\nAn agent that works for you/);
  assert.equal(
    messages[1].content,
    "## The task you were given\n\nbuild the house\n\n" +
      "## The task you gave to hand\n\nlay the bricks\n\n" +
      "## Its question\n\nWhich port?\n\n" +
      "## What it says about it\n\n8080 is taken\n\n" +
      "## The choices it sees\n\n- 8081\n- 9090",
  );
});

Deno.test("the texts of a lead's consultation are cut [4.8]", async () => {
  await using it = await agent([
    to("hand", "t".repeat(10_000)),
    as("YOU WORK", call("ask", { question: "q".repeat(10_000), context: "c".repeat(10_000) })),
    lead(say("yes")),
    as("YOU WORK", say("ok")),
    say("done"),
  ], { files });
  await it.turn("u".repeat(10_000));
  const { content } = it.backend.chats[2].messages[1];
  for (const letter of "tqcu") {
    const [head, tail, ...more] = content.match(new RegExp(`${letter}{99,}`, "g"));
    assert.equal(more.length, 0);
    assert.ok(head.length + tail.length <= 4000 && head.length + tail.length > 3900);
  }
});

Deno.test("a lead that is silent, cannot decide, fails or says something of no use is passed over, up to the root and then the human [4.8]", async () => {
  const silent: Reply[] = [
    empty(),
    say("CANNOT DECIDE"),
    say("I am sorry, but I cannot decide: CANNOT DECIDE."),
    say("<think>9090?</think>"),
    say("\u0007 \n"),
    say("Error: the disk is full"),
    say("[parked] Ask #7 waits for a human"),
    say("[answer to parked ask #1] 8081"),
    say("x".repeat(8001)),
    httpError(401),
  ];
  for (const reply of silent) {
    const operator = answering("9090");
    await using it = await agent([
      to("boss", "build"),
      as("YOU LEAD", to("hand", "lay")),
      as("YOU WORK", asks({ target: "lead" })),
      lead(reply, "YOU LEAD"),
      lead(reply),
      as("YOU WORK", say("laid")),
      as("YOU LEAD", say("built")),
      say("done"),
    ], { files, operator });
    const { events, result } = await it.turn("go");
    assert.deepEqual(results(events, 3), ["9090"], JSON.stringify(reply));
    const q = "Which port?";
    assert.deepEqual(routes(events), [[3, 2, 0, q], [3, 1, 0, q], [3, "human", 0, q]]);
    const [first, ...more] = operator.asked;
    assert.deepEqual(more, []);
    const { signal: _, ...asked } = first!;
    const session = subs(events)[1]!;
    assert.deepEqual(asked, {
      ...QUESTION,
      question: `${session} asks: Which port?`,
      run: 3,
      session,
    });
    assert.deepEqual([result.status, result.errors], ["ok", []]);
  }
});

Deno.test("a lead that keeps silent is not waited for longer than a minute [4.8]", async () => {
  const slept: number[] = [];
  const clock = {
    now: systemClock.now,
    sleep(ms: number, signal?: AbortSignal) {
      slept.push(ms);
      return ms === 60_000 ? Promise.resolve() : systemClock.sleep(ms, signal);
    },
  };
  await using it = await agent([
    to("hand", "lay"),
    as("YOU WORK", asks()),
    lead(hang("Well, ")),
    as("YOU WORK", say("laid")),
    say("done"),
  ], { files, clock, operator: answering("9090") });
  const { events } = await it.turn("go");
  assert.deepEqual(results(events, 2), ["9090"]);
  assert.equal(slept.filter((ms) => ms === 60_000).length, 1);
});

Deno.test("cancelling the turn ends a consultation, and no one else is asked", async () => {
  const operator = answering("9090");
  await using it = await agent([
    to("hand", "lay"),
    as("YOU WORK", asks()),
    lead(hang()),
  ], { files, operator });
  const stop = new AbortController();
  const consulted = it.backend.arrived(3).then((request) => {
    stop.abort();
    return request.gone;
  });
  const { result, events } = await it.turn("go", stop.signal);
  await consulted;
  assert.equal(result.status, "cancelled");
  assert.deepEqual(operator.asked, []);
  const sub = it.workspace.sessions.read(subs(events)[0]!)!;
  assert.equal(sub.turns[0]!.status, "cancelled");
});

Deno.test("a sub-agent of an unattended run parks its question at any depth in its own name, and no human is asked [3.2]", async () => {
  const operator = answering("never");
  await using it = await agent([
    to("boss", "a"),
    as("YOU LEAD", to("boss", "b")),
    as("YOU LEAD", { ...to("hand", "c"), when: { system: "YOU LEAD", user: "b" } }),
    as("YOU WORK", asks()),
    { ...lead(say("CANNOT DECIDE")), repeat: 3 },
    as("YOU WORK", say("waiting")),
    as("YOU LEAD", { ...say("ok"), repeat: 2 }),
    say("done"),
  ], { files, operator, config: { unattended: true } });
  const { events } = await it.turn("go");
  const session = subs(events)[2]!;
  assert.match(results(events, 4)[0]!, /^\[parked\] Ask #1 /);
  assert.deepEqual(routes(events).map(([run, to, id]) => [run, to, id]), [
    [4, 3, 0],
    [4, 2, 0],
    [4, 1, 0],
    [4, "inbox", 1],
  ]);
  assert.deepEqual(operator.asked, []);
  const [parked] = it.workspace.asks.list();
  assert.deepEqual([parked!.origin, parked!.kind, parked!.question], [
    session,
    "direction",
    "Which port?",
  ]);
  const { injected } = await it.workspace.asks.answer(1, "8081");
  assert.ok(injected);
  const last = it.workspace.sessions.read(session)!.turns.at(-1)!;
  assert.deepEqual(last.parts.map((part) => part.type === "user" && part.text), [
    "[answer to parked ask #1] 8081",
  ]);
});

Deno.test("without a channel the ask of a sub-agent is an error: no one answers [4.8]", async () => {
  await using it = await agent([
    to("hand", "lay"),
    as("YOU WORK", asks()),
    lead(say("CANNOT DECIDE")),
    as("YOU WORK", say("so be it")),
    say("done"),
  ], { files });
  const { events } = await it.turn("go");
  assert.match(results(events, 2)[0]!, /^Error: ask has no one to answer/);
  assert.deepEqual(it.workspace.asks.list(), []);
});

Deno.test("an operator who gives no answer cancels the question, which is no error [4.8]", async () => {
  await using it = await agent([asks(), say("ok")], {
    operator: answering(undefined),
    headless: false,
  });
  const { events, result } = await it.turn("go");
  assert.match(results(events, 1)[0]!, /^\[cancelled\] The operator gave no answer/);
  assert.equal(result.tool_calls[0]!.is_error, false);
  const notes = events.flatMap((event) => event.type === "tool_result" ? [event.note] : []);
  assert.deepEqual(notes, ["no answer was given"]);
});

Deno.test("ask_policy of the role goes over the configuration's: lead keeps to the agents, deny asks no one [2.12]", async () => {
  for (const [role, prompt] of [["hermit", "YOU HIDE"], ["subordinate", "YOU OBEY"]] as const) {
    const operator = answering("9090");
    await using it = await agent([
      to(role, "lay"),
      as(prompt, asks({ target: "human" })),
      ...role === "subordinate" ? [lead(say("CANNOT DECIDE"))] : [],
      as(prompt, say("so be it")),
      say("done"),
    ], { files, operator, config: { unattended: true, ask_policy: { direction: "human" } } });
    const { events } = await it.turn("go");
    assert.match(results(events, 2)[0]!, /^Error: ask has no one to answer: .*ask_policy/);
    assert.deepEqual(routes(events).map(([, to]) => to), role === "hermit" ? [] : [1]);
    assert.deepEqual([operator.asked, it.workspace.asks.list()], [[], []]);
  }
  await using it = await agent([asks(), say("ok")], {
    config: { ask_policy: { direction: "lead" } },
  });
  const { events } = await it.turn("go");
  assert.match(results(events, 1)[0]!, /^Error: ask has no one to answer: .*ask_policy/);
});

Deno.test("an agent that only asks where no one answers is stopped, and its caller is told", async () => {
  await using it = await agent([
    to("hermit", "lay"),
    as("YOU HIDE", { ...asks(), repeat: 3 }),
    say("done"),
  ], { files });
  const { events } = await it.turn("go");
  const session = subs(events)[0]!;
  assert.ok(results(events, 1)[0]!.startsWith(
    `Error: the agent hermit (#2, session ${session}) ended with status error: Stopped`,
  ));
});

Deno.test("an answer to a parked ask that arrives while the origin's turn runs is seen by the next one [3.2]", async () => {
  await using it = await agent([asks(), hang("still "), say("thanks")], {
    config: { unattended: true },
  });
  const stop = new AbortController();
  for await (const event of it.engine.turn("go", { signal: stop.signal })) {
    if (event.type !== "token") continue;
    assert.equal((await it.workspace.asks.answer(1, "8081")).injected, true);
    stop.abort();
  }
  await it.turn("continue");
  const said = it.backend.chats.at(-1).messages.map(({ content }: { content: string }) => content);
  assert.deepEqual(said.slice(-2), ["[answer to parked ask #1] 8081", "continue"]);
});

Deno.test("an agent that the operator continues still asks its ancestors", async () => {
  await using it = await agent([
    lead({ ...say("9090"), repeat: 1 }, "YOU LEAD"),
    to("boss", "build"),
    as("YOU LEAD", to("hand", "lay")),
    as("YOU WORK", say("laid")),
    as("YOU LEAD", say("built")),
    say("done"),
    as("YOU WORK", asks()),
    as("YOU WORK", say("served")),
  ], { files });
  const runs = new RunRegistry(100);
  const operator = answering("not me");
  const prepared = await it.prepare({ operator, headless: false, runs });
  await collect(prepared.open(it.session).turn("go"));
  const hand = await prepared.openRun(runs.resolve("#3")!);
  const events: TurnEvent[] = [];
  for await (const event of hand.turn("serve it")) events.push(event);
  await hand.close();
  assert.deepEqual(results(events, 3), ["9090"]);
  assert.deepEqual(routes(events), [[3, 2, 0, "Which port?"]]);
  assert.match(it.backend.chats.at(-2).messages[1].content, /## The task you were given\n\nbuild/);
  assert.deepEqual(operator.asked, []);
});
