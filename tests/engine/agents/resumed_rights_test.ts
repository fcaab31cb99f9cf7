import assert from "node:assert/strict";
import { RunRegistry } from "../../../src/engine/runs.ts";
import { agent, collect, results } from "../../support/agent.ts";
import { as, call, say } from "../../support/backend.ts";

const files = {
  ".svc/roles.json": JSON.stringify({
    digger: { system_prompt: "YOU DIG", tool_permission: { edit: "deny" } },
    maker: { system_prompt: "YOU MAKE" },
    weak: { system_prompt: "YOU ARE WEAK", tool_permission: { edit: "deny" } },
  }),
};
const to = (role: string, task: string, more: Record<string, unknown> = {}) =>
  call("delegate", { role, task, ...more });
const write = call("file_write", { path: "x.txt", content: "x" });

Deno.test("a run that the operator continues has no more rights than the agent that last resumed it gave", async () => {
  await using it = await agent([
    to("digger", "dig"),
    as("YOU DIG", say("dug")),
    to("weak", "have it made"),
    as("YOU ARE WEAK", to("maker", "write the file when you are told to", { resume: "#2" })),
    as("YOU MAKE", say("waiting")),
    as("YOU ARE WEAK", say("it waits")),
    say("done"),
    as("YOU MAKE", write),
    as("YOU MAKE", say("tried")),
    to("maker", "on", { resume: "#2" }),
    as("YOU MAKE", say("on it")),
    say("done"),
    as("YOU MAKE", write),
    as("YOU MAKE", say("written")),
  ], { files });
  const runs = new RunRegistry(100);
  const prepared = await it.prepare({ runs });
  const root = () => prepared.open(it.session);
  await collect(root().turn("go"));
  const run = runs.resolve("#2")!;
  assert.deepEqual([run.role, run.parent], ["maker", 1]);
  const person = async () => {
    const maker = await prepared.openRun(runs.resolve("#2")!);
    const { events } = await collect(maker.turn("go on"));
    await maker.close();
    return results(events, 2)[0]!;
  };
  assert.match(await person(), /^Error: permission denied: file_write \(category edit\)/);
  // Its own parent may have it back.
  await collect(root().turn("go on"));
  assert.match(await person(), /^Created /);
});
