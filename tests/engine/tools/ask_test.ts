import assert from "node:assert/strict";
import { agent } from "../../support/agent.ts";
import { answering } from "../../support/operator.ts";
import { call, say } from "../../support/backend.ts";
import { tool } from "../../support/tool.ts";

const question = { question: "Which port?", context: "8080 is taken", options: ["8081", "9090"] };

Deno.test("ask of a root run reaches the operator as it is and the answer is the result; a lead's question reaches them too [4.8]", async () => {
  const human = answering("9090");
  await using it = await agent([
    call("ask", question),
    call("ask", { question: "Sure?", target: "lead" }),
    say("done"),
  ], { operator: human });
  const { result, events } = await it.turn("go");
  assert.deepEqual(result.tool_calls.map(({ name, is_error }) => [name, is_error]), [
    ["ask", false],
    ["ask", false],
  ]);
  assert.deepEqual(
    events.flatMap((event) => event.type === "tool_result" ? [event.output] : []),
    ["9090", "9090"],
  );
  const asked = human.asked.map(({ signal: _, ...rest }) => rest);
  const from = { run: 1, session: it.session.name };
  assert.deepEqual(asked, [
    { ...question, ...from },
    { question: "Sure?", context: "", options: [], ...from },
  ]);
  assert.deepEqual(it.workspace.asks.list(), []);
});

Deno.test("ask in an unattended run parks the question as [parked] Ask #<id>, and no one is asked [3.2, 4.8]", async () => {
  const human = answering("9090");
  await using it = await agent([
    call("ask", question),
    say("waiting"),
    say("thanks"),
  ], { operator: human, config: { unattended: true } });
  const { events, result } = await it.turn("go");
  const [ask] = it.workspace.asks.list();
  const { created_at: _, ...parked } = ask!;
  assert.deepEqual(parked, {
    id: 1,
    ...question,
    origin: it.session.name,
    kind: "direction",
    permission: "",
    status: "pending",
    answer: "",
    answered_at: "",
  });
  assert.deepEqual(human.asked, []);
  assert.equal(result.status, "ok");
  const kinds = events.map(({ type }) => type);
  const place = kinds.indexOf("ask");
  assert.deepEqual(events[place], {
    type: "ask",
    run: 1,
    id: 1,
    question: "Which port?",
  });
  assert.ok(kinds.indexOf("tool_call") < place && place < kinds.indexOf("tool_result"));
  const [output] = events.flatMap((event) => event.type === "tool_result" ? [event.output] : []);
  assert.match(output!, /^\[parked\] Ask #1 /);

  await it.workspace.asks.answer(1, "8081");
  await it.turn("continue");
  const sent = it.backend.chats.at(-1).messages.map(({ content }: { content: string }) => content);
  assert.ok(sent.includes("[answer to parked ask #1] 8081"));
});

Deno.test("ask without an operator fails and says so [4.8, 7.4]", async () => {
  await using it = await agent([call("ask", question), call("ask", { question: " " }), say("ok")]);
  const { events } = await it.turn("go");
  const results = events.flatMap((event) => event.type === "tool_result" ? [event] : []);
  assert.match(results[0]!.output, /^Error: ask has no one to answer/);
  assert.match(results[1]!.output, /^Error: ask needs a question/);
  assert.ok(results.every(({ is_error }) => is_error));
  assert.deepEqual(it.workspace.asks.list(), []);
});

Deno.test("ask is never confirm-gated, and a denied category keeps it out [4.8]", async () => {
  for (const action of ["ask", "deny"] as const) {
    const human = answering("9090");
    await using it = await agent([call("ask", question), say("ok")], {
      operator: human,
      config: { tool_permission: { ask: action } },
    });
    await it.turn("go");
    assert.equal(human.asked.length, action === "ask" ? 1 : 0);
    const decisions = it.session.document().permissions.map(({ decision }) => decision);
    assert.deepEqual(decisions, [action === "ask" ? "granted" : "denied"]);
    const offered = JSON.stringify(it.backend.chats[0].tools).includes('"ask"');
    assert.equal(offered, action === "ask");
  }
});

Deno.test("a plugin's tool never gets the operator, and cannot take the name ask", async () => {
  await using it = await agent([call("nosy"), say("ok")]);
  let given: string[] = [];
  const nosy = tool({
    name: "nosy",
    handler(_args, context) {
      given = Object.keys(context);
      return "ok";
    },
  });
  it.workspace.tools.register(nosy, "core"); // as a plugin of that name would
  await it.turn("go");
  const own = [
    ...["ask", "attach", "commands", "config", "key", "max_result", "paths", "progress", "reads"],
    ...["run", "session", "signal", "trace"],
  ];
  assert.deepEqual(given.toSorted(), own);
  for (const owner of ["other", "core"]) {
    assert.throws(() => it.workspace.tools.register(tool({ name: "ask" }), owner), /clashes/);
  }
});
