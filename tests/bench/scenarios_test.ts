import assert from "node:assert/strict";
import { type Contestant, floor } from "../../bench/contestants.ts";
import { Meter } from "../../bench/measure.ts";
import { requestFigures } from "../../bench/requests.ts";
import { compare, type Outcome, SCENARIOS } from "../../bench/scenarios.ts";

Deno.test("the floor holds every conversation to its end", async () => {
  for (const { id } of SCENARIOS) {
    const [outcome] = await run(id, floor());
    assert.ok(outcome && "runs" in outcome, `${id}: ${JSON.stringify(outcome)}`);
    assert.equal(outcome.runs.length, 2, "the warm-up is not counted");
  }
});

Deno.test("a contestant that does not read what it is told to is not measured", async () => {
  const honest = floor();
  const lazy: Contestant = {
    ...honest,
    name: "lazy",
    read: (_first, limit, place) => honest.read(1, limit, place),
  };
  const [first, second] = await run("hundred_rounds", lazy, honest);
  assert.deepEqual(first, {
    name: "lazy",
    did_not_run: "no final answer: A tool result is missing.",
  });
  assert.ok(second && "runs" in second, "the others are");
});

Deno.test("a session log without the calls is not measured", async () => {
  const forgetful: Contestant = { ...floor(), loggedCalls: () => Promise.resolve(99) };
  assert.deepEqual(await run("hundred_rounds", forgetful), [{
    name: "floor",
    did_not_run: "99 of 100 tool calls in the session log",
  }]);
});

Deno.test("requests outside the conversation are answered separately", async () => {
  const curious: Contestant = { ...floor(), aside: { when: { system: "title" }, text: "A title" } };
  const [outcome] = await run("one_turn", curious);
  assert.ok(outcome && "runs" in outcome, "the answer for the title is not taken for the turn's");
});

Deno.test("the requests of two turns are compared as a backend has them in its cache", async () => {
  const folder = await Deno.makeTempDir({ prefix: "svc-test-" });
  try {
    using meter = new Meter();
    const forgetful: Contestant = { ...floor(), again: floor().turn };
    const [figures] = await requestFigures([forgetful, floor()], meter, folder);
    const { prefix, tools, first } = figures!;
    assert.ok(prefix > 1 && prefix < 40, `${prefix} %`); // the tools, and a little more
    assert.ok(tools > 100 && first > tools);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

async function run(id: string, ...contestants: Contestant[]): Promise<Outcome[]> {
  const folder = await Deno.realPath(await Deno.makeTempDir({ prefix: "svc-test-" }));
  try {
    using meter = new Meter();
    const scenario = SCENARIOS.find((each) => each.id === id)!;
    return await compare(scenario, contestants, 2, meter, folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
