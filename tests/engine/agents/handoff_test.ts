import assert from "node:assert/strict";
import { ROOT_RUN, type TurnEvent } from "../../../src/engine/events.ts";
import { RunRegistry, targetRun } from "../../../src/engine/runs.ts";
import { runTreeLines } from "../../../src/repl/render/saved_turns.ts";
import { style } from "../../../src/platform/style.ts";
import { agent, collect, results } from "../../support/agent.ts";
import { as, call, calls, type Reply, say } from "../../support/backend.ts";

const ROLES = {
  hand: { system_prompt: "YOU WORK" },
  other: { system_prompt: "YOU REST" },
};
const files = { ".svc/roles.json": JSON.stringify(ROLES), "a.txt": "alpha" };
const to = (role: string) => call("delegate", { role, task: "t" });
const handoffs = (events: TurnEvent[]) =>
  events.flatMap((event) => event.type === "handoff" ? [[event.run, event.target]] : []);

Deno.test("a handoff confirms, and the loop stops after its batch without another round [3.6, 4.8]", async () => {
  await using it = await agent([
    to("hand"),
    as("YOU WORK", say("here")),
    calls([["handoff", { target: "child" }], ["file_read", { path: "a.txt" }]], {
      text: "over to the hand",
    }),
    say("never said"),
  ], { files });
  const { events, result } = await it.turn("go");
  assert.deepEqual(handoffs(events), [[1, 2]]);
  const [, confirmed, read] = results(events, 1);
  assert.equal(confirmed, "Run #1 pauses; the person goes on with run #2.");
  assert.match(read!, /alpha/);
  assert.equal(it.backend.chats.length, 3);
  assert.deepEqual([result.status, result.content, result.errors], ["ok", "over to the hand", []]);
  assert.deepEqual(result.tool_calls.map(({ name }) => name), ["delegate", "handoff", "file_read"]);
  const decision = it.session.document().permissions.find(({ tool }) => tool === "handoff")!;
  assert.deepEqual([decision.action, decision.decision], ["allow", "granted"]);
  // A pause does not end the session: the next turn continues from here.
  await it.turn("go on");
  assert.equal(it.backend.chats.length, 4);
});

Deno.test("a run that hands over is paused, and running again with its next prompt [2.5, 3.6]", async () => {
  const runs = new RunRegistry(0);
  await using it = await agent([
    to("hand"),
    as("YOU WORK", call("handoff", { target: "root" }, { text: "your turn" })),
    say("thanks"),
    call("handoff", { target: "child" }),
    say("back again"),
  ], { files });
  const engine = (await it.prepare({ runs })).open(it.session).engine;
  const { events } = await collect(engine.turn("go"));
  assert.deepEqual(events.filter(({ type }) => type === "run_finished"), [
    { type: "run_finished", run: 2, status: "paused" },
  ]);
  const shown = () => runTreeLines(runs.list(), ROOT_RUN, style({ enabled: false }), 80).join("\n");
  assert.match(shown(), /#1 root \[ok\][^]*#2 hand \[paused\]/);
  await collect(engine.turn("over"));
  assert.match(shown(), /#1 root \[paused\]/);
  await collect(engine.turn("go on"));
  assert.match(shown(), /#1 root \[ok\]/);
});

Deno.test("handoff with done finishes the run, and its caller continues [3.6]", async () => {
  for (const args of [{ done: true }, { target: "done" }]) {
    await using it = await agent([
      to("hand"),
      as("YOU WORK", call("handoff", args, { text: "all laid" })),
      say("well done"),
    ], { files });
    const { events, result } = await it.turn("go");
    assert.deepEqual(handoffs(events), [[2, "done"]]);
    assert.deepEqual(results(events, 2), ["Run #2 is done."]);
    assert.match(results(events, 1)[0]!, /^all laid\n\n\[hand #2, session sub_/);
    assert.deepEqual(events.filter(({ type }) => type === "run_finished"), [
      { type: "run_finished", run: 2, status: "ok" },
    ]);
    assert.equal(result.content, "well done");
  }
});

Deno.test("handoff to a target that is unknown, empty or the run itself is an error and does not pause [3.6, 7.4]", async () => {
  await using it = await agent([
    to("hand"),
    as("YOU WORK", say("here")),
    call("handoff", { target: "#9" }),
    call("handoff", { target: "hand" }),
    call("handoff", { target: "parent" }),
    call("handoff"),
    call("handoff", { target: "root" }),
    say("I stay"),
  ], { files });
  const { events, result } = await it.turn("go");
  assert.deepEqual(handoffs(events), []);
  const [, number, role, parent, none, self] = results(events, 1);
  assert.equal(
    number,
    'Error: there is no run "#9" to hand over to; the runs are #1, #2 (hand)',
  );
  assert.match(role!, /^Error: there is no run "hand"/);
  assert.match(parent!, /^Error: there is no run "parent"/);
  assert.equal(none, "Error: handoff needs a target, or done");
  assert.equal(self, "Error: run #1 is this one; hand over to another, or say done");
  assert.equal(result.content, "I stay");
});

Deno.test("handoff from a sub-agent goes to its parent, a sibling, or a run by number, session's name or id [3.6, 4.8]", async () => {
  const cases: [(sub: { name: string; id: string }) => string, number][] = [
    [() => "parent", 1],
    [() => "root", 1],
    [() => "#1", 1],
    [() => "sibling", 2],
    [() => "2", 2],
    [({ name }) => name, 2],
    [({ name }) => `session:${name}`, 2],
    [({ id }) => `#${id}`, 2],
  ];
  for (const [target, run] of cases) {
    const script: Reply[] = [to("other"), as("YOU REST", say("here")), to("hand")];
    await using it = await agent(script, { files });
    const events: TurnEvent[] = [];
    for await (const event of it.engine.turn("go")) {
      events.push(event);
      if (event.type !== "run_started" || event.run !== 2) continue;
      const name = event.session;
      const id = name.split("_").at(-1)!;
      script.push(as("YOU WORK", call("handoff", { target: target({ name, id }) })), say("done"));
    }
    assert.deepEqual(handoffs(events), [[3, run]], target({ name: "<name>", id: "<id>" }));
  }
});

Deno.test("the targets of handoff step through the tree of runs and through their order [3.6, 4.8]", () => {
  const runs = new RunRegistry(10);
  const start = (parent: number) =>
    runs.start({ parent, role: "", session: { name: `s${runs.list().length}`, id: "" }, task: "" });
  for (const parent of [0, 1, 2, 1, 1]) start(parent);
  const from = (id: number) => (target: string) => targetRun(runs, id, target)?.id;
  const words = ["parent", "child", "sibling", "next", "prev", "root"];
  assert.deepEqual(words.map(from(1)), [undefined, 5, undefined, 2, undefined, 1]);
  assert.deepEqual(words.map(from(2)), [1, 3, 4, 3, 1, 1]);
  assert.deepEqual(words.map(from(3)), [2, undefined, undefined, 4, 2, 1]);
  assert.deepEqual(words.map(from(5)), [1, undefined, 2, undefined, 4, 1]);
  assert.equal(from(3)("session:s1"), 2);
});
